/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: both outputs compared with a model that rounds doubles in
 * the pinned order, and single values derived by hand. Every check compares
 * what lies behind the outputs too.
 */
#include "tests/harness/themes.h"
#include "tests/ops/select/indexer_q_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One token, two heads of zeros, both weights and scales 1. */
static void
open_one(q_rig *r)
{
	uint32_t h;

	q_rig_open(r, 1, 2);
	q_rig_f32(r);
	memset(r->q, 0, 2 * 136 * 2);
	for (h = 0; h < 2; h++)
		r->weights_f32[h] = 1;
	r->positions[0] = 0;
	r->a.softmax_scale = 1;
	r->a.head_scale = 1;
}

/* _i: the encoding. */
START_TEST(queries_of_any_shape_equal_the_model)
{
	static const uint32_t heads[] = {1, 3, 64, 128};
	uint32_t floor, style, i;
	q_rig r;

	for (floor = 0; floor <= SPMLA_Q_SCALE_GROUP; floor++)
		for (style = 0; style <= SPMLA_ROPE_INTERLEAVED; style++)
			for (i = 0; i < 4; i++) {
				q_rig_open(&r, 1 + 2 * i, heads[i]);
				r.a.scale_floor = floor;
				r.a.q_encoding = (uint32_t)_i;
				if (style)
					q_rig_rope(&r, style);
				if (i % 2)
					q_rig_f32(&r);
				q_rig_check(&r);
				q_rig_close(&r);
			}
}
END_TEST

START_TEST(heads_may_lie_within_or_outside_of_tokens)
{
	q_rig r;

	q_rig_open(&r, 5, 4);
	r.a.q_head_stride_elems = 128;
	r.a.q_token_stride_elems = 4 * 128;
	r.a.weights_stride_elems = 4;
	q_rig_check(&r);
	r.a.q_head_stride_elems = 5 * 136;
	r.a.q_token_stride_elems = 136;
	q_rig_check(&r);
	q_rig_close(&r);
}
END_TEST

/* No address but a multiple of what one value takes. */
START_TEST(queries_and_outputs_may_lie_at_any_address)
{
	uint32_t style, i, t;
	q_rig r;

	for (i = 0; i < 2 * (SPMLA_ROPE_INTERLEAVED + 1); i++) {
		style = i / 2;
		q_rig_open(&r, 5, 17);
		if (i % 2)
			q_rig_mxfp4(&r);
		r.a.q = r.q + 1;
		r.a.q_head_stride_elems = 129;
		r.a.q_token_stride_elems = 17 * 129 + 1;
		r.cos_sin++;
		r.q_out++;
		r.q_bytes--;
		r.a.q_out = r.q_out;
		if (style)
			q_rig_rope(&r, style);
		for (t = 0; t < 5; t++)
			r.positions[t] = (int32_t)t;
		q_rig_check(&r);
		r.cos_sin--;
		r.q_out--;
		q_rig_close(&r);
	}
}
END_TEST

/* FUSED: 1e-10 / 448 = 2.23e-13, up to 2^-42. GROUP: 1e-10, up to 2^-33. */
START_TEST(a_head_of_zeros_has_the_least_scale)
{
	q_rig r;

	open_one(&r);
	r.q[5] = 0x8000;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-42f);
	ck_assert_uint_eq(r.q_out[4], 0x00);
	ck_assert_uint_eq(r.q_out[5], 0x80);
	r.a.scale_floor = SPMLA_Q_SCALE_GROUP;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-33f);
	q_rig_close(&r);
}
END_TEST

/* amax 2^-26: 2^-26 / 448 = 3.3e-11 is above FUSED's floor, up to 2^-34, and
 * 2^-26 / 2^-34 = 2^8 is 15 << 3; it is below GROUP's, 2^-33: 2^7, 14 << 3. At
 * amax 2^-24 both give 2^-32. */
