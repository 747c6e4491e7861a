/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent reference's numbers against ones worked out by hand. It has
 * to be right on its own, because everything else answers to it.
 */
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ----------------------------------------------------------- */

START_TEST(e4m3_encodes_the_hand_derived_vectors)
{
	static const struct {
		double x;
		uint8_t code;
	} v[] = {
		{0, 0x00},
		{-0.0, 0x80},
		{0x1p-10, 0x00},
		{3 * 0x1p-10, 0x02}, /* ties to even */
		{0x1p-9, 0x01},
		{7 * 0x1p-9, 0x07},
		{15 * 0x1p-10, 0x08},
		{0x1p-6, 0x08},
		{0.015, 0x08},
		{1.0, 0x38},
		{1.0625, 0x38},
		{1.1875, 0x3A}, /* ties */
		{-3.3, 0xC5},
		{336, 0x7A},
		{432, 0x7E},
		{447, 0x7E},
		{1e9, 0x7E},
		{INFINITY, 0x7E},
		{-INFINITY, 0xFE},
		{NAN, 0x7F},
		{0x1.000002p-10, 0x01}, /* just above the tie */
	};
	size_t i;

	for (i = 0; i < sizeof v / sizeof *v; i++)
		ck_assert_msg(ref_e4m3(v[i].x) == v[i].code,
			      "%a: got 0x%02x, want 0x%02x", v[i].x,
			      ref_e4m3(v[i].x), v[i].code);
}
END_TEST

START_TEST(e4m3_codes_come_back_as_themselves)
{
	int code;

	for (code = 0; code < 256; code++)
		ck_assert_int_eq(ref_e4m3(ref_e4m3_value((uint8_t)code)),
				 (code & 127) == 127 ? 127 | (code & 128)
						     : code);
	/* 0x5D: exponent 11 - 7, mantissa 5: 16 * 13/8 */
	ck_assert_double_eq(ref_e4m3_value(0x5D), 26);
	ck_assert_double_eq(ref_e4m3_value(0xFE), -448);
}
END_TEST

START_TEST(bf16_rounds_to_nearest_even)
{
	/* 8 significant bits: steps of 2^-7 above 1 */
	ck_assert_int_eq(ref_bf16_bits(1), 0x3f80);
	ck_assert_int_eq(ref_bf16_bits(1 + 0x1p-8), 0x3f80);     /* tie */
	ck_assert_int_eq(ref_bf16_bits(1 + 3 * 0x1p-8), 0x3f82); /* tie */
	ck_assert_int_eq(ref_bf16_bits(1 + 0x1.002p-8), 0x3f81);
	ck_assert_int_eq(ref_bf16_bits(-2), 0xc000);
	ck_assert_int_eq(ref_bf16_bits(-0.0), 0x8000);
	ck_assert_int_eq(ref_bf16_bits(0x1p-133), 0x0001);
	ck_assert_int_eq(ref_bf16_bits(0x1p-134), 0x0000); /* tie */
	ck_assert_int_eq(ref_bf16_bits(0x1p-126), 0x0080);
	ck_assert_int_eq(ref_bf16_bits(0x1.ffp127), 0x7f80); /* tie to inf */
	ck_assert_int_eq(ref_bf16_bits(-INFINITY), 0xff80);
	ck_assert_int_eq(ref_bf16_bits(NAN) & 0x7fc0, 0x7fc0);
}
END_TEST

START_TEST(bf16_bits_come_back_as_themselves)
{
	uint32_t bits;

	for (bits = 0; bits < 0x10000; bits++)
		if ((bits & 0x7fff) <= 0x7f80)
			ck_assert_uint_eq(
				ref_bf16_bits(ref_bf16_value((uint16_t)bits)),
				bits);
}
END_TEST

START_TEST(pow2up_gives_the_hand_derived_exponents)
{
	static const struct {
		double amax;
		int exponent;
	} v[] = {{0, -22},  {1e-5, -22}, {1e-4, -22}, {1, -8}, {7, -6},
		 {3.5, -7}, {0.875, -9}, {448, 0},    {449, 1}};
	size_t i;

	for (i = 0; i < sizeof v / sizeof *v; i++) {
		uint16_t k[REF_INDEX_DIM] = {0};
		const ref_index_k_rule rule = {.mode = REF_SCALE_POW2};
		ref_index_key key;

		/* 449 is not a bf16 number, so this goes by the function */
		ck_assert_double_eq(ref_pow2up(fmax(v[i].amax, 1e-4) / 448),
				    ldexp(1, v[i].exponent));
		k[77] = ref_bf16_bits(v[i].amax);
		ref_quantise_index_k(&key, k, &rule);
		if (v[i].amax != 449)
			ck_assert_double_eq(key.scale, ldexp(1, v[i].exponent));
	}
}
END_TEST

