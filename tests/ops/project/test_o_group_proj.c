/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: the bits of the contract's order of sums, sums in double and
 * vectors worked out by hand. _i is mostly the form: bf16, e4m3, e4m3 packed.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/o_proj_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static o_proj_rig r;

/* Tokens. On Hopper up to 16, up to 128 and more take different kernels: one of
 * each. */
static const uint32_t sizes[3] = {5, 41, 131};

/* With 1024 values a token's packed scales are two words. */
START_TEST(products_of_any_shape_have_the_bits_that_are_written)
{
	static const uint32_t shapes[9][4] = {
		{1, 1, 512, 128},  {3, 2, 512, 128},   {8, 1, 1024, 128},
		{9, 1, 512, 256},  {41, 2, 512, 128},  {2, 1, 2560, 128},
		{70, 1, 512, 256}, {131, 2, 512, 256}, {41, 2, 1024, 256}};
	const uint32_t *n = shapes[_i / 3];

	o_proj_open(&r, (uint32_t)_i % 3, n[0], n[1], n[2], n[3]);
	o_proj_check(&r);
	o_proj_close(&r);
}
END_TEST

/* Parts that do not fill what a kernel takes at once. With many tokens a block
 * has several tiles, in the emulator, and after an odd number of parts the next
 * tile begins at another place of its ring, or another stage. */
START_TEST(inner_may_be_any_number_of_parts)
{
	static const uint32_t shapes[3][2] = {{2, 1}, {41, 3}, {131, 3}};
	const uint32_t *n = shapes[_i / 2];
	uint32_t parts;

	for (parts = 1; parts <= 7; parts++) {
		o_proj_open(&r, (uint32_t)_i % 2, n[0], n[1], parts * 128, 128);
		o_proj_check(&r);
		o_proj_close(&r);
	}
}
END_TEST

/* o = 2 at 0, -1 at 511; w[0][j] = j % 8, w[511][j] = 3, scales: o's 4 and 0.5,
 * w's 0.25 and 3 of their parts: 2 (j % 8) - 4.5 quantised; bf16 has no scales:
 * 2 (j % 8) - 3. */
START_TEST(product_worked_out_by_hand)
{
	uint32_t j;

	o_proj_open(&r, (uint32_t)_i, 1, 2, 512, 128);
	o_proj_zero(&r);
	o_proj_put_o(&r, 0, 1, 0, 2);
	o_proj_put_o(&r, 0, 1, 511, -1);
	for (j = 0; j < 128; j++) {
		o_proj_put_w(&r, 1, j, 0, (float)(j % 8));
		o_proj_put_w(&r, 1, j, 511, 3);
	}
	if (_i) {
		o_proj_put_o_scale(&r, 0, 1, 0, 4);
		o_proj_put_o_scale(&r, 0, 1, 3, 0.5f);
		o_proj_put_w_scale(&r, 1, 0, 0, 0.25f);
		o_proj_put_w_scale(&r, 1, 0, 3, 3);
	}
	o_proj_check(&r);
	for (j = 0; j < 128; j++) {
		ck_assert_uint_eq(o_proj_z(&r, 0, 0, j), 0);
		ck_assert_uint_eq(
			o_proj_z(&r, 0, 1, j),
			test_bf16(2 * (float)(j % 8) - (_i ? 1.5f * 3 : 3)));
	}
	o_proj_close(&r);
}
END_TEST

/* 2^24 + 1 is 2^24 in f32, so the 1 is lost if it is added before the -2^24. In
 * one lane it is. The tree of the lanes is ((0 + 4) + (2 + 6)) + ((1 + 5) +
 * (3 + 7)). Parts are added in order. 2^24 is 256 * 256 * 256, the last a
 * scale, or 2^12 * 2^12. */
