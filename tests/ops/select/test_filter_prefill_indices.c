/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: both halves, or one, or one in place of the input.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/filter_prefill_indices.h"

enum { TOKENS = 4, K = 70, STRIDE = 75, ELEMS = TOKENS * STRIDE };

static fixture f;
static spmla_filter_prefill_indices_args a;
static int32_t in[ELEMS], lens[TOKENS], old[ELEMS], fresh[ELEMS];
static uint64_t rng;

static void
fill(void)
{
	uint32_t i;

	for (i = 0; i < ELEMS; i++)
		in[i] = (int32_t)rng_below(&rng, 101) - 1;
	for (i = 0; i < TOKENS; i++)
		lens[i] = (int32_t)rng_below(&rng, 100);
}

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	rng = test_seed();
	fill();
	a = (spmla_filter_prefill_indices_args){sizeof a, TOKENS, K,     0,
						in,       STRIDE, lens,  old,
						STRIDE,   fresh,  STRIDE};
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* What an index becomes, in 64 bits. */
static int32_t
want_old(int64_t index, int64_t len)
{
	return index >= 0 && index < len ? (int32_t)index : -1;
}

static int32_t
want_fresh(int64_t index, int64_t len)
{
	return index >= 0 && len >= 0 && index >= len ? (int32_t)(index - len)
						      : -1;
}

/* Every element, gaps included. */
static void
check(void)
{
	uint32_t i;

	memset(old, 0x5A, sizeof old);
	memset(fresh, 0x5A, sizeof fresh);
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
			 SPMLA_OK);
	for (i = 0; i < ELEMS; i++) {
		const uint32_t t = i / STRIDE;
		const int inside = i % STRIDE < a.k && t < a.tokens;

		ck_assert_int_eq(old[i], inside && a.context_indices
						 ? want_old(in[i], lens[t])
						 : 0x5A5A5A5A);
		ck_assert_int_eq(fresh[i], inside && a.new_indices
						   ? want_fresh(in[i], lens[t])
						   : 0x5A5A5A5A);
	}
}

START_TEST(every_index_goes_to_its_half)
{
	a.tokens = 1 + (uint32_t)_i % TOKENS;
	a.k = _i < TOKENS ? K : 1;
	check();
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* A context of 5: 4 is its last, 5 is the first new one; -1 is none in both. */
START_TEST(vector_worked_out_by_hand)
{
	static const int32_t row[6] = {4, 5, -1, 0, 9, -1};
	static const int32_t context[6] = {4, -1, -1, 0, -1, -1};
	static const int32_t news[6] = {-1, 0, -1, -1, 4, -1};

	memcpy(in, row, sizeof row);
	lens[0] = 5;
	a.k = 6;
	check();
	ck_assert_mem_eq(old, context, sizeof context);
	ck_assert_mem_eq(fresh, news, sizeof news);
}
END_TEST

START_TEST(context_may_be_empty_or_everything)
{
	lens[0] = 0;
	lens[1] = INT32_MAX;
	lens[2] = 1;
	in[0] = 0;
	in[1] = INT32_MAX;
	in[STRIDE] = INT32_MAX;
	in[STRIDE + 1] = INT32_MAX - 1;
	check();
	ck_assert_int_eq(fresh[1], INT32_MAX);
	ck_assert_int_eq(fresh[STRIDE], 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(any_negative_index_is_none)
{
	in[0] = -2;
	in[1] = INT32_MIN;
	lens[0] = 0;
	check();
	ck_assert_int_eq(old[0] & old[1] & fresh[0] & fresh[1], -1);
}
END_TEST

START_TEST(negative_context_is_none_everywhere_and_reported)
{
	spmla_device_status s;

	lens[2] = _i ? INT32_MIN : -1;
	check();
	s = fixture_status(&f);
	ck_assert_uint_eq(s.count, 1);
	ck_assert_uint_eq(s.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(s.row, 2);
}
END_TEST

START_TEST(half_that_is_not_wanted_is_not_written)
{
	if (_i) {
		a.context_indices = NULL;
		a.context_indices_stride_elems = 0;
	} else {
		a.new_indices = NULL;
		a.new_indices_stride_elems = 0;
	}
	check();
}
END_TEST

START_TEST(half_may_replace_the_input)
{
	int32_t before[ELEMS];
	uint32_t i;

	memcpy(before, in, sizeof before);
	if (_i)
		a.context_indices = in;
	else
		a.new_indices = in;
	ck_assert_int_eq(spmla_filter_prefill_indices(f.ctx, &a, NULL),
			 SPMLA_OK);
	for (i = 0; i < ELEMS; i++) {
		const uint32_t t = i / STRIDE;

		if (i % STRIDE >= K)
			continue;
		ck_assert_int_eq(_i ? in[i] : old[i],
				 want_old(before[i], lens[t]));
		ck_assert_int_eq(_i ? fresh[i] : in[i],
				 want_fresh(before[i], lens[t]));
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_index_goes_to_its_half, 2 * TOKENS},
		{vector_worked_out_by_hand, 1},
	};
	const theme_test edge[] = {
		{context_may_be_empty_or_everything, 1},
		{any_negative_index_is_none, 1},
		{negative_context_is_none_everywhere_and_reported, 2},
	};
	const theme_test layout[] = {
		{half_that_is_not_wanted_is_not_written, 2},
		{half_may_replace_the_input, 2},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

		THEME("layout", setup, teardown, layout),

	};

	return RUN_THEMES(themes);
}
