/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine: against sums in double and vectors worked out by hand. Whole
 * attention is in test_sparse_decode_splits.c.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/combine_rig.h"

static combine_rig r;

static void
setup(void)
{
	combine_open(&r);
}

static void
teardown(void)
{
	combine_close(&r);
}

START_TEST(random_splits_equal_sums_in_double)
{
	uint32_t i;

	r.num_splits[0] = (int32_t)rng_below(&r.rng, 3);
	for (i = 0; i < COMBINE_TOKENS; i++)
		r.num_splits[i + 1] =
			r.num_splits[i] + (int32_t)rng_below(&r.rng, 10);
	for (i = 0; i < COMBINE_ROWS * COMBINE_HEADS; i++)
		if (rng_below(&r.rng, 4) == 0)
			r.split_lse[i] = -INFINITY;
	for (i = 0; i < COMBINE_HEADS; i++)
		r.sink[i] = 4 * rng_float(&r.rng);
	r.a.attn_sink = _i & 1 ? r.sink : NULL;
	r.a.empty_lse = (uint32_t)_i >> 1 & 1;
	combine_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* lse 0 and 1 in base 2: weights 1/3 and 2/3 of values 3 and 6 make 5; lse = ln
 * 3. A sink of ln 3 is as much as both: 2.5; lse stays. */
START_TEST(two_splits_worked_out_by_hand)
{
	uint32_t h, d;

	for (h = 0; h < COMBINE_HEADS; h++) {
		r.split_lse[h] = 0;
		r.split_lse[COMBINE_HEADS + h] = 1;
		for (d = 0; d < 512; d++) {
			r.split_out[h * 512 + d] = 3;
			r.split_out[(COMBINE_HEADS + h) * 512 + d] = 6;
		}
	}
	combine_check(&r);
	ck_assert_uint_eq(combine_out(&r, 0, 1)[77], test_bf16(5));
	ck_assert_float_eq_tol(combine_lse(&r, 0, 1), 1.0986123f, 3e-7f);
	r.sink[1] = 1.0986123f;
	r.a.attn_sink = r.sink;
	combine_check(&r);
	ck_assert_uint_eq(combine_out(&r, 0, 1)[77], test_bf16(2.5f));
	ck_assert_float_eq_tol(combine_lse(&r, 0, 1), 1.0986123f, 3e-7f);
}
END_TEST

/* One head of as many splits as there is room for, every fifth of them empty:
 * all weigh the same. Values i or i + 1 / 2 make the mean of the others. */
START_TEST(token_of_very_many_splits_is_their_mean)
{
	enum { SPLITS = COMBINE_ROWS * COMBINE_HEADS };
	float mean = 0, count = 0;
	uint32_t i, d;

	for (i = 0; i < SPLITS; i++) {
		r.split_lse[i] = i % 5 == 3 ? -INFINITY : -7;
		mean += i % 5 == 3 ? 0 : (float)i;
		count += i % 5 == 3 ? 0 : 1;
		for (d = 0; d < 512; d++)
			r.split_out[i * 512 + d] =
				i % 5 == 3 ? NAN
					   : (float)i + (float)(d % 2) / 2;
	}
	mean /= count;
	r.a.tokens = r.a.heads = 1;
	r.a.split_rows = SPLITS;
	r.num_splits[0] = 0;
	r.num_splits[1] = SPLITS;
	combine_run(&r);
	ck_assert_float_eq_tol(combine_lse(&r, 0, 0),
			       logf(count) - 7 * 0.69314718f, 3e-6f);
	for (d = 0; d < 512; d++)
		ck_assert_float_eq_tol(
			test_bf16_value(combine_out(&r, 0, 0)[d]),
			mean + (float)(d % 2) / 2, 0x1.02p-8f * mean);
}
END_TEST

/* A token without keys: sinks finite, +inf and -inf all give zeros. */
START_TEST(token_of_empty_splits_is_zero_and_its_lse_as_asked)
{
	const float sinks[3] = {1, INFINITY, -INFINITY};
	uint32_t h, i;

	for (i = 0; i < 5 * COMBINE_HEADS; i++)
		r.split_lse[i] = -INFINITY;
	/* what lies in an empty split is not read */
	memset(r.split_out, 0xFF, 5 * COMBINE_HEADS * 512 * 4);
	memcpy(r.sink, sinks, sizeof sinks);
	r.a.attn_sink = _i & 1 ? r.sink : NULL;
	r.a.empty_lse = (uint32_t)_i >> 1;
	r.a.tokens = 3; /* of 2, 0 and 3 splits */
	combine_check(&r);
	for (i = 0; i < 3; i++)
		for (h = 0; h < COMBINE_HEADS; h++) {
			ck_assert_uint_eq(combine_out(&r, i, h)[511], 0);
			ck_assert_float_eq(combine_lse(&r, i, h),
					   _i >> 1 ? -INFINITY : INFINITY);
		}
}
END_TEST

START_TEST(sink_of_plus_infinity_leaves_nothing_and_of_minus_infinity_all)
{
	static uint16_t none[COMBINE_OUT_ELEMS];
	uint32_t d;

	combine_run(&r);
	memcpy(none, r.out, sizeof none);
	r.sink[0] = -INFINITY;
	r.sink[1] = INFINITY;
	r.sink[2] = 300;
	r.a.attn_sink = r.sink;
	combine_run(&r);
	ck_assert_mem_eq(combine_out(&r, 0, 0), none, 512 * 2);
	for (d = 0; d < 512; d++) {
		ck_assert_float_eq(test_bf16_value(combine_out(&r, 0, 1)[d]),
				   0);
		ck_assert_float_eq(test_bf16_value(combine_out(&r, 0, 2)[d]),
				   0);
	}
}
END_TEST

/* lse of +-2000 in base 2: exp2 of them is inf and 0, of a difference not. */
START_TEST(far_away_logarithms_do_not_overflow)
{
	uint32_t h, i;

	for (i = 0; i < 2; i++)
		for (h = 0; h < COMBINE_HEADS; h++)
			r.split_lse[i * COMBINE_HEADS + h] = _i ? -2000 : 2000;
	combine_run(&r);
	for (h = 0; h < COMBINE_HEADS; h++) {
		const float want = (r.split_out[h * 512] +
				    r.split_out[(COMBINE_HEADS + h) * 512]) /
				   2;

		ck_assert_float_eq_tol(
			test_bf16_value(combine_out(&r, 0, h)[0]), want,
			0x1p-8f);
		/* (2000 + 1) ln 2 = 1386.988, (-2000 + 1) ln 2 = -1385.601 */
		ck_assert_float_eq_tol(combine_lse(&r, 0, h),
				       _i ? -1385.601f : 1386.988f, 2e-3f);
	}
}
END_TEST

/* lse of 500 and 0 in base 2, in either order: the second weighs 2^-500, so
 * that the result is the first alone. Relative to any but the largest of them
 * exp2 is inf. */
START_TEST(largest_logarithm_counts_wherever_it_stands)
{
	const uint32_t large = (uint32_t)_i;
	uint32_t h, i;

	for (i = 0; i < 2; i++)
		for (h = 0; h < COMBINE_HEADS; h++)
			r.split_lse[i * COMBINE_HEADS + h] =
				i == large ? 500 : 0;
	combine_check(&r);
	for (h = 0; h < COMBINE_HEADS; h++) {
		const uint32_t row = large * COMBINE_HEADS + h;

		ck_assert_uint_eq(combine_out(&r, 0, h)[9],
				  test_bf16(r.split_out[row * 512 + 9]));
		/* 500 ln 2 */
		ck_assert_float_eq_tol(combine_lse(&r, 0, h), 346.57359f,
				       4e-4f);
	}
}
END_TEST

START_TEST(nan_of_a_split_is_not_hidden)
{
	r.split_lse[COMBINE_HEADS] = NAN;
	combine_run(&r);
	ck_assert_float_nan(combine_lse(&r, 0, 0));
	ck_assert_float_nan(test_bf16_value(combine_out(&r, 0, 0)[5]));
	ck_assert(isfinite(combine_lse(&r, 0, 1)));
}
END_TEST

START_TEST(rows_that_are_not_there_count_as_none_and_are_reported)
{
	static const int32_t bad[6][2] = {
		{-1, 5},        {5, 4},
		{INT32_MIN, 3}, {38, COMBINE_ROWS + 1},
		{0, INT32_MAX}, {INT32_MAX, -1}};
	uint32_t h;

	r.a.tokens = 1;
	memcpy(r.num_splits, bad[_i], 8);
	memset(r.out, 0x5A, COMBINE_OUT_ELEMS * 2);
	combine_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_INDEX);
	ck_assert_uint_eq(fixture_status(&r.f).row, 0);
	for (h = 0; h < COMBINE_HEADS; h++) {
		ck_assert_uint_eq(combine_out(&r, 0, h)[3], 0);
		ck_assert_float_eq(combine_lse(&r, 0, h), INFINITY);
	}
}
END_TEST

