/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: rows of top-k and window. Rows with images
 * are in test_combine_index_image.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/combine_index_rig.h"

static sight_rig r;

static void
setup(void)
{
	sight_open(&r);
}

static void
teardown(void)
{
	sight_close(&r);
}

/* ---- By hand ------------------------------------------------------------- */

/* The vector of the specification: length 10, 2 query tokens, 9 gathered,
 * window 8, ratio 4, top-k 16, 20 rows a request, the window from row 3 on,
 * request 1. Position 8 has 9 / 4 = 2 entries and sees 1 .. 8; 1 was gathered
 * first, so the window is 23 .. 30; position 9 sees 2 .. 9, which is 24 ..
 * 31. */
START_TEST(two_tokens_worked_out_by_hand)
{
	uint32_t t, k;

	r.a.tokens = 2;
	r.a.window = 8;
	r.a.topk = 16;
	r.a.topk_stride_elems = SIGHT_TOPK;
	r.a.width = 128;
	r.a.window_row = 3;
	r.a.indices_stride_elems = 128;
	r.seq[1] = 10;
	r.gather[1] = 9;
	for (t = 0; t < 2; t++) {
		r.req[t] = 1;
		r.context[t] = 9 + (int32_t)t;
		r.topk[t * SIGHT_TOPK] = 1;
	}
	sight_check(&r);
	for (t = 0; t < 2; t++) {
		ck_assert_int_eq(r.io.lens[t], 10);
		ck_assert_int_eq(r.io.indices[t * 128], 21);
		ck_assert_int_eq(r.io.indices[t * 128 + 1], 20);
		for (k = 0; k < 8; k++)
			ck_assert_int_eq(r.io.indices[t * 128 + 2 + k],
					 (int32_t)(23 + t + k));
		ck_assert_int_eq(r.io.indices[t * 128 + 10], -1);
		ck_assert_int_eq(r.io.indices[t * 128 + 127], -1);
	}
}
END_TEST

/* Request 0 of 11 keys, the last 4 (7 .. 10) gathered to rows 5 .. 8. Position
 * 10 has 11 / 4 = 2 entries and sees 8, 9, 10. */
START_TEST(topk_comes_first_and_then_the_window)
{
	r.context[0] = 11;
	memcpy(r.topk, (const int32_t[]){1, 0, 7, 7}, 16); /* 2 columns count */
	sight_expect(&r, (const int32_t[]){1, 0, 6, 7, 8, -1, -1, -1, -1}, 5, 0,
		     0);
	r.req[0] = 1; /* of 19, 12 gathered from 7 on: 8 is row 6 */
	sight_expect(&r, (const int32_t[]){21, 20, 26, 27, 28, -1, -1, -1, -1},
		     5, 0, 0);
}
END_TEST

START_TEST(index_below_zero_is_left_out_and_the_rest_moves_up)
{
	r.context[0] = 19;
	r.req[0] = 1; /* 19 / 4 = 4 entries; 16 .. 18 are 9 .. 11 from 7 */
	memcpy(r.topk, (const int32_t[]){-1, 3, INT32_MIN, 0}, 16);
	sight_expect(&r, (const int32_t[]){23, 20, 34, 35, 36, -1, -1, -1, -1},
		     5, 0, 0);
	memcpy(r.topk, (const int32_t[]){-1, -1, -1, -1}, 16);
	sight_expect(&r, (const int32_t[]){34, 35, 36, -1, -1, -1, -1, -1, -1},
		     3, 0, 0);
}
END_TEST

START_TEST(window_alone_needs_no_topk)
{
	r.a.topk = 0;
	r.a.topk_indices = NULL;
	r.a.topk_stride_elems = 0;
	r.context[0] = 10;
	sight_expect(&r, (const int32_t[]){5, 6, 7, -1, -1, -1, -1, -1, -1}, 3,
		     0, 0);
}
END_TEST

/* Position 7 of request 0 sees 5, 6, 7; only 7 was gathered. Both keys
 * of a request of two are seen. */
