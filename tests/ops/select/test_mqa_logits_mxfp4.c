/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits over keys of INDEX_MXFP4 with MXFP4 queries. Addresses are in
 * test_mqa_logits_mxfp4_far.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"
#include "tests/harness/themes.h"
#include "tests/ops/select/mqa_world.h"
#include "tests/reference/mxfp4_ref.h"
#include "tests/reference/reference.h"

static fixture f;
static mqa_world w;

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
	mqa_close(&w);
	fixture_close(&f);
}

/* One token, one key, zeros with scales of 1; weights 1. */
static void
open_one(uint32_t heads)
{
	uint32_t h;

	mqa_open_mxfp4(&w, heads, 64);
	w.a.tokens = 1;
	w.lens[0] = 1;
	memset(w.q, 0, heads * 64);
	memset(w.q_scales, 127, heads * 4);
	memset(mqa_entry(&w.a.cache, mqa_first_page(&w), 0), 0, 64);
	memset(mqa_scales(&w.a.cache, mqa_first_page(&w), 0), 127, 4);
	for (h = 0; h < heads; h++)
		w.weights[h] = 1;
}

static uint8_t *
key(void)
{
	return mqa_entry(&w.a.cache, mqa_first_page(&w), 0);
}

static uint8_t *
key_scales(void)
{
	return mqa_scales(&w.a.cache, mqa_first_page(&w), 0);
}

static float
score(void)
{
	mqa_check(&f, &w);
	return w.logits[w.starts[0]];
}

