/* SPDX-License-Identifier: Apache-2.0
 *
 * V3.2 caches whose e4m3 codes are FNUZ: scales worked out by hand; and
 * sparse_decode, which reads every code of either encoding as its value, and to
 * which the same values in the other encoding are the same keys. Codes that are
 * written and gathered are in test_cache_codes.c.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"
#include "tests/reference/narrow_ref.h"

enum { LATENT = 512, ROPE = 64, DIM = 576, ROW = 656, ENTRIES = 3, PAGES = 2 };
enum { GROUPS = 4, GROUP = 128 };

static fixture f;
static _Alignas(16) uint8_t pool[PAGES * ENTRIES * ROW];

static void
setup(void)
{
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
	memset(pool, 0, sizeof pool);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

static spmla_cache
cache_of(void *base, uint32_t encoding)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	c.encoding = encoding;
	c.entries_per_page = ENTRIES;
	c.pages = PAGES;
	c.page_stride_bytes = ENTRIES * ROW;
	c.base = base;
	return c;
}

static void
put_scales(uint8_t *row, float scale)
{
	uint32_t g;

	for (g = 0; g < GROUPS; g++)
		memcpy(row + LATENT + g * sizeof scale, &scale, sizeof scale);
}

static float
scale_of(const uint8_t *row, uint32_t g)
{
	float scale;

	memcpy(&scale, row + LATENT + g * sizeof scale, sizeof scale);
	return scale;
}

/* POW2: pow2up(max(amax / 224, 1e-4)), 2^-13 at least; RAW: amax / 224, 2^-126
 * at least. Infinity's scale is infinite, its own code NaN. */
START_TEST(scales_worked_out_by_hand)
{
	static const struct {
		float amax, pow2, raw;
	} v[] = {{0.0f, 0x1p-13f, 0x1p-126f},  {7.0f, 0x1p-5f, 0x1p-5f},
		 {-1.0f, 0x1p-7f, 1.0f / 224}, {224.0f, 1.0f, 1.0f},
		 {225.0f, 2.0f, 225.0f / 224}, {INFINITY, INFINITY, INFINITY}};
	static _Alignas(16) uint16_t kv[LATENT], pe[ROPE];
	static const int64_t slot = 2;
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = 1};
	const uint8_t *row = pool + 2 * ROW;
	uint32_t i, raw;

	a.kv_c = kv;
	a.k_pe = pe;
	a.kv_c_stride_elems = LATENT;
	a.k_pe_stride_elems = ROPE;
	a.slot_mapping = &slot;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (raw = 0; raw < 2; raw++)
		for (i = 0; i < sizeof v / sizeof *v; i++) {
			a.scale_mode = raw ? SPMLA_SCALE_RAW : SPMLA_SCALE_POW2;
			kv[GROUP + 1] = test_bf16(v[i].amax);
			ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL),
					 SPMLA_OK);
			fixture_drain(&f);
			ck_assert_float_eq(scale_of(row, 1),
					   raw ? v[i].raw : v[i].pow2);
			ck_assert_float_eq(scale_of(row, 0),
					   raw ? 0x1p-126f : 0x1p-13f);
			if (isinf(v[i].amax))
				ck_assert_uint_eq(row[GROUP + 1], 0x80);
		}
}
END_TEST

/* Scales whose halves are subnormal: the codes of a true division. The scale is
 * amax / 224, so amax 0x0464 and 0x00ab, in bits of bf16, give 34.08 = 0x42 in
 * e4m3fn's codes of twice that. */
START_TEST(a_scale_may_be_next_to_the_subnormals)
{
	static _Alignas(16) uint16_t kv[LATENT], pe[ROPE];
	static const int64_t slot = 2;
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = 1};
	const uint8_t *row = pool + 2 * ROW;
	uint32_t i;

	a.scale_mode = SPMLA_SCALE_RAW;
	a.kv_c = kv;
	a.k_pe = pe;
	a.kv_c_stride_elems = LATENT;
	a.k_pe_stride_elems = ROPE;
	a.slot_mapping = &slot;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (i = 0; i < GROUPS; i++) {
		kv[i * GROUP + 5] = 0x0464;
		kv[i * GROUP + 6] = 0x00ab;
	}
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < GROUPS; i++)
		ck_assert_uint_eq(row[i * GROUP + 6], 0x42);
}
END_TEST

/* Three blocks of entries in two splits, which the call adds up. */
static void
cut(spmla_sparse_decode_args *a)
{
	enum { SPLITS = 2, HEADS = 40 };
	static const int32_t parts[SPLITS][8] = {{0, 0, 0, 1, 0},
						 {0, 0, 1, 3, 1}};
	static const int32_t num_splits[2] = {0, SPLITS};
	static _Alignas(16) float split_out[SPLITS * HEADS * LATENT];
	static float split_lse[SPLITS * HEADS];

	a->parts = a->split_rows = SPLITS;
	a->tile_scheduler_metadata = parts[0];
	a->num_splits = num_splits;
	a->split_out = split_out;
	a->split_lse = split_lse;
	a->combine = 1;
}

