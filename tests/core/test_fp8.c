/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8.h and bf16.h: every code decoded, every rounding compared with one that
 * searches the nearest value in double (tests/reference/reference.h).
 */
#include "spmla/internal/fp8.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

#include <math.h>
#include <stdlib.h>

/* Millions of these: an assertion that holds costs more than the rounding. */
static void
check_e4m3(uint32_t bits)
{
	const float x = spmla_i_f32_from_bits(bits);
	const uint8_t got = spmla_i_f32_to_e4m3(x);
	const uint8_t want = ref_e4m3((double)x);

	if (got != want)
		ck_abort_msg("e4m3 of 0x%08x: got 0x%02x, want 0x%02x", bits,
			     got, want);
}

static void
check_fnuz(uint32_t bits)
{
	const float x = spmla_i_f32_from_bits(bits);
	const uint8_t got = spmla_i_f32_to_fnuz(x);
	const uint8_t want = ref_fnuz((double)x);

	if (got != want)
		ck_abort_msg("FNUZ of 0x%08x: got 0x%02x, want 0x%02x", bits,
			     got, want);
}

/* A NaN keeps its sign and its upper payload and becomes quiet. */
static void
check_bf16(uint32_t bits)
{
	const float x = spmla_i_f32_from_bits(bits);
	const uint16_t got = spmla_i_f32_to_bf16(x);
	uint16_t want = ref_bf16_bits((double)x);

	if (isnan(x))
		want = (uint16_t)(bits >> 16 | 0x40);
	if (got != want)
		ck_abort_msg("bf16 of 0x%08x: got 0x%04x, want 0x%04x", bits,
			     got, want);
}

/* Equal in value and sign, or both NaN of one sign. */
static void
check_value(uint32_t code, float got, double want)
{
	const int equal = isnan(got) ? isnan(want) : (double)got == want;

	if (!equal || !signbit(got) != !signbit(want))
		ck_abort_msg("value of 0x%x: got %a, want %a", code,
			     (double)got, want);
}

START_TEST(every_e4m3_code_decodes_to_its_value)
{
	uint32_t c;

	for (c = 0; c < 256; c++)
		check_value(c, spmla_i_e4m3_to_f32((uint8_t)c),
			    ref_e4m3_value((uint8_t)c));
	ck_assert(spmla_i_e4m3_to_f32(0x7e) == 448.0f);
	ck_assert(spmla_i_e4m3_to_f32(0x08) == 0x1p-6f);
	ck_assert(spmla_i_e4m3_to_f32(0x01) == 0x1p-9f);
	ck_assert(spmla_i_e4m3_to_f32(0xb8) == -1.0f);
}
END_TEST

START_TEST(every_e4m3_code_encodes_back_to_itself)
{
	uint32_t c;

	for (c = 0; c < 256; c++)
		ck_assert_uint_eq(
			spmla_i_f32_to_e4m3(spmla_i_e4m3_to_f32((uint8_t)c)),
			c);
}
END_TEST

START_TEST(the_middle_of_two_e4m3_codes_goes_to_the_even_one)
{
	uint32_t c;

	for (c = 0; c < 0x7e; c++) {
		const float lo = spmla_i_e4m3_to_f32((uint8_t)c);
		const float hi = spmla_i_e4m3_to_f32((uint8_t)(c + 1));
		const float mid = (lo + hi) / 2; /* exact: 5 bits */
		const uint32_t even = c + (c & 1);

		ck_assert_uint_eq(spmla_i_f32_to_e4m3(mid), even);
		ck_assert_uint_eq(spmla_i_f32_to_e4m3(-mid), even | 0x80);
		ck_assert_uint_eq(spmla_i_f32_to_e4m3(nextafterf(mid, 0)), c);
		ck_assert_uint_eq(spmla_i_f32_to_e4m3(nextafterf(mid, 500)),
				  c + 1);
	}
}
END_TEST

START_TEST(every_fnuz_code_decodes_to_its_value_and_back)
{
	uint32_t c;

	for (c = 0; c < 256; c++) {
		const float x = spmla_i_fnuz_to_f32((uint8_t)c);

		check_value(c, x, ref_fnuz_value((uint8_t)c));
		ck_assert_uint_eq(spmla_i_f32_to_fnuz(x), c);
		/* Half of what the same code is in e4m3fn. */
		if (c != 0x80 && (c & 0x7f) != 0x7f)
			ck_assert(x == 0.5f * spmla_i_e4m3_to_f32((uint8_t)c));
	}
}
END_TEST