START_TEST(sums_are_made_in_the_order_that_is_written)
{
	static const struct {
		uint32_t at[3]; /* of 2^24, 1, -2^24 */
		float want;
	} cases[7] = {
		{{0, 1, 2}, 0},     /* lane 0 */
		{{0, 16, 32}, 1},   /* (0 + 2) + 1 */
		{{0, 32, 16}, 0},   /* (0 + 2) + 1 */
		{{0, 64, 32}, 0},   /* (0 + 4) + 2 */
		{{0, 32, 64}, 1},   /* (0 + 4) + 2 */
		{{0, 128, 256}, 0}, /* parts 0, 1, 2 */
		{{0, 256, 128}, 1},
	};
	const float big = _i ? 256 : 4096;
	uint32_t n, i;

	for (n = 0; n < 7; n++) {
		const uint32_t *at = cases[n].at;

		o_proj_open(&r, (uint32_t)_i, 1, 1, 512, 128);
		o_proj_zero(&r);
		for (i = 0; i < 4 && _i; i++)
			o_proj_put_o_scale(&r, 0, 0, i, 256);
		o_proj_put_o(&r, 0, 0, at[0], big);
		o_proj_put_w(&r, 0, 9, at[0], big);
		o_proj_put_o(&r, 0, 0, at[1], _i ? 0.0625f : 1);
		o_proj_put_w(&r, 0, 9, at[1], _i ? 0.0625f : 1);
		o_proj_put_o(&r, 0, 0, at[2], big);
		o_proj_put_w(&r, 0, 9, at[2], -big);
		o_proj_check(&r);
		if (!o_proj_by_matrix(&r))
			ck_assert_uint_eq(o_proj_z(&r, 0, 0, 9),
					  test_bf16(cases[n].want));
		o_proj_close(&r);
	}
}
END_TEST

/* Only here are rows of z aligned to 16 bytes, so only here are results stored
 * 16 bytes at a time. */
START_TEST(groups_and_tokens_may_lie_in_any_order)
{
	o_proj_open(&r, (uint32_t)_i % 3, sizes[_i / 3], 2, 512, 128);
	r.a.o_token_stride_elems = 2 * 512;
	r.a.o_group_stride_elems = 512;
	r.a.o_scale_stride_elems = 2 * r.a.tokens;
	r.a.o_scale_group_stride_elems = r.a.tokens;
	r.a.w_group_stride_elems = 512;
	r.a.w_row_stride_elems = 2 * 512;
	r.a.z_token_stride_elems = 128;
	r.a.z_group_stride_elems = r.a.tokens * 128;
	o_proj_fill(&r);
	o_proj_check(&r);
	o_proj_close(&r);
}
END_TEST

/* Addresses and strides that no wide load fits. */
START_TEST(odd_addresses_and_strides_change_nothing)
{
	const uint32_t bytes = _i ? 1 : 2;

	o_proj_open(&r, (uint32_t)_i, 3, 2, 512, 128);
	r.a.w_row_stride_elems = 513;
	r.a.w_group_stride_elems = 128 * 513 + 5;
	r.a.o_token_stride_elems = 515;
	r.a.o_group_stride_elems = 3 * 515 + 1;
	o_proj_check(&r);
	memmove(r.w + bytes, r.w, r.w_bytes - bytes);
	memmove(r.o + bytes, r.o, r.o_bytes - bytes);
	r.a.w = r.w += bytes;
	r.a.o = r.o += bytes;
	o_proj_check(&r);
	r.w -= bytes;
	r.o -= bytes;
	o_proj_close(&r);
}
END_TEST

