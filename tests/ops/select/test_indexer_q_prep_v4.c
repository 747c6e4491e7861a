/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep as V4 has it: the last 64 values turned, another floor, and
 * MXFP4. All outputs are compared with a model that rounds doubles in the
 * pinned order; single values are derived by hand.
 */
#include "tests/harness/themes.h"
#include "tests/ops/select/indexer_q_rig.h"

#include <math.h>
#include <string.h>

static q_rig r;

/* One token, two heads of zeros, all factors 1; MXFP4. */
static void
open_one(void)
{
	uint32_t h;

	q_rig_open(&r, 1, 2);
	q_rig_f32(&r);
	q_rig_v4(&r);
	q_rig_mxfp4(&r);
	memset(r.q, 0, 2 * 136 * 2);
	for (h = 0; h < 2; h++)
		r.weights_f32[h] = 1;
	r.positions[0] = 0;
	r.a.softmax_scale = 1;
	r.a.head_scale = 1;
}

/* Code i of head h as it came out. */
static uint32_t
code_of(uint32_t h, uint32_t i)
{
	return r.q_out[h * 64 + i / 2] >> 4 * (i % 2) & 15;
}

START_TEST(queries_of_any_shape_equal_the_model)
{
	static const uint32_t heads[] = {1, 3, 64, 128};
	uint32_t style, mxfp4;

	for (mxfp4 = 0; mxfp4 < 2; mxfp4++)
		for (style = 0; style <= SPMLA_ROPE_INTERLEAVED; style++) {
			q_rig_open(&r, 1 + 2 * (uint32_t)_i, heads[_i]);
			q_rig_v4(&r);
			if (mxfp4)
				q_rig_mxfp4(&r);
			if (style)
				q_rig_rope(&r, style);
			if (_i % 2)
				q_rig_f32(&r);
			q_rig_check(&r);
			q_rig_close(&r);
		}
}
END_TEST

START_TEST(mxfp4_takes_the_first_64_and_any_layout_too)
{
	q_rig_open(&r, 5, 4);
	q_rig_mxfp4(&r);
	q_rig_rope(&r, SPMLA_ROPE_NEOX);
	r.a.q_head_stride_elems = 5 * 136;
	r.a.q_token_stride_elems = 136;
	r.a.weights_stride_elems = 4;
	q_rig_check(&r);
	q_rig_close(&r);
}
END_TEST

/* 1e-4 / 448 = 2.23e-7, up to 2^-22; at 1e-4 * 1.01 too; 2^-13 / 448 = 2.72e-7
 * goes up to 2^-21. */
START_TEST(the_floor_of_v4_is_1e_4)
{
	open_one();
	r.a.q_format = SPMLA_INDEX_Q_FP8;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-22f);
	r.q[3] = test_bf16(1.01e-4f);
	r.q[136] = test_bf16(0x1p-13f);
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-22f);
	ck_assert(q_rig_weight(&r, 0, 1) == 0x1p-21f);
	/* 2^-13 / 2^-21 = 2^8 is 15 << 3 */
	ck_assert_uint_eq(r.q_out[128], 15 << 3);
	q_rig_close(&r);
}
END_TEST

/* Group 0 has amax 6, scale 1: byte 127. Every tie of e2m1 goes to the even
 * code. A zero of either sign keeps it. */
START_TEST(ties_of_e2m1_go_to_the_even_code)
{
	static const float x[16] = {6,     0.25f, 0.26f, 0.75f, 0.74f, 1.25f,
				    1.26f, 1.75f, 1.74f, 2.5f,  2.52f, 3.5f,
				    3.48f, 5,     5.03f, 0};
	static const uint8_t codes[16] = {7, 0, 1, 2, 1, 2, 3, 4,
					  3, 4, 5, 6, 5, 6, 7, 0};
	uint32_t i;

	open_one();
	for (i = 0; i < 16; i++) {
		r.q[i] = test_bf16(x[i]);
		r.q[16 + i] = test_bf16(-x[i]);
	}
	q_rig_check(&r);
	ck_assert_uint_eq(r.scales_out[0], 127);
	for (i = 0; i < 16; i++) {
		ck_assert_uint_eq(code_of(0, i), codes[i]);
		ck_assert_uint_eq(code_of(0, 16 + i), codes[i] | 8);
	}
	q_rig_close(&r);
}
END_TEST

/* amax 6 * 2^k has the scale 2^k and the code 7; the next bf16 above it, 6.03 *
 * 2^k, has 2^(k + 1) and 3.02, the code 5. The ends: amax 2^-133 has the scale
 * of amax 6 * 2^-126, 2^-126, byte 1. The largest bf16 has 2^128 / 6, which
 * goes up to 2^126, byte 253. */
