/* SPDX-License-Identifier: Apache-2.0
 *
 * What the vector variants do with narrow values, against the scalar one: the
 * parts of o_group_proj, amax, and f32 to e4m3. All of it has the same bits.
 */
#include <math.h>
#include <string.h>

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "tests/core/kernels_rig.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum {
	PART = SPMLA_I_CPU_PART,
	COLUMNS = SPMLA_I_CPU_PART_COLUMNS,
	ROW = PART + 8, /* values of a row of w; the next begins anywhere */
	VALUES = 256
};

static uint8_t x[PART * 2 + 1], w[COLUMNS * ROW * 2 + 1];

/* Magnitudes of 2^-15 to 2^14, so that the order of a sum shows, and in some
 * passes infinities and NaN. */
static void
fill_bf16(uint64_t *rng, uint8_t *to, uint32_t bytes, uint32_t pass)
{
	uint32_t i;

	for (i = 0; i + 2 <= bytes; i += 2) {
		const uint32_t bits = (uint32_t)rng_next(rng);
		uint16_t h = (uint16_t)((bits >> 8 & 0x807f) | (112 + bits % 30)
								       << 7);

		if (pass % 4 == 3 && bits >> 24 == 0)
			h = (uint16_t)(0x7f80 + bits % 3 * 0x4001);
		memcpy(to + i, &h, sizeof h);
	}
}

START_TEST(part_of_bf16_has_the_bits_of_the_scalar_one)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	float got[COLUMNS], want[COLUMNS];
	uint64_t rng = test_seed();
	uint32_t pass, d;

	for (pass = 0; k && pass < 200; pass++) {
		fill_bf16(&rng, x + pass % 2, PART * 2, pass);
		fill_bf16(&rng, w + pass % 2, COLUMNS * ROW * 2, pass);
		k->part_bf16(x + pass % 2, w + pass % 2, ROW * 2, got);
		spmla_i_cpu_scalar.part_bf16(x + pass % 2, w + pass % 2,
					     ROW * 2, want);
		for (d = 0; d < COLUMNS; d++)
			kernels_same_float(got[d], want[d]);
	}
}
END_TEST

/* Every code; NaN in some passes only, as it hides what is beside it. */
START_TEST(part_of_e4m3_has_the_bits_of_the_scalar_one)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	float got[COLUMNS], want[COLUMNS];
	uint64_t rng = test_seed();
	uint32_t pass, i;

	for (pass = 0; k && pass < 200; pass++) {
		for (i = 0; i < sizeof x; i++)
			x[i] = (uint8_t)rng_next(&rng);
		for (i = 0; i < sizeof w; i++)
			w[i] = (uint8_t)rng_next(&rng);
		for (i = 0; pass % 4 != 3 && i < sizeof x; i++)
			x[i] = (x[i] & 0x7f) == 0x7f ? 0 : x[i];
		for (i = 0; pass % 4 != 3 && i < sizeof w; i++)
			w[i] = (w[i] & 0x7f) == 0x7f ? 0 : w[i];
		k->part_e4m3(x + pass % 7, w + pass % 7, ROW, got);
		spmla_i_cpu_scalar.part_e4m3(x + pass % 7, w + pass % 7, ROW,
					     want);
		for (i = 0; i < COLUMNS; i++)
			kernels_same_float(got[i], want[i]);
	}
}
END_TEST

/* Any bits: a NaN never counts, wherever it is. */
START_TEST(amax_is_that_of_the_scalar_one)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint64_t rng = test_seed();
	float values[VALUES];
	uint32_t pass, i, n;

	for (pass = 0; k && pass < 500; pass++) {
		const float least = pass % 2 ? 1e-4f : 0.0f;

		n = 16 * (1 + pass % (VALUES / 16));
		for (i = 0; i < n; i++)
			values[i] = pass % 5 ? rng_float(&rng)
					     : spmla_i_f32_from_bits((
						       uint32_t)rng_next(&rng));
		values[rng_next(&rng) % n] = NAN;
		values[rng_next(&rng) % n] *= 8.0f;
		kernels_same_float(k->amax(values, n, least),
				   spmla_i_cpu_scalar.amax(values, n, least));
	}
}
END_TEST

static void
same_codes(const spmla_i_cpu_kernels *k, const float *values, float scale)
{
	uint8_t got[VALUES + 1], want[VALUES + 1];

	memset(got, 0x5A, sizeof got);
	memset(want, 0x5A, sizeof want);
	k->quantise(got, values, VALUES, scale);
	spmla_i_cpu_scalar.quantise(want, values, VALUES, scale);
	ck_assert_mem_eq(got, want, sizeof got);
}

/* Each number halfway between two codes, and its neighbours; of either sign. */
START_TEST(ties_round_to_the_even_code)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint32_t code, i;
	float values[VALUES] = {0};

	for (code = 0; k && code < 0x7f; code++) {
		const float a = spmla_i_e4m3_to_f32((uint8_t)code);
		const float b =
			code == 0x7e ? 480.0f
				     : spmla_i_e4m3_to_f32((uint8_t)(code + 1));
		const uint32_t tie = spmla_i_f32_bits((a + b) / 2);

		for (i = 0; i < 6; i++)
			values[i] = spmla_i_f32_from_bits((tie - 1 + i / 2) |
							  i % 2 << 31);
		same_codes(k, values, 1.0f);
	}
}
END_TEST

START_TEST(any_quotient_gives_the_code_of_the_scalar_one)
{
	static const uint32_t special[8] = {
		0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u,
		0x00000000u, 0x80000000u, 0x00000001u, 0x43e00000u};
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint64_t rng = test_seed();
	float values[VALUES];
	uint32_t pass, i;

	for (pass = 0; k && pass < 500; pass++) {
		const float scale = pass % 3 == 0 ? 1.0f
				    : pass % 3 == 1
					    ? spmla_i_f32_from_bits(
						      0x7fffffffu &
						      (uint32_t)rng_next(&rng))
					    : 0.0123f;

		for (i = 0; i < VALUES; i++)
			values[i] = pass % 2 ? 500.0f * rng_float(&rng)
					     : spmla_i_f32_from_bits((
						       uint32_t)rng_next(&rng));
		for (i = 0; i < 8; i++)
			values[i] = spmla_i_f32_from_bits(special[i]);
		same_codes(k, values, scale);
	}
}
END_TEST

SUITE
{
	const theme_test exact[] = {
		{part_of_bf16_has_the_bits_of_the_scalar_one, 2},
		{part_of_e4m3_has_the_bits_of_the_scalar_one, 2},
		{amax_is_that_of_the_scalar_one, 2},
		{ties_round_to_the_even_code, 2},
		{any_quotient_gives_the_code_of_the_scalar_one, 2},
	};
	const theme themes[] = {
		THEME("exact", NULL, NULL, exact),
	};

	return RUN_THEMES(themes);
}