START_TEST(infinities_and_nan_go_through_the_arithmetic)
{
	o_proj_open(&r, (uint32_t)_i % 3, sizes[_i / 3], 1, 512, 128);
	if (_i % 3) {
		o_proj_put_o(&r, 0, 0, 3, NAN);
		o_proj_put_o_scale(&r, 1, 0, 2, INFINITY);
		o_proj_check(&r);
		ck_assert_float_nan(test_bf16_value(o_proj_z(&r, 0, 0, 77)));
		ck_assert(!isfinite(test_bf16_value(o_proj_z(&r, 1, 0, 77))));
	} else {
		o_proj_put_o(&r, 0, 0, 3, INFINITY);
		o_proj_put_w(&r, 0, 0, 3, 0);
		o_proj_put_w(&r, 0, 1, 3, -1);
		o_proj_put_o(&r, 1, 0, 500, NAN);
		o_proj_check(&r);
		ck_assert_float_nan(test_bf16_value(o_proj_z(&r, 0, 0, 0)));
		ck_assert_float_eq(test_bf16_value(o_proj_z(&r, 0, 0, 1)),
				   -INFINITY);
		ck_assert_float_nan(test_bf16_value(o_proj_z(&r, 1, 0, 5)));
	}
	o_proj_close(&r);
}
END_TEST

/* All 256 codes against 1, and against -2^-9, the smallest: each is exact. */
START_TEST(every_code_of_e4m3_counts)
{
	uint32_t code;

	o_proj_open(&r, SPMLA_O_FP8, 1, 1, 128, 128);
	o_proj_zero(&r);
	for (code = 0; code < 256; code++) {
		r.o[5] = (uint8_t)code;
		o_proj_put_w(&r, 0, 0, 5, 1);
		o_proj_put_w(&r, 0, 1, 5, -0x1p-9f);
		r.w[1 * r.a.w_row_stride_elems * 2 + 7] = (uint8_t)code;
		r.o[7] = 0x38; /* 1 */
		o_proj_check(&r);
		if ((code & 127) == 127)
			ck_assert_float_nan(
				test_bf16_value(o_proj_z(&r, 0, 0, 0)));
		else
			ck_assert_float_eq(
				test_bf16_value(o_proj_z(&r, 0, 0, 0)),
				(float)ref_e4m3_value((uint8_t)code));
	}
	o_proj_close(&r);
}
END_TEST

/* Scales 2^-127 (byte 0) and 2^-120: products 448 * 2^-127 and so on are
 * subnormal or nearly; bf16: 2^-133 * 2^100 and 2^-100 * 2^-30. */
START_TEST(subnormal_values_are_not_flushed)
{
	o_proj_open(&r, (uint32_t)_i, 1, 1, 512, 128);
	o_proj_zero(&r);
	if (_i) {
		o_proj_put_o(&r, 0, 0, 0, 1);
		o_proj_put_w(&r, 0, 4, 0, 2);
		o_proj_put_o_scale(&r, 0, 0, 0, 0x1p-126f);
		o_proj_put_w_scale(&r, 0, 0, 0, 0x1p-6f);
		o_proj_check(&r);
		/* 2 * 2^-132 = 2^-131 is 4 * 2^-133 */
		ck_assert_uint_eq(o_proj_z(&r, 0, 0, 4), 0x0004);
	} else {
		o_proj_put_o(&r, 0, 0, 0, 0x1p-133f);
		o_proj_put_o(&r, 0, 0, 1, 0x1p-100f);
		o_proj_put_w(&r, 0, 4, 0, 0x1p100f);
		o_proj_put_w(&r, 0, 5, 1, 0x1p-30f);
		o_proj_check(&r);
		ck_assert_uint_eq(o_proj_z(&r, 0, 0, 4), test_bf16(0x1p-33f));
		ck_assert_uint_eq(o_proj_z(&r, 0, 0, 5), 0x0008);
	}
	o_proj_close(&r);
}
END_TEST

/* A ue8m0 of 0 is 2^-127, as inv_rope_quant writes for a token that is not
 * there, whose codes are 0. */
START_TEST(a_packed_scale_of_zero_is_small_and_no_zero)
{
	o_proj_open(&r, SPMLA_O_FP8_PACKED, 1, 1, 512, 128);
	o_proj_zero(&r);
	o_proj_put_o(&r, 0, 0, 0, 256);
	o_proj_put_w(&r, 0, 0, 0, 256);
	o_proj_put_o_scale(&r, 0, 0, 0, 0);
	o_proj_check(&r);
	ck_assert_uint_eq(o_proj_z(&r, 0, 0, 0), test_bf16(0x1p-111f));
	ck_assert_uint_eq(o_proj_z(&r, 0, 0, 1), 0);
	o_proj_close(&r);
}
END_TEST

