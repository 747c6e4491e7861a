/* SPDX-License-Identifier: Apache-2.0
 *
 * The projections of the vector variants against the scalar one. bf16 products
 * are exact in f32 and the order of the sums is written down, so the bits are
 * the same; where a product is below the range of f32 the scalar one rounds it.
 */
#include <math.h>
#include <string.h>

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "tests/core/kernels_rig.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { ROWS = 14, MOST_N = 512, MOST_COLUMNS = 96, PAD = 8 };

static uint16_t x[ROWS * (MOST_N + PAD)];
static uint16_t w[2][MOST_N * (MOST_COLUMNS + PAD)];
static uint16_t got[ROWS * (MOST_COLUMNS + PAD)];
static uint16_t want[ROWS * (MOST_COLUMNS + PAD)];

/* Numbers of magnitude 2^low up to 2^(low + 30), of either sign. */
static void
fill(uint64_t *rng, uint16_t *to, uint32_t n, int low)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t bits = (uint32_t)rng_next(rng);
		const uint32_t exponent = (uint32_t)(low + 127) + bits % 30;

		to[i] = (uint16_t)((bits >> 8 & 0x807f) | exponent << 7);
	}
}

static void
fill_all(int low)
{
	uint64_t rng = test_seed();

	fill(&rng, x, sizeof x / sizeof *x, low);
	fill(&rng, w[0], sizeof w[0] / sizeof *w[0], low);
	memset(w[1], 0xff, sizeof w[1]);
}

static spmla_i_cpu_project
problem(uint32_t rows, uint32_t n, uint32_t columns)
{
	const spmla_i_cpu_project p = {
		x,    n + PAD, w[0],   columns + PAD, w[1], got, columns + PAD,
		rows, n,       columns};

	return p;
}

/* Both into poisoned outputs. */
static void
run(const spmla_i_cpu_kernels *k, spmla_i_cpu_project p)
{
	memset(got, 0x5A, sizeof got);
	memset(want, 0x5A, sizeof want);
	k->project(&p);
	p.out = want;
	spmla_i_cpu_scalar.project(&p);
}

START_TEST(any_rows_and_sizes_give_the_bits_of_the_scalar_one)
{
	static const uint32_t sizes[4][2] = {
		{16, 32}, {128, 96}, {512, 64}, {48, 32}};
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint32_t s, rows;

	fill_all(-15);
	for (s = 0; k && s < 4; s++)
		for (rows = 1; rows <= ROWS; rows++) {
			run(k, problem(rows, sizes[s][0], sizes[s][1]));
			ck_assert_mem_eq(got, want, sizeof got);
		}
}
END_TEST

START_TEST(row_has_the_same_bits_among_any_others)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	spmla_i_cpu_project p = problem(ROWS, 128, 64);
	uint32_t first, rows;

	fill_all(-15);
	if (!k)
		return;
	memset(got, 0x5A, sizeof got);
	k->project(&p);
	memcpy(want, got, sizeof got);
	for (first = 0; first < ROWS; first++)
		for (rows = 1; rows <= ROWS - first; rows++) {
			p = problem(rows, 128, 64);
			p.x = x + first * p.x_stride_elems;
			p.next = p.w;
			memset(got, 0x5A, sizeof got);
			k->project(&p);
			ck_assert_mem_eq(got, want + first * p.out_stride_elems,
					 (rows - 1) * (64 + PAD) * 2 + 64 * 2);
		}
}
END_TEST

START_TEST(infinities_and_nan_come_out_alike)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint64_t rng = test_seed();
	uint32_t i, pass;

	for (pass = 0; k && pass < 50; pass++) {
		fill_all(-15);
		for (i = 0; i < 6; i++) {
			x[rng_next(&rng) % (8 * 136)] =
				(uint16_t)(0x7f80 + i % 3 * 0x4001);
			w[0][rng_next(&rng) % (128 * 72)] =
				(uint16_t)(0xff80 - i % 2 * 0x8000);
		}
		run(k, problem(8, 128, 64));
		for (i = 0; i < 8 * 72; i++)
			if ((want[i] & 0x7fff) > 0x7f80)
				ck_assert_uint_gt(got[i] & 0x7fff, 0x7f80);
			else
				ck_assert_uint_eq(got[i], want[i]);
	}
}
END_TEST

/* Factors are 2^-80 to 2^-51, so a product may be a subnormal. The scalar code
 * rounds it, by 2^-150 at most: 128 of these errors are 2^-143. The sums of 16
 * and their tree are exact, or have results above 2^-126: at most 128 * 2^-100,
 * where 12 roundings are below 2^-113. A step of bf16 comes on top. */
START_TEST(products_below_the_range_are_near)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint32_t i;

	fill_all(-80);
	if (!k)
		return;
	run(k, problem(ROWS, 128, 64));
	for (i = 0; i < sizeof got / sizeof *got; i++) {
		const double a = spmla_i_bf16_to_f32(got[i]);
		const double b = spmla_i_bf16_to_f32(want[i]);

		ck_assert(fabs(a - b) <= 0x1p-112 + 0x1p-7 * fabs(b));
	}
}
END_TEST

SUITE
{
	const theme_test exact[] = {
		{any_rows_and_sizes_give_the_bits_of_the_scalar_one, 2},
		{infinities_and_nan_come_out_alike, 2},
		{products_below_the_range_are_near, 2},
	};
	const theme_test determinism[] = {
		{row_has_the_same_bits_among_any_others, 2},
	};
	const theme themes[] = {
		THEME("exact", NULL, NULL, exact),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
