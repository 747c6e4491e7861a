/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: whole pools compared with a model that writes the same rows from
 * doubles, and single values derived by hand. Every check compares all bytes
 * of the pool, the padding too.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_insert_rig.h"

#include <math.h>
#include <string.h>

/* bf16 of values that have at most 8 significant bits. */
static uint16_t
exact(float x)
{
	ck_assert(test_bf16_value(test_bf16(x)) == x);
	return test_bf16(x);
}

/* One token of zeros in slot 0 of a small FP8 cache. */
static void
open_one(kv_rig *r, uint32_t scale_mode)
{
	kv_rig_open(r, SPMLA_LAYOUT_FP8_DS_MLA, 1, 2, 1, 0);
	r->a.scale_mode = scale_mode;
	memset(r->kv, 0, SPMLA_MLA_LATENT * 2);
	r->slots[0] = 0;
}

static float
scale_at(const kv_rig *r, uint32_t group)
{
	float s;

	memcpy(&s, r->pool + 512 + 4 * group, sizeof s);
	return s;
}

/* _i: the encoding. */
START_TEST(fp8_rows_of_any_size_equal_the_model)
{
	static const uint32_t tokens[] = {1, 5, 33}, entries[] = {1, 16, 64};
	uint32_t dtype, mode, i;
	kv_rig r;

	for (dtype = SPMLA_DTYPE_BF16; dtype <= SPMLA_DTYPE_FP16; dtype++)
		for (mode = SPMLA_SCALE_POW2; mode <= SPMLA_SCALE_RAW; mode++)
			for (i = 0; i < 9; i++) {
				kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA,
					    tokens[i % 3], entries[i / 3],
					    64 / entries[i / 3], 16 * i);
				r.a.cache.encoding = (uint32_t)_i;
				r.a.dtype = dtype;
				r.a.scale_mode = mode;
				kv_rig_check(&r);
				kv_rig_close(&r);
			}
}
END_TEST

START_TEST(bf16_rows_are_copied_bit_for_bit)
{
	uint32_t pad;
	kv_rig r;

	for (pad = 0; pad <= 48; pad += 16) {
		kv_rig_open(&r, SPMLA_LAYOUT_MLA_BF16, 21, 16, 4, pad);
		r.a.scale_mode = 0; /* not read */
		kv_rig_check(&r);
		kv_rig_close(&r);
	}
}
END_TEST

START_TEST(rows_may_be_dense_or_far_apart)
{
	static const int64_t strides[3][2] = {{512, 64}, {513, 65}, {576, 576}};
	uint32_t i;
	kv_rig r;

	for (i = 0; i < 3; i++) {
		kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 9, 16, 1, 0);
		r.a.kv_c_stride_elems = strides[i][0];
		r.a.k_pe_stride_elems = strides[i][1];
		/* The rope behind the latent of one tensor of 576. */
		if (i == 2)
			r.a.k_pe = r.kv + 512;
		kv_rig_check(&r);
		kv_rig_close(&r);
	}
}
END_TEST

/* 336 / 448 = 0.75: RAW keeps it and 336 / 0.75 = 448 is code 0x7e; POW2 goes
 * up to 1 and 336 = 1.3125 * 2^8 lies between 320 and 352, a tie: to the even
 * code, 0x7a (320 = 1.25 * 2^8: 15 << 3 | 2). */
START_TEST(a_tile_of_336_has_scale_1_or_three_quarters)
{
	uint32_t i;
	kv_rig r;

	open_one(&r, SPMLA_SCALE_POW2);
	for (i = 0; i < 128; i++)
		r.kv[i] = exact(336.0f);
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 1.0f);
	ck_assert_uint_eq(r.pool[0], 0x7a);
	ck_assert_uint_eq(r.pool[127], 0x7a);
	r.a.scale_mode = SPMLA_SCALE_RAW;
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 0.75f);
	ck_assert_uint_eq(r.pool[0], 0x7e);
	ck_assert_uint_eq(r.pool[127], 0x7e);
	kv_rig_close(&r);
}
END_TEST

/* 2^-14 < 1e-4 < 2^-13. */
START_TEST(a_tile_of_zeros_has_the_least_scale_and_keeps_its_signs)
{
	kv_rig r;

	open_one(&r, SPMLA_SCALE_POW2);
	r.kv[1] = 0x8000;
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 0x1p-13f);
	ck_assert_uint_eq(r.pool[0], 0x00);
	ck_assert_uint_eq(r.pool[1], 0x80);
	r.a.scale_mode = SPMLA_SCALE_RAW;
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 0x1p-126f);
	ck_assert_uint_eq(r.pool[1], 0x80);
	kv_rig_close(&r);
}
END_TEST