START_TEST(scales_are_the_next_power_of_two_above_a_sixth)
{
	int k;

	open_one();
	for (k = -120; k <= 124; k += 4) {
		r.q[31] = test_bf16(ldexpf(-6, k));
		r.q[32] = test_bf16(ldexpf(6.03125f, k));
		q_rig_check(&r);
		ck_assert_uint_eq(r.scales_out[0], (uint32_t)(127 + k));
		ck_assert_uint_eq(code_of(0, 31), 15);
		ck_assert_uint_eq(r.scales_out[1], (uint32_t)(128 + k));
		ck_assert_uint_eq(code_of(0, 32), 5);
	}
	r.q[31] = 0x8001;
	r.q[32] = 0x7f7f;
	q_rig_check(&r);
	ck_assert_uint_eq(r.scales_out[0], 1);
	ck_assert_uint_eq(code_of(0, 31), 8);
	ck_assert_uint_eq(r.scales_out[1], 253);
	ck_assert_uint_eq(code_of(0, 32), 6); /* just below 4 */
	q_rig_close(&r);
}
END_TEST

START_TEST(a_head_of_zeros_has_the_least_scales)
{
	static const uint8_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};

	open_one();
	r.q[5] = 0x8000;
	q_rig_check(&r);
	ck_assert_mem_eq(r.scales_out, ones, sizeof ones);
	ck_assert_uint_eq(r.q_out[2], 0x80);
	ck_assert_uint_eq(r.q_out[3], 0x00);
	q_rig_close(&r);
}
END_TEST

/* Element 2 i in the low half of byte i, 2 i + 1 in the high one; the scale of
 * group g in byte g of the word. */
START_TEST(codes_and_scales_lie_where_they_belong)
{
	open_one();
	r.q[136 + 2 * 40] = test_bf16(4);
	r.q[136 + 2 * 40 + 1] = test_bf16(-6);
	r.q[136 + 127] = test_bf16(3);
	q_rig_check(&r);
	/* groups 0 and 1 zeros; 2: 6, scale 1; 3: 3, scale 2^-1 */
	ck_assert_uint_eq(r.q_out[64 + 40], 0xf6);
	ck_assert_uint_eq(r.q_out[64 + 63], 0x70);
	ck_assert_uint_eq((uint32_t)r.a.q_scales[1], 0x7e7f0101);
	q_rig_close(&r);
}
END_TEST

/* All values that a scale occurs with, from 6 of it down to below 2^-6 of it,
 * where codes are zeros; with 2^126 from the largest bf16, with 2^127 from
 * infinity. Every group begins with the largest. A value's sign is another one
 * with the next scale. */
START_TEST(every_bf16_has_its_code_with_every_scale)
{
	enum { HEADS = 9, GROUPS = 4 * HEADS };
	uint32_t g, i, h;
	int k;

	q_rig_open(&r, 1, HEADS);
	q_rig_v4(&r);
	q_rig_mxfp4(&r);
	for (k = -126; k <= 127; k++) {
		const uint32_t most = k < 126    ? test_bf16(ldexpf(6, k))
				      : k == 126 ? 0x7f7f
						 : 0x7f80;

		for (g = 0; g < GROUPS; g++)
			for (i = 0; i < 32; i++) {
				const uint32_t down = i ? 31 * g + i : 0;
				const uint32_t sign = (down + (uint32_t)k) & 1;

				r.q[g / 4 * 136 + g % 4 * 32 + i] =
					(uint16_t)((most > down ? most - down
								: 0) |
						   sign << 15);
			}
		q_rig_check(&r);
		for (h = 0; h < HEADS; h++)
			ck_assert_uint_eq((uint32_t)r.a.q_scales[h],
					  (uint32_t)(127 + k) * 0x01010101u);
	}
	q_rig_close(&r);
}
END_TEST

/* NaN does not count for the scale and is 7, of either sign and any payload; an
 * infinity makes the scale 2^127, is 6 times it and leaves zeros of the others'
 * signs. */
START_TEST(nan_and_infinity_have_defined_codes)
{
	uint32_t i;

	open_one();
	r.q[0] = 0xffc0;
	r.q[1] = test_bf16(6);
	r.q[32] = 0xff80;
	r.q[33] = test_bf16(-3);
	for (i = 0; i < 32; i++) {
		r.q[64 + i] = (uint16_t)(0x7f81 + 3 * i + (i & 1) * 0x8000);
		r.q[96 + i] = (uint16_t)(0x7f80 + (i % 3 == 0) * 0x8000);
	}
	q_rig_check(&r);
	ck_assert_uint_eq(r.scales_out[0], 127);
	ck_assert_uint_eq(r.q_out[0], 0x77);
	ck_assert_uint_eq(r.scales_out[1], 254);
	ck_assert_uint_eq(r.q_out[16], 0x8f);
	ck_assert_uint_eq(r.scales_out[2], 1);
	ck_assert_uint_eq(r.scales_out[3], 254);
	for (i = 0; i < 32; i++) {
		ck_assert_uint_eq(code_of(0, 64 + i), 7);
		ck_assert_uint_eq(code_of(0, 96 + i), i % 3 ? 7 : 15);
	}
	q_rig_close(&r);
}
END_TEST

