/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: rows of V4, all of which comes from kv_c. Whole pools are compared
 * with a model in double; single bytes are derived by hand. Where rows go is in
 * test_kv_insert_v4_slots.c.
 */
#include <math.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_insert_rig.h"
#include "tests/reference/narrow_ref.h"

enum { FP8 = SPMLA_LAYOUT_V4_FP8 };

/* A token of zeros in slot 0 of a page of one. */
static void
open_one(kv_rig *r, uint32_t layout)
{
	kv_rig_open_v4(r, layout, 1, 1, 1, 0);
	memset(r->kv, 0, 1024);
	r->slots[0] = 0;
}

/* The scale byte of a group; its values are 64 of 448 in the one entry. */
static uint32_t
scale_byte(const kv_rig *r, uint32_t group)
{
	return r->pool[576 + group];
}

/* _i: the encoding. */
START_TEST(v4_rows_of_any_size_equal_the_model)
{
	static const uint32_t layouts[3] = {FP8, SPMLA_LAYOUT_V4_BF16,
					    SPMLA_LAYOUT_V4_E4M3};
	static const float scales[3] = {1.0f, 0.3f, 3e-5f};
	static const uint32_t tokens[3] = {1, 9, 33};
	uint32_t i, j;
	kv_rig r;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 9; j++) {
			const uint32_t entries = j < 3 ? 1 : j < 6 ? 4 : 64;

			kv_rig_open_v4(&r, layouts[i], tokens[j % 3], entries,
				       64 / entries, 16 * j);
			if (layouts[i] == SPMLA_LAYOUT_V4_E4M3)
				r.a.kv_scale = scales[j % 3];
			if (layouts[i] != SPMLA_LAYOUT_V4_BF16)
				r.a.cache.encoding = (uint32_t)_i;
			kv_rig_check(&r);
			ck_assert_uint_eq(fixture_status(&r.f).count, 0);
			kv_rig_close(&r);
		}
}
END_TEST

/* Exponents of pow2up(max(amax, 1e-4) / 448), plus 127: 1e-4 / 448 = 2.2e-7 is
 * between 2^-23 and 2^-22. 448 = 7 * 2^6, so 7 / 448 = 2^-6. The bf16 behind
 * 448 is 450. */
START_TEST(v4_scale_bytes_worked_out_by_hand)
{
	static const struct {
		float amax;
		uint32_t byte;
	} v[] = {{0.0f, 105},   {0x1p-17f, 105}, {-1.0f, 119},
		 {7.0f, 121},   {3.5f, 120},     {-0.875f, 118},
		 {448.0f, 127}, {450.0f, 128},   {0x1p127f, 246}};
	uint32_t i, g;
	kv_rig r;

	open_one(&r, FP8);
	for (i = 0; i < sizeof v / sizeof *v; i++) {
		for (g = 0; g < 7; g++)
			r.kv[g * 64 + (i + 9 * g) % 64] = test_bf16(v[i].amax);
		kv_rig_check(&r);
		for (g = 0; g < 7; g++)
			ck_assert_uint_eq(scale_byte(&r, g), v[i].byte);
		memset(r.kv, 0, 1024);
	}
	kv_rig_close(&r);
}
END_TEST

/* 448 * 2^k has the scale 2^k and the code of 448; of 450 * 2^k the scale is
 * twice that, and 225 rounds to 224 = 1.75 * 2^7: 14 << 3 | 6. */
START_TEST(v4_amax_of_448_times_a_power_of_two_fills_the_range)
{
	int k;
	kv_rig r;

	open_one(&r, FP8);
	for (k = -22; k <= 119; k += 3) {
		r.kv[7] = test_bf16(ldexpf(-448.0f, k));
		kv_rig_check(&r);
		ck_assert_uint_eq(scale_byte(&r, 0), (uint32_t)(k + 127));
		ck_assert_uint_eq(r.pool[7], 0xfe);
		r.kv[7] = test_bf16(ldexpf(450.0f, k));
		kv_rig_check(&r);
		ck_assert_uint_eq(scale_byte(&r, 0), (uint32_t)(k + 128));
		ck_assert_uint_eq(r.pool[7], 0x76);
	}
	kv_rig_close(&r);
}
END_TEST

/* The group's scale is 1. Subnormals of e4m3 are multiples of 2^-9, of two
 * equally near the even one: 2^-10 is 0, 3 * 2^-10 is 2, 15 * 2^-10 is 8. */