START_TEST(window_ends_where_the_gathered_keys_begin)
{
	r.context[0] = 8;
	sight_expect(&r, (const int32_t[]){0, 0, 5, -1, -1, -1, -1, -1, -1}, 3,
		     0, 0);
	r.seq[0] = r.gather[0] = r.context[0] = 2;
	sight_expect(&r, (const int32_t[]){5, 6, -1, -1, -1, -1, -1, -1, -1}, 2,
		     0, 0);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

static const int32_t empty[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};

START_TEST(token_that_is_none_has_an_empty_row)
{
	static const int32_t none[3] = {0, -1, INT32_MIN};

	r.context[0] = none[_i];
	r.req[0] = -9; /* not looked at */
	sight_expect(&r, empty, 0, 0, 0);
}
END_TEST

START_TEST(request_outside_is_empty_and_reported)
{
	static const int32_t outside[4] = {2, -1, INT32_MAX, INT32_MIN};

	r.context[0] = 5;
	r.req[0] = outside[_i];
	sight_expect(&r, empty, 0, SPMLA_FAULT_ROW, 1);
}
END_TEST

/* A length below the token's; keys gathered that are below none, more than
 * there are, more than there are rows for (20 - 5), or that end before the
 * token. */
START_TEST(lengths_that_do_not_fit_are_empty_and_reported)
{
	static const int32_t lens[7][3] = {
		{10, 4, 11},        {11, -1, 11}, {11, 12, 11},
		{16, 16, 11},       {11, 4, 7},   {INT32_MIN, 4, 11},
		{-5, INT32_MIN, 11}};

	r.seq[0] = lens[_i][0];
	r.gather[0] = lens[_i][1];
	r.context[0] = lens[_i][2];
	sight_expect(&r, empty, 0, SPMLA_FAULT_LENGTH, 1);
}
END_TEST

/* 2 entries are whole at position 10; and 1 row is there for them. */
START_TEST(index_outside_is_left_out_and_reported)
{
	r.context[0] = 11;
	memcpy(r.topk, (const int32_t[]){2, INT32_MAX, 0, 0}, 16);
	sight_expect(&r, (const int32_t[]){6, 7, 8, -1, -1, -1, -1, -1, -1}, 3,
		     SPMLA_FAULT_INDEX, 2);
	r.a.window_row = 1;
	memcpy(r.topk, (const int32_t[]){1, 0, 0, 0}, 16);
	sight_expect(&r, (const int32_t[]){0, 2, 3, 4, -1, -1, -1, -1, -1}, 4,
		     SPMLA_FAULT_INDEX, 1);
}
END_TEST

/* Two requests of 1073741823 rows. 2^31 - 1 keys have 536870911 entries; the
 * last 4 keys are gathered, and the window is the last 3 of them. */
START_TEST(rows_up_to_the_end_of_int32_do_not_wrap)
{
	r.a.requests = 2;
	r.a.request_rows = INT32_MAX / 2;
	r.a.window_row = r.a.request_rows - 4;
	r.req[0] = 1;
	r.seq[1] = INT32_MAX;
	r.gather[1] = 4;
	r.context[0] = INT32_MAX;
	memcpy(r.topk, (const int32_t[]){536870910, 0, -1, 536870909}, 16);
	sight_expect(&r,
		     (const int32_t[]){1073741823 + 536870910, 1073741823,
				       1073741823 + 536870909, 2147483643,
				       2147483644, 2147483645, -1, -1, -1},
		     6, 0, 0);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

/* Case i's sizes. */
static void
random_sizes(uint32_t i)
{
	static const uint32_t windows[4] = {1, 8, 64, 130};
	static const uint32_t topks[5] = {0, 16, 31, 128, SIGHT_TOPK};

	r.a.window = windows[i % 4];
	r.a.ratio = i % 2 ? 4 : 1;
	r.a.topk = topks[i % 5];
	r.a.width = r.a.topk + r.a.window + i % 6;
	r.a.indices_stride_elems = r.a.width + i % 4;
	r.a.topk_stride_elems = r.a.topk + i % 3;
	r.a.tokens = SIGHT_TOKENS;
	r.a.requests = SIGHT_REQUESTS;
	r.a.window_row = 1000 / r.a.ratio;
	r.a.request_rows = r.a.window_row + 1000;
}

/* Requests and tokens; hostile: some are bad data. */
static void
random_tokens(uint64_t *rng, uint32_t hostile)
{
	uint32_t i;

	for (i = 0; i < SIGHT_REQUESTS; i++) {
		r.seq[i] = 1 + (int32_t)rng_below(rng, 1000);
		r.gather[i] = 1 + (int32_t)rng_below(rng, (uint32_t)r.seq[i]);
	}
	for (i = 0; i < SIGHT_TOKENS; i++) {
		const uint32_t b = rng_below(rng, SIGHT_REQUESTS);

		r.req[i] = (int32_t)(b + (hostile && i % 9 == 0 ? SIGHT_REQUESTS
								: 0));
		r.context[i] = r.seq[b] -
			       (int32_t)rng_below(rng, (uint32_t)r.gather[b]);
		if (rng_below(rng, 8) == 0)
			r.context[i] = 0;
		if (hostile && rng_below(rng, 4) == 0)
			r.context[i] += (int32_t)rng_below(rng, 99) - 50;
	}
}

/* The top-k of every token; `gaps`: a third of the entries are -1. */
static void
random_topk(uint64_t *rng, uint32_t hostile, uint32_t gaps)
{
	const uint32_t stride = (uint32_t)r.a.topk_stride_elems;
	uint32_t i;

	for (i = 0; r.a.topk && i < r.a.tokens * stride; i++) {
		const int32_t n = r.context[i / stride];
		const uint32_t most = n > 0 ? (uint32_t)n / r.a.ratio : 1;

		r.topk[i] = (int32_t)rng_below(rng, most + 1 + 5 * hostile) - 1;
		if (gaps && rng_below(rng, 3) == 0)
			r.topk[i] = -1;
	}
}

START_TEST(random_rows_equal_the_rule)
{
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t hostile = _i % 3 == 2;

	random_sizes((uint32_t)_i);
	random_tokens(&rng, hostile);
	random_topk(&rng, hostile, _i & 8);
	sight_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{two_tokens_worked_out_by_hand, 1},
		{topk_comes_first_and_then_the_window, 1},
		{index_below_zero_is_left_out_and_the_rest_moves_up, 1},
		{window_alone_needs_no_topk, 1},
		{window_ends_where_the_gathered_keys_begin, 1},
	};
	const theme_test edge[] = {
		{token_that_is_none_has_an_empty_row, 3},
		{request_outside_is_empty_and_reported, 4},
		{lengths_that_do_not_fit_are_empty_and_reported, 7},
		{index_outside_is_left_out_and_reported, 1},
		{rows_up_to_the_end_of_int32_do_not_wrap, 1},
	};
	const theme_test determinism[] = {
		{random_rows_equal_the_rule, 48},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
