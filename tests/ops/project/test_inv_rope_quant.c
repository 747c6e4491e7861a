/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: both outputs compared with a model that rounds doubles in the
 * pinned order, and single values derived by hand. Every check compares what
 * lies around the outputs too.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/inv_rope_rig.h"
#include "tests/reference/code_walk.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inv_rope_rig r;

/* What a head is made of. */
static uint16_t *
head_of(uint32_t t, uint32_t h)
{
	return r.o + t * r.a.o_token_stride_elems + h * r.a.o_head_stride_elems;
}

/* One token, one group of two heads: zeros. */
static void
open_one(uint32_t quant)
{
	inv_rope_open(&r, 1, 1, 2);
	r.a.quant = quant;
	inv_rope_zero(&r);
}

START_TEST(results_of_any_shape_equal_the_model)
{
	static const uint32_t shapes[4][3] = {
		{1, 2, 2}, {4, 1, 3}, {5, 3, 1}, {11, 2, 4}};
	const uint32_t *n = shapes[_i];
	uint32_t quant, style;

	for (quant = 0; quant <= SPMLA_O_FP8_PACKED; quant++)
		for (style = 0; style <= SPMLA_ROPE_INTERLEAVED; style++) {
			inv_rope_open(&r, n[0], n[1], n[2]);
			r.a.quant = quant;
			r.a.rope_style = style;
			inv_rope_check(&r);
			inv_rope_close(&r);
		}
}
END_TEST

START_TEST(heads_and_groups_may_lie_in_any_order)
{
	inv_rope_open(&r, 5, 2, 3);
	r.a.quant = (uint32_t)_i;
	/* o heads outermost, groups of the outputs within tokens */
	r.a.o_token_stride_elems = 520;
	r.a.o_head_stride_elems = 5 * 520;
	r.a.out_token_stride_elems = 2 * 1536;
	r.a.out_group_stride_elems = 1536;
	r.a.scale_stride_elems = 2 * 12;
	r.a.scale_group_stride_elems = 12;
	inv_rope_check(&r);
	inv_rope_close(&r);
}
END_TEST

/* Addresses that no wide access fits. */
START_TEST(odd_addresses_and_strides_change_nothing)
{
	uint32_t style;

	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		float *table = test_alloc((ROPE_POSITIONS * 64 + 1) * 4, 0);

		inv_rope_open(&r, 6, 2, 2);
		r.a.quant = (uint32_t)_i;
		r.a.rope_style = style;
		memcpy(table + 1, r.cos_sin, ROPE_POSITIONS * 64 * 4);
		free(r.cos_sin);
		r.cos_sin = table;
		r.a.cos_sin = ++r.cos_sin;
		r.a.o++;
		r.a.o_head_stride_elems = 519;
		r.a.out_token_stride_elems = 1027;
		r.a.out_group_stride_elems = 6 * 1027 + 1;
		inv_rope_check(&r);
		r.cos_sin = table;
		inv_rope_close(&r);
	}
}
END_TEST

/* 1e-10 / 448 = 2.23e-13, up to 2^-42: exponent 85. */
START_TEST(zeros_have_the_least_scale_and_keep_their_signs)
{
	open_one(SPMLA_O_FP8 + (uint32_t)_i);
	r.o[5] = 0x8000;
	r.a.rope_style = SPMLA_ROPE_NONE;
	inv_rope_check(&r);
	ck_assert(inv_rope_scale_of(&r, 0, 0, 0) == 0x1p-42f);
	ck_assert(inv_rope_scale_of(&r, 0, 1, 3) == 0x1p-42f);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[5], 0x80);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[6], 0x00);
	if (_i)
		ck_assert_uint_eq(r.scales[0], 0x55555555);
	inv_rope_close(&r);
}
END_TEST

START_TEST(an_amax_of_448_times_a_power_of_two_fills_the_range)
{
	int k;

	open_one(SPMLA_O_FP8);
	for (k = -41; k <= 100; k += 3) {
		r.o[127] = test_bf16(ldexpf(-448.0f, k));
		r.o[128] = test_bf16(ldexpf(450.0f, k));
		inv_rope_check(&r);
		ck_assert(inv_rope_scale_of(&r, 0, 0, 0) == ldexpf(1.0f, k));
		ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[127], 0xfe);
		ck_assert(inv_rope_scale_of(&r, 0, 0, 1) ==
			  ldexpf(1.0f, k + 1));
		/* 225 to 224 */
		ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[128], 0x76);
	}
	inv_rope_close(&r);
}
END_TEST

