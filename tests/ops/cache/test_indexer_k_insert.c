/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: whole pools compared with a model that rounds doubles in
 * the pinned order, and single values derived by hand. Every check compares
 * all bytes of the pool, the padding too.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/indexer_k_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One token of zeros in slot 0. */
static void
open_one(k_rig *r)
{
	k_rig_open(r, 1, 4, 1, 0);
	memset(r->k, 0, 128 * 2);
	r->slots[0] = 0;
	r->positions[0] = 0;
}

START_TEST(keys_without_norm_and_rope_equal_the_model)
{
	static const uint32_t tokens[] = {1, 4, 17}, entries[] = {1, 16, 64};
	uint32_t dtype, mode, i;
	k_rig r;

	for (dtype = SPMLA_DTYPE_BF16; dtype <= SPMLA_DTYPE_FP16; dtype++)
		for (mode = SPMLA_SCALE_POW2; mode <= K_RIG_LAST; mode++)
			for (i = 0; i < 9; i++) {
				k_rig_open(&r, tokens[i % 3], entries[i / 3],
					   64 / entries[i / 3], 16 * i);
				r.a.dtype = dtype;
				k_rig_form(&r, mode);
				k_rig_check(&r);
				k_rig_close(&r);
			}
}
END_TEST

START_TEST(keys_with_norm_and_rope_equal_the_model)
{
	uint32_t norm, style, mode;
	k_rig r;

	for (norm = 0; norm < 2; norm++)
		for (style = 0; style <= SPMLA_ROPE_INTERLEAVED; style++)
			for (mode = 1; mode <= K_RIG_LAST; mode++) {
				k_rig_open(&r, 40, 16, 4, 0);
				if (norm)
					k_rig_norm(&r);
				if (style)
					k_rig_rope(&r, style);
				k_rig_form(&r, mode);
				k_rig_check(&r);
				k_rig_close(&r);
			}
}
END_TEST

START_TEST(keys_may_be_dense_or_far_apart)
{
	int64_t stride;
	k_rig r;

	for (stride = 128; stride <= 136; stride++) {
		k_rig_open(&r, 9, 16, 1, 0);
		r.a.k_stride_elems = stride;
		k_rig_check(&r);
		k_rig_close(&r);
	}
}
END_TEST

/* max(0, 1e-4) / 448 = 2.23e-7; 2^-22 = 2.38e-7 is the next power of two. */
START_TEST(a_row_of_zeros_has_the_least_scale_and_keeps_its_signs)
{
	k_rig r;

	open_one(&r);
	r.k[1] = 0x8000;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 0x1p-22f);
	ck_assert_uint_eq(r.pool[0], 0x00);
	ck_assert_uint_eq(r.pool[1], 0x80);
	r.a.scale_mode = SPMLA_SCALE_RAW;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 1e-4f / 448.0f);
	k_rig_close(&r);
}
END_TEST

/* 448 * 2^k has the scale 2^k and code 0x7e; the next bf16, 450 * 2^k, has
 * 2^(k+1), and 225 rounds to 224, code 0x76. 448 * 2^-22 = 1.07e-4 is just
 * above the floor. */
START_TEST(an_amax_of_448_times_a_power_of_two_fills_the_range)
{
	int k;
	k_rig r;

	open_one(&r);
	for (k = -22; k <= 100; k++) {
		r.k[127] = test_bf16(ldexpf(-448.0f, k));
		k_rig_check(&r);
		ck_assert(k_rig_scale(&r, 0) == ldexpf(1.0f, k));
		ck_assert_uint_eq(r.pool[127], 0xfe);
		r.k[127] = test_bf16(ldexpf(450.0f, k));
		k_rig_check(&r);
		ck_assert(k_rig_scale(&r, 0) == ldexpf(1.0f, k + 1));
		ck_assert_uint_eq(r.pool[127], 0x76);
	}
	k_rig_close(&r);
}
END_TEST

/* 336: POW2 1 and the tie 336 to 320, code 0x7a; RAW 0.75 and 448, 0x7e. */
START_TEST(a_row_of_336_has_scale_1_or_three_quarters)
{
	uint32_t i;
	k_rig r;

	open_one(&r);
	for (i = 0; i < 128; i++)
		r.k[i] = test_bf16(336.0f);
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 1.0f);
	ck_assert_uint_eq(r.pool[77], 0x7a);
	r.a.scale_mode = SPMLA_SCALE_RAW;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 0.75f);
	ck_assert_uint_eq(r.pool[77], 0x7e);
	k_rig_close(&r);
}
END_TEST