/* ---- Rope and norm ----------------------------------------------------- */

START_TEST(rope_turns_both_kinds_of_pairs)
{
	float cos_sin[REF_ROPE] = {0};
	double x[REF_ROPE] = {0};

	/* pair 1 by a right angle: (a, b) becomes (-b, a); the others, with
	 * cos = sin = 0, vanish */
	cos_sin[33] = 1;
	x[1] = 3;
	x[33] = 5;
	x[2] = 7;
	ref_rope(x, cos_sin, REF_ROPE_NEOX);
	ck_assert_double_eq(x[1], -5);
	ck_assert_double_eq(x[33], 3);
	ck_assert_double_eq(x[2], 0);
	memset(x, 0, sizeof x);
	x[2] = 3;
	x[3] = 5;
	x[33] = 7;
	ref_rope(x, cos_sin, REF_ROPE_INTERLEAVED);
	ck_assert_double_eq(x[2], -5);
	ck_assert_double_eq(x[3], 3);
	ck_assert_double_eq(x[33], 0);
}
END_TEST

START_TEST(rope_rounds_to_bf16)
{
	float cos_sin[REF_ROPE] = {0};
	double x[REF_ROPE] = {0};

	cos_sin[0] = 1;
	cos_sin[32] = 0x1p-9f;
	x[0] = 1;
	x[32] = 1;
	/* 1 - 2^-9 is the tie between 1 - 2^-8 and 1; 1 + 2^-9 is nearer to
	 * 1 */
	ref_rope(x, cos_sin, REF_ROPE_NEOX);
	ck_assert_double_eq(x[0], 1);
	ck_assert_double_eq(x[32], 1);
}
END_TEST

START_TEST(layer_norm_of_two_values)
{
	/* mean 2, variance 1: -1 and 1, then * 2 + 0.5 */
	double x[2] = {1, 3};
	const float weight[2] = {2, 2}, bias[2] = {0.5f, 0.5f};

	ck_assert_uint_eq(ref_layer_norm(x, weight, bias, 0, 2), 0);
	ck_assert_double_eq(x[0], -1.5);
	ck_assert_double_eq(x[1], 2.5);
}
END_TEST

START_TEST(layer_norm_tells_what_lies_between_two_bf16)
{
	/* 1 + 2^-8 is a tie: f32 may fall to either side */
	double x[2] = {1, 3};
	const float weight[2] = {1, 1}, bias[2] = {0, 0x1p-8f};

	ck_assert_uint_eq(ref_layer_norm(x, weight, bias, 0, 2), 1);
}
END_TEST

/* ---- Quantising -------------------------------------------------------- */

START_TEST(kv_scales_follow_both_rules)
{
	uint16_t kv_c[REF_LATENT], k_pe[REF_ROPE] = {0};
	ref_kv_row row;
	uint32_t i;

	/* group 0 full of 336, group 1 zero, group 2 with 896, group 3 NaN */
	for (i = 0; i < REF_LATENT; i++)
		kv_c[i] = i < 128 ? ref_bf16_bits(336) : 0;
	kv_c[256] = ref_bf16_bits(-896);
	kv_c[257] = ref_bf16_bits(1);
	kv_c[384] = 0x7fc0;
	kv_c[385] = ref_bf16_bits(448);
	k_pe[63] = ref_bf16_bits(0.3);
	ref_quantise_kv(&row, kv_c, k_pe, REF_SCALE_POW2);
	ck_assert_double_eq(row.scale[0], 1); /* 336 / 448 = 0.75 */
	ck_assert_double_eq(row.scale[1], 0x1p-13);
	ck_assert_double_eq(row.scale[2], 2);
	ck_assert_double_eq(row.scale[3], 1);
	ck_assert_int_eq(row.code[0], 0x7A);
	ck_assert_double_eq(row.k[127], 320); /* 10.5/8 * 2^8, a tie */
	ck_assert_double_eq(row.k[256], -896);
	ck_assert_double_eq(row.k[257], 1);
	ck_assert_int_eq(row.code[384], REF_E4M3_NAN);
	ck_assert_int_eq(row.code[385], REF_E4M3_MAX);
	ck_assert_double_eq(row.k[575], ref_bf16_value(k_pe[63]));
	ref_quantise_kv(&row, kv_c, k_pe, REF_SCALE_RAW);
	ck_assert_double_eq(row.scale[0], 0.75);
	ck_assert_double_eq(row.scale[1], 0x1p-126);
	ck_assert_int_eq(row.code[0], REF_E4M3_MAX);
	ck_assert_double_eq(row.k[0], 336);
	ref_quantise_kv(&row, kv_c, k_pe, REF_SCALE_NONE);
	ck_assert_double_eq(row.k[256], -896);
}
END_TEST

