/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: the scores. Bad data is in test_mqa_logits_bad.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/emulator.h"
#include "tests/harness/themes.h"
#include "tests/ops/select/mqa_world.h"

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = MQA_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

START_TEST(scores_equal_the_reference_for_any_heads_and_page_size)
{
	static const uint32_t heads[6] = {1, 3, 8, 64, 65, 128};
	static const uint32_t entries[4] = {1, 2, 61, 64};
	mqa_world w;

	mqa_open(&w, heads[_i / 4 % 6], entries[_i % 4]);
	if (_i >= 24)
		test_close_gaps(&w.a.cache);
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	mqa_close(&w);
}
END_TEST

START_TEST(large_head_before_many_small_ones_loses_no_more_than_the_bound)
{
	mqa_world w;

	mqa_open(&w, _i ? MQA_HEADS : 64, 64);
	w.a.tokens = 1;
	w.lens[0] = 1;
	mqa_steep(w.q, w.weights, w.a.heads,
		  mqa_entry(&w.a.cache, mqa_first_page(&w), 0));
	mqa_put_scale(&w.a.cache, mqa_first_page(&w), 0, 1);
	mqa_check(&f, &w);
	mqa_close(&w);
}
END_TEST

START_TEST(sums_that_are_cut_lose_something_and_no_more_than_the_bound)
{
	const uint32_t heads = _i % 2 ? MQA_HEADS : 64;
	mqa_world w;

	mqa_open(&w, heads, 64);
	w.a.tokens = 1;
	w.lens[0] = 1;
	mqa_adverse(w.q, w.weights, heads,
		    mqa_entry(&w.a.cache, mqa_first_page(&w), 0),
		    (uint32_t)_i / 2);
	mqa_put_scale(&w.a.cache, mqa_first_page(&w), 0, 1);
	mqa_check(&f, &w);
	ck_assert_int_eq(
		(double)w.logits[w.starts[0]] <
			0.9999 * mqa_adverse_score(heads, (uint32_t)_i / 2),
		heads == 64 && fixture_cuts(&f));
	mqa_close(&w);
}
END_TEST

/* q = (1, -1) on dimension 0, k = 2 there, w = (3, 5), scale 0.5:
 * 0.5 * (relu(2) * 3 + relu(-2) * 5) = 3. */
START_TEST(negative_heads_are_dropped_before_the_weights)
{
	mqa_world w;

	mqa_open(&w, 2, 64);
	w.a.tokens = 1;
	w.lens[0] = 1;
	memset(w.q, 0, 256);
	memset(mqa_entry(&w.a.cache, mqa_first_page(&w), 0), 0, 128);
	w.q[0] = 0x38;
	w.q[128] = 0xB8;
	w.weights[0] = 3;
	w.weights[1] = 5;
	*mqa_entry(&w.a.cache, mqa_first_page(&w), 0) = 0x40;
	mqa_put_scale(&w.a.cache, mqa_first_page(&w), 0, 0.5f);
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0]], 3.0f);
	mqa_close(&w);
}
END_TEST

START_TEST(zero_queries_score_zero)
{
	mqa_world w;
	uint32_t n;

	mqa_open(&w, 8, 61);
	memset(w.q, 0, MQA_TOKENS * 8 * 128);
	mqa_check(&f, &w);
	for (n = 0; n < 150; n++)
		ck_assert_float_eq(w.logits[w.starts[0] + n], 0.0f);
	mqa_close(&w);
}
END_TEST

START_TEST(subnormal_codes_and_scales_count)
{
	mqa_world w;
	uint32_t i;

	mqa_open(&w, 3, 2);
	for (i = 0; i < MQA_TOKENS * 3 * 128; i++)
		w.q[i] &= 0x87;
	for (i = 0; i < w.a.cache.pages; i++)
		mqa_put_scale(&w.a.cache, i, 1, 0x1p-130f);
	mqa_check(&f, &w);
	mqa_close(&w);
}
END_TEST

START_TEST(nan_code_of_a_key_counts_as_zero_and_nan_weight_is_nan)
{
	const uint8_t nan_codes[2] = {0x7F, 0xFF};
	mqa_world w;
	uint32_t i;

	mqa_open(&w, 8, 64);
	for (i = 0; i < 2; i++)
		mqa_entry(&w.a.cache, mqa_first_page(&w), i)[77] = nan_codes[i];
	w.weights[1 * 8 + 3] = NAN;
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0]], 0.0f);
	ck_assert_float_eq(w.logits[w.starts[0] + 1], 0.0f);
	ck_assert_float_nan(w.logits[w.starts[1]]);
	mqa_close(&w);
}
END_TEST

START_TEST(nan_behind_what_a_row_uses_is_not_read)
{
	mqa_world w;
	uint32_t p, i;

	mqa_open(&w, 8, 64);
	w.lens[0] = 64;
	w.lens[1] = 0;
	w.lens[2] = 3;
	for (p = 0; p < w.a.cache.pages; p++)
		for (i = 0; p != mqa_first_page(&w) && i < 64; i++) {
			memset(mqa_entry(&w.a.cache, p, i), 0xFF, 128);
			mqa_put_scale(&w.a.cache, p, i, NAN);
		}
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	mqa_close(&w);
}
END_TEST

/* All keys in the last of `pages` pages, `stride` bytes apart; only what is
 * touched takes memory. */