START_TEST(v4_codes_round_to_even_below_the_normal_ones_too)
{
	static const float x[6] = {448.0f,  0x1p-10f,  -0x3p-10f,
				   0x1p-9f, -0xfp-10f, 1.0625f};
	static const uint8_t code[6] = {0x7e, 0x00, 0x82, 0x01, 0x88, 0x38};
	uint32_t i;
	kv_rig r;

	open_one(&r, FP8);
	for (i = 0; i < 6; i++)
		r.kv[128 + i] = test_bf16(x[i]);
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool + 128, code, 6);
	kv_rig_close(&r);
}
END_TEST

START_TEST(v4_nan_does_not_count_and_an_infinity_fills_its_group)
{
	kv_rig r;

	open_one(&r, FP8);
	r.kv[0] = 0x7fc0;
	r.kv[1] = 0xff81; /* signalling */
	r.kv[2] = test_bf16(448.0f);
	r.kv[3] = 0x8000;
	r.kv[64] = 0xff80;
	r.kv[65] = test_bf16(-3.0f);
	r.kv[66] = test_bf16(3.0f);
	r.kv[448] = 0xff81; /* rope: bit for bit */
	r.kv[449] = 0x7f80;
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool, ((const uint8_t[]){0x7f, 0x7f, 0x7e, 0x80}),
			 4);
	ck_assert_uint_eq(scale_byte(&r, 0), 127);
	ck_assert_mem_eq(r.pool + 64, ((const uint8_t[]){0x7f, 0x80, 0x00}), 3);
	ck_assert_uint_eq(scale_byte(&r, 1), 255);
	ck_assert_uint_eq(scale_byte(&r, 2), 105);
	ck_assert_mem_eq(r.pool + 448,
			 ((const uint8_t[]){0x81, 0xff, 0x80, 0x7f}), 4);
	kv_rig_close(&r);
}
END_TEST

/* The least bf16 is 2^-133, far below 2^-22 * 2^-10; 2^-32 is the tie to zero,
 * 3 * 2^-32 goes to 2 * 2^-9. */
START_TEST(v4_subnormal_rows_are_zeros_of_their_signs)
{
	kv_rig r;

	open_one(&r, FP8);
	r.kv[0] = 0x0001;
	r.kv[1] = 0x8001;
	r.kv[2] = test_bf16(0x1p-32f);
	r.kv[3] = test_bf16(-0x3p-32f);
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool, ((const uint8_t[]){0x00, 0x80, 0x00, 0x82}),
			 4);
	kv_rig_close(&r);
}
END_TEST

/* 3 / 2 = 1.5 is 7 << 3 | 4, -1000 / 2 saturates. 1 / 0.75 as f32 is a little
 * more than 4 / 3, 336 times that a little more than 448: 0x7e. */
START_TEST(v4_e4m3_rows_have_the_scale_of_their_cache)
{
	kv_rig r;

	open_one(&r, SPMLA_LAYOUT_V4_E4M3);
	r.kv[0] = test_bf16(3.0f);
	r.kv[1] = test_bf16(-1000.0f);
	r.kv[2] = 0xffc0;
	r.kv[3] = 0xff80;
	r.kv[511] = test_bf16(336.0f);
	r.a.kv_scale = 2.0f;
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool, ((const uint8_t[]){0x3c, 0xfe, 0x7f, 0xfe}),
			 4);
	r.a.kv_scale = 0.75f;
	kv_rig_check(&r);
	ck_assert_uint_eq(r.pool[511], 0x7e);
	kv_rig_close(&r);
}
END_TEST

START_TEST(v4_row_does_not_depend_on_its_neighbours)
{
	uint8_t row[576];
	uint32_t t;
	kv_rig r;

	kv_rig_open_v4(&r, FP8, 17, 64, 1, 0);
	for (t = 0; t < 17; t++)
		r.slots[t] = t == 11 ? 63 : 2 * t;
	kv_rig_check(&r);
	memcpy(row, r.pool + 63 * sizeof row, sizeof row);
	r.a.tokens = 1;
	r.a.kv_c = r.kv + 11 * r.a.kv_c_stride_elems;
	r.a.slot_mapping = r.slots + 11;
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool + 63 * sizeof row, row, sizeof row);
	kv_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{v4_rows_of_any_size_equal_the_model, 2},
	};
	const theme_test edge[] = {
		{v4_scale_bytes_worked_out_by_hand, 1},
		{v4_amax_of_448_times_a_power_of_two_fills_the_range, 1},
		{v4_codes_round_to_even_below_the_normal_ones_too, 1},
		{v4_nan_does_not_count_and_an_infinity_fills_its_group, 1},
		{v4_subnormal_rows_are_zeros_of_their_signs, 1},
		{v4_e4m3_rows_have_the_scale_of_their_cache, 1},
	};
	const theme_test determinism[] = {
		{v4_row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
