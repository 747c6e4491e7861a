/* SPDX-License-Identifier: Apache-2.0
 *
 * f16 of the dialect, as the emulator has it: rounding and products compared
 * with a model that knows only values, in double.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/mma.h"

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <math.h>

static double
value_of(uint32_t h)
{
	const double sign = h & 0x8000u ? -1.0 : 1.0;
	const int exponent = (int)(h >> 10 & 31u);
	const double mantissa = h & 0x3ffu;

	if (exponent == 31)
		return mantissa != 0.0 ? (double)NAN : sign * (double)INFINITY;
	if (exponent == 0)
		return sign * ldexp(mantissa, -24);
	return sign * ldexp(1024.0 + mantissa, exponent - 25);
}

/* The code of the value that x is rounded to: a multiple of the step at x, ties
 * to the even multiple. */
static uint32_t
nearest(double x)
{
	const uint32_t sign = signbit(x) ? 0x8000u : 0;
	double steps;
	int exponent;

	if (isnan(x))
		return 0x7fffu;
	x = fabs(x);
	if (x >= 65520.0)
		return sign | 0x7c00u;
	exponent = x < 0x1p-14 ? -14 : ilogb(x);
	steps = nearbyint(ldexp(x, 10 - exponent));
	if (steps < 1024.0)
		return sign | (uint32_t)steps;
	/* 2048 steps are the next power of two. */
	return sign | ((uint32_t)(exponent + 14) * 1024u + (uint32_t)steps);
}

static void
check_rounding(uint32_t bits)
{
	const uint32_t got = g_f32_to_f16(g_float(bits));
	const uint32_t want = nearest((double)g_float(bits));

	if (got != want)
		ck_abort_msg("f16 of 0x%08x: got 0x%04x, want 0x%04x", bits,
			     got, want);
}

static void
check_product(uint32_t a, uint32_t b)
{
	const uint32_t c = a ^ 0x0357u, d = b ^ 0x8101u;
	const uint32_t got = g_mul_f16x2(a | c << 16, b | d << 16);
	const uint32_t low = nearest(value_of(a) * value_of(b));
	const uint32_t high = nearest(value_of(c) * value_of(d));

	if (got != (low | high << 16))
		ck_abort_msg("0x%04x%04x * 0x%04x%04x: got 0x%08x, want "
			     "0x%04x%04x",
			     c, a, d, b, got, high, low);
}

__extension__ typedef __int128 wide;

/* The value of a finite code: a multiple of 2^-24. */
static wide
units_of(uint32_t h)
{
	return (wide)ldexp(value_of(h), 24);
}

/* The code of a b + c, of finite codes: in integers, multiples of 2^-48. */
static uint32_t
nearest_sum(uint32_t a, uint32_t b, uint32_t c)
{
	const wide sum =
		units_of(a) * units_of(b) + units_of(c) * ((wide)1 << 24);
	const wide size = sum < 0 ? -sum : sum;
	const uint32_t sign = sum < 0 ? 0x8000u : 0;
	uint32_t shift = 24, steps;
	wide rest;

	if (sum == 0)
		return nearest(value_of(a) * value_of(b) + value_of(c));
	while (size >> shift >= 2048)
		shift++;
	steps = (uint32_t)(size >> shift);
	rest = size - ((wide)steps << shift);
	if (rest > (wide)1 << (shift - 1) ||
	    (rest == (wide)1 << (shift - 1) && steps % 2))
		steps++;
	return nearest((sign ? -1.0 : 1.0) *
		       ldexp((double)steps, (int)shift - 48));
}

static void
check_fma(uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t got = g_fma_f16x2(a | b << 16, b | a << 16, c | c << 16);
	const uint32_t want = nearest_sum(a, b, c);

	if (got != want * 0x10001u)
		ck_abort_msg("0x%04x * 0x%04x + 0x%04x: got 0x%08x, want "
			     "0x%04x",
			     a, b, c, got, want);
}

START_TEST(codes_keep_their_values)
{
	uint32_t h;

	for (h = 0; h < 65536; h++) {
		const float got = g_fp16_to_f32(h);

		if (isnan(value_of(h))) {
			ck_assert(isnan(got));
			ck_assert_uint_eq(g_f32_to_f16(got), 0x7fff);
			continue;
		}
		if ((double)got != value_of(h) || g_f32_to_f16(got) != h)
			ck_abort_msg("0x%04x is %a", h, (double)got);
	}
}
END_TEST

/* Every sign, exponent and upper mantissa, with the lower halves at which a
 * normal f16 changes; of a subnormal the upper ones do. */