static void
check_last_page(uint32_t pages, uint64_t stride, uint32_t entries)
{
	const uint32_t last = pages - 1;
	mqa_world w;
	void *base = test_map(pages * stride);
	uint32_t i;

	mqa_open(&w, 3, 64);
	w.a.cache.base = base;
	w.a.cache.entries_per_page = entries;
	w.a.cache.page_stride_bytes = stride;
	w.a.cache.pages = pages;
	for (i = 0; i < 64; i++) {
		memset(mqa_entry(&w.a.cache, last, i), 0x30 + (int)i % 8, 128);
		mqa_put_scale(&w.a.cache, last, i, 0.5f);
	}
	w.a.columns = 1;
	for (i = 0; i < 3; i++) {
		w.table[i * w.a.table_stride_elems] = (int32_t)last;
		w.lens[i] = 64;
	}
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	mqa_close(&w);
	munmap(base, pages * stride);
}

START_TEST(page_beyond_four_gib_is_found)
{
	check_last_page(3, UINT64_C(3) << 30, 64);
}
END_TEST

/* 2^25 entries of 128 bytes. */
START_TEST(scales_that_begin_at_four_gib_are_found)
{
	check_last_page(1, UINT64_C(132) << 25, 1u << 25);
}
END_TEST

START_TEST(bits_of_a_row_do_not_depend_on_the_other_tokens)
{
	float alone[149];
	mqa_world w;

	mqa_open(&w, 8, 61);
	mqa_check(&f, &w);
	memcpy(alone, w.logits + w.starts[1], sizeof alone);
	w.a.tokens = 1;
	w.a.q += 8 * 128;
	w.a.weights += 8;
	w.token_row[0] = 0;
	w.lens[0] = 149;
	w.starts[0] = 0;
	mqa_check(&f, &w);
	ck_assert_mem_eq(w.logits, alone, sizeof alone);
	mqa_close(&w);
}
END_TEST

START_TEST(two_queries_of_a_row_have_the_bits_of_each_alone)
{
	const int32_t lens[2] = {_i ? 97 : 150, _i ? 150 : 97};
	float both[MQA_LOGITS];
	uint32_t t;
	mqa_world w;

	mqa_open(&w, 8, 61);
	w.a.tokens = 2;
	w.token_row[1] = w.token_row[0];
	memcpy(w.lens, lens, sizeof lens);
	mqa_check(&f, &w);
	memcpy(both, w.logits, sizeof both);
	w.a.tokens = 1;
	for (t = 0; t < 2; t++) {
		w.a.q = w.q + t * 8 * 128;
		w.a.weights = w.weights + t * 8;
		w.lens[0] = lens[t];
		w.starts[0] = w.starts[t];
		mqa_check(&f, &w);
		ck_assert_mem_eq(w.logits + w.starts[0], both + w.starts[0],
				 (uint32_t)lens[t] * sizeof *both);
	}
	mqa_close(&w);
}
END_TEST

START_TEST(queries_may_lie_at_any_address)
{
	float aligned[MQA_LOGITS];
	uint8_t *q = test_alloc(MQA_TOKENS * 8 * 128 + 1, 0);
	mqa_world w;

	mqa_open(&w, 8, 61);
	mqa_check(&f, &w);
	memcpy(aligned, w.logits, sizeof aligned);
	memcpy(q + 1, w.q, MQA_TOKENS * 8 * 128);
	w.a.q = q + 1;
	mqa_check(&f, &w);
	ck_assert_mem_eq(w.logits, aligned, sizeof aligned);
	free(q);
	mqa_close(&w);
}
END_TEST

/* The kernel without matrix instructions; another backend has no width to
 * change. */
START_TEST(bits_do_not_depend_on_the_width_of_a_subgroup)
{
	float narrow[MQA_LOGITS];
	uint32_t width;
	mqa_world w;

	if (f.backend != &spmla_emulator)
		return;
	mqa_open(&w, 65, 61);
	emulator_set(16, 1);
	mqa_check(&f, &w);
	memcpy(narrow, w.logits, sizeof narrow);
	for (width = 32; width <= 64; width *= 2) {
		emulator_set(width, width);
		mqa_check(&f, &w);
		ck_assert_mem_eq(w.logits, narrow, sizeof narrow);
	}
	mqa_close(&w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{scores_equal_the_reference_for_any_heads_and_page_size, 48},
		{large_head_before_many_small_ones_loses_no_more_than_the_bound,
		 2},
		{sums_that_are_cut_lose_something_and_no_more_than_the_bound,
		 6},
		{negative_heads_are_dropped_before_the_weights, 1},
	};
	const theme_test edge[] = {
		{zero_queries_score_zero, 1},
		{subnormal_codes_and_scales_count, 1},
		{nan_code_of_a_key_counts_as_zero_and_nan_weight_is_nan, 1},
		{nan_behind_what_a_row_uses_is_not_read, 1},
	};
	const theme_test layout[] = {
		{page_beyond_four_gib_is_found, 1},
		{scales_that_begin_at_four_gib_are_found, 1},
		{queries_may_lie_at_any_address, 1},
	};
	const theme_test determinism[] = {
		{bits_of_a_row_do_not_depend_on_the_other_tokens, 1},
		{two_queries_of_a_row_have_the_bits_of_each_alone, 2},
		{bits_do_not_depend_on_the_width_of_a_subgroup, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