/* _i: whether scales are packed. */
START_TEST(every_bf16_is_written_as_its_code)
{
	enum { TOKENS = 5, HEADS = 2 };
	uint32_t t, h, i;
	code_walk w;

	inv_rope_open(&r, TOKENS, 1, HEADS);
	r.a.quant = SPMLA_O_FP8 + (uint32_t)_i;
	r.a.rope_style = SPMLA_ROPE_NONE;
	code_walk_begin(&w, SPMLA_E4M3_FN, 128);
	while (code_walk_more(&w)) {
		for (t = 0; t < TOKENS; t++)
			for (h = 0; h < HEADS; h++)
				code_walk_row(&w, head_of(t, h), 512);
		inv_rope_run(&r);
		for (t = 0; t < TOKENS; t++)
			for (h = 0; h < HEADS; h++)
				for (i = 0; i < 512; i++)
					code_walk_check(
						&w, head_of(t, h)[i],
						inv_rope_codes(&r, t, h)[i]);
	}
	code_walk_end(&w);
	inv_rope_close(&r);
}
END_TEST

/* A quarter turn back of the last pair, cos 0 and sin 1: (448, 64) becomes
 * (64, -448). NEOX pairs 31 with 63, INTERLEAVED 62 with 63, of the last 64.
 * The values before them stay. */
START_TEST(each_rope_style_turns_its_own_pairs_back)
{
	uint32_t style;

	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		const uint32_t first = style == SPMLA_ROPE_NEOX ? 31 : 62;
		const uint8_t *codes;

		open_one(SPMLA_O_FP8);
		r.a.rope_style = style;
		r.positions[0] = 7;
		memset(r.cos_sin + 7 * 64, 0, 64 * sizeof(float));
		r.cos_sin[7 * 64 + 63] = 1; /* sin of pair 31 */
		r.o[448 + first] = r.o[384 + first] = test_bf16(448.0f);
		r.o[511] = r.o[447] = test_bf16(64.0f);
		inv_rope_check(&r);
		codes = inv_rope_codes(&r, 0, 0);
		ck_assert_uint_eq(codes[448 + first], 0x68);
		ck_assert_uint_eq(codes[511], 0xfe);
		ck_assert_uint_eq(codes[384 + first], 0x7e);
		ck_assert_uint_eq(codes[447], 0x68);
		inv_rope_close(&r);
	}
}
END_TEST

/* 1.0625 is the middle of the codes of 1 and 1.125 and goes to 1, the even one;
 * 1.0625 + 2^-12 goes to 1.125, but rounded to bf16 first it is 1.0625 again.
 * amax 448 makes the scale 1. The other one is 1 - 1.0625 * 2^-12. */
START_TEST(nothing_is_rounded_to_bf16_before_it_is_quantised)
{
	open_one(SPMLA_O_FP8);
	r.positions[0] = 3;
	memset(r.cos_sin + 3 * 64, 0, 64 * sizeof(float));
	r.cos_sin[3 * 64] = 1;
	r.cos_sin[3 * 64 + 32] = 0x1p-12f;
	r.o[448] = test_bf16(1.0625f);
	r.o[449] = test_bf16(1.0f);
	r.o[400] = test_bf16(448.0f);
	inv_rope_check(&r);
	ck_assert(inv_rope_scale_of(&r, 0, 0, 3) == 1.0f);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[448], 0x39);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[449], 0x38);
	inv_rope_close(&r);
}
END_TEST

/* (1 + 2^-7) (1 + 2^-17) = 1 + 2^-7 + 2^-17 + 2^-24 is the middle of two f32
 * and loses its 2^-24. Less 1 + 2^-7 + 2^-17 it is 0, where a fused sum would
 * be 2^-24. */
START_TEST(products_are_rounded_before_they_are_added)
{
	uint16_t half;

	open_one(SPMLA_O_BF16);
	r.positions[0] = 3;
	memset(r.cos_sin + 3 * 64, 0, 64 * sizeof(float));
	r.cos_sin[3 * 64] = 1 + 0x1p-17f;
	r.cos_sin[3 * 64 + 32] = 1 + 0x1p-7f + 0x1p-17f;
	r.o[448] = test_bf16(1 + 0x1p-7f);
	r.o[449] = test_bf16(-1);
	inv_rope_check(&r);
	memcpy(&half, r.out + 2 * 448, sizeof half);
	ck_assert_uint_eq(half, 0);
	inv_rope_close(&r);
}
END_TEST

START_TEST(nan_and_infinity_have_defined_codes)
{
	open_one(SPMLA_O_FP8);
	r.o[0] = 0xffc0; /* NaN */
	r.o[1] = test_bf16(448.0f);
	r.o[128] = 0xff80; /* -inf */
	r.o[129] = test_bf16(-3.0f);
	inv_rope_check(&r);
	ck_assert(inv_rope_scale_of(&r, 0, 0, 0) == 1.0f);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[0], 0x7f);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[1], 0x7e);
	ck_assert(inv_rope_scale_of(&r, 0, 0, 1) == INFINITY);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[128], 0x7f);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[129], 0x80);
	ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[130], 0x00);
	r.a.quant = SPMLA_O_FP8_PACKED;
	inv_rope_check(&r);
	/* 1, +inf, 2^-42, 2^-42 */
	ck_assert_uint_eq(r.scales[0], 0x5555ff7f);
	inv_rope_close(&r);
}
END_TEST

