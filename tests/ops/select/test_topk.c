/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: the exact set of any row, ties, odd scores and short rows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/topk_rig.h"

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

START_TEST(row_of_one_more_than_k_leaves_the_worst_out)
{
	static const float scores[5] = {3, 1, 4, 1.5f, 9};
	static const int32_t want[4] = {0, 2, 3, 4};

	topk_expect(&f, scores, 5, want, 4);
}
END_TEST

START_TEST(row_of_at_most_k_is_the_identity_and_then_minus_one)
{
	static const float scores[4] = {1, 2, 3, 4};
	static const int32_t want[5][4] = {{-1, -1, -1, -1},
					   {0, -1, -1, -1},
					   {0, 1, -1, -1},
					   {0, 1, 2, -1},
					   {0, 1, 2, 3}};
	uint32_t len;

	for (len = 0; len <= 4; len++)
		topk_expect(&f, scores, len, want[len], 4);
}
END_TEST

START_TEST(every_k_up_to_the_length_gives_the_exact_set)
{
	uint64_t rng = test_seed();
	float scores[100];
	uint32_t i, k;

	for (i = 0; i < 100; i++)
		scores[i] = rng_float(&rng);
	for (k = 1; k <= 101; k++)
		topk_check(&f, scores, 100, k);
}
END_TEST

START_TEST(k_far_above_every_length_works)
{
	static const float scores[3] = {1, 3, 2};

	topk_check(&f, scores, 3, TOPK_MAX_K);
}
END_TEST

START_TEST(rows_lie_anywhere_and_output_rows_may_be_apart)
{
	static const int64_t starts[6] = {300, 0, 2048, 7, 0, 999};
	static const int32_t lens[6] = {257, 33, 952, 0, 33, -5};
	uint64_t rng = test_seed() + 1;
	float *scores = malloc(3000 * sizeof *scores);
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = 6, .k = 32};
	uint32_t i;

	for (i = 0; i < 3000; i++)
		scores[i] = rng_float(&rng);
	a.logits = scores;
	a.logits_elems = 3000;
	a.row_starts = starts;
	a.context_lens = lens;
	a.indices_stride_elems = 37;
	topk_check_rows(&f, &a);
	free(scores);
}
END_TEST

START_TEST(ties_across_the_threshold_take_the_lower_position)
{
	static const float scores[8] = {2, 5, 2, 2, 7, 2, 2, 1};
	static const int32_t want[4] = {0, 1, 2, 4};
	float *same = malloc(5000 * sizeof *same);
	uint32_t i;

	topk_expect(&f, scores, 8, want, 4);
	for (i = 0; i < 5000; i++)
		same[i] = -0.25f;
	topk_check(&f, same, 5000, 2048);
	same[4999] = 1;
	same[0] = -1;
	topk_check(&f, same, 5000, 2048);
	free(same);
}
END_TEST

START_TEST(nan_of_either_sign_ranks_above_infinity)
{
	const float scores[6] = {INFINITY, NAN, -INFINITY, -NAN, 1, NAN};
	static const int32_t want[5][5] = {
		{1}, {1, 3}, {1, 3, 5}, {0, 1, 3, 5}, {0, 1, 3, 4, 5}};
	uint32_t k;

	for (k = 1; k <= 5; k++)
		topk_expect(&f, scores, 6, want[k - 1], k);
}
END_TEST

START_TEST(minus_infinity_is_taken_only_when_nothing_else_is_left)
{
	const float scores[5] = {-INFINITY, -3e38f, -INFINITY, INFINITY, 0};
	static const int32_t three[3] = {1, 3, 4}, four[4] = {0, 1, 3, 4};

	topk_expect(&f, scores, 5, three, 3);
	topk_expect(&f, scores, 5, four, 4);
}
END_TEST

START_TEST(minus_zero_equals_plus_zero)
{
	static const float scores[5] = {-1, -0.0f, 0.0f, -0.0f, 0.0f};
	static const int32_t want[2] = {1, 2};

	topk_expect(&f, scores, 5, want, 2);
}
END_TEST

START_TEST(subnormal_scores_keep_their_order)
{
	static const float scores[6] = {0x1p-149f, 0x3p-149f, -0x1p-149f,
					0x2p-149f, 0,         -0x1p-126f};
	static const int32_t two[2] = {1, 3}, four[4] = {0, 1, 3, 4};

	topk_expect(&f, scores, 6, two, 2);
	topk_expect(&f, scores, 6, four, 4);
}
END_TEST

