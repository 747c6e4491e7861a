/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: keys whose arithmetic is exact, by hand, so that every byte is
 * known on any platform.
 */
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One token at the end of group 0, which is not rotated, or of group 1. All
 * scores are equal, so a key is the mean of its rows; these are 1 in every
 * column, so that with eps 3 the norm is 1 / sqrt(1 + 3), exactly a half: y =
 * weight / 2. */
static void
open_ones(compress_rig *r, uint32_t state, uint32_t cache, uint32_t group,
	  uint32_t entries)
{
	uint64_t i;

	compress_rig_open(r, state, cache, 3, entries, 0);
	for (i = 0; i < (uint64_t)r->most * r->width; i++) {
		r->kv[i] = 1.0f;
		r->score[i] = 7.0f;
	}
	memset(r->ape, 0, (uint64_t)r->a.ratio * r->width * 4);
	memset(r->norm, 0, r->dim * 4);
	r->a.norm_eps = 3.0f;
	compress_rig_put(r, 0, 0, r->history);
	compress_rig_request(r, 0, (group + 1) * r->a.ratio - 1, 1);
	r->slots[0] = 1;
}

/* Group 0 at ratio 4 has its own 4 rows alone, and only the columns [dim, 2
 * dim): 4, 0, 0, 8 there are 3 in the mean, whatever stands before. With eps 7
 * the norm is 1 / sqrt(9 + 7), y = 3 / 4 * weight. */
START_TEST(the_first_group_of_ratio_4_has_four_rows)
{
	uint32_t d, p;
	uint16_t h;
	compress_rig r;

	open_ones(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16, 0, 2);
	r.a.norm_eps = 7.0f;
	for (d = 0; d < 512; d++) {
		static const float kv[4] = {4, 0, 0, 8};

		for (p = 0; p < 4; p++) {
			r.kv[p * 1024 + d] = NAN; /* the older half's */
			r.score[p * 1024 + d] = NAN;
			r.kv[p * 1024 + 512 + d] = kv[p];
		}
		r.norm[d] = (float)(d % 128);
	}
	compress_rig_put(&r, 0, 0, 4);
	compress_rig_reset(&r);
	compress_rig_run(&r);
	for (d = 0; d < 512; d++) {
		memcpy(&h, r.cache + 1024 + 2 * d, 2);
		ck_assert_uint_eq(h, ref_bf16_bits(0.75 * (double)(d % 128)));
	}
	compress_rig_close(&r);
}
END_TEST

/* Group 1 takes columns [0, dim) of positions 0 .. 3 and [dim, 2 dim) of 4 ..
 * 7: 4 rows of 3 and 4 of -1 are 1 in the mean. */
START_TEST(the_older_half_of_a_group_has_the_first_columns)
{
	uint32_t d, p;
	uint16_t h;
	compress_rig r;

	open_ones(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16, 1, 2);
	for (d = 0; d < 512; d++) {
		for (p = 0; p < 4; p++) {
			r.kv[p * 1024 + d] = 3.0f;
			r.kv[p * 1024 + 512 + d] = NAN;
			r.kv[(p + 4) * 1024 + d] = NAN;
			r.kv[(p + 4) * 1024 + 512 + d] = -1.0f;
		}
		r.norm[d] = (float)d / 2;
	}
	compress_rig_put(&r, 0, 0, 8);
	compress_rig_run(&r);
	for (d = 0; d < 448; d++) {
		memcpy(&h, r.cache + 1024 + 2 * d, 2);
		ck_assert_uint_eq(h, ref_bf16_bits(d / 4.0));
	}
	compress_rig_close(&r);
}
END_TEST

/* y = w / 2. Group g of 64 has amax 448 * 2^g: scale 2^g, byte 127 + g, code of
 * 448. Column 64 g + 1 is 1 * 2^g: 0x38; + 2: -0: 0x80; + 3: 17 * 2^(g - 4), a
 * tie of 1 and 1.125: to the even 0x38. Zeros in group 6: 2^-22, byte 105. */
