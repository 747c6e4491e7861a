/* SPDX-License-Identifier: Apache-2.0
 *
 * V3.2 caches whose e4m3 codes are FNUZ: every code as kv_gather reads it and
 * as kv_insert and indexer_k_insert write it, in values worked out from the
 * definition; then sparse_decode, to which the same values in the other
 * encoding are the same keys.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

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

/* Every value of a code has at most four bits: with these scales exact. */
START_TEST(every_code_is_gathered_as_its_value)
{
	static const float scales[] = {1, 0x1p-9f, 0.75f, 0x1p20f};
	static _Alignas(16) uint16_t dst[2 * DIM];
	static const int32_t slots[2] = {1, 5};
	spmla_kv_gather_args a = {.struct_bytes = sizeof a, .keys = 2};
	uint32_t s, n, i;

	a.dst = dst;
	a.dst_stride_elems = DIM;
	a.slots = slots;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (s = 0; s < sizeof scales / sizeof *scales; s++) {
		for (n = 0; n < 2; n++) {
			uint8_t *row = pool + slots[n] * ROW;

			put_scales(row, scales[s]);
			for (i = 0; i < LATENT; i++)
				row[i] = (uint8_t)(i + 7 * n);
		}
		ck_assert_int_eq(spmla_kv_gather(f.ctx, &a, NULL), SPMLA_OK);
		fixture_drain(&f);
		for (i = 0; i < 2 * DIM; i++) {
			const uint32_t code = (i % DIM + 7 * (i / DIM)) & 0xff;
			const double x = ref_fnuz_value((uint8_t)code) *
					 (double)scales[s];
			const uint16_t want = i % DIM >= LATENT ? 0
					      : code == 0x80
						      ? 0x7fc0
						      : test_bf16((float)x);

			ck_assert_msg(dst[i] == want,
				      "code 0x%02x: 0x%04x, want 0x%04x", code,
				      dst[i], want);
		}
	}
}
END_TEST

/* Groups with amax 224 have scale 1 in either mode: values are their codes'. */
START_TEST(every_code_but_those_of_240_is_written_for_its_value)
{
	static _Alignas(16) uint16_t kv[LATENT], pe[ROPE];
	static const int64_t slot = 4;
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = 1};
	const uint8_t *row = pool + 4 * ROW;
	uint32_t i;

	a.scale_mode = _i ? SPMLA_SCALE_RAW : SPMLA_SCALE_POW2;
	a.kv_c = kv;
	a.k_pe = pe;
	a.kv_c_stride_elems = LATENT;
	a.k_pe_stride_elems = ROPE;
	a.slot_mapping = &slot;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (i = 0; i < LATENT; i++) {
		uint32_t code = i % GROUP == 127 ? 0x7e : i & 0xff;

		if ((code & 0x7f) == 0x7f || code == 0x80)
			code = 0x11;
		kv[i] = test_bf16((float)ref_fnuz_value((uint8_t)code));
	}
	/* What has no code of its own. */
	kv[0] = 0x8000;            /* -0 */
	kv[1] = test_bf16(-1e-5f); /* rounds to it */
	kv[2] = 0x7fc0;
	kv[3] = 0xffc0;
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < GROUPS; i++)
		ck_assert_float_eq(scale_of(row, i), 1);
	for (i = 4; i < LATENT; i++)
		ck_assert(test_bf16((float)ref_fnuz_value(row[i])) == kv[i] &&
			  row[i] != 0x80);
	ck_assert_mem_eq(row, "\x00\x00\x80\x80", 4);
}
END_TEST

/* Two index keys with amax 224. _i: bit 0 the mode, bit 1 whether their page is
 * in tiles, where 16 values of a key lie together, 256 bytes apart. */