/* 3 million rows of a head are 6 GB; only what is touched takes memory. */
START_TEST(split_beyond_four_gib_is_found)
{
	const uint32_t rows = 3 * 1000 * 1000;
	const size_t bytes = (size_t)rows * 512 * 4, lse_bytes = rows * 4ull;
	uint8_t *map = test_map(bytes + lse_bytes);
	float *far_out, *far_lse;

	far_out = (float *)(void *)map;
	far_lse = (float *)(void *)(map + bytes);
	far_out[(size_t)(rows - 2) * 512] = 1;
	far_out[(size_t)(rows - 1) * 512] = 2;
	r.a.tokens = r.a.heads = 1;
	r.a.split_out = far_out;
	r.a.split_lse = far_lse;
	r.a.split_rows = rows;
	r.num_splits[0] = (int32_t)rows - 2;
	r.num_splits[1] = (int32_t)rows;
	combine_run(&r);
	ck_assert_uint_eq(combine_out(&r, 0, 0)[0], test_bf16(1.5f));
	munmap(map, bytes + lse_bytes);
}
END_TEST

/* lse 0 and 0: weights of 1/2 each. 2^-133 and 3 * 2^-133 make 2 * 2^-133. */
START_TEST(subnormal_values_are_not_flushed)
{
	uint32_t h, i;

	for (i = 0; i < 2; i++)
		for (h = 0; h < COMBINE_HEADS; h++) {
			const uint32_t row = i * COMBINE_HEADS + h;

			r.split_lse[row] = 0;
			r.split_out[row * 512 + 3] = i ? 0x3p-133f : 0x1p-133f;
		}
	combine_run(&r);
	for (h = 0; h < COMBINE_HEADS; h++)
		ck_assert_uint_eq(combine_out(&r, 0, h)[3], 0x0002);
}
END_TEST

