/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: the norm and the rope, by values derived by hand. The codes
 * show only what survives e4m3, so inputs are chosen where it does.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/indexer_k_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One token of zeros in slot 0. */
static void
open_one(k_rig *r)
{
	k_rig_open(r, 1, 4, 1, 0);
	memset(r->k, 0, 128 * 2);
	r->slots[0] = 0;
	r->positions[0] = 0;
}

/* LayerNorm with weight 1 and bias 0. */
static void
plain_norm(k_rig *r)
{
	uint32_t i;

	k_rig_norm(r);
	for (i = 0; i < 128; i++) {
		r->weight[i] = 1;
		r->bias[i] = 0;
	}
}

/* Half -1, half +1: mean 0, var 1, rstd = 1 / sqrt(1 + 1e-6) = 0.9999995,
 * which is 1 in bf16. weight 3, bias 0.5: 3.5 and -2.5. POW2 of 3.5 / 448 =
 * 2^-7 exactly: 3.5 * 2^7 = 448, code 0x7e; -2.5 * 2^7 = -320 = -1.25 * 2^8,
 * 0x80 | 15 << 3 | 2. */
START_TEST(the_norm_of_plus_and_minus_one_is_exact)
{
	uint32_t i;
	k_rig r;

	open_one(&r);
	plain_norm(&r);
	for (i = 0; i < 128; i++) {
		r.k[i] = test_bf16(i % 2 ? -1.0f : 1.0f);
		r.weight[i] = 3;
		r.bias[i] = 0.5f;
	}
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 0x1p-7f);
	ck_assert_uint_eq(r.pool[0], 0x7e);
	ck_assert_uint_eq(r.pool[1], 0xfa);
	ck_assert_uint_eq(r.pool[126], 0x7e);
	k_rig_close(&r);
}
END_TEST

/* x = 0 .. 127: mean 63.5, var = (128^2 - 1) / 12 = 1365.25, so y = (i - 63.5)
 * / 36.949289: |y| is 1.7185716 at both ends, between the bf16 1.71875 (220 *
 * 2^-7) and 1.7109375, nearer to the first. RAW then stores 1.71875 / 448. */
START_TEST(the_norm_of_a_ramp_is_within_one_bf16_step)
{
	double x[128];
	uint32_t i;
	k_rig r;

	open_one(&r);
	plain_norm(&r);
	for (i = 0; i < 128; i++)
		r.k[i] = test_bf16((float)i);
	r.a.scale_mode = SPMLA_SCALE_RAW;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == (float)(1.71875 / 448));
	ck_assert_uint_eq(r.pool[0], 0xfe);
	ck_assert_uint_eq(r.pool[127], 0x7e);
	for (i = 0; i < 128; i++)
		x[i] = i;
	k_model_norm(x, r.weight, r.bias, 1e-6f);
	for (i = 0; i < 128; i++) {
		const double y = (i - 63.5) / sqrt(1365.25 + 1e-6);
		const double scale = (double)k_rig_scale(&r, 0);
		const double got = ref_e4m3_value(r.pool[i]) * scale;

		/* bf16 steps are at most 2^-7 |y|, half e4m3 ones 2^-4 |y|,
		 * or 2^-10 of the scale. */
		ck_assert(fabs(x[i] - y) <= 0x1p-7 * fabs(y));
		ck_assert(fabs(got - x[i]) <=
			  fmax(0x1p-4 * fabs(x[i]), 0x1p-10 * scale));
	}
	k_rig_close(&r);
}
END_TEST

/* var = 0: rstd = 1000, and all that is left is the bias. */
START_TEST(the_norm_of_a_constant_row_is_the_bias)
{
	uint32_t i;
	k_rig r;

	open_one(&r);
	plain_norm(&r);
	for (i = 0; i < 128; i++) {
		r.k[i] = test_bf16(96.0f); /* sums to 12288, exact */
		r.bias[i] = i == 9 ? 448.0f : 1.0f;
	}
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 1.0f);
	ck_assert_uint_eq(r.pool[9], 0x7e);
	ck_assert_uint_eq(r.pool[8], 0x38);
	k_rig_close(&r);
}
END_TEST

/* The bias takes away what the product of norm and weight should be, so that
 * zeros are left; with weights of 2^20 and more, one wrong bit of the mean, the
 * variance or a product, or a fused one, is far above the least scale. Keys of
 * 16 binades make every sum inexact. */
START_TEST(every_f32_bit_of_the_norm_is_as_pinned)
{
	uint32_t round, i;
	double x[128];
	k_rig r;

	open_one(&r);
	for (round = 0; round < 50; round++) {
		k_rig_norm(&r);
		for (i = 0; i < 128; i++) {
			r.k[i] = test_bf16(ldexpf(r.bias[i], (int)(i % 16)));
			x[i] = ref_bf16_value(r.k[i]);
			r.weight[i] *= 0x1p20f;
		}
		k_model_scaled(x, r.weight, r.a.norm_eps);
		for (i = 0; i < 128; i++)
			r.bias[i] = (float)-x[i];
		k_rig_check(&r);
		ck_assert(k_rig_scale(&r, 0) == 0x1p-22f);
		for (i = 0; i < 128; i++)
			ck_assert_uint_eq(r.pool[i], 0x00);
	}
	k_rig_close(&r);
}
END_TEST