START_TEST(nan_infinity_and_subnormals_have_defined_codes)
{
	k_rig r;

	open_one(&r);
	r.k[0] = 0xffc0; /* NaN */
	r.k[1] = test_bf16(448.0f);
	r.k[2] = 0x0001; /* 2^-133, nothing beside 448 */
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 1.0f);
	ck_assert_uint_eq(r.pool[0], 0x7f);
	ck_assert_uint_eq(r.pool[1], 0x7e);
	ck_assert_uint_eq(r.pool[2], 0x00);
	r.k[1] = 0xff80; /* -inf */
	r.k[3] = test_bf16(-2.0f);
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == INFINITY);
	ck_assert_uint_eq(r.pool[0], 0x7f);
	ck_assert_uint_eq(r.pool[1], 0x7f);
	ck_assert_uint_eq(r.pool[3], 0x80);
	/* fp16 512 * 2^-24 = 2^-15 is below 1e-4: 2^-15 / 2^-22 = 128, 14 << 3.
	 * fp16 2^-24 / 2^-22 = 2^-2 = 1 * 2^-2: 5 << 3. */
	memset(r.k, 0, 256);
	r.a.dtype = SPMLA_DTYPE_FP16;
	r.k[0] = 512;
	r.k[1] = 0x8001;
	k_rig_check(&r);
	ck_assert_uint_eq(r.pool[0], 14 << 3);
	ck_assert_uint_eq(r.pool[1], 0x80 | 5 << 3);
	k_rig_close(&r);
}
END_TEST

/* 32 values with amax 6 * 2^e have the scale byte 127 + e, and a value x has
 * the code nearest to x / 2^e: 0.25 is a tie, to 0; 5 one to 4 (code 6); 0.75
 * one to 1 (code 2). Amax 6.5 doubles the scale: 3.25 rounds to 3 (code 5).
 * Zeros have 2^-126, byte 1. */
START_TEST(each_group_of_mxfp4_has_its_scale)
{
	k_rig r;

	open_one(&r);
	k_rig_form(&r, K_RIG_MXFP4);
	r.k[0] = test_bf16(6);
	r.k[1] = test_bf16(-0.25f);
	r.k[2] = test_bf16(5);
	r.k[31] = test_bf16(0.75f);
	r.k[32 + 7] = test_bf16(-6.5f);
	r.k[64 + 16] = test_bf16(0.75f); /* 6 / 8 */
	r.k[64 + 17] = 0x7fc0;
	r.k[64 + 18] = 0xffc0;
	k_rig_check(&r);
	ck_assert_uint_eq(r.pool[0], 0x87);
	ck_assert_uint_eq(r.pool[1], 0x06);
	ck_assert_uint_eq(r.pool[15], 0x20);
	ck_assert_uint_eq(r.pool[16 + 3], 0xd0);
	ck_assert_uint_eq(r.pool[32 + 8], 0x77);
	ck_assert_uint_eq(r.pool[32 + 9], 0x07);
	ck_assert_mem_eq(r.pool + 4 * 64, ((uint8_t[]){127, 128, 124, 1}), 4);
	k_rig_close(&r);
}
END_TEST

START_TEST(a_key_does_not_depend_on_its_neighbours)
{
	uint8_t row[128];
	float scale;
	uint32_t t;
	k_rig r;

	k_rig_open(&r, 17, 64, 1, 0);
	k_rig_norm(&r);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	for (t = 0; t < 17; t++)
		r.slots[t] = t == 11 ? 63 : 2 * t;
	k_rig_check(&r);
	memcpy(row, r.pool + 63 * 128, sizeof row);
	scale = k_rig_scale(&r, 63);
	r.a.tokens = 1;
	r.a.k = r.k + 11 * 136;
	r.a.slot_mapping = r.slots + 11;
	r.a.positions = r.positions + 11;
	k_rig_run(&r);
	ck_assert_mem_eq(r.pool + 63 * 128, row, sizeof row);
	ck_assert(k_rig_scale(&r, 63) == scale);
	k_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{keys_without_norm_and_rope_equal_the_model, 1},
		{keys_with_norm_and_rope_equal_the_model, 1},
		{keys_may_be_dense_or_far_apart, 1},
	};
	const theme_test edge[] = {
		{a_row_of_zeros_has_the_least_scale_and_keeps_its_signs, 1},
		{an_amax_of_448_times_a_power_of_two_fills_the_range, 1},
		{each_group_of_mxfp4_has_its_scale, 1},
		{a_row_of_336_has_scale_1_or_three_quarters, 1},
		{nan_infinity_and_subnormals_have_defined_codes, 1},
	};
	const theme_test determinism[] = {
		{a_key_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