START_TEST(bits_of_a_token_do_not_depend_on_the_others)
{
	uint16_t alone[512];

	combine_run(&r);
	memcpy(alone, combine_out(&r, 3, 2), sizeof alone);
	r.a.tokens = 1;
	r.a.num_splits += 3;
	combine_run(&r);
	ck_assert_mem_eq(combine_out(&r, 0, 2), alone, sizeof alone);
}
END_TEST

START_TEST(lse_may_be_missing)
{
	r.a.lse = NULL;
	r.a.lse_token_stride_elems = r.a.lse_head_stride_elems = 0;
	combine_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{random_splits_equal_sums_in_double, 12},
		{two_splits_worked_out_by_hand, 1},
		{token_of_very_many_splits_is_their_mean, 1},
		{lse_may_be_missing, 1},
	};
	const theme_test edge[] = {
		{token_of_empty_splits_is_zero_and_its_lse_as_asked, 4},
		{sink_of_plus_infinity_leaves_nothing_and_of_minus_infinity_all,
		 1},
		{far_away_logarithms_do_not_overflow, 2},
		{largest_logarithm_counts_wherever_it_stands, 2},
		{nan_of_a_split_is_not_hidden, 1},
		{subnormal_values_are_not_flushed, 1},
		{rows_that_are_not_there_count_as_none_and_are_reported, 6},
	};
	const theme_test layout[] = {{split_beyond_four_gib_is_found, 1}};
	const theme_test determinism[] = {
		{bits_of_a_token_do_not_depend_on_the_others, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