START_TEST(scores_of_short_rows_are_not_read)
{
	static const int32_t want[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	float *none =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t len;

	ck_assert(none != MAP_FAILED);
	for (len = 0; len <= 8; len++)
		topk_check(&f, none, len, 8);
	topk_expect(&f, none, 8, want, 8);
	munmap(none, 4096);
}
END_TEST

/* A score of one of several kinds that have broken selections: any bits, few
 * values, values that differ in the low ten bits only. */
static float
odd_score(uint64_t *rng, uint32_t kind)
{
	const uint32_t low = 0x3f800000u | rng_below(rng, 1024);
	const uint32_t any = (uint32_t)rng_next(rng);
	float x = rng_float(rng);

	if (kind == 1)
		memcpy(&x, &any, sizeof x);
	else if (kind == 2)
		x = (float)rng_below(rng, 3) - 1;
	else if (kind == 3)
		memcpy(&x, &low, sizeof x);
	return x;
}

START_TEST(random_rows_equal_a_full_sort)
{
	uint64_t rng = test_seed() + 2;
	float *scores = malloc(6000 * sizeof *scores);
	uint32_t round, i;

	for (round = 0; round < 120; round++) {
		const uint32_t len = 1 + rng_below(&rng, 6000);
		const uint32_t k = 1 + rng_below(&rng, len < 2048 ? len : 2048);

		for (i = 0; i < len; i++)
			scores[i] = odd_score(&rng, round % 4);
		topk_check(&f, scores, len, k);
	}
	free(scores);
}
END_TEST

/* Values that have broken selections of long rows. */
static void
fill_odd(uint64_t *rng, float *scores, uint32_t n, uint32_t kind)
{
	static const float odd[10] = {NAN, -NAN, -INFINITY, INFINITY, 0, -0.0f,
				      1,   -1,   0x1p-149f, -3e38f};
	static const float rare[5] = {NAN, -INFINITY, -0.0f, 0, 0.25f};
	uint32_t i;

	for (i = 0; i < n; i++) {
		const float x = rng_float(rng);

		if (kind < 4)
			scores[i] = odd_score(rng, kind);
		else if (kind == 4) /* any of the odd ones */
			scores[i] = odd[rng_below(rng, 10)];
		else if (kind < 10) /* almost all the same */
			scores[i] = rng_below(rng, 50) ? rare[kind - 5] : x;
		else if (kind == 10) /* none positive */
			scores[i] = rng_below(rng, 9) ? -1 - x * x : -NAN;
		else if (kind == 11) /* the best lie together */
			scores[i] = i > n - n / 8 ? 4 + x : x;
		else /* and fall */
			scores[i] = -(float)i;
	}
}

START_TEST(long_rows_of_odd_scores_equal_a_full_sort)
{
	static const uint32_t ks[7] = {1, 37, 300, 512, 671, 672, 2048};
	uint64_t rng = test_seed() + 5;
	float *scores = malloc(5003 * sizeof *scores);
	uint32_t kind, i;

	for (kind = 0; kind < 13; kind++)
		for (i = 0; i < 7; i++) {
			fill_odd(&rng, scores, 5003, kind);
			topk_check(&f, scores, 5003, ks[i]);
		}
	free(scores);
}
END_TEST

/* Around the sizes of what kernels hold, list and go through at a time. */
START_TEST(rows_of_any_length_and_start_equal_a_full_sort)
{
	static const uint32_t around[6] = {896, 1024, 2048, 7168, 8192, 16384};
	uint64_t rng = test_seed() + 6;
	float *scores = malloc(16400 * sizeof *scores);
	uint32_t i, j, off;

	for (i = 0; i < 16400; i++)
		scores[i] = rng_float(&rng);
	for (i = 0; i < 6; i++)
		for (j = 0; j < 7; j++)
			for (off = 0; off < 4; off++)
				topk_check(&f, scores + off, around[i] + j - 3,
					   i < 3 ? 500 : 2048);
	free(scores);
}
END_TEST

/* High where the kernel takes its sample, so that it expects too many. */
START_TEST(sample_that_misleads_changes_nothing)
{
	uint64_t rng = test_seed() + 7;
	float *scores = malloc(40000 * sizeof *scores);
	uint32_t i, sign;

	for (sign = 0; sign < 2; sign++) {
		for (i = 0; i < 40000; i++)
			scores[i] = rng_float(&rng);
		for (i = 0; i < 40000 / 16; i++)
			scores[i * 16 + ((i * 0x9e3779b1u) >> 22) * 16 /
						1024] += sign ? -9.0f : 9.0f;
		topk_check(&f, scores, 5000, 512);
		topk_check(&f, scores, 40000, 512);
		topk_check(&f, scores, 40000, 3000);
	}
	free(scores);
}
END_TEST

/* Scores beside a row are better than all of its own. */
START_TEST(scores_beside_an_unaligned_row_are_not_taken)
{
	static int64_t starts[12];
	static int32_t lens[12];
	uint64_t rng = test_seed() + 8;
	float *scores = malloc(12 * 2100 * sizeof *scores);
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = 12, .k = 300};
	uint32_t r, i;

	for (i = 0; i < 12 * 2100; i++)
		scores[i] = 7;
	for (r = 0; r < 12; r++) {
		starts[r] = 2100 * (int64_t)r + 10 + r % 4;
		lens[r] = r < 4 ? 500 : r < 8 ? 1024 : 2050 + (int32_t)r;
		for (i = 0; i < (uint32_t)lens[r]; i++)
			scores[starts[r] + i] =
				r & 1 ? rng_float(&rng) : -INFINITY;
	}
	a.logits = scores;
	a.logits_elems = 12 * 2100;
	a.row_starts = starts;
	a.context_lens = lens;
	a.indices_stride_elems = 300;
	topk_check_rows(&f, &a);
	free(scores);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{row_of_one_more_than_k_leaves_the_worst_out, 1},
		{row_of_at_most_k_is_the_identity_and_then_minus_one, 1},
		{every_k_up_to_the_length_gives_the_exact_set, 1},
		{k_far_above_every_length_works, 1},
		{random_rows_equal_a_full_sort, 1},
		{long_rows_of_odd_scores_equal_a_full_sort, 1},
		{rows_of_any_length_and_start_equal_a_full_sort, 1},
		{sample_that_misleads_changes_nothing, 1},
	};
	const theme_test edge[] = {
		{ties_across_the_threshold_take_the_lower_position, 1},
		{nan_of_either_sign_ranks_above_infinity, 1},
		{minus_infinity_is_taken_only_when_nothing_else_is_left, 1},
		{minus_zero_equals_plus_zero, 1},
		{subnormal_scores_keep_their_order, 1},
		{scores_of_short_rows_are_not_read, 1},
	};
	const theme_test layout[] = {
		{rows_lie_anywhere_and_output_rows_may_be_apart, 1},
		{scores_beside_an_unaligned_row_are_not_taken, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
