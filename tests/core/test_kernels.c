/* SPDX-License-Identifier: Apache-2.0
 *
 * The variants of the CPU's inner loops against the scalar one, called as the
 * operations call them. The suites of the operations, which run once for each
 * variant, show what variants do to whole operations.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "tests/core/kernels_rig.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { HEADS = 40, DIM = SPMLA_MLA_DIM, KEYS = 64 };

static float scratch[2][1 << 18];
static uint8_t codes[KEYS * 128];
static float scales[KEYS];

START_TEST(flags_cap_the_choice)
{
	ck_assert_ptr_eq(spmla_i_cpu_choose(SPMLA_NATIVE_SCALAR),
			 &spmla_i_cpu_scalar);
	ck_assert_ptr_eq(
		spmla_i_cpu_choose(SPMLA_NATIVE_SCALAR | SPMLA_NATIVE_AVX2),
		&spmla_i_cpu_scalar);
	ck_assert_str_ne(spmla_i_cpu_choose(SPMLA_NATIVE_AVX2)->name, "avx512");
}
END_TEST

START_TEST(every_code_is_dequantised_to_the_same_bits)
{
	static const float factors[12] = {1,        -1,         0,
					  0.0625f,  0x1.fcp-3f, 0x1.02p9f,
					  0x1p127f, 0x1p-133f,  0x1p-120f,
					  INFINITY, NAN,        0x1.54p-7f};
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	float got[256], want[256];
	uint8_t all[256];
	uint32_t i, f;

	for (i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	for (f = 0; k && f < 12; f++) {
		k->dequantise(all, 256, factors[f], got);
		spmla_i_cpu_scalar.dequantise(all, 256, factors[f], want);
		for (i = 0; i < 256; i++)
			kernels_same_float(got[i], want[i]);
	}
}
END_TEST

START_TEST(every_bf16_is_loaded_as_it_is)
{
	static uint16_t half[65537];
	static float got[65536];
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint8_t *odd = (uint8_t *)half + 1;
	uint32_t i;

	for (i = 0; i < 65536; i++) {
		const uint16_t h = (uint16_t)i;

		memcpy(odd + i * 2, &h, 2);
	}
	if (!k)
		return;
	k->load_bf16(odd, 65536, got);
	for (i = 0; i < 65536; i++)
		ck_assert_uint_eq(spmla_i_f32_bits(got[i]), i << 16);
}
END_TEST

/* Random bits: ties, NaN of any payload, infinities and subnormals with it. */
START_TEST(quotients_round_to_the_same_bf16)
{
	static const uint32_t special[8] = {
		0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x7f800000u,
		0x3f808000u, 0x3f818000u, 0x7f7fffffu, 0x00008000u};
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	uint64_t rng = test_seed();
	uint16_t got[512], want[512];
	float o[512];
	uint32_t pass, i;

	for (pass = 0; k && pass < 500; pass++) {
		const float total = pass % 3 ? spmla_i_f32_from_bits(
						       (uint32_t)rng_next(&rng))
					     : 1.0f;

		for (i = 0; i < 512; i++)
			o[i] = spmla_i_f32_from_bits(
				i < 8 ? special[i] : (uint32_t)rng_next(&rng));
		k->attend_divide(o, total, got);
		spmla_i_cpu_scalar.attend_divide(o, total, want);
		for (i = 0; i < 512; i++)
			if (isnan(o[i] / total))
				ck_assert_uint_gt(got[i] & 0x7fff, 0x7f80);
			else
				ck_assert_uint_eq(got[i], want[i]);
	}
}
END_TEST

static spmla_i_cpu_score
score_on(float *memory, const spmla_i_cpu_kernels *k, uint32_t heads)
{
	const uint32_t padded = spmla_i_cpu_padded_heads(heads);
	const spmla_i_cpu_score s = {k,
				     heads,
				     padded,
				     memory,
				     memory + padded * 128,
				     memory + padded * 129};

	return s;
}

/* Whatever is left of the last tile, and wherever in it a key lies. */
START_TEST(score_of_a_key_has_the_same_bits_in_any_run)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	float weights[HEADS], all[KEYS], some[KEYS];
	uint64_t rng = test_seed();
	spmla_i_cpu_score s;
	uint32_t i, n, first;

	for (i = 0; i < sizeof codes; i++)
		codes[i] = (uint8_t)rng_next(&rng) & 0xf7;
	for (i = 0; i < KEYS; i++)
		scales[i] = rng_float(&rng);
	for (i = 0; i < HEADS; i++)
		weights[i] = rng_float(&rng);
	if (!k)
		return;
	s = score_on(scratch[0], k, HEADS);
	k->score_open(&s, codes + 1000, weights);
	k->score_keys(&s, codes, (uint8_t *)scales, KEYS, all);
	for (first = 0; first < 20; first++)
		for (n = 1; n <= 20; n++) {
			memset(some, 0x5A, sizeof some);
			k->score_keys(&s, codes + first * 128,
				      (uint8_t *)&scales[first], n, some);
			ck_assert_mem_eq(some, all + first, n * 4);
			ck_assert_mem_eq(&some[n], "\x5A\x5A\x5A\x5A", 4);
		}
}
END_TEST