START_TEST(bits_of_a_row_do_not_depend_on_the_others)
{
	uint16_t alone[128];
	uint32_t d;

	o_proj_open(&r, (uint32_t)_i, 11, 2, 512, 128);
	o_proj_run(&r);
	for (d = 0; d < 128; d++)
		alone[d] = o_proj_z(&r, 9, 1, d);
	r.a.tokens = r.a.groups = 1;
	r.a.o = r.o +
		(9 * r.a.o_token_stride_elems + r.a.o_group_stride_elems) *
			(_i ? 1 : 2);
	r.a.o_scales = r.o_scales + r.a.o_scale_group_stride_elems + 9;
	r.a.w = r.w + r.a.w_group_stride_elems * (_i ? 1 : 2);
	r.a.w_scales = r.w_scales + r.a.w_scale_group_stride_elems;
	o_proj_run(&r);
	for (d = 0; d < 128; d++)
		ck_assert_uint_eq(o_proj_z(&r, 0, 0, d), alone[d]);
	o_proj_close(&r);
}
END_TEST

/* The last token of 17 and at most 131, among others: alone, with the flag;
 * without it, where other tokens are zeros. */
START_TEST(bits_of_a_row_depend_on_the_number_of_tokens_at_most)
{
	static const uint32_t counts[2] = {17, 131};
	const uint32_t form = (uint32_t)_i % 3;
	const uint32_t is_invariant = (uint32_t)_i / 6;
	const uint64_t bytes = form ? 1 : 2;
	uint16_t among[128];
	uint32_t n, d;

	o_proj_open(&r, form, counts[_i / 3 % 2], 1, 512, 128);
	n = r.a.tokens;
	if (is_invariant)
		o_proj_set_invariant(&r);
	o_proj_run(&r);
	for (d = 0; d < 128; d++)
		among[d] = o_proj_z(&r, n - 1, 0, d);
	if (is_invariant) {
		r.a.tokens = 1;
		r.a.o = r.o +
			(n - 1) * bytes * (uint64_t)r.a.o_token_stride_elems;
		r.a.o_scales = r.o_scales + n - 1;
		o_proj_run(&r);
		for (d = 0; d < 128; d++)
			ck_assert_uint_eq(o_proj_z(&r, 0, 0, d), among[d]);
	} else {
		memset(r.o, 0,
		       (n - 1) * bytes * (uint64_t)r.a.o_token_stride_elems);
		o_proj_run(&r);
		for (d = 0; d < 128; d++)
			ck_assert_uint_eq(o_proj_z(&r, n - 1, 0, d), among[d]);
		ck_assert_uint_eq(o_proj_z(&r, n - 2, 0, 0), 0);
	}
	o_proj_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{products_of_any_shape_have_the_bits_that_are_written, 27},
		{inner_may_be_any_number_of_parts, 6},
		{product_worked_out_by_hand, 3},
	};
	const theme_test edge[] = {
		{infinities_and_nan_go_through_the_arithmetic, 9},
		{every_code_of_e4m3_counts, 1},
		{subnormal_values_are_not_flushed, 3},
		{a_packed_scale_of_zero_is_small_and_no_zero, 1},
	};
	const theme_test layout[] = {
		{groups_and_tokens_may_lie_in_any_order, 9},
		{odd_addresses_and_strides_change_nothing, 3},
	};
	const theme_test determinism[] = {
		{sums_are_made_in_the_order_that_is_written, 3},
		{bits_of_a_row_do_not_depend_on_the_others, 3},
		{bits_of_a_row_depend_on_the_number_of_tokens_at_most, 12},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