START_TEST(a_nan_in_a_normed_row_makes_every_code_nan)
{
	uint32_t i;
	k_rig r;

	open_one(&r);
	plain_norm(&r);
	r.k[5] = 0x7fc0;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 0x1p-22f);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(r.pool[i], 0x7f);
	k_rig_close(&r);
}
END_TEST

START_TEST(rope_at_position_0_changes_nothing)
{
	uint8_t plain[132 * 4];
	uint32_t style, t, i;
	k_rig r;

	k_rig_open(&r, 4, 4, 1, 0);
	for (t = 0; t < 4; t++) {
		r.slots[t] = t;
		r.positions[t] = 0;
		for (i = 0; i < 128; i++)
			r.k[t * 136 + i] = test_bf16((float)i - 63.5f);
	}
	k_rig_check(&r);
	memcpy(plain, r.pool, sizeof plain);
	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		k_rig_rope(&r, style);
		k_rig_check(&r);
		ck_assert_mem_eq(r.pool, plain, sizeof plain);
	}
	k_rig_close(&r);
}
END_TEST

/* A quarter turn of the first pair, cos 0 and sin 1: (448, 64) becomes
 * (-64, 448). NEOX pairs 0 with 32, INTERLEAVED 0 with 1. Codes: 448 0x7e; 64
 * = 2^6 13 << 3. Values from 64 on are not rotated. */
START_TEST(each_rope_style_turns_its_own_pairs)
{
	uint32_t style;
	k_rig r;

	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		const uint32_t second = style == SPMLA_ROPE_NEOX ? 32 : 1;

		open_one(&r);
		k_rig_rope(&r, style);
		r.positions[0] = 3;
		memset(r.cos_sin + 3 * 64, 0, 64 * sizeof(float));
		r.cos_sin[3 * 64 + 32] = 1; /* sin of pair 0 */
		r.k[0] = r.k[64] = test_bf16(448.0f);
		r.k[second] = r.k[64 + second] = test_bf16(64.0f);
		k_rig_check(&r);
		ck_assert_uint_eq(r.pool[0], 0xe8);
		ck_assert_uint_eq(r.pool[second], 0x7e);
		ck_assert_uint_eq(r.pool[64], 0x7e);
		ck_assert_uint_eq(r.pool[64 + second], 0x68);
		k_rig_close(&r);
	}
}
END_TEST

/* 3 * c, c = 11556182 * 2^-24, is 2.06640625 + 2^-23, a tie of f32 that goes
 * down to 2.06640625. Less 1, that is 1.06640625, a tie of bf16, to the even
 * 1.0625; over the scale 2^-6 it is 68, a tie of e4m3, to 64, code 13 << 3. A
 * fused difference keeps the 2^-23 and ends one code higher. Pair 0 rounds the
 * first product, pair 1, -1 * 1 - (-3 * c), the second. */
START_TEST(rope_products_are_rounded_before_they_are_added)
{
	const float c = 11556182 * 0x1p-24f;
	k_rig r;

	open_one(&r);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	r.k[0] = test_bf16(3.0f);
	r.k[32] = test_bf16(1.0f);
	r.cos_sin[0] = c;
	r.cos_sin[32] = 1;
	r.k[1] = test_bf16(-1.0f);
	r.k[33] = test_bf16(-3.0f);
	r.cos_sin[1] = 1;
	r.cos_sin[33] = c;
	k_rig_check(&r);
	ck_assert(k_rig_scale(&r, 0) == 0x1p-6f);
	ck_assert_uint_eq(r.pool[0], 13 << 3);
	ck_assert_uint_eq(r.pool[1], 13 << 3);
	k_rig_close(&r);
}
END_TEST

/* A table of 2^24 positions is 4 GiB: the last row begins past 2^31 B, the
 * row of position 1000000 at 256 MB. They turn as positions 3 and 5 do. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(4) << 30;
	float *map = test_map(bytes);
	uint8_t *near_pool;
	k_rig r;

	k_rig_open(&r, 2, 4, 1, 0);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	r.slots[0] = 2;
	r.slots[1] = 0;
	r.positions[0] = 3;
	r.positions[1] = 5;
	k_rig_check(&r);
	near_pool = test_alloc(r.pool_bytes, 0);
	memcpy(near_pool, r.pool, r.pool_bytes);
	memcpy(map + 16777215 * UINT64_C(64), r.cos_sin + 3 * 64, 256);
	memcpy(map + 1000000 * 64, r.cos_sin + 5 * 64, 256);
	r.a.cos_sin = map;
	r.a.cos_sin_rows = 1 << 24;
	r.positions[0] = 16777215;
	r.positions[1] = 1000000;
	k_rig_run(&r);
	ck_assert_mem_eq(r.pool, near_pool, r.pool_bytes);
	munmap(map, bytes);
	free(near_pool);
	k_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{the_norm_of_plus_and_minus_one_is_exact, 1},
		{the_norm_of_a_ramp_is_within_one_bf16_step, 1},
		{the_norm_of_a_constant_row_is_the_bias, 1},
		{every_f32_bit_of_the_norm_is_as_pinned, 1},
		{a_nan_in_a_normed_row_makes_every_code_nan, 1},
		{rope_at_position_0_changes_nothing, 1},
		{each_rope_style_turns_its_own_pairs, 1},
		{rope_products_are_rounded_before_they_are_added, 1},
		{rows_of_the_rope_table_may_lie_past_2_gib, 1},
	};
	const theme themes[] = {
		THEME("edge", NULL, NULL, edge),
	};

	return RUN_THEMES(themes);
}