START_TEST(scores_equal_the_reference_for_any_heads_and_page_size)
{
	static const uint32_t heads[6] = {1, 3, 8, 64, 65, 128};
	static const uint32_t entries[4] = {1, 2, 61, 64};

	mqa_open_mxfp4(&w, heads[_i / 4 % 6], entries[_i % 4]);
	if (_i >= 24)
		test_close_gaps(&w.a.cache);
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* q = (1, -1) on dimension 0, k = 2 there, w = (3, 5):
 * relu(2) * 3 + relu(-2) * 5 = 6. */
START_TEST(negative_heads_are_dropped_before_the_weights)
{
	open_one(2);
	w.q[0] = 0x02;
	w.q[64] = 0x0A;
	w.weights[0] = 3;
	w.weights[1] = 5;
	key()[0] = 0x04;
	ck_assert_float_eq(score(), 6.0f);
}
END_TEST

/* Values 2 i and 2 i + 1 are the low and the high half of byte i, and byte g of
 * the scales is the scale of values 32 g .. 32 g + 31. One value at a time is
 * q = 1.5 * 2^a and k = 3 * 2^b, where a and b are the group's. */
START_TEST(every_value_meets_its_own_scale)
{
	uint32_t d;

	open_one(1);
	w.a.q_scales = w.q_scales;
	for (d = 0; d < 4; d++) {
		((uint8_t *)w.q_scales)[d] = (uint8_t)(127 + d);
		key_scales()[d] = (uint8_t)(127 - 3 * (int)d);
	}
	for (d = 0; d < 128; d++) {
		w.q[d / 2] = (uint8_t)(3 << 4 * (d % 2));
		key()[d / 2] = (uint8_t)(5 << 4 * (d % 2));
		ck_assert_float_eq(score(), ldexpf(4.5f, -2 * (int)(d / 32)));
		key()[d / 2] = (uint8_t)(5 << 4 * (1 - d % 2));
		ck_assert_float_eq(score(), 0.0f);
		w.q[d / 2] = key()[d / 2] = 0;
	}
}
END_TEST

/* All 256 pairs of codes: 128 at a time. */
START_TEST(products_of_all_codes_are_exact)
{
	uint32_t a, b;

	open_one(1);
	for (a = 0; a < 16; a++)
		for (b = 0; b < 16; b++) {
			const double x = ref_e2m1_value((uint8_t)a) *
					 ref_e2m1_value((uint8_t)b);

			w.q[5] = (uint8_t)a;
			key()[5] = (uint8_t)b;
			ck_assert_float_eq(score(), (float)fmax(x, 0));
		}
}
END_TEST

/* Every code of e2m1 is one of e4m3: with scales of 1 the same scores, in the
 * same order of sums. 65 heads, as fewer may go by matrix instructions. */
START_TEST(bits_are_those_of_the_same_values_in_fp8)
{
	static float fp8[MQA_LOGITS], fp4[MQA_LOGITS];
	mqa_world wide;
	uint32_t p, i, d;

	mqa_open_mxfp4(&w, 65, 61);
	memset(w.q_scales, 127, MQA_TOKENS * 65 * 4);
	mqa_open(&wide, 65, 61);
	for (i = 0; i < MQA_TOKENS * 65 * 128; i++)
		wide.q[i] = ref_e4m3(
			ref_e2m1_value(w.q[i / 2] >> 4 * (i % 2) & 15));
	for (p = 0; p < w.a.cache.pages; p++)
		for (i = 0; i < 61; i++) {
			const uint8_t *from = mqa_entry(&w.a.cache, p, i);
			uint8_t *to = mqa_entry(&wide.a.cache, p, i);

			memset(mqa_scales(&w.a.cache, p, i), 127, 4);
			mqa_put_scale(&wide.a.cache, p, i, 1);
			for (d = 0; d < 128; d++)
				to[d] = ref_e4m3(ref_e2m1_value(
					from[d / 2] >> 4 * (d % 2) & 15));
		}
	memcpy(wide.weights, w.weights, MQA_TOKENS * 65 * 4);
	mqa_check(&f, &w);
	memcpy(fp4, w.logits, sizeof fp4);
	mqa_check(&f, &wide);
	memcpy(fp8, wide.logits, sizeof fp8);
	ck_assert_mem_eq(fp4, fp8, sizeof fp8);
	mqa_close(&wide);
}
END_TEST

/* More tokens than one launch of any kernel takes, each with a query of 1 and a
 * scale of its own, and the same key of 1. */
START_TEST(thousands_of_tokens_have_each_its_scale)
{
	enum { MANY = 4100 };
	uint8_t *q = test_alloc(MANY * 64, 0);
	int32_t *scales = test_alloc(MANY * sizeof *scales, 127);
	float *weights = test_alloc(MANY * sizeof *weights, 0);
	int32_t *row = test_alloc(MANY * sizeof *row, 0);
	int32_t *lens = test_alloc(MANY * sizeof *lens, 0);
	int64_t *starts = test_alloc(MANY * sizeof *starts, 0);
	float *logits = test_alloc(MANY * sizeof *logits, 0x5A);
	uint32_t t;

	open_one(1);
	key()[0] = 0x02;
	for (t = 0; t < MANY; t++) {
		q[t * 64] = 0x02;
		((uint8_t *)&scales[t])[0] = (uint8_t)(127 + t % 7);
		weights[t] = 1;
		row[t] = w.token_row[0];
		lens[t] = 1;
		starts[t] = t;
	}
	w.a.tokens = MANY;
	w.a.q = q;
	w.a.q_scales = scales;
	w.a.weights = weights;
	w.a.token_row = row;
	w.a.context_lens = lens;
	w.a.row_starts = starts;
	w.a.logits = logits;
	w.a.logits_elems = MANY;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MANY; t++)
		ck_assert_float_eq(logits[t], (float)(1 << t % 7));
	free(q);
	free(scales);
	free(weights);
	free(row);
	free(lens);
	free(starts);
	free(logits);
}
END_TEST

START_TEST(scores_of_bf16_are_rounded_once)
{
	static float wide[MQA_LOGITS];
	uint32_t n;

	mqa_open_mxfp4(&w, 8, 61);
	mqa_check(&f, &w);
	memcpy(wide, w.logits, sizeof wide);
	w.a.logits_dtype = SPMLA_REAL_BF16;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (n = 0; n < 150; n++) {
		uint16_t got;

		memcpy(&got, (char *)w.logits + 2 * (w.starts[0] + n), 2);
		if (fixture_on_cpu() || fixture_tiles(&f))
			ck_assert_uint_eq(got,
					  test_bf16(wide[w.starts[0] + n]));
		else
			ck_assert_float_eq_tol(
				test_bf16_value(got), wide[w.starts[0] + n],
				0.005f * fabsf(wide[w.starts[0] + n]) + 1e-30f);
	}
}
END_TEST

START_TEST(zero_queries_score_zero)
{
	uint32_t n;

	mqa_open_mxfp4(&w, 8, 61);
	memset(w.q, 0x80, MQA_TOKENS * 8 * 64);
	mqa_check(&f, &w);
	for (n = 0; n < 150; n++)
		ck_assert_float_eq(w.logits[w.starts[0] + n], 0.0f);
}
END_TEST