START_TEST(codes_and_scales_of_v4_rows_by_hand)
{
	uint32_t g, ratio;
	compress_rig r;

	for (ratio = 0; ratio < 2; ratio++) {
		open_ones(&r,
			  ratio ? SPMLA_LAYOUT_STATE_512
				: SPMLA_LAYOUT_STATE_1024,
			  SPMLA_LAYOUT_V4_FP8, 0, 2);
		for (g = 0; g < 6; g++) {
			r.norm[64 * g] = ldexpf(-896.0f, (int)g);
			r.norm[64 * g + 1] = ldexpf(2.0f, (int)g);
			r.norm[64 * g + 2] = -0.0f;
			r.norm[64 * g + 3] = ldexpf(17.0f, (int)g - 3);
		}
		r.norm[510] = 2.0f;  /* bf16 1 */
		r.norm[511] = -5.0f; /* -2.5; position 0 does not rotate */
		compress_rig_check(&r);
		for (g = 0; g < 6; g++) {
			const uint8_t *at = r.cache + 576 + 64 * g;

			ck_assert_uint_eq(at[0], 0xfe);
			ck_assert_uint_eq(at[1], 0x38);
			ck_assert_uint_eq(at[2], 0x80);
			ck_assert_uint_eq(at[3], 0x38);
			ck_assert_uint_eq(r.cache[1152 + 8 + g], 127 + g);
		}
		ck_assert_uint_eq(r.cache[1152 + 8 + 6], 105);
		ck_assert_uint_eq(r.cache[1152 + 8 + 7], 0);
		ck_assert_mem_eq(r.cache + 576 + 448 + 124, "\x80\x3f\x20\xc0",
				 4);
		compress_rig_close(&r);
	}
}
END_TEST

/* Just above 448 * 2^k in bf16, 450 * 2^k, the scale doubles and 225 is 224 =
 * 1.75 * 2^7: 14 << 3 | 6. */
START_TEST(an_amax_above_448_times_a_power_of_two_doubles_the_scale)
{
	int k;
	float s;
	compress_rig r;

	open_ones(&r, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 0, 4);
	for (k = -22; k < 60; k++) {
		r.norm[9] = ldexpf(896.0f, k);
		compress_rig_check(&r);
		memcpy(&s, r.cache + 512 + 4, 4);
		ck_assert(s == ldexpf(1.0f, k));
		ck_assert_uint_eq(r.cache[128 + 9], 0x7e);
		r.norm[9] = ldexpf(900.0f, k);
		compress_rig_check(&r);
		memcpy(&s, r.cache + 512 + 4, 4);
		ck_assert(s == ldexpf(1.0f, k + 1));
		ck_assert_uint_eq(r.cache[128 + 9], 0x76);
	}
	compress_rig_close(&r);
}
END_TEST

/* amax 6 * 2^k: scale 2^k. Ties go to the even code: .25 0, .75 2, 1.25 2, 1.75
 * 4, 2.5 4, 3.5 6, 5 6; -0 is 8. amax 8 has the scale 2 and 4 is code 6. Zeros
 * have 6 * 2^-126 / 6: byte 1. */
START_TEST(codes_and_scales_of_mxfp4_by_hand)
{
	static const float y[8] = {6, .25f, .75f, 1.25f, 1.75f, 2.5f, -3.5f, 5};
	static const uint8_t bytes[4] = {0x07, 0x22, 0x44, 0x6e};
	uint32_t i;
	compress_rig r;

	open_ones(&r, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_MXFP4, 0, 4);
	for (i = 0; i < 8; i++) {
		r.norm[i] = 2 * y[i];
		r.norm[32 + i] = 2 * ldexpf(y[i], 40);
	}
	r.norm[31] = -0.0f;
	r.norm[64 + 1] = 16.0f;
	compress_rig_check(&r);
	ck_assert_mem_eq(r.cache + 64, bytes, 4);
	ck_assert_mem_eq(r.cache + 64 + 16, bytes, 4);
	ck_assert_uint_eq(r.cache[64 + 15], 0x80);
	ck_assert_uint_eq(r.cache[64 + 32], 0x60);
	ck_assert_mem_eq(r.cache + 256 + 4, "\x7f\xa7\x80\x01", 4);
	compress_rig_close(&r);
}
END_TEST