START_TEST(fnuz_rounds_to_the_even_code_and_saturates)
{
	static const struct {
		float x;
		uint8_t code;
	} known[] = {
		{-0.0f, 0x00},     {-0x1p-12f, 0x00}, {0x1p-11f, 0x00},
		{240.0f, 0x7f},    {-240.0f, 0xff},   {232.0f, 0x7e},
		{233.0f, 0x7f},    {-1e9f, 0xff},     {INFINITY, 0x7f},
		{-INFINITY, 0xff}, {NAN, 0x80},       {-NAN, 0x80},
		{3e38f, 0x7f},     {1.0f, 0x40},      {-0x1p-10f, 0x81},
		{0x1p-149f, 0x00},
	};
	uint32_t c, i;

	for (c = 0; c < 0x7f; c++) {
		const float mid = (float)((ref_fnuz_value((uint8_t)c) +
					   ref_fnuz_value((uint8_t)(c + 1))) /
					  2);
		const uint32_t even = c + (c & 1);

		ck_assert_uint_eq(spmla_i_f32_to_fnuz(mid), even);
		ck_assert_uint_eq(spmla_i_f32_to_fnuz(-mid),
				  even ? even | 0x80 : 0);
		ck_assert_uint_eq(spmla_i_f32_to_fnuz(nextafterf(mid, 0)), c);
		ck_assert_uint_eq(spmla_i_f32_to_fnuz(nextafterf(mid, 500)),
				  c + 1);
	}
	for (i = 0; i < sizeof known / sizeof *known; i++)
		ck_assert_uint_eq(spmla_i_f32_to_fnuz(known[i].x),
				  known[i].code);
}
END_TEST

/* The vectors that specify the format. */
START_TEST(the_known_values_have_their_known_codes)
{
	static const struct {
		float x;
		uint8_t code;
	} known[] = {
		{0.0f, 0x00},      {-0.0f, 0x80},
		{0x1p-10f, 0x00}, /* tie to even */
		{0x3p-10f, 0x02}, /* tie to even */
		{0x1p-9f, 0x01},   {0x7p-9f, 0x07},
		{0xfp-10f, 0x08}, /* tie to the least normal */
		{0x1p-6f, 0x08},   {0.015f, 0x08},
		{1.0f, 0x38},      {1.0625f, 0x38}, /* tie */
		{1.1875f, 0x3a},                    /* tie */
		{-3.3f, 0xc5},     {336.0f, 0x7a},
		{432.0f, 0x7e}, /* tie */
		{447.0f, 0x7e},    {448.0f, 0x7e},
		{449.0f, 0x7e},    {1e9f, 0x7e},
		{-1e9f, 0xfe},     {INFINITY, 0x7e},
		{-INFINITY, 0xfe}, {0x1p-149f, 0x00},
	};
	uint32_t i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		ck_assert_msg(spmla_i_f32_to_e4m3(known[i].x) == known[i].code,
			      "%a: got 0x%02x, want 0x%02x", (double)known[i].x,
			      spmla_i_f32_to_e4m3(known[i].x), known[i].code);
}
END_TEST

START_TEST(a_nan_keeps_its_sign_in_e4m3_and_bf16)
{
	static const uint32_t nan[] = {0x7fc00000, 0x7f800001, 0x7fffffff,
				       0x7f80ffff};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		const float p = spmla_i_f32_from_bits(nan[i]);
		const float n = spmla_i_f32_from_bits(nan[i] | 0x80000000u);

		ck_assert_uint_eq(spmla_i_f32_to_e4m3(p), 0x7f);
		ck_assert_uint_eq(spmla_i_f32_to_e4m3(n), 0xff);
		check_bf16(nan[i]);
		check_bf16(nan[i] | 0x80000000u);
	}
}
END_TEST

/* Every sign, exponent and upper mantissa, with the lower halves at which
 * bf16 and the carry out of it change. */
START_TEST(every_upper_half_rounds_as_the_nearest_value_does)
{
	static const uint32_t low[] = {0,      1,      0x7fff, 0x8000,
				       0x8001, 0xffff, 0x4000};
	uint32_t high, i;

	for (high = 0; high < 65536; high++)
		for (i = 0; i < 7; i++) {
			check_e4m3(high << 16 | low[i]);
			check_fnuz(high << 16 | low[i]);
			check_bf16(high << 16 | low[i]);
		}
}
END_TEST

START_TEST(random_floats_round_as_the_nearest_value_does)
{
	uint64_t rng = test_seed();
	uint32_t i;

	for (i = 0; i < 400000; i++) {
		const uint32_t u = (uint32_t)rng_next(&rng);

		check_e4m3(u);
		check_bf16(u);
		/* And where e4m3 has its codes: 2^-12 to 2^12. */
		check_e4m3((u & 0x807fffffu) | (115 + rng_below(&rng, 24))
						       << 23);
	}
}
END_TEST

START_TEST(every_bf16_code_decodes_and_encodes_back)
{
	uint32_t h;

	for (h = 0; h < 65536; h++) {
		const float x = spmla_i_bf16_to_f32((uint16_t)h);
		const uint32_t quiet = isnan(x) ? h | 0x40 : h;

		check_value(h, x, ref_bf16_value((uint16_t)h));
		ck_assert_uint_eq(spmla_i_f32_to_bf16(x), quiet);
	}
}
END_TEST