START_TEST(every_code_of_an_index_key_is_written_for_its_value)
{
	enum { KEYS = 16, KEY = 128 };
	static _Alignas(16) uint16_t k[2 * KEY];
	static const int64_t slots[2] = {0, 1};
	static const float one = 1;
	spmla_indexer_k_insert_args a = {.struct_bytes = sizeof a, .tokens = 2};
	const uint32_t tiled = (uint32_t)_i >> 1;
	uint32_t i;

	a.scale_mode = _i & 1 ? SPMLA_SCALE_RAW : SPMLA_SCALE_POW2;
	a.k = k;
	a.k_stride_elems = KEY;
	a.slot_mapping = slots;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	a.cache.layout =
		tiled ? SPMLA_LAYOUT_INDEX_FP8_TILED : SPMLA_LAYOUT_INDEX_FP8;
	a.cache.entries_per_page = KEYS;
	a.cache.pages = 1;
	a.cache.page_stride_bytes = KEYS * (KEY + sizeof one);
	for (i = 0; i < 2 * KEY; i++)
		k[i] = test_bf16((float)ref_fnuz_value(
			(uint8_t)((i & 0x7f) == 0x7f ? i - 1
				  : i == 0x80        ? 0
						     : i)));
	k[KEY + 1] = 0x7fc0;
	ck_assert_int_eq(spmla_indexer_k_insert(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < 2 * KEY; i++) {
		const uint32_t e = i / KEY, d = i % KEY;
		const uint8_t code =
			pool[tiled ? d / 16 * 256 + e * 16 + d % 16 : i];

		if (i == KEY + 1)
			ck_assert_uint_eq(code, 0x80);
		else
			ck_assert(code != 0x80 &&
				  test_bf16((float)ref_fnuz_value(code)) ==
					  k[i]);
	}
	for (i = 0; i < 2; i++)
		ck_assert_mem_eq(pool + KEYS * KEY + i * sizeof one, &one,
				 sizeof one);
}
END_TEST

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

/* A code of FNUZ is half of the same code's value in e4m3fn, so with twice the
 * scale it is the same key. */
START_TEST(a_decode_reads_either_encoding)
{
	enum { HEADS = 2, TOPK = 4 };
	static _Alignas(16) uint8_t twin[sizeof pool];
	static _Alignas(16) uint16_t q[HEADS * DIM], out[2][HEADS * LATENT];
	static const int32_t slots[TOPK] = {1, 5, 2, 3};
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
	a.heads = HEADS;
	a.topk = TOPK;
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
	for (i = 0; i < HEADS * LATENT; i++)
		ck_assert_float_eq_tol(test_bf16_value(out[0][i]),
				       test_bf16_value(out[1][i]), 0.02f);
	if (fixture_on_cpu())
		ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
}
END_TEST

/* q = 0 and one key: the output is the key. 240 and NaN have no twin. */
START_TEST(a_decode_reads_every_code_as_its_value)
{
	static _Alignas(16) uint16_t q[DIM], out[LATENT];
	static const int32_t slots[1] = {4};
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint8_t *row = pool + 4 * ROW;
	uint32_t i;

	put_scales(row, 2);
	for (i = 0; i < LATENT; i++)
		row[i] = (uint8_t)((i & 0xff) == 0x80 ? 0x7f : i);
	a.heads = a.topk = 1;
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = a.q_head_stride_elems = DIM;
	a.out_token_stride_elems = a.out_head_stride_elems = LATENT;
	a.slots = slots;
	a.slots_stride_elems = 1;
	a.out = out;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < LATENT; i++)
		ck_assert_uint_eq(
			out[i], test_bf16((float)(2 * ref_fnuz_value(row[i]))));
	row[9] = 0x80;
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_float_nan(test_bf16_value(out[9]));
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{every_code_is_gathered_as_its_value, 1},
		{every_code_but_those_of_240_is_written_for_its_value, 2},
		{every_code_of_an_index_key_is_written_for_its_value, 4},
		{scales_worked_out_by_hand, 1},
		{a_scale_may_be_next_to_the_subnormals, 1},
		{a_decode_reads_either_encoding, 1},
		{a_decode_reads_every_code_as_its_value, 1},
	};
	const theme themes[] = {
		THEME("fnuz", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