/* -NaN, and infinities of one sign less each other, are one NaN. */
START_TEST(a_nan_of_the_rotation_is_one)
{
	uint16_t turned[4];
	uint32_t i;

	open_one(SPMLA_O_BF16);
	for (i = 0; i < 64; i++)
		r.cos_sin[3 * 64 + i] = 1;
	r.positions[0] = 3;
	r.o[448] = 0xffc1;
	r.o[450] = r.o[451] = 0x7f80;
	inv_rope_check(&r);
	memcpy(turned, r.out + 2 * 448, sizeof turned);
	ck_assert_uint_eq(turned[0], 0x7fc0);
	ck_assert_uint_eq(turned[1], 0x7fc0);
	ck_assert_uint_eq(turned[2], 0x7f80); /* inf + inf */
	ck_assert_uint_eq(turned[3], 0x7fc0); /* inf - inf */
	inv_rope_close(&r);
}
END_TEST

/* Signalling NaN, -0 and subnormals before the last 64 are copied. */
START_TEST(bf16_values_that_do_not_turn_keep_every_bit)
{
	static const uint16_t odd[4] = {0x7f81, 0xff80, 0x8001, 0x8000};
	uint32_t i;

	open_one(SPMLA_O_BF16);
	for (i = 0; i < 448; i++)
		r.o[i] = odd[i % 4];
	inv_rope_run(&r);
	ck_assert_mem_eq(r.out, r.o, 448 * 2);
	inv_rope_check(&r);
	r.a.rope_style = SPMLA_ROPE_NONE;
	for (i = 448; i < 512; i++)
		r.o[i] = odd[i % 4];
	inv_rope_run(&r);
	ck_assert_mem_eq(r.out, r.o, 512 * 2);
	inv_rope_close(&r);
}
END_TEST

/* All below 1e-10: s = 2^-42, and what is left is a zero of the sign. */
START_TEST(subnormal_values_are_zeros_of_their_signs)
{
	uint32_t i;

	open_one(SPMLA_O_FP8);
	r.a.rope_style = SPMLA_ROPE_NONE;
	for (i = 0; i < 512; i++)
		r.o[i] = (uint16_t)((i & 1) << 15 | (i % 127 + 1));
	inv_rope_check(&r);
	for (i = 0; i < 512; i++)
		ck_assert_uint_eq(inv_rope_codes(&r, 0, 0)[i],
				  i & 1 ? 0x80 : 0x00);
	inv_rope_close(&r);
}
END_TEST

START_TEST(a_token_outside_the_rope_table_is_zero_and_reported)
{
	static const int32_t positions[6] = {0, 49, 50, -1, INT32_MIN, 7};
	spmla_device_status status;

	inv_rope_open(&r, 6, 2, 2);
	r.a.quant = (uint32_t)_i;
	memcpy(r.positions, positions, sizeof positions);
	inv_rope_check(&r);
	if (_i)
		ck_assert(inv_rope_scale_of(&r, 3, 1, 2) == 0.0f);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	inv_rope_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.row, 2);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_POSITION);
	inv_rope_close(&r);
}
END_TEST

START_TEST(a_token_does_not_depend_on_its_neighbours)
{
	uint8_t codes[512];
	float scale;

	inv_rope_open(&r, 9, 2, 2);
	inv_rope_check(&r);
	memcpy(codes, inv_rope_codes(&r, 6, 3), sizeof codes);
	scale = inv_rope_scale_of(&r, 6, 3, 3);
	r.a.tokens = r.a.groups = r.a.heads_per_group = 1;
	r.a.o += 6 * r.a.o_token_stride_elems + 3 * r.a.o_head_stride_elems;
	r.a.positions = (const int32_t *)r.a.positions + 6;
	inv_rope_run(&r);
	ck_assert_mem_eq(inv_rope_codes(&r, 0, 0), codes, sizeof codes);
	ck_assert(inv_rope_scale_of(&r, 0, 0, 3) == scale);
	inv_rope_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{results_of_any_shape_equal_the_model, 4},
	};
	const theme_test edge[] = {
		{zeros_have_the_least_scale_and_keep_their_signs, 2},
		{an_amax_of_448_times_a_power_of_two_fills_the_range, 1},
		{every_bf16_is_written_as_its_code, 2},
		{each_rope_style_turns_its_own_pairs_back, 1},
		{nothing_is_rounded_to_bf16_before_it_is_quantised, 1},
		{products_are_rounded_before_they_are_added, 1},
		{nan_and_infinity_have_defined_codes, 1},
		{a_nan_of_the_rotation_is_one, 1},
		{bf16_values_that_do_not_turn_keep_every_bit, 1},
		{subnormal_values_are_zeros_of_their_signs, 1},
		{a_token_outside_the_rope_table_is_zero_and_reported, 3},
	};
	const theme_test layout[] = {
		{heads_and_groups_may_lie_in_any_order, 3},
		{odd_addresses_and_strides_change_nothing, 3},
	};
	const theme_test determinism[] = {
		{a_token_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