START_TEST(bf16_rounds_ties_to_even_and_overflows_to_infinity)
{
	/* Steps of 2^-7 at 1: 1 + 2^-8 is a tie between 0x3f80, 0x3f81. */
	ck_assert_uint_eq(spmla_i_f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
	ck_assert_uint_eq(spmla_i_f32_to_bf16(1.0f + 0x3p-8f), 0x3f82);
	/* 2^-134 is half of the least subnormal, 1.5 * 2^-133 a tie up. */
	ck_assert_uint_eq(spmla_i_f32_to_bf16(0x1p-134f), 0x0000);
	ck_assert_uint_eq(spmla_i_f32_to_bf16(-0x1p-134f), 0x8000);
	ck_assert_uint_eq(spmla_i_f32_to_bf16(0x3p-134f), 0x0002);
	/* The largest is (2 - 2^-7) 2^127; half a step more is infinity. */
	ck_assert_uint_eq(spmla_i_f32_to_bf16(0x1.fep127f), 0x7f7f);
	ck_assert_uint_eq(spmla_i_f32_to_bf16(0x1.fefffep127f), 0x7f7f);
	ck_assert_uint_eq(spmla_i_f32_to_bf16(0x1.ffp127f), 0x7f80);
	ck_assert(spmla_i_round_bf16(1.0f + 0x3p-8f) == 1.0f + 0x1p-6f);
}
END_TEST

START_TEST(every_fp16_code_decodes_to_its_value)
{
	uint32_t h;

	for (h = 0; h < 65536; h++) {
		const int exponent = (int)(h >> 10 & 31);
		const int mantissa = (int)(h & 1023);
		double a;

		if (exponent == 31)
			a = mantissa ? NAN : INFINITY;
		else if (exponent == 0)
			a = ldexp(mantissa, -24);
		else
			a = ldexp(1024 + mantissa, exponent - 25);
		check_value(h, spmla_i_fp16_to_f32((uint16_t)h),
			    h & 0x8000 ? -a : a);
	}
	ck_assert(spmla_i_fp16_to_f32(0x7bff) == 65504.0f);
	ck_assert(spmla_i_fp16_to_f32(0x3555) == 0x1.554p-2f);
}
END_TEST

START_TEST(pow2_up_is_the_least_power_of_two_not_below)
{
	uint64_t rng = test_seed();
	uint32_t i;
	int e;

	for (e = -126; e <= 127; e++) {
		const float p = ldexpf(1.0f, e);

		ck_assert(spmla_i_pow2_up(p) == p);
		ck_assert(spmla_i_pow2_up(nextafterf(p, INFINITY)) == 2 * p);
		if (e > -126)
			ck_assert(spmla_i_pow2_up(nextafterf(p, 0)) == p);
	}
	ck_assert(spmla_i_pow2_up(0x1.fffffep127f) == INFINITY);
	ck_assert(spmla_i_pow2_up(INFINITY) == INFINITY);
	for (i = 0; i < 100000; i++) {
		const uint32_t u =
			0x00800000u + rng_below(&rng, 0x7f000000u - 0x800000u);
		const float s = spmla_i_f32_from_bits(u);

		ck_assert((double)spmla_i_pow2_up(s) == ref_pow2up((double)s));
	}
}
END_TEST

/* Exponents of pow2up(max(amax, 1e-4) / 448). */
START_TEST(scales_have_the_known_exponents)
{
	static const struct {
		float amax;
		int e;
	} known[] = {
		{0.0f, -22},  {1e-5f, -22}, {1e-4f, -22},
		{1.0f, -8},   {7.0f, -6},   {3.5f, -7},
		{0.875f, -9}, {448.0f, 0},  {449.0f, 1},
	};
	uint32_t i;

	for (i = 0; i < sizeof known / sizeof known[0]; i++) {
		const float a = fmaxf(known[i].amax, 1e-4f);

		ck_assert(spmla_i_pow2_up(a / 448) == ldexpf(1.0f, known[i].e));
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_e4m3_code_decodes_to_its_value, 1},
		{every_e4m3_code_encodes_back_to_itself, 1},
		{every_bf16_code_decodes_and_encodes_back, 1},
		{every_fp16_code_decodes_to_its_value, 1},
		{every_upper_half_rounds_as_the_nearest_value_does, 1},
		{random_floats_round_as_the_nearest_value_does, 1},
	};
	const theme_test edge[] = {
		{the_middle_of_two_e4m3_codes_goes_to_the_even_one, 1},
		{every_fnuz_code_decodes_to_its_value_and_back, 1},
		{fnuz_rounds_to_the_even_code_and_saturates, 1},
		{the_known_values_have_their_known_codes, 1},
		{a_nan_keeps_its_sign_in_e4m3_and_bf16, 1},
		{bf16_rounds_ties_to_even_and_overflows_to_infinity, 1},
		{pow2_up_is_the_least_power_of_two_not_below, 1},
		{scales_have_the_known_exponents, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
	};

	return RUN_THEMES(themes);
}