/* amax = 448 * 2^k has the scale 2^k and the code of 448. The next bf16 is 450
 * * 2^k: scale 2^(k+1), and 225 rounds to 224 = 1.75 * 2^7, 14 << 3 | 6. Below
 * k = -13 the scale stays and the quotient is 448 * 2^(k+13). */
START_TEST(an_amax_of_448_times_a_power_of_two_fills_the_range)
{
	int k;
	kv_rig r;

	open_one(&r, SPMLA_SCALE_POW2);
	for (k = -13; k <= 100; k++) {
		r.kv[7] = exact(ldexpf(-448.0f, k));
		kv_rig_check(&r);
		ck_assert(scale_at(&r, 0) == ldexpf(1.0f, k));
		ck_assert_uint_eq(r.pool[7], 0xfe);
		r.kv[7] = exact(ldexpf(450.0f, k));
		kv_rig_check(&r);
		ck_assert(scale_at(&r, 0) == ldexpf(1.0f, k + 1));
		ck_assert_uint_eq(r.pool[7], 0x76);
	}
	/* 448 * 2^-15 / 2^-13 = 112 = 1.75 * 2^6, 13 << 3 | 6. */
	r.kv[7] = exact(448.0f * 0x1p-15f);
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 0x1p-13f);
	ck_assert_uint_eq(r.pool[7], 0x6e);
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_nan_is_kept_and_does_not_count_for_the_scale)
{
	kv_rig r;

	open_one(&r, SPMLA_SCALE_POW2);
	r.kv[0] = 0x7fc0;
	r.kv[1] = 0xffc1;
	r.kv[2] = 0x7f81; /* signalling */
	r.kv[3] = exact(448.0f);
	r.kv[4] = exact(-1.0f);
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 1.0f);
	ck_assert_uint_eq(r.pool[0], 0x7f);
	ck_assert_uint_eq(r.pool[1], 0x7f);
	ck_assert_uint_eq(r.pool[2], 0x7f);
	ck_assert_uint_eq(r.pool[3], 0x7e);
	ck_assert_uint_eq(r.pool[4], 0xb8);
	kv_rig_close(&r);
}
END_TEST

/* inf / inf is NaN, x / inf a zero of x's sign. */
START_TEST(an_infinity_leaves_nan_and_zeros_in_its_tile_only)
{
	uint32_t mode;
	kv_rig r;

	for (mode = SPMLA_SCALE_POW2; mode <= SPMLA_SCALE_RAW; mode++) {
		open_one(&r, mode);
		r.kv[0] = 0x7f80;
		r.kv[1] = 0xff80;
		r.kv[2] = exact(3.0f);
		r.kv[3] = exact(-3.0f);
		r.kv[128] = exact(448.0f);
		kv_rig_check(&r);
		ck_assert(scale_at(&r, 0) == INFINITY);
		ck_assert(scale_at(&r, 1) == 1.0f);
		ck_assert_uint_eq(r.pool[0], 0x7f);
		ck_assert_uint_eq(r.pool[1], 0x7f);
		ck_assert_uint_eq(r.pool[2], 0x00);
		ck_assert_uint_eq(r.pool[3], 0x80);
		ck_assert_uint_eq(r.pool[128], 0x7e);
		kv_rig_close(&r);
	}
}
END_TEST

START_TEST(subnormal_values_are_not_flushed)
{
	kv_rig r;

	/* The least bf16, 2^-133: 2^-133 / 448 is below 2^-126, so it is
	 * 2^-133 / 2^-126 = 2^-7 = 4 * 2^-9, code 4. */
	open_one(&r, SPMLA_SCALE_RAW);
	r.kv[0] = 0x0001;
	r.kv[1] = 0x8001;
	kv_rig_check(&r);
	ck_assert(scale_at(&r, 0) == 0x1p-126f);
	ck_assert_uint_eq(r.pool[0], 0x04);
	ck_assert_uint_eq(r.pool[1], 0x84);
	/* The least fp16, 2^-24: alone it is the amax, code of 448. */
	r.a.dtype = SPMLA_DTYPE_FP16;
	kv_rig_check(&r);
	ck_assert_uint_eq(r.pool[0], 0x7e);
	/* POW2: 2^-24 / 2^-13 = 2^-11 is nothing; 8 * 2^-24 / 2^-13 = 2^-8 =
	 * 2 * 2^-9 is code 2. */
	r.a.scale_mode = SPMLA_SCALE_POW2;
	r.kv[1] = 0x8008;
	kv_rig_check(&r);
	ck_assert_uint_eq(r.pool[0], 0x00);
	ck_assert_uint_eq(r.pool[1], 0x82);
	kv_rig_close(&r);
}
END_TEST