START_TEST(the_two_floors_differ_for_tiny_heads_only)
{
	uint32_t floor;
	q_rig r;

	open_one(&r);
	r.q[0] = test_bf16(0x1p-26f);
	r.q[136] = test_bf16(-0x1p-24f);
	for (floor = 0; floor <= SPMLA_Q_SCALE_GROUP; floor++) {
		r.a.scale_floor = floor;
		q_rig_check(&r);
		ck_assert(q_rig_weight(&r, 0, 0) ==
			  (floor ? 0x1p-33f : 0x1p-34f));
		ck_assert_uint_eq(r.q_out[0], floor ? 14 << 3 : 15 << 3);
		ck_assert(q_rig_weight(&r, 0, 1) == 0x1p-32f);
		ck_assert_uint_eq(r.q_out[128], 0x80 | 15 << 3);
	}
	q_rig_close(&r);
}
END_TEST

START_TEST(an_amax_of_448_times_a_power_of_two_fills_the_range)
{
	int k;
	q_rig r;

	open_one(&r);
	for (k = -32; k <= 100; k++) {
		r.q[127] = test_bf16(ldexpf(-448.0f, k));
		r.q[136] = test_bf16(ldexpf(450.0f, k));
		q_rig_check(&r);
		ck_assert(q_rig_weight(&r, 0, 0) == ldexpf(1.0f, k));
		ck_assert_uint_eq(r.q_out[127], 0xfe);
		ck_assert(q_rig_weight(&r, 0, 1) == ldexpf(1.0f, k + 1));
		ck_assert_uint_eq(r.q_out[128], 0x76); /* 225 to 224 */
	}
	q_rig_close(&r);
}
END_TEST

START_TEST(nan_and_infinity_have_defined_codes)
{
	q_rig r;

	open_one(&r);
	r.q[0] = 0xffc0; /* NaN */
	r.q[1] = test_bf16(448.0f);
	r.q[136] = 0xff80; /* -inf */
	r.q[137] = test_bf16(-3.0f);
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 1.0f);
	ck_assert_uint_eq(r.q_out[0], 0x7f);
	ck_assert_uint_eq(r.q_out[1], 0x7e);
	ck_assert(q_rig_weight(&r, 0, 1) == INFINITY);
	ck_assert_uint_eq(r.q_out[128], 0x7f);
	ck_assert_uint_eq(r.q_out[129], 0x80);
	ck_assert_uint_eq(r.q_out[130], 0x00);
	/* 0 * inf */
	r.weights_f32[1] = 0;
	q_rig_check(&r);
	ck_assert(isnan(q_rig_weight(&r, 0, 1)));
	q_rig_close(&r);
}
END_TEST

/* Zero heads, s = 2^-42. ((2^100 * s) * 2^60) * 1 = 2^118, where 2^100 * 2^60
 * would be infinite. ((2^-60 * s) * 2^-60) * 2^100 is 0 from 2^-162 on, where
 * the two scales multiplied first, 2^40, would give 2^-62. And s * 2^-110 first
 * would be 0. */
START_TEST(weights_are_folded_in_the_pinned_order)
{
	q_rig r;

	open_one(&r);
	r.weights_f32[0] = 0x1p100f;
	r.a.softmax_scale = 0x1p60f;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p118f);
	r.a.softmax_scale = 0x1p-110f;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-52f);
	r.weights_f32[0] = 0x1p-60f;
	r.a.softmax_scale = 0x1p-60f;
	r.a.head_scale = 0x1p100f;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0.0f);
	q_rig_close(&r);
}
END_TEST

START_TEST(weights_may_be_bf16_or_f32)
{
	q_rig r;

	open_one(&r);
	r.q[0] = r.q[136] = test_bf16(448.0f); /* s = 1 */
	r.a.softmax_scale = 0.5f;
	r.weights_f32[0] = 0x1.234568p3f;
	r.weights_f32[1] = -0.0f;
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1.234568p2f);
	ck_assert(signbit(q_rig_weight(&r, 0, 1)));
	r.a.weights_dtype = SPMLA_DTYPE_BF16;
	r.a.weights = r.weights_bf16;
	r.weights_bf16[0] = 0xc040; /* -3 */
	r.weights_bf16[1] = 0x3f80; /* 1 */
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == -1.5f);
	ck_assert(q_rig_weight(&r, 0, 1) == 0.5f);
	q_rig_close(&r);
}
END_TEST