/* Byte 0 is 2^-127, 0.5 of it a subnormal; times 6 * 2^125, the largest that is
 * no infinity, it is 6 * 2^-3. Byte 254 is 2^127. */
START_TEST(scales_of_either_end_count)
{
	open_one(1);
	w.q[0] = 0x01;
	key()[0] = 0x07;
	((uint8_t *)w.q_scales)[0] = 0;
	key_scales()[0] = 252;
	ck_assert_float_eq(score(), 0.75f);
	key()[0] = 0x02;
	key_scales()[0] = 254;
	ck_assert_float_eq(score(), 0.5f);
}
END_TEST

/* Byte 255 is 2^128, +inf in f32: times 0 it is NaN, which counts as 0, as for
 * e4m3; where no product is NaN the score is infinite. */
START_TEST(a_scale_of_255_is_infinite_and_a_weight_may_be_nan)
{
	open_one(2);
	memset(w.q, 0x22, 2 * 64);
	key_scales()[1] = 255;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_float_eq(w.logits[w.starts[0]], 0.0f);
	memset(key(), 0x22, 64);
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_float_eq(w.logits[w.starts[0]], INFINITY);
	key_scales()[1] = 127;
	w.weights[1] = NAN;
	ck_assert_float_nan(score());
}
END_TEST

START_TEST(what_no_row_uses_is_not_read)
{
	uint32_t p;

	mqa_open_mxfp4(&w, 8, 64);
	w.lens[0] = 64;
	w.lens[1] = 0;
	w.lens[2] = 3;
	for (p = 0; p < w.a.cache.pages; p++)
		if (p != mqa_first_page(&w))
			memset(mqa_entry(&w.a.cache, p, 0), 0xFF, 64 * 68);
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(a_page_outside_the_pool_scores_minus_infinity)
{
	mqa_open_mxfp4(&w, 8, 64);
	w.table[2 * w.a.table_stride_elems + 1] = _i ? -1 : 10;
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0] + 64], -INFINITY);
	ck_assert(isfinite(w.logits[w.starts[0] + 63]));
	mqa_expect_status(&f, SPMLA_FAULT_PAGE, 2);
}
END_TEST

START_TEST(bits_of_a_row_do_not_depend_on_the_other_tokens)
{
	static float alone[149];

	mqa_open_mxfp4(&w, 8, 61);
	mqa_check(&f, &w);
	memcpy(alone, w.logits + w.starts[1], sizeof alone);
	w.a.tokens = 1;
	w.a.q += 8 * 64;
	w.a.q_scales += 8;
	w.a.weights += 8;
	w.token_row[0] = 0;
	w.lens[0] = 149;
	w.starts[0] = 0;
	mqa_check(&f, &w);
	ck_assert_mem_eq(w.logits, alone, sizeof alone);
}
END_TEST

/* The kernel without matrix instructions; another backend has no width to
 * change. */
START_TEST(bits_do_not_depend_on_the_width_of_a_subgroup)
{
	static float narrow[MQA_LOGITS];
	uint32_t width;

	mqa_open_mxfp4(&w, 65, 61);
	if (f.backend != &spmla_emulator)
		return;
	emulator_set(16, 1);
	mqa_check(&f, &w);
	memcpy(narrow, w.logits, sizeof narrow);
	for (width = 32; width <= 64; width *= 2) {
		emulator_set(width, width);
		mqa_check(&f, &w);
		ck_assert_mem_eq(w.logits, narrow, sizeof narrow);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{scores_equal_the_reference_for_any_heads_and_page_size, 48},
		{thousands_of_tokens_have_each_its_scale, 1},
		{negative_heads_are_dropped_before_the_weights, 1},
		{every_value_meets_its_own_scale, 1},
		{products_of_all_codes_are_exact, 1},
		{scores_of_bf16_are_rounded_once, 1},
	};
	const theme_test edge[] = {
		{zero_queries_score_zero, 1},
		{scales_of_either_end_count, 1},
		{a_scale_of_255_is_infinite_and_a_weight_may_be_nan, 1},
		{what_no_row_uses_is_not_read, 1},
		{a_page_outside_the_pool_scores_minus_infinity, 2},
	};
	const theme_test determinism[] = {
		{bits_are_those_of_the_same_values_in_fp8, 1},
		{bits_of_a_row_do_not_depend_on_the_other_tokens, 1},
		{bits_do_not_depend_on_the_width_of_a_subgroup, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
