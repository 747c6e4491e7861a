/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered: the scores and where they land. Large cases are in
 * test_mqa_logits_gathered_far.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/gathered_world.h"
#include "tests/ops/select/mqa_world.h"

#include "spmla/ops/mqa_logits.h"

static fixture f;
static gathered_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = GATHERED_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	gathered_close(&w);
	fixture_close(&f);
}

static void
expect_clean(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

/* The sticky status names this fault and row; clears it. */
static void
expect_fault(spmla_fault fault, uint32_t row)
{
	const spmla_device_status s = fixture_status(&f);

	ck_assert_uint_eq(s.count, 1);
	ck_assert_str_eq(spmla_fault_name(s.fault), spmla_fault_name(fault));
	ck_assert_uint_eq(s.row, row);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

START_TEST(scores_equal_the_reference_for_any_heads_and_form)
{
	static const uint32_t heads[6] = {1, 3, 8, 64, 65, 128};

	gathered_open(&w, heads[_i / 3], (uint32_t)_i % 3);
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(large_head_before_many_small_ones_loses_no_more_than_the_bound)
{
	gathered_open(&w, _i ? GATHERED_HEADS : 64, SPMLA_LOGITS_ABSOLUTE);
	w.a.tokens = 1;
	w.starts[0] = 7;
	w.ends[0] = 8;
	mqa_steep(w.q, w.weights, w.a.heads, w.k + 7 * 128);
	w.k_scales[7] = 1;
	gathered_check(&f, &w);
}
END_TEST

START_TEST(sums_that_are_cut_lose_something_and_no_more_than_the_bound)
{
	const uint32_t heads = _i % 2 ? GATHERED_HEADS : 64;

	gathered_open(&w, heads, SPMLA_LOGITS_ABSOLUTE);
	w.a.tokens = 1;
	w.starts[0] = 7;
	w.ends[0] = 8;
	mqa_adverse(w.q, w.weights, heads, w.k + 7 * 128, (uint32_t)_i / 2);
	w.k_scales[7] = 1;
	gathered_check(&f, &w);
	ck_assert_int_eq(
		(double)gathered_row(&w, 0)[7] <
			0.9999 * mqa_adverse_score(heads, (uint32_t)_i / 2),
		heads == 64 && fixture_cuts(&f));
}
END_TEST

START_TEST(width_of_a_row_may_be_just_what_it_holds)
{
	gathered_open(&w, 3, (uint32_t)_i);
	w.a.columns = GATHERED_KEYS;
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

/* q = (1, -1) on dimension 0, k = 2 there, w = (3, 5), scale 0.5:
 * 0.5 * (relu(2) * 3 + relu(-2) * 5) = 3. */
START_TEST(negative_heads_are_dropped_before_the_weights)
{
	gathered_open(&w, 2, SPMLA_LOGITS_ABSOLUTE);
	w.a.tokens = 1;
	w.starts[0] = 7;
	w.ends[0] = 8;
	memset(w.q, 0, 256);
	memset(w.k + 7 * 128, 0, 128);
	w.q[0] = 0x38;
	w.q[128] = 0xB8;
	w.weights[0] = 3;
	w.weights[1] = 5;
	w.k[7 * 128] = 0x40;
	w.k_scales[7] = 0.5f;
	gathered_check(&f, &w);
	ck_assert_float_eq(gathered_row(&w, 0)[7], 3.0f);
	w.a.form = SPMLA_LOGITS_COMPRESSED;
	gathered_check(&f, &w);
	ck_assert_float_eq(gathered_row(&w, 0)[0], 3.0f);
}
END_TEST

START_TEST(zero_queries_score_zero)
{
	uint32_t n;

	gathered_open(&w, 8, SPMLA_LOGITS_CLEAN);
	memset(w.q, 0, GATHERED_TOKENS * 8 * 128);
	gathered_check(&f, &w);
	for (n = 0; n < GATHERED_KEYS; n++)
		ck_assert_float_eq(gathered_row(&w, 1)[n], 0.0f);
}
END_TEST

START_TEST(subnormal_codes_and_scales_count)
{
	uint32_t i;

	gathered_open(&w, 3, SPMLA_LOGITS_ABSOLUTE);
	for (i = 0; i < GATHERED_TOKENS * 3 * 128; i++)
		w.q[i] &= 0x87;
	for (i = 0; i < GATHERED_KEYS; i++)
		w.k_scales[i] = 0x1p-130f;
	gathered_check(&f, &w);
}
END_TEST

START_TEST(nan_code_of_a_key_counts_as_zero_and_nan_weight_is_nan)
{
	gathered_open(&w, 8, SPMLA_LOGITS_ABSOLUTE);
	w.k[20 * 128 + 77] = 0x7F;
	w.k[21 * 128 + 77] = 0xFF;
	w.weights[w.a.weights_stride_elems + 3] = NAN;
	gathered_check(&f, &w);
	ck_assert_float_eq(gathered_row(&w, 0)[20], 0.0f);
	ck_assert_float_eq(gathered_row(&w, 0)[21], 0.0f);
	ck_assert_float_nan(gathered_row(&w, 1)[22]);
}
END_TEST

START_TEST(weights_of_any_size_count)
{
	static const float sizes[3] = {0x1.8p102f, 0x1p-120f, 1.0f};
	const uint32_t heads = _i ? 64 : 8;
	uint32_t t, h;

	gathered_open(&w, heads, SPMLA_LOGITS_ABSOLUTE);
	for (t = 0; t < 3; t++)
		for (h = 0; h < heads; h++)
			w.weights[t * w.a.weights_stride_elems + h] *= sizes[t];
	w.weights[2 * w.a.weights_stride_elems] = INFINITY;
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

/* Sums of any sign, of zeros as the gather leaves them and of no number. */
START_TEST(a_missing_key_scores_minus_infinity)
{
	static const uint32_t heads[4] = {3, 8, 64, 65};
	uint32_t n;

	gathered_open(&w, heads[_i / 3], (uint32_t)_i % 3);
	for (n = 0; n < w.a.heads; n++)
		w.weights[n] = -1.0f;
	w.weights[w.a.weights_stride_elems] = NAN;
	for (n = 12; n < GATHERED_KEYS; n += 7)
		w.k_scales[n] = -INFINITY;
	memset(w.k + 12 * 128, 0, 128);
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(a_missing_key_scores_minus_infinity_in_bf16)
{
	uint16_t got[GATHERED_KEYS];
	uint32_t n;

	gathered_open(&w, 8, SPMLA_LOGITS_ABSOLUTE);
	w.a.tokens = 1;
	w.a.logits = got;
	w.a.logits_dtype = SPMLA_REAL_BF16;
	for (n = 12; n < GATHERED_KEYS; n += 7)
		w.k_scales[n] = -INFINITY;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &w.a, NULL),
			 SPMLA_OK);
	fixture_drain(&f);
	for (n = 10; n < 74; n++)
		ck_assert_int_eq(got[n] == 0xff80, n % 7 == 5);
}
END_TEST

START_TEST(row_without_keys_is_no_mistake)
{
	static const int32_t starts[4] = {0, 90, 50, 90};
	static const int32_t ends[4] = {0, 90, 49, 0};

	gathered_open(&w, 3, (uint32_t)_i);
	memcpy(w.starts, starts, sizeof starts);
	memcpy(w.ends, ends, sizeof ends);
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(without_keys_every_row_is_empty)
{
	gathered_open(&w, 3, (uint32_t)_i);
	memset(w.starts, 0, sizeof w.starts);
	memset(w.ends, 0, sizeof w.ends);
	w.a.keys = 0;
	w.a.k = NULL;
	w.a.k_scales = NULL;
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(start_or_end_outside_the_keys_is_a_row_without_keys)
{
	static const int32_t hostile[6] = {
		-1, INT32_MIN, INT32_MAX, GATHERED_KEYS + 1, -2, 1 << 30};

	gathered_open(&w, 3, (uint32_t)_i % 3);
	w.ends[1] = hostile[_i / 3];
	gathered_check(&f, &w);
	expect_fault(SPMLA_FAULT_INDEX, 1);
	w.ends[1] = 90;
	w.starts[1] = hostile[_i / 3];
	gathered_check(&f, &w);
	expect_fault(SPMLA_FAULT_INDEX, 1);
}
END_TEST

START_TEST(compressed_row_that_does_not_fit_is_not_written)
{
	gathered_open(&w, 3, SPMLA_LOGITS_COMPRESSED);
	w.a.columns = 89;
	gathered_check(&f, &w);
	expect_fault(SPMLA_FAULT_LOGITS, 1);
	w.ends[1] = 89;
	gathered_check(&f, &w);
	expect_clean();
}
END_TEST

START_TEST(nan_in_keys_that_no_row_sees_is_not_read)
{
	uint32_t n;

	gathered_open(&w, 8, (uint32_t)_i);
	w.starts[1] = 40;
	w.ends[1] = 60;
	for (n = 0; n < GATHERED_KEYS; n++)
		if (n < 10 || (n >= 74 && n < 89)) {
			memset(w.k + n * 128, 0x7F, 128);
			w.k_scales[n] = NAN;
		}
	gathered_check(&f, &w);
	for (n = 10; n < 74; n++)
		ck_assert(isfinite(gathered_row(
			&w, 0)[_i == SPMLA_LOGITS_COMPRESSED ? n - 10 : n]));
}
END_TEST

/* The same keys in pages of 30; of a number of heads for which the bits are
 * promised. */
START_TEST(bits_are_those_of_the_paged_operation)
{
	const uint32_t heads = fixture_cuts(&f) ? 65 : 8;
	const uint64_t stride = 30 * 132 / 16 * 16 + 16;
	uint8_t *pages = test_alloc(3 * stride, 0);
	const int32_t row = 0, len = GATHERED_KEYS, table[3] = {2, 0, 1};
	const int64_t at = 0;
	float paged[GATHERED_KEYS];
	spmla_mqa_logits_args a = {.struct_bytes = sizeof a,
				   .tokens = 1,
				   .heads = heads,
				   .rows = 1,
				   .columns = 3,
				   .table_stride_elems = 3,
				   .token_row = &row,
				   .context_lens = &len,
				   .row_starts = &at,
				   .block_table = table,
				   .logits = paged,
				   .logits_elems = GATHERED_KEYS,
				   .cache = SPMLA_CACHE_INIT};
	uint32_t n;

	gathered_open(&w, heads, SPMLA_LOGITS_ABSOLUTE);
	for (n = 0; n < GATHERED_KEYS; n++) {
		uint8_t *page = pages + (uint64_t)table[n / 30] * stride;

		memcpy(page + n % 30 * 128, w.k + n * 128, 128);
		memcpy(page + 30 * 128 + n % 30 * 4, &w.k_scales[n], 4);
	}
	a.q = w.q + heads * 128;
	a.weights = w.weights + w.a.weights_stride_elems;
	a.cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	a.cache.entries_per_page = 30;
	a.cache.pages = 3;
	a.cache.page_stride_bytes = stride;
	a.cache.base = pages;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &a, NULL), SPMLA_OK);
	gathered_check(&f, &w);
	ck_assert_mem_eq(gathered_row(&w, 1), paged, sizeof paged);
	free(pages);
}
END_TEST

START_TEST(bits_of_a_row_do_not_depend_on_the_other_tokens)
{
	float alone[64];

	gathered_open(&w, 8, SPMLA_LOGITS_COMPRESSED);
	gathered_check(&f, &w);
	memcpy(alone, gathered_row(&w, 0), sizeof alone);
	w.a.tokens = 1;
	w.a.form = SPMLA_LOGITS_CLEAN;
	gathered_check(&f, &w);
	ck_assert_mem_eq(gathered_row(&w, 0) + 10, alone, sizeof alone);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{scores_equal_the_reference_for_any_heads_and_form, 18},
		{large_head_before_many_small_ones_loses_no_more_than_the_bound,
		 2},
		{sums_that_are_cut_lose_something_and_no_more_than_the_bound,
		 6},
		{width_of_a_row_may_be_just_what_it_holds, 3},
		{negative_heads_are_dropped_before_the_weights, 1},
	};
	const theme_test edge[] = {
		{zero_queries_score_zero, 1},
		{subnormal_codes_and_scales_count, 1},
		{nan_code_of_a_key_counts_as_zero_and_nan_weight_is_nan, 1},
		{weights_of_any_size_count, 2},
		{a_missing_key_scores_minus_infinity, 12},
		{a_missing_key_scores_minus_infinity_in_bf16, 1},
		{row_without_keys_is_no_mistake, 3},
		{without_keys_every_row_is_empty, 3},
		{start_or_end_outside_the_keys_is_a_row_without_keys, 18},
		{compressed_row_that_does_not_fit_is_not_written, 1},
		{nan_in_keys_that_no_row_sees_is_not_read, 3},
	};
	const theme_test determinism[] = {
		{bits_are_those_of_the_paged_operation, 1},
		{bits_of_a_row_do_not_depend_on_the_other_tokens, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
