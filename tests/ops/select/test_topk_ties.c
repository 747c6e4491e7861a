/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: ties to the higher positions, and rows of one stride. A row read
 * backwards with ties to the lower positions is the rule of ties to the higher
 * ones.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/topk.h"

enum { MOST = 70000, MOST_K = 8192 };

static fixture f;
static float *scores, *backwards;
static int32_t *lower, *higher;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	scores = test_alloc((MOST + 4) * sizeof *scores, 0);
	backwards = test_alloc((MOST + 4) * sizeof *backwards, 0);
	lower = test_alloc(MOST_K * sizeof *lower, 0);
	higher = test_alloc(MOST_K * sizeof *higher, 0);
}

static void
teardown(void)
{
	free(scores);
	free(backwards);
	free(lower);
	free(higher);
	fixture_close(&f);
}

static void
run(const float *row, int32_t len, uint32_t k, uint32_t ties, int32_t *out)
{
	static const int64_t start;
	const spmla_topk_args a = {.struct_bytes = sizeof a,
				   .rows = 1,
				   .k = k,
				   .ties = ties,
				   .logits = row,
				   .logits_elems = (uint64_t)len,
				   .row_starts = &start,
				   .context_lens = &len,
				   .indices = out,
				   .indices_stride_elems = k};

	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

/* A row of `kinds` values, which begins `off` floats behind 16 bytes. */
static void
check(int32_t len, uint32_t k, uint32_t kinds, uint32_t off, uint64_t *rng)
{
	static const float values[8] = {-INFINITY, -1, 0, 2, -0.0f, NAN, 3, 1};
	float *to = scores + off, *back = backwards + off;
	int32_t i;

	for (i = 0; i < len; i++)
		to[i] = kinds ? values[rng_below(rng, kinds)] : rng_float(rng);
	for (i = 0; i < len; i++)
		back[i] = to[len - 1 - i];
	run(back, len, k, SPMLA_TIES_LOWER, lower);
	run(to, len, k, SPMLA_TIES_HIGHER, higher);
	for (i = 0; i < (int32_t)k; i++)
		ck_assert_int_eq(higher[i],
				 len - 1 - lower[(int32_t)k - 1 - i]);
}

START_TEST(ties_may_take_the_higher_positions)
{
	static const float row[8] = {2, 5, 2, 2, 7, 2, 2, 1};
	static const int32_t want[4] = {1, 4, 5, 6};

	run(row, 8, 4, SPMLA_TIES_HIGHER, higher);
	ck_assert_mem_eq(higher, want, sizeof want);
}
END_TEST

/* Short rows, rows whose best are listed, and rows of so many ties that the
 * kernel walks over all of them. */
START_TEST(higher_ties_are_lower_ties_backwards)
{
	static const int32_t lens[4] = {130, 7000, 20000, MOST};
	static const uint32_t ks[4] = {1, 50, 2048, 6000};
	uint64_t rng = test_seed() + (uint64_t)_i;
	const int32_t len = lens[_i / 4];
	const uint32_t k = ks[_i % 4];
	uint32_t kinds;

	if ((uint32_t)len <= k)
		return;
	for (kinds = 0; kinds <= 8; kinds += kinds < 2 ? 1 : 3)
		check(len, k, kinds, (uint32_t)_i % 4, &rng);
}
END_TEST

/* The k best are 1 and 1.1, in one bin of the kernels' histograms, and 1 is the
 * bin's lower end: fewer than k keys equal it. */
START_TEST(a_bin_that_is_taken_as_a_whole_is_taken_in_order)
{
	static const int32_t lens[4] = {130, 7000, 20000, MOST};
	const int32_t len = lens[_i], apart = len / 50;
	int32_t i;

	for (i = 0; i < len; i++)
		scores[i] = -1;
	for (i = 0; i < 50; i++)
		scores[i * apart + 1] = i % 5 < 2 ? 1 : 1.1f;
	run(scores, len, 50, SPMLA_TIES_HIGHER, higher);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(higher[i], i * apart + 1);
}
END_TEST

/* Three rows of 10: 7 keys, 12 that are cut to 10, none. */
START_TEST(rows_of_one_stride_need_no_starts)
{
	static const int32_t lens[3] = {7, 12, -1};
	static const int32_t want[12] = {0, 2, 4,  6,  1,  3,
					 5, 7, -1, -1, -1, -1};
	int32_t counts[3], got[12];
	spmla_topk_args a = {.struct_bytes = sizeof a,
			     .rows = 3,
			     .k = 4,
			     .logits = scores,
			     .logits_elems = 30,
			     .row_stride_elems = 10,
			     .context_lens = lens,
			     .indices = got,
			     .indices_stride_elems = 4,
			     .lens = counts};
	uint32_t i;

	for (i = 0; i < 7; i++)
		scores[i] = i % 2 ? -1 : 1;
	for (i = 0; i < 10; i++)
		scores[10 + i] = i % 2 && i < 8 ? 1 : -1;
	for (i = 20; i < 30; i++)
		scores[i] = 9;
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_mem_eq(got, want, sizeof want);
	ck_assert_int_eq(counts[1], 4);
	ck_assert_int_eq(counts[2], 0);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_LOGITS);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
	/* The last row may end before its stride does. */
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	a.rows = 1;
	a.logits_elems = 7;
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_mem_eq(got, want, 16);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_of_one_stride_need_no_starts, 1},
	};
	const theme_test edge[] = {
		{ties_may_take_the_higher_positions, 1},
		{higher_ties_are_lower_ties_backwards, 16},
		{a_bin_that_is_taken_as_a_whole_is_taken_in_order, 4},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
	};

	return RUN_THEMES(themes);
}
