/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: rows of top-k and window, against the rule written out once
 * more in 64 bits. What the call refuses and graphs are in
 * test_combine_index_call.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cases.h"
#include "tests/support/index_rig.h"

#include "spmla/ops/combine_index.h"

enum { TOKENS = 24, REQUESTS = 6, MOST_TOPK = 300, ROOM = 16384 };

static fixture f;
static struct {
	int32_t indices[ROOM];
	int32_t lens[TOKENS + 1];
} io, want;
static int32_t topk[TOKENS * (MOST_TOPK + 3)], req[TOKENS], context[TOKENS];
static int32_t seq[REQUESTS], gather[REQUESTS];
static spmla_combine_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	memset(topk, 0, sizeof topk);
	memset(req, 0, sizeof req);
	memset(context, 0, sizeof context);
	a = (spmla_combine_index_args){.struct_bytes = sizeof a,
				       .tokens = 1,
				       .requests = 2,
				       .window = 3,
				       .ratio = 4,
				       .topk = 4,
				       .width = 9,
				       .request_rows = 20,
				       .window_row = 5,
				       .req_id_per_token = req,
				       .context_lens = context,
				       .seq_lens = seq,
				       .gather_lens = gather,
				       .topk_indices = topk,
				       .topk_stride_elems = 4,
				       .indices = io.indices,
				       .indices_stride_elems = 10,
				       .lens = io.lens};
	seq[0] = 11;
	gather[0] = 4;
	seq[1] = 19;
	gather[1] = 12;
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const void *args)
{
	ck_assert_int_eq(spmla_combine_index(f.ctx, args, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

static void
oracle_token(uint32_t t, index_faults *faults)
{
	int32_t *out = want.indices + t * a.indices_stride_elems;
	const int64_t n = a.context_lens[t], b = a.req_id_per_token[t];
	int64_t k, p, len = 0, from, whole;

	want.lens[t] = 0;
	for (k = 0; k < (int64_t)a.width; k++)
		out[k] = -1;
	if (n <= 0)
		return;
	if (b < 0 || b >= (int64_t)a.requests) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return;
	}
	from = (int64_t)a.seq_lens[b] - a.gather_lens[b];
	if (n > a.seq_lens[b] || a.gather_lens[b] < 0 || from < 0 ||
	    from >= n ||
	    a.gather_lens[b] > (int64_t)a.request_rows - a.window_row) {
		index_report(faults, t, SPMLA_FAULT_LENGTH);
		return;
	}
	whole = n / a.ratio;
	for (k = 0; k < whole && k < (int64_t)a.topk; k++) {
		const int64_t i = a.topk_indices[t * a.topk_stride_elems + k];

		if (i < 0)
			continue;
		if (i >= whole || i >= (int64_t)a.window_row)
			index_report(faults, t, SPMLA_FAULT_INDEX);
		else
			out[len++] = (int32_t)(b * a.request_rows + i);
	}
	for (p = n > (int64_t)a.window ? n - a.window : 0; p < n; p++)
		if (p >= from)
			out[len++] = (int32_t)(b * a.request_rows +
					       a.window_row + p - from);
	want.lens[t] = (int32_t)len;
}

static void
check(void)
{
	index_faults faults = {0};
	uint32_t t;

	memset(&io, 0x5A, sizeof io);
	memset(&want, 0x5A, sizeof want);
	for (t = 0; t < a.tokens; t++)
		oracle_token(t, &faults);
	fixture_twice(&f, call, &a, &io, sizeof io);
	ck_assert_mem_eq(&io, &want, sizeof io);
	index_check_faults(&f, &faults);
}

static void
expect(const int32_t *indices, int32_t len, uint32_t fault, uint32_t count)
{
	call(&a);
	ck_assert_mem_eq(io.indices, indices, 9 * sizeof *indices);
	ck_assert_int_eq(io.indices[9], 0x5A5A5A5A);
	ck_assert_int_eq(io.lens[0], len);
	ck_assert_uint_eq(fixture_status(&f).fault, fault);
	ck_assert_uint_eq(fixture_status(&f).count, count);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	check();
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

	a.tokens = 2;
	a.window = 8;
	a.topk = 16;
	a.topk_stride_elems = MOST_TOPK;
	a.width = 128;
	a.window_row = 3;
	a.indices_stride_elems = 128;
	seq[1] = 10;
	gather[1] = 9;
	for (t = 0; t < 2; t++) {
		req[t] = 1;
		context[t] = 9 + (int32_t)t;
		topk[t * MOST_TOPK] = 1;
	}
	check();
	for (t = 0; t < 2; t++) {
		ck_assert_int_eq(io.lens[t], 10);
		ck_assert_int_eq(io.indices[t * 128], 21);
		ck_assert_int_eq(io.indices[t * 128 + 1], 20);
		for (k = 0; k < 8; k++)
			ck_assert_int_eq(io.indices[t * 128 + 2 + k],
					 (int32_t)(23 + t + k));
		ck_assert_int_eq(io.indices[t * 128 + 10], -1);
		ck_assert_int_eq(io.indices[t * 128 + 127], -1);
	}
}
END_TEST

/* Request 0 of 11 keys, the last 4 (7 .. 10) gathered to rows 5 .. 8. Position
 * 10 has 11 / 4 = 2 entries and sees 8, 9, 10. */
START_TEST(topk_comes_first_and_then_the_window)
{
	context[0] = 11;
	memcpy(topk, (const int32_t[]){1, 0, 7, 7}, 16); /* 2 columns count */
	expect((const int32_t[]){1, 0, 6, 7, 8, -1, -1, -1, -1}, 5, 0, 0);
	req[0] = 1; /* of 19, 12 gathered from 7 on: 8 is row 6 */
	expect((const int32_t[]){21, 20, 26, 27, 28, -1, -1, -1, -1}, 5, 0, 0);
}
END_TEST

START_TEST(index_below_zero_is_left_out_and_the_rest_moves_up)
{
	context[0] = 19;
	req[0] = 1; /* 19 / 4 = 4 entries; 16 .. 18 are 9 .. 11 from 7 */
	memcpy(topk, (const int32_t[]){-1, 3, INT32_MIN, 0}, 16);
	expect((const int32_t[]){23, 20, 34, 35, 36, -1, -1, -1, -1}, 5, 0, 0);
	memcpy(topk, (const int32_t[]){-1, -1, -1, -1}, 16);
	expect((const int32_t[]){34, 35, 36, -1, -1, -1, -1, -1, -1}, 3, 0, 0);
}
END_TEST

START_TEST(window_alone_needs_no_topk)
{
	a.topk = 0;
	a.topk_indices = NULL;
	a.topk_stride_elems = 0;
	context[0] = 10;
	expect((const int32_t[]){5, 6, 7, -1, -1, -1, -1, -1, -1}, 3, 0, 0);
}
END_TEST

/* Position 7 of request 0 sees 5, 6, 7, of which 7 was gathered. Of a request
 * of two keys, both are seen. */
START_TEST(window_ends_where_the_gathered_keys_begin)
{
	context[0] = 8;
	expect((const int32_t[]){0, 0, 5, -1, -1, -1, -1, -1, -1}, 3, 0, 0);
	seq[0] = gather[0] = context[0] = 2;
	expect((const int32_t[]){5, 6, -1, -1, -1, -1, -1, -1, -1}, 2, 0, 0);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

static const int32_t empty[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};

START_TEST(token_that_is_none_has_an_empty_row)
{
	static const int32_t none[3] = {0, -1, INT32_MIN};

	context[0] = none[_i];
	req[0] = -9; /* not looked at */
	expect(empty, 0, 0, 0);
}
END_TEST

START_TEST(request_outside_is_empty_and_reported)
{
	static const int32_t outside[4] = {2, -1, INT32_MAX, INT32_MIN};

	context[0] = 5;
	req[0] = outside[_i];
	expect(empty, 0, SPMLA_FAULT_ROW, 1);
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

	seq[0] = lens[_i][0];
	gather[0] = lens[_i][1];
	context[0] = lens[_i][2];
	expect(empty, 0, SPMLA_FAULT_LENGTH, 1);
}
END_TEST

/* 2 entries are whole at position 10; and 1 row is there for them. */
START_TEST(index_outside_is_left_out_and_reported)
{
	context[0] = 11;
	memcpy(topk, (const int32_t[]){2, INT32_MAX, 0, 0}, 16);
	expect((const int32_t[]){6, 7, 8, -1, -1, -1, -1, -1, -1}, 3,
	       SPMLA_FAULT_INDEX, 2);
	a.window_row = 1;
	memcpy(topk, (const int32_t[]){1, 0, 0, 0}, 16);
	expect((const int32_t[]){0, 2, 3, 4, -1, -1, -1, -1, -1}, 4,
	       SPMLA_FAULT_INDEX, 1);
}
END_TEST

/* Two requests of 1073741823 rows. 2^31 - 1 keys have 536870911 entries; the
 * last 4 keys are gathered, of which the window is the last 3. */
START_TEST(rows_up_to_the_end_of_int32_do_not_wrap)
{
	a.requests = 2;
	a.request_rows = INT32_MAX / 2;
	a.window_row = a.request_rows - 4;
	req[0] = 1;
	seq[1] = INT32_MAX;
	gather[1] = 4;
	context[0] = INT32_MAX;
	memcpy(topk, (const int32_t[]){536870910, 0, -1, 536870909}, 16);
	expect((const int32_t[]){1073741823 + 536870910, 1073741823,
				 1073741823 + 536870909, 2147483643, 2147483644,
				 2147483645, -1, -1, -1},
	       6, 0, 0);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

START_TEST(random_rows_equal_the_rule)
{
	static const uint32_t windows[4] = {1, 8, 64, 130};
	static const uint32_t topks[5] = {0, 16, 31, 128, MOST_TOPK};
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t hostile = _i % 3 == 2;
	uint32_t i;

	a.window = windows[_i % 4];
	a.ratio = _i % 2 ? 4 : 1;
	a.topk = topks[_i % 5];
	a.width = a.topk + a.window + (uint32_t)_i % 6;
	a.indices_stride_elems = a.width + (uint32_t)_i % 4;
	a.topk_stride_elems = a.topk + (uint32_t)_i % 3;
	a.tokens = TOKENS;
	a.requests = REQUESTS;
	a.window_row = 1000 / a.ratio;
	a.request_rows = a.window_row + 1000;
	for (i = 0; i < REQUESTS; i++) {
		seq[i] = 1 + (int32_t)rng_below(&rng, 1000);
		gather[i] = 1 + (int32_t)rng_below(&rng, (uint32_t)seq[i]);
	}
	for (i = 0; i < TOKENS; i++) {
		const uint32_t b = rng_below(&rng, REQUESTS);

		req[i] = (int32_t)(b + (hostile && i % 9 == 0 ? REQUESTS : 0));
		context[i] =
			seq[b] - (int32_t)rng_below(&rng, (uint32_t)gather[b]);
		if (rng_below(&rng, 8) == 0)
			context[i] = 0;
		if (hostile && rng_below(&rng, 4) == 0)
			context[i] += (int32_t)rng_below(&rng, 99) - 50;
	}
	for (i = 0; a.topk && i < a.tokens * (uint32_t)a.topk_stride_elems;
	     i++) {
		const int32_t n = context[i / (uint32_t)a.topk_stride_elems];
		const uint32_t most = n > 0 ? (uint32_t)n / a.ratio : 1;

		topk[i] = (int32_t)rng_below(&rng, most + 1 + 5 * hostile) - 1;
		if (_i & 8 && rng_below(&rng, 3) == 0)
			topk[i] = -1;
	}
	check();
}
END_TEST

int
main(void)
{
	const case_test shape[] = {
		{two_tokens_worked_out_by_hand, 1},
		{topk_comes_first_and_then_the_window, 1},
		{index_below_zero_is_left_out_and_the_rest_moves_up, 1},
		{window_alone_needs_no_topk, 1},
		{window_ends_where_the_gathered_keys_begin, 1},
	};
	const case_test edge[] = {
		{token_that_is_none_has_an_empty_row, 3},
		{request_outside_is_empty_and_reported, 4},
		{lengths_that_do_not_fit_are_empty_and_reported, 7},
		{index_outside_is_left_out_and_reported, 1},
		{rows_up_to_the_end_of_int32_do_not_wrap, 1},
	};
	const case_test determinism[] = {
		{random_rows_equal_the_rule, 48},
	};
	const case_group groups[] = {
		CASES("shape", shape),
		CASES("edge", edge),
		CASES("determinism", determinism),
	};

	return RUN_CASES("combine_index", setup, teardown, groups);
}