START_TEST(values_are_codes_times_raw_scales)
{
	uint16_t kv_c[REF_LATENT] = {0}, k_pe[REF_ROPE] = {0};
	ref_kv_row row;

	/* scale f32(1 / 448) = 0x1.24924ap-9 = 9586981 * 2^-32; times 448 it is
	 * 1 + 3 * 2^-26. 0.5 gets code 224. */
	kv_c[0] = ref_bf16_bits(1);
	kv_c[1] = ref_bf16_bits(0.5);
	ref_quantise_kv(&row, kv_c, k_pe, REF_SCALE_RAW);
	ck_assert_double_eq(row.scale[0], (double)(1.0f / 448));
	ck_assert_int_eq(row.code[0], REF_E4M3_MAX);
	ck_assert_double_eq(row.k[0], 448 * 0x1.24924ap-9);
	ck_assert_double_eq(row.k[1], 224 * 0x1.24924ap-9);
}
END_TEST

START_TEST(index_query_scale_goes_into_the_weight)
{
	uint16_t q[2 * REF_INDEX_DIM] = {0};
	double values[2 * REF_INDEX_DIM], folded[2];
	const float weights[2] = {3, 5};
	ref_index_q_rule rule = {
		.heads = 2, .softmax_scale = 0.5f, .head_scale = 0.25f};

	q[0] = ref_bf16_bits(7); /* 7 / 448 = 2^-6: code of 448 */
	q[127] = ref_bf16_bits(-3.5);
	ref_index_q(q, REF_INDEX_DIM, weights, &rule, values, folded);
	ck_assert_double_eq(values[0], 448);
	ck_assert_double_eq(values[127], -224);
	ck_assert_double_eq(folded[0], 3 * 0x1p-6 / 8);
	/* a head of zeros: 1e-10 / 448 is above 2^-43, 1e-10 above 2^-34 */
	ck_assert_double_eq(values[128], 0);
	ck_assert_double_eq(folded[1], 5 * 0x1p-42 / 8);
	rule.floor = REF_Q_FLOOR_GROUP;
	ref_index_q(q, REF_INDEX_DIM, weights, &rule, values, folded);
	ck_assert_double_eq(folded[1], 5 * 0x1p-33 / 8);
}
END_TEST

SUITE
{
	const theme_test numbers[] = {
		{e4m3_encodes_the_hand_derived_vectors, 1},
		{e4m3_codes_come_back_as_themselves, 1},
		{bf16_rounds_to_nearest_even, 1},
		{bf16_bits_come_back_as_themselves, 1},
		{pow2up_gives_the_hand_derived_exponents, 1},
	};
	const theme_test rope_and_norm[] = {
		{rope_turns_both_kinds_of_pairs, 1},
		{rope_rounds_to_bf16, 1},
		{layer_norm_of_two_values, 1},
		{layer_norm_tells_what_lies_between_two_bf16, 1},
	};
	const theme_test quantise[] = {
		{kv_scales_follow_both_rules, 1},
		{values_are_codes_times_raw_scales, 1},
		{index_query_scale_goes_into_the_weight, 1},
	};
	const theme themes[] = {
		THEME("numbers", NULL, NULL, numbers),
		THEME("rope and norm", NULL, NULL, rope_and_norm),
		THEME("quantise", NULL, NULL, quantise),
	};

	return RUN_THEMES(themes);
}