/* A code of FNUZ is half of the same code's value in e4m3fn, so with twice the
 * scale it is the same key. _i & 1: more heads; _i & 2: in parts. */
START_TEST(a_decode_reads_either_encoding)
{
	enum { HEADS = 40, TOPK = 130 };
	static _Alignas(16) uint8_t twin[sizeof pool];
	static _Alignas(16) uint16_t q[HEADS * DIM], out[2][HEADS * LATENT];
	static int32_t slots[TOPK];
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint64_t seed = 5;
	uint32_t n, i;

	for (i = 0; i < HEADS * DIM; i++)
		q[i] = test_bf16(rng_float(&seed));
	for (n = 0; n < PAGES * ENTRIES; n++) {
		for (i = 0; i < LATENT; i++) {
			const uint8_t code = (uint8_t)(rng_next(&seed) & 0xbf);

			twin[n * ROW + i] = pool[n * ROW + i] =
				code == 0x80 ? 0 : code;
		}
		put_scales(twin + n * ROW, 0.375f);
		put_scales(pool + n * ROW, 0.75f);
	}
	for (i = 0; i < TOPK; i++)
		slots[i] = (int32_t)(i % (PAGES * ENTRIES));
	a.heads = _i & 1 ? HEADS : 2;
	a.topk = _i & 2 ? TOPK : 4;
	if (_i & 2)
		cut(&a);
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = HEADS * DIM;
	a.q_head_stride_elems = DIM;
	a.out_token_stride_elems = HEADS * LATENT;
	a.out_head_stride_elems = LATENT;
	a.slots = slots;
	a.slots_stride_elems = TOPK;
	for (i = 0; i < 2; i++) {
		a.cache = i ? cache_of(twin, SPMLA_E4M3_FN)
			    : cache_of(pool, SPMLA_E4M3_FNUZ);
		a.out = out[i];
		ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL),
				 SPMLA_OK);
		fixture_drain(&f);
	}
	/* Matrix instructions, which only e4m3fn has, add in another order. */
	for (i = 0; i < a.heads * LATENT; i++)
		ck_assert_float_eq_tol(test_bf16_value(out[0][i]),
				       test_bf16_value(out[1][i]), 0.02f);
	if (fixture_on_cpu())
		ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
}
END_TEST

/* q = 0 and one key: the output is the key. Products by 0x1.06p-7 are rounded
 * both ways, and at ties, of which those who keep more of a key's bits than bf16
 * has may take the other end. _i: the encoding. */
START_TEST(a_decode_reads_every_code_as_its_value)
{
	static const float scales[] = {2, 0x1.06p-7f, -0x1.8p-100f, 0x1.4p9f};
	static _Alignas(16) uint16_t q[DIM], out[LATENT];
	static const int32_t slots[1] = {4};
	static const uint8_t nan[2][2] = {{0x7f, 0xff}, {0x80, 0x80}};
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint8_t *row = pool + 4 * ROW;
	uint32_t i, n;

	for (i = 0; i < LATENT; i++)
		row[i] = isnan(code_value((uint8_t)i, (uint32_t)_i))
				 ? 0x11
				 : (uint8_t)i;
	a.heads = a.topk = 1;
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = a.q_head_stride_elems = DIM;
	a.out_token_stride_elems = a.out_head_stride_elems = LATENT;
	a.slots = slots;
	a.slots_stride_elems = 1;
	a.out = out;
	a.cache = cache_of(pool, (uint32_t)_i);
	for (n = 0; n < sizeof scales / sizeof *scales; n++) {
		const float scale = scales[n];

		put_scales(row, scales[n]);
		ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL),
				 SPMLA_OK);
		fixture_drain(&f);
		/* A zero of either sign is 0. */
		for (i = 0; i < LATENT; i++) {
			const float key =
				scale * (float)code_value(row[i], (uint32_t)_i);
			const float near = test_bf16_value(test_bf16(key));
			const float got = test_bf16_value(out[i]);

			ck_assert(got == near ||
				  (!fixture_tiles(&f) &&
				   fabsf(got - key) == fabsf(near - key)));
		}
	}
	put_scales(row, 2);
	memcpy(row + 9, nan[_i], 2);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_float_nan(test_bf16_value(out[9]));
	ck_assert_float_nan(test_bf16_value(out[10]));
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{scales_worked_out_by_hand, 1},
		{a_scale_may_be_next_to_the_subnormals, 1},
		{a_decode_reads_either_encoding, 4},
		{a_decode_reads_every_code_as_its_value, 2},
	};
	const theme themes[] = {
		THEME("fnuz", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