/* Position 7 belongs to the row 4 of the table, (4 / 4) * 4: cos 0.5 and sin 2
 * there turn (3, 5) into 1.5 - 10 and 2.5 + 6. */
START_TEST(a_key_is_rotated_by_the_first_position_of_its_group)
{
	static const uint32_t states[2] = {SPMLA_LAYOUT_STATE_1024,
					   SPMLA_LAYOUT_STATE_512};
	uint32_t i;
	uint16_t h[2];
	compress_rig r;

	for (i = 0; i < 2; i++) {
		open_ones(&r, states[i], SPMLA_LAYOUT_V4_BF16, 1, 2);
		r.cos_sin[r.a.ratio * 64 + 31] = 0.5f;
		r.cos_sin[r.a.ratio * 64 + 63] = 2.0f;
		r.norm[510] = 6.0f;
		r.norm[511] = 10.0f;
		compress_rig_check(&r);
		memcpy(h, r.cache + 1024 + 1020, 4);
		ck_assert_uint_eq(h[0], ref_bf16_bits(-8.5));
		ck_assert_uint_eq(h[1], ref_bf16_bits(8.5));
		compress_rig_close(&r);
	}
}
END_TEST

/* ---- Scores ------------------------------------------------------------ */

/* The one row whose score is far above is the key; rows of -inf weigh nothing,
 * and a score may be as large as f32 has it. */
START_TEST(a_score_far_above_the_others_takes_all)
{
	static const float scores[3] = {200.0f, 3e38f, 0.0f};
	static const float others[3] = {7.0f, -3e38f, -INFINITY};
	uint32_t i, p, d;
	uint16_t h;
	compress_rig r;

	for (i = 0; i < 6; i++) {
		const uint32_t at = i < 3 ? 127 : 5; /* first or last step */

		open_ones(&r, SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_BF16, 0,
			  2);
		for (p = 0; p < 128; p++)
			for (d = 0; d < 512; d++) {
				r.kv[p * 512 + d] = p == at ? 1.0f : 1e6f;
				r.score[p * 512 + d] =
					p == at ? scores[i % 3] : others[i % 3];
				r.norm[d] = (float)(d % 64);
			}
		compress_rig_put(&r, 0, 0, 128);
		compress_rig_run(&r);
		for (d = 0; d < 512; d++) {
			memcpy(&h, r.cache + 1024 + 2 * d, 2);
			ck_assert_uint_eq(h, ref_bf16_bits(d % 64 / 2.0));
		}
		compress_rig_close(&r);
	}
}
END_TEST

/* The norm takes a column that is NaN to all of them. */
START_TEST(a_score_that_is_no_number_makes_a_key_of_nan)
{
	static const float bad[4] = {NAN, INFINITY, -INFINITY, 7.0f};
	uint32_t i, p, d;
	compress_rig r;

	for (i = 0; i < 4; i++) {
		open_ones(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 0,
			  2);
		for (d = 0; d < 512; d++)
			r.norm[d] = 1.0f;
		for (p = 0; p < 4; p++)
			if (p == 1 || i == 2)
				r.score[p * 1024 + 600] = bad[i];
		if (i == 3)
			r.kv[2 * 1024 + 1000] = -NAN;
		compress_rig_put(&r, 0, 0, 4);
		compress_rig_run(&r);
		for (d = 0; d < 448; d++)
			ck_assert_uint_eq(r.cache[576 + d], 0x7f);
		for (d = 448; d < 576; d += 2)
			ck_assert_mem_eq(r.cache + 576 + d, "\xc0\x7f", 2);
		ck_assert_mem_eq(r.cache + 1160, "iiiiiii\0", 8); /* 105 */
		ck_assert_uint_eq(fixture_status(&r.f).count, 0);
		compress_rig_close(&r);
	}
}
END_TEST