/* No scale goes into the weights: (2^100 * 2^60) * 2^-60 would be infinite in
 * between, 2^-60 * 2^100 first would not. */
START_TEST(weights_of_mxfp4_have_no_scale_and_a_pinned_order)
{
	open_one();
	r.q[0] = test_bf16(448);
	r.weights_f32[0] = 3;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 3);
	r.weights_f32[0] = 0x1p100f;
	r.a.softmax_scale = 0x1p60f;
	r.a.head_scale = 0x1p-60f;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == INFINITY);
	q_rig_close(&r);
}
END_TEST

/* A quarter turn of the last pair, cos 0 and sin 1: (6, 1) becomes (-1, 6). The
 * same values in the first 64 stay. */
START_TEST(each_rope_style_turns_its_own_pairs_of_the_last)
{
	uint32_t style;

	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		const uint32_t first = style == SPMLA_ROPE_NEOX ? 31 : 62;

		open_one();
		q_rig_rope(&r, style);
		r.positions[0] = 7;
		memset(r.cos_sin + 7 * 64, 0, 64 * sizeof(float));
		r.cos_sin[7 * 64 + 63] = 1; /* sin of pair 31 */
		r.q[first] = r.q[64 + first] = test_bf16(6);
		r.q[63] = r.q[127] = test_bf16(1);
		r.q[96] = r.q[64] = test_bf16(6); /* scales of 1: turned to 0 */
		q_rig_check(&r);
		ck_assert_uint_eq(code_of(0, first), 7);
		ck_assert_uint_eq(code_of(0, 127), 7);
		r.a.q_format = SPMLA_INDEX_Q_FP8;
		q_rig_check(&r);
		ck_assert_uint_eq(r.q_out[first], r.q_out[127]);
		ck_assert_uint_eq(r.q_out[64 + first], r.q_out[63] | 0x80);
		q_rig_close(&r);
	}
}
END_TEST

START_TEST(a_token_outside_the_rope_table_is_zero_and_reported)
{
	static const int32_t positions[6] = {0, 49, 50, -1, INT32_MIN, 7};
	spmla_device_status status;

	q_rig_open(&r, 6, 3);
	q_rig_v4(&r);
	q_rig_mxfp4(&r);
	q_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	memcpy(r.positions, positions, sizeof positions);
	q_rig_check(&r);
	ck_assert_int_eq(r.a.q_scales[2 * 3], 0);
	ck_assert_uint_eq(r.q_out[2 * 3 * 64], 0);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	q_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.row, 2);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_POSITION);
	q_rig_close(&r);
}
END_TEST

START_TEST(a_token_does_not_depend_on_its_neighbours)
{
	uint8_t codes[3 * 64], scales[12];

	q_rig_open(&r, 9, 3);
	q_rig_v4(&r);
	q_rig_mxfp4(&r);
	q_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	q_rig_check(&r);
	memcpy(codes, r.q_out + 5 * sizeof codes, sizeof codes);
	memcpy(scales, r.scales_out + 5 * sizeof scales, sizeof scales);
	r.a.tokens = 1;
	r.a.q += 5 * r.a.q_token_stride_elems;
	r.a.weights = r.weights_bf16 + 5 * r.a.weights_stride_elems;
	r.a.positions = (const int32_t *)r.a.positions + 5;
	q_rig_run(&r);
	ck_assert_mem_eq(r.q_out, codes, sizeof codes);
	ck_assert_mem_eq(r.scales_out, scales, sizeof scales);
	q_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{queries_of_any_shape_equal_the_model, 4},
	};
	const theme_test edge[] = {
		{the_floor_of_v4_is_1e_4, 1},
		{ties_of_e2m1_go_to_the_even_code, 1},
		{scales_are_the_next_power_of_two_above_a_sixth, 1},
		{a_head_of_zeros_has_the_least_scales, 1},
		{every_bf16_has_its_code_with_every_scale, 1},
		{nan_and_infinity_have_defined_codes, 1},
		{weights_of_mxfp4_have_no_scale_and_a_pinned_order, 1},
		{each_rope_style_turns_its_own_pairs_of_the_last, 1},
		{a_token_outside_the_rope_table_is_zero_and_reported, 1},
	};
	const theme_test layout[] = {
		{mxfp4_takes_the_first_64_and_any_layout_too, 1},
		{codes_and_scales_lie_where_they_belong, 1},
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