START_TEST(every_upper_half_rounds_to_the_nearest)
{
	static const uint32_t low[] = {0,      1,      0x0fff, 0x1000, 0x1001,
				       0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001,
				       0x7fff, 0x8000, 0x8001, 0xefff, 0xf000,
				       0xf001, 0xffff};
	uint32_t high, i;

	for (high = 0; high < 65536; high++)
		for (i = 0; i < sizeof low / sizeof *low; i++)
			check_rounding(high << 16 | low[i]);
}
END_TEST

START_TEST(known_values_have_their_known_codes)
{
	static const struct {
		float x;
		uint32_t code;
	} known[] = {
		{65504.0f, 0x7bff},       {65519.996f, 0x7bff},
		{65520.0f, 0x7c00},       {-1e30f, 0xfc00},
		{INFINITY, 0x7c00},       {1.0f, 0x3c00},
		{1.00048828125f, 0x3c00}, /* a tie to even */
		{1.00146484375f, 0x3c02}, /* another */
		{0x1p-14f, 0x0400},       {0x1.ffbp-15f, 0x03ff},
		{0x1.ffcp-15f, 0x0400}, /* a tie to the least normal */
		{0x1p-24f, 0x0001},       {0x1p-25f, 0x0000},
		{0x1.000002p-25f, 1},     {0x1.8p-24f, 0x0002},
		{-0.0f, 0x8000},          {-0x1p-30f, 0x8000},
	};
	uint32_t i;

	for (i = 0; i < sizeof known / sizeof *known; i++)
		ck_assert_msg(g_f32_to_f16(known[i].x) == known[i].code,
			      "%a: got 0x%04x, want 0x%04x", (double)known[i].x,
			      g_f32_to_f16(known[i].x), known[i].code);
	ck_assert_uint_eq(g_f32_to_f16x2(1.0f, -2.0f), 0xc0003c00u);
	ck_assert_uint_eq(g_f32_to_f16x2(NAN, -NAN), 0x7fff7fffu);
}
END_TEST

/* What a scale is: a power of two, also one that makes subnormals. */
START_TEST(every_code_times_every_power_of_two_is_rounded_once)
{
	uint32_t h, e;

	for (h = 0; h < 65536; h++) {
		for (e = 0; e < 31; e++)
			check_product(h, e << 10);
		for (e = 0; e < 10; e++)
			check_product(h, 0x8000u | 1u << e);
	}
}
END_TEST

START_TEST(products_of_any_two_are_rounded_once)
{
	uint64_t rng = test_seed();
	uint32_t i;

	for (i = 0; i < 1000000; i++)
		check_product((uint32_t)rng_next(&rng) & 0xffffu,
			      (uint32_t)rng_next(&rng) & 0xffffu);
	check_product(0x7c00, 0x0000);
	check_product(0x7c00, 0xfc00);
	check_product(0x7e00, 0x3c00);
	check_product(0x7bff, 0x3c01);
}
END_TEST

/* c is anything, or about as large as the product, of the other sign. */
START_TEST(fused_sums_are_rounded_once)
{
	uint64_t rng = test_seed();
	uint32_t i;

	for (i = 0; i < 1000000; i++) {
		const uint32_t a = (uint32_t)rng_next(&rng) & 0xffffu;
		const uint32_t b = (uint32_t)rng_next(&rng) & 0xffffu;
		uint32_t c = (uint32_t)rng_next(&rng) & 0xffffu;

		if (i % 2)
			c = (nearest(-value_of(a) * value_of(b)) ^
			     (c & 0x800fu));
		if ((a & 0x7c00u) == 0x7c00u || (b & 0x7c00u) == 0x7c00u ||
		    (c & 0x7c00u) == 0x7c00u)
			continue;
		check_fma(a, b, c);
	}
	/* 1 + 2^-11 and a little: above the tie. */
	check_fma(0x3c01, 0x3c01, 0x1000);
	check_fma(0x3c00, 0x3c00, 0x1000);
	check_fma(0x0001, 0x0001, 0x3c00);
	check_fma(0x8001, 0x0001, 0x3c01);
	check_fma(0x0001, 0x1000, 0x1001);
	ck_assert_uint_eq(g_fma_f16x2(0x7c007c00u, 0x3c003c00u, 0xfc003c00u),
			  0x7fff7c00u);
}
END_TEST

SUITE
{
	const theme_test rounding[] = {
		{codes_keep_their_values, 1},
		{every_upper_half_rounds_to_the_nearest, 1},
		{known_values_have_their_known_codes, 1},
	};
	const theme_test products[] = {
		{every_code_times_every_power_of_two_is_rounded_once, 1},
		{products_of_any_two_are_rounded_once, 1},
		{fused_sums_are_rounded_once, 1},
	};
	const theme themes[] = {
		THEME("rounding", NULL, NULL, rounding),
		THEME("products", NULL, NULL, products),
	};

	return RUN_THEMES(themes);
}