static spmla_i_cpu_attend
attend_on(float *memory, const spmla_i_cpu_kernels *k, uint32_t heads)
{
	spmla_i_cpu_attend w = {.kernels = k,
				.heads = heads,
				.dim = DIM,
				.scale = 0.072f,
				.c = 0.072f * SPMLA_I_LOG2_E};

	w.keys = memory;
	w.q = w.keys + KEYS * DIM;
	w.o = w.q + heads * DIM;
	w.p = w.o + heads * 512;
	w.max = w.p + heads * KEYS;
	w.sum = w.max + heads;
	w.rescale = w.sum + heads;
	return w;
}

/* Two blocks: keys of `seed`, queries of heads first, first + 1, ... */
static void
attend_twice(const spmla_i_cpu_attend *w, uint32_t first, uint32_t count)
{
	uint32_t h, i, pass;

	for (h = 0; h < w->heads; h++) {
		uint64_t rng = 77 + first + h;

		w->max[h] = -FLT_MAX;
		w->sum[h] = 0;
		for (i = 0; i < DIM; i++)
			w->q[h * DIM + i] = rng_float(&rng);
		memset(w->o + h * 512, 0, 512 * sizeof *w->o);
	}
	for (pass = 0; pass < 2; pass++) {
		uint64_t rng = test_seed() + pass;

		for (i = 0; i < count * DIM; i++)
			w->keys[i] = rng_float(&rng);
		for (; i < KEYS * DIM; i++)
			w->keys[i] = NAN;
		w->kernels->attend_block(w, count);
	}
}

START_TEST(head_has_the_same_bits_among_any_others)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	spmla_i_cpu_attend all, some;
	uint32_t first, heads, count;

	for (first = 0; k && first < 9; first++)
		for (heads = 1; heads < 8; heads++) {
			count = 1 + (first * 7 + heads * 5) % KEYS;
			all = attend_on(scratch[0], k, 16);
			attend_twice(&all, 0, count);
			some = attend_on(scratch[1], k, heads);
			attend_twice(&some, first, count);
			ck_assert_mem_eq(some.o, all.o + first * 512,
					 heads * 512 * 4);
			ck_assert_mem_eq(some.sum, all.sum + first, heads * 4);
			ck_assert_mem_eq(some.max, all.max + first, heads * 4);
		}
}
END_TEST

/* The scalar weights and the vector ones are bf16: where exp2 is a last place
 * off, one may round to the neighbour, 2^-8 of it. */
START_TEST(block_of_any_count_is_near_the_scalar_one)
{
	const spmla_i_cpu_kernels *k = kernels_variant(_i);
	spmla_i_cpu_attend got, want;
	uint32_t count, i;

	for (count = 1; k && count <= KEYS; count++) {
		got = attend_on(scratch[0], k, 3);
		attend_twice(&got, 0, count);
		want = attend_on(scratch[1], &spmla_i_cpu_scalar, 3);
		attend_twice(&want, 0, count);
		for (i = 0; i < 3; i++) {
			ck_assert_float_eq_tol(got.max[i], want.max[i], 1e-4f);
			ck_assert_float_eq_tol(got.sum[i] / want.sum[i], 1,
					       1e-5f);
		}
		for (i = 0; i < 3 * 512; i++)
			ck_assert_float_eq_tol(got.o[i], want.o[i],
					       0x1p-8f * want.sum[i / 512]);
	}
}
END_TEST

SUITE
{
	const theme_test choice[] = {
		{flags_cap_the_choice, 1},
	};
	const theme_test exact[] = {
		{every_code_is_dequantised_to_the_same_bits, 2},
		{every_bf16_is_loaded_as_it_is, 2},
		{quotients_round_to_the_same_bf16, 2},
	};
	const theme_test determinism[] = {
		{score_of_a_key_has_the_same_bits_in_any_run, 2},
		{head_has_the_same_bits_among_any_others, 2},
		{block_of_any_count_is_near_the_scalar_one, 2},
	};
	const theme themes[] = {
		THEME("choice", NULL, NULL, choice),
		THEME("exact", NULL, NULL, exact),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
