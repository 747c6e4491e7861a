/* SPDX-License-Identifier: Apache-2.0
 *
 * mxfp4.h: every code decoded, every rounding compared with one that searches
 * the nearest value in double, scales at the ends of their range.
 */
#include "spmla/internal/mxfp4.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};

/* The nearest of all eight, of two the even one; NaN is 7. */
static uint8_t
nearest(double x)
{
	uint8_t best = 0, i;

	if (isnan(x))
		return 7;
	if (fabs(x) >= 6)
		return signbit(x) ? 15 : 7;
	for (i = 1; i < 8; i++) {
		const double d = fabs(fabs(x) - values[i]);
		const double b = fabs(fabs(x) - values[best]);

		if (d < b || (d == b && i % 2 == 0))
			best = i;
	}
	return signbit(x) ? best | 8 : best;
}

static void
check(uint32_t bits)
{
	const float x = spmla_i_f32_from_bits(bits);

	if (spmla_i_f32_to_e2m1(x) != nearest((double)x))
		ck_abort_msg("e2m1 of 0x%08x: got %u, want %u", bits,
			     spmla_i_f32_to_e2m1(x), nearest((double)x));
}

START_TEST(every_e2m1_code_decodes_to_its_value)
{
	uint8_t c;

	for (c = 0; c < 16; c++) {
		const float x = spmla_i_e2m1_to_f32(c);

		ck_assert((double)fabsf(x) == values[c & 7]);
		ck_assert(!signbit(x) == !(c & 8));
		ck_assert_uint_eq(spmla_i_f32_to_e2m1(x), c);
	}
}
END_TEST

/* .25, .75, 1.25, 1.75, 2.5, 3.5, 5 lie in the middle. */
START_TEST(the_middle_of_two_e2m1_codes_goes_to_the_even_one)
{
	static const float middle[7] = {.25f, .75f, 1.25f, 1.75f,
					2.5f, 3.5f, 5.0f};
	static const uint8_t code[7] = {0, 2, 2, 4, 4, 6, 6};
	uint32_t i, u;

	for (i = 0; i < 7; i++) {
		ck_assert_uint_eq(spmla_i_f32_to_e2m1(middle[i]), code[i]);
		ck_assert_uint_eq(spmla_i_f32_to_e2m1(-middle[i]), code[i] | 8);
		for (u = 0; u < 3; u++) {
			check(spmla_i_f32_bits(middle[i]) + u - 1);
			check(spmla_i_f32_bits(-middle[i]) + u - 1);
		}
	}
}
END_TEST

START_TEST(random_and_odd_values_have_the_nearest_code)
{
	static const uint32_t odd[] = {0,          0x80000000, 1,
				       0x80000001, 0x7f800000, 0xff800000,
				       0x7fc00000, 0xffc00000, 0x7f800001,
				       0x7f7fffff, 0xff7fffff};
	uint64_t rng = test_seed();
	uint32_t i;

	for (i = 0; i < sizeof odd / sizeof *odd; i++)
		check(odd[i]);
	for (i = 0; i < 100000; i++) {
		check((uint32_t)rng_next(&rng));
		check(spmla_i_f32_bits(rng_float(&rng) * 8));
	}
}
END_TEST

/* amax 6 * 2^k has the scale 2^k, the next float twice that. */
START_TEST(scales_are_the_next_power_of_two_of_a_sixth)
{
	int k;

	for (k = -126; k <= 125; k++) {
		const float amax = ldexpf(6.0f, k);

		ck_assert_int_eq(spmla_i_mxfp4_scale(amax), 127 + k);
		ck_assert_int_eq(
			spmla_i_mxfp4_scale(nextafterf(amax, INFINITY)),
			128 + k);
		ck_assert(spmla_i_mxfp4_scale_value((uint8_t)(127 + k)) ==
			  ldexpf(1, k));
		ck_assert(spmla_i_mxfp4_inverse((uint8_t)(127 + k)) ==
			  ldexpf(1, -k));
	}
}
END_TEST

/* 6 * 2^-126 is the least amax that counts; a sixth of the largest float is
 * 1.33 * 2^125; infinity has 2^127, for byte 255 would be NaN. */
START_TEST(scales_stay_inside_their_byte)
{
	ck_assert_uint_eq(spmla_i_mxfp4_scale(0.0f), 1);
	ck_assert_uint_eq(spmla_i_mxfp4_scale(0x1p-149f), 1);
	ck_assert_uint_eq(spmla_i_mxfp4_scale(3e38f), 253);
	ck_assert_uint_eq(spmla_i_mxfp4_scale(INFINITY), 254);
	ck_assert(spmla_i_mxfp4_scale_value(0) == 0x1p-127f);
	ck_assert(spmla_i_mxfp4_scale_value(254) == 0x1p127f);
	ck_assert(spmla_i_mxfp4_scale_value(255) == INFINITY);
	ck_assert(spmla_i_mxfp4_inverse(254) == 0x1p-127f);
	ck_assert(spmla_i_mxfp4_inverse(0) == 0x1p127f);
}
END_TEST

/* NaN does not count for amax; the even one of a pair is low. */
START_TEST(a_group_is_packed_in_pairs)
{
	float x[32] = {0};
	uint8_t packed[16];

	x[0] = 3.0f;  /* / 2: 1.5 is 3 */
	x[1] = -8.0f; /* / 2: 4 is 6 */
	x[30] = NAN;
	x[31] = 0.5f; /* .25: to 0 */
	ck_assert_uint_eq(spmla_i_mxfp4_encode(packed, x), 128);
	ck_assert_uint_eq(packed[0], 0xe3);
	ck_assert_uint_eq(packed[1], 0);
	ck_assert_uint_eq(packed[15], 0x07);
}
END_TEST

SUITE
{
	const theme_test codes[] = {
		{every_e2m1_code_decodes_to_its_value, 1},
		{the_middle_of_two_e2m1_codes_goes_to_the_even_one, 1},
		{random_and_odd_values_have_the_nearest_code, 1},
		{scales_are_the_next_power_of_two_of_a_sixth, 1},
		{scales_stay_inside_their_byte, 1},
		{a_group_is_packed_in_pairs, 1},
	};
	const theme themes[] = {THEME("codes", NULL, NULL, codes)};

	return RUN_THEMES(themes);
}