/* A weight of +inf makes one value of a key infinite, and NaN one NaN. */
START_TEST(nan_and_infinity_have_defined_codes)
{
	static const uint32_t caches[5] = {
		SPMLA_LAYOUT_V4_FP8, SPMLA_LAYOUT_V4_BF16, SPMLA_LAYOUT_V4_E4M3,
		SPMLA_LAYOUT_INDEX_FP8, SPMLA_LAYOUT_INDEX_MXFP4};
	uint32_t i;
	compress_rig r;

	for (i = 0; i < 5; i++) {
		open_ones(&r,
			  i < 3 ? SPMLA_LAYOUT_STATE_1024
				: SPMLA_LAYOUT_STATE_256,
			  caches[i], 0, 2);
		r.a.e4m3_scale = 2.0f;
		r.norm[0] = INFINITY;
		r.norm[1] = -INFINITY;
		r.norm[2] = NAN;
		r.norm[3] = -4.0f;
		r.norm[i < 3 ? 64 : 32] = -NAN;
		r.norm[i < 3 ? 65 : 33] = 896.0f;
		compress_rig_run(&r);
		if (i == 0) {
			ck_assert_mem_eq(r.cache + 576, "\x7f\x7f\x7f\x80", 4);
			ck_assert_mem_eq(r.cache + 640, "\x7f\x7e\0\0", 4);
			ck_assert_mem_eq(r.cache + 1160, "\xff\x7f", 2);
		} else if (i == 1) {
			ck_assert_mem_eq(r.cache + 1024,
					 "\x80\x7f\x80\xff\xc0\x7f\0\xc0", 8);
		} else if (i == 2) { /* -2 / 2; 448 / 2 = 224 */
			ck_assert_mem_eq(r.cache + 512, "\x7e\xfe\x7f\xb8", 4);
			ck_assert_mem_eq(r.cache + 512 + 64, "\x7f\x76", 2);
		} else if (i == 3) {
			ck_assert_mem_eq(r.cache + 128, "\x7f\x7f\x7f\x80", 4);
			ck_assert_mem_eq(r.cache + 256 + 4, "\0\0\x80\x7f", 4);
		} else { /* 448 / 6 = 74.7: 2^7; 448 / 128 = 3.5: 4 */
			ck_assert_mem_eq(r.cache + 64, "\xf7\x87", 2);
			ck_assert_mem_eq(r.cache + 64 + 16, "\x67", 1);
			ck_assert_mem_eq(r.cache + 128 + 4, "\xfe\x86\x01", 3);
		}
		compress_rig_close(&r);
	}
}
END_TEST

/* All of it is tiny: the norm's eps is far above the squares, which underflow.
 */
START_TEST(subnormal_values_are_not_flushed)
{
	uint32_t d, p;
	uint16_t h;
	compress_rig r;

	open_ones(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16, 0, 2);
	r.a.norm_eps = 4.0f;
	for (d = 0; d < 512; d++) {
		for (p = 0; p < 4; p++)
			r.kv[p * 1024 + 512 + d] = 0x1p-132f;
		r.norm[d] = d % 2 ? 2.0f : 0x1p20f;
	}
	compress_rig_put(&r, 0, 0, 4);
	compress_rig_run(&r);
	for (d = 0; d < 512; d++) {
		memcpy(&h, r.cache + 1024 + 2 * d, 2);
		/* 2^-132 is 2 units of 2^-133; 2^-113 a normal number */
		ck_assert_uint_eq(h, d % 2 ? 2 : ref_bf16_bits(0x1p-113));
	}
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{the_first_group_of_ratio_4_has_four_rows, 1},
		{the_older_half_of_a_group_has_the_first_columns, 1},
	};
	const theme_test edge[] = {
		{codes_and_scales_of_v4_rows_by_hand, 1},
		{an_amax_above_448_times_a_power_of_two_doubles_the_scale, 1},
		{codes_and_scales_of_mxfp4_by_hand, 1},
		{a_key_is_rotated_by_the_first_position_of_its_group, 1},
		{a_score_far_above_the_others_takes_all, 1},
		{a_score_that_is_no_number_makes_a_key_of_nan, 1},
		{nan_and_infinity_have_defined_codes, 1},
		{subnormal_values_are_not_flushed, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
	};

	return RUN_THEMES(themes);
}