START_TEST(slots_below_zero_are_skipped_silently)
{
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 6, 4, 4, 16);
	r.slots[0] = -1;
	r.slots[3] = INT64_MIN;
	r.slots[5] = -1000;
	kv_rig_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	kv_rig_close(&r);
}
END_TEST

START_TEST(slots_past_the_cache_are_skipped_and_reported)
{
	spmla_device_status status;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 6, 4, 4, 16);
	r.slots[0] = 7;
	r.slots[1] = 15; /* the last */
	r.slots[2] = 16;
	r.slots[3] = 0;
	r.slots[4] = INT64_MAX;
	r.slots[5] = INT64_C(1) << 32; /* 0 in 32 bits */
	kv_rig_check(&r);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	kv_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_SLOT);
	ck_assert_uint_eq(status.row, 2);
	kv_rig_close(&r);
}
END_TEST

/* Blocks of a GPU write both at once: values are whole, rows need not be. */
START_TEST(of_two_rows_for_one_slot_every_value_is_that_of_one)
{
	uint8_t row[2][SPMLA_FP8_DS_MLA_BYTES];
	uint32_t i, bytes;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 2, 4, 1, 0);
	for (i = 0; i < 2; i++) {
		r.slots[i] = 2;
		r.slots[1 - i] = -1;
		kv_rig_run(&r);
		memcpy(row[i], r.pool + 2 * sizeof row[0], sizeof row[0]);
	}
	r.slots[0] = r.slots[1] = 2;
	kv_rig_run(&r);
	for (i = 0; i < sizeof row[0]; i += bytes) {
		const uint8_t *got = r.pool + 2 * sizeof row[0] + i;

		bytes = i < SPMLA_FP8_DS_MLA_SCALE_BYTE  ? 1
			: i < SPMLA_FP8_DS_MLA_ROPE_BYTE ? 4
							 : 2;
		ck_assert(!memcmp(got, row[0] + i, bytes) ||
			  !memcmp(got, row[1] + i, bytes));
	}
	kv_rig_close(&r);
}
END_TEST

START_TEST(a_row_does_not_depend_on_its_neighbours)
{
	uint8_t row[SPMLA_FP8_DS_MLA_BYTES];
	uint32_t t;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 17, 64, 1, 0);
	for (t = 0; t < 17; t++)
		r.slots[t] = t == 11 ? 63 : 2 * t;
	kv_rig_check(&r);
	memcpy(row, r.pool + 63 * sizeof row, sizeof row);
	r.a.tokens = 1;
	r.a.kv_c = r.kv + 11 * r.a.kv_c_stride_elems;
	r.a.k_pe = r.pe + 11 * r.a.k_pe_stride_elems;
	r.a.slot_mapping = r.slots + 11;
	kv_rig_check(&r);
	ck_assert_mem_eq(r.pool + 63 * sizeof row, row, sizeof row);
	kv_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{fp8_rows_of_any_size_equal_the_model, 2},
		{bf16_rows_are_copied_bit_for_bit, 1},
		{rows_may_be_dense_or_far_apart, 1},
	};
	const theme_test edge[] = {
		{a_tile_of_336_has_scale_1_or_three_quarters, 1},
		{a_tile_of_zeros_has_the_least_scale_and_keeps_its_signs, 1},
		{an_amax_of_448_times_a_power_of_two_fills_the_range, 1},
		{a_nan_is_kept_and_does_not_count_for_the_scale, 1},
		{an_infinity_leaves_nan_and_zeros_in_its_tile_only, 1},
		{subnormal_values_are_not_flushed, 1},
		{slots_below_zero_are_skipped_silently, 1},
		{slots_past_the_cache_are_skipped_and_reported, 1},
		{of_two_rows_for_one_slot_every_value_is_that_of_one, 1},
	};
	const theme_test determinism[] = {
		{a_row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