START_TEST(rope_at_position_0_changes_nothing)
{
	uint8_t plain[4 * 128];
	uint32_t style, t, h, i;
	q_rig r;

	q_rig_open(&r, 2, 2);
	for (t = 0; t < 2; t++)
		for (h = 0; h < 2; h++)
			for (i = 0; i < 128; i++)
				r.q[(t * 2 + h) * 136 + i] =
					test_bf16((float)i - 63.5f);
	r.positions[0] = r.positions[1] = 0;
	q_rig_check(&r);
	memcpy(plain, r.q_out, sizeof plain);
	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		q_rig_rope(&r, style);
		q_rig_check(&r);
		ck_assert_mem_eq(r.q_out, plain, sizeof plain);
	}
	q_rig_close(&r);
}
END_TEST

/* A quarter turn of the last pair, cos 0 and sin 1: (448, 64) becomes
 * (-64, 448). NEOX pairs 31 with 63, INTERLEAVED 62 with 63. The same values
 * behind the rope part stay. */
START_TEST(each_rope_style_turns_its_own_pairs)
{
	uint32_t style;
	q_rig r;

	for (style = 1; style <= SPMLA_ROPE_INTERLEAVED; style++) {
		const uint32_t first = style == SPMLA_ROPE_NEOX ? 31 : 62;

		open_one(&r);
		q_rig_rope(&r, style);
		r.positions[0] = 7;
		memset(r.cos_sin + 7 * 64, 0, 64 * sizeof(float));
		r.cos_sin[7 * 64 + 63] = 1; /* sin of pair 31 */
		r.q[first] = r.q[64 + first] = test_bf16(448.0f);
		r.q[63] = r.q[127] = test_bf16(64.0f);
		q_rig_check(&r);
		ck_assert_uint_eq(r.q_out[first], 0xe8);
		ck_assert_uint_eq(r.q_out[63], 0x7e);
		ck_assert_uint_eq(r.q_out[64 + first], 0x7e);
		ck_assert_uint_eq(r.q_out[127], 0x68);
		q_rig_close(&r);
	}
}
END_TEST

START_TEST(a_token_outside_the_rope_table_is_zero_and_reported)
{
	static const int32_t positions[6] = {0, 49, 50, -1, INT32_MIN, 7};
	spmla_device_status status;
	uint32_t i;
	q_rig r;

	q_rig_open(&r, 6, 3);
	q_rig_rope(&r, SPMLA_ROPE_NEOX);
	memcpy(r.positions, positions, sizeof positions);
	q_rig_check(&r);
	for (i = 0; i < 3 * 128; i++)
		ck_assert_uint_eq(r.q_out[2 * 3 * 128 + i], 0);
	ck_assert(q_rig_weight(&r, 3, 2) == 0.0f);
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
	uint8_t codes[3 * 128];
	float weights[3];
	q_rig r;

	q_rig_open(&r, 9, 3);
	q_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	q_rig_check(&r);
	memcpy(codes, r.q_out + 5 * sizeof codes, sizeof codes);
	memcpy(weights, r.weights_out + 5 * sizeof weights, sizeof weights);
	r.a.tokens = 1;
	r.a.q += 5 * r.a.q_token_stride_elems;
	r.a.weights = r.weights_bf16 + 5 * r.a.weights_stride_elems;
	r.a.positions = (const int32_t *)r.a.positions + 5;
	q_rig_run(&r);
	ck_assert_mem_eq(r.q_out, codes, sizeof codes);
	ck_assert_mem_eq(r.weights_out, weights, sizeof weights);
	q_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{queries_of_any_shape_equal_the_model, 2},
		{heads_may_lie_within_or_outside_of_tokens, 1},
		{queries_and_outputs_may_lie_at_any_address, 1},
	};
	const theme_test edge[] = {
		{a_head_of_zeros_has_the_least_scale, 1},
		{the_two_floors_differ_for_tiny_heads_only, 1},
		{an_amax_of_448_times_a_power_of_two_fills_the_range, 1},
		{nan_and_infinity_have_defined_codes, 1},
		{weights_are_folded_in_the_pinned_order, 1},
		{weights_may_be_bf16_or_f32, 1},
		{rope_at_position_0_changes_nothing, 1},
		{each_rope_style_turns_its_own_pairs, 1},
		{a_token_outside_the_rope_table_is_zero_and_reported, 1},
	};
	const theme_test determinism[] = {
		{a_token_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
