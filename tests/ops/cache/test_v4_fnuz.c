/* SPDX-License-Identifier: Apache-2.0
 *
 * V4 caches whose e4m3 codes are FNUZ: scales worked out by hand; and
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

enum { NOPE = 448, ROPE = 64, DIM = 512, ENTRIES = 4, PAGES = 2 };
enum { PAGE = 4 * 576 + 4 * 8, ONE = 127 }; /* ONE: a scale byte of 2^0 */

static fixture f;
static _Alignas(16) uint8_t pool[PAGES * PAGE];

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

	c.layout = SPMLA_LAYOUT_V4_FP8;
	c.encoding = encoding;
	c.entries_per_page = ENTRIES;
	c.pages = PAGES;
	c.page_stride_bytes = PAGE;
	c.base = base;
	return c;
}

static uint8_t *
codes_of(uint8_t *base, uint32_t slot)
{
	return base + slot / ENTRIES * PAGE + slot % ENTRIES * 576;
}

static uint8_t *
scales_of(uint8_t *base, uint32_t slot)
{
	return base + slot / ENTRIES * PAGE + ENTRIES * 576 +
	       slot % ENTRIES * 8;
}

/* pow2up(max(amax, 1e-4) / 224): 224 = 7 * 2^5, and 1e-4 / 224 = 4.46e-7 is
 * between 2^-22 and 2^-21. */
START_TEST(scale_bytes_worked_out_by_hand)
{
	static const struct {
		float amax;
		uint32_t byte;
	} v[] = {{0.0f, 106},   {7.0f, 122},   {-1.0f, 120},
		 {224.0f, 127}, {225.0f, 128}, {0x1p127f, 247}};
	static _Alignas(16) uint16_t row[DIM];
	static const int64_t slot = 2;
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint32_t i;

	a.kv_c = row;
	a.kv_c_stride_elems = DIM;
	a.slot_mapping = &slot;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (i = 0; i < sizeof v / sizeof *v; i++) {
		row[65] = test_bf16(v[i].amax);
		ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
		fixture_drain(&f);
		ck_assert_uint_eq(scales_of(pool, 2)[1], v[i].byte);
		ck_assert_uint_eq(scales_of(pool, 2)[0], 106);
	}
}
END_TEST

/* A code of FNUZ is half of the same code's value in e4m3fn, so with a scale
 * byte that is one more it is the same key; each cache has its own encoding. _i: more
 * heads. */
START_TEST(a_decode_reads_each_cache_in_its_own_encoding)
{
	enum { HEADS = 40, TOPK = 3 };
	static _Alignas(16) uint8_t twin[PAGES * PAGE];
	static _Alignas(16) uint16_t q[HEADS * DIM], out[3][HEADS * DIM];
	static const int32_t slots[TOPK] = {1, 6, 2}, extra[TOPK] = {0, 5, 7};
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint64_t seed = 5;
	uint32_t n, i;

	for (i = 0; i < HEADS * DIM; i++)
		q[i] = test_bf16(rng_float(&seed));
	for (n = 0; n < PAGES * ENTRIES; n++) {
		for (i = 0; i < NOPE; i++) {
			const uint8_t code = (uint8_t)(rng_next(&seed) & 0xbf);

			codes_of(twin, n)[i] = codes_of(pool, n)[i] =
				code == 0x80 ? 0 : code;
		}
		memset(scales_of(twin, n), ONE - 2, 7);
		memset(scales_of(pool, n), ONE - 1, 7);
	}
	a.heads = _i ? HEADS : 2;
	a.topk = a.extra_topk = TOPK;
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = a.out_token_stride_elems = HEADS * DIM;
	a.q_head_stride_elems = a.out_head_stride_elems = DIM;
	a.slots = slots;
	a.extra_slots = extra;
	a.slots_stride_elems = a.extra_slots_stride_elems = TOPK;
	for (i = 0; i < 3; i++) {
		/* Both FNUZ; one of each; both e4m3fn. */
		a.cache = i < 2 ? cache_of(pool, SPMLA_E4M3_FNUZ)
				: cache_of(twin, SPMLA_E4M3_FN);
		a.extra_cache = i < 1 ? cache_of(pool, SPMLA_E4M3_FNUZ)
				      : cache_of(twin, SPMLA_E4M3_FN);
		a.out = out[i];
		ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL),
				 SPMLA_OK);
		fixture_drain(&f);
	}
	ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
	/* Matrix instructions, which only e4m3fn has, add in another order. */
	for (i = 0; i < a.heads * DIM; i++)
		ck_assert_float_eq_tol(test_bf16_value(out[0][i]),
				       test_bf16_value(out[2][i]), 0.02f);
	if (fixture_on_cpu())
		ck_assert_mem_eq(out[0], out[2], sizeof out[0]);
}
END_TEST

/* q = 0 and one key: the output is the key. _i / 2: the cache that has it; _i %
 * 2: its encoding. The other cache has the other one. */
START_TEST(a_decode_reads_every_code_as_its_value)
{
	static _Alignas(16) uint16_t q[DIM], out[DIM];
	static const int32_t none[1] = {-1}, slots[1] = {5};
	static const uint8_t nan[2][2] = {{0x7f, 0xff}, {0x80, 0x80}};
	const uint32_t encoding = (uint32_t)_i % 2, extra = (uint32_t)_i / 2;
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint8_t *codes = codes_of(pool, 5);
	uint32_t i;

	memset(scales_of(pool, 5), ONE + 1, 7);
	for (i = 0; i < NOPE; i++)
		codes[i] = isnan(code_value((uint8_t)i, encoding)) ? 0x11
								   : (uint8_t)i;
	a.heads = a.topk = a.extra_topk = 1;
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = a.q_head_stride_elems = DIM;
	a.out_token_stride_elems = a.out_head_stride_elems = DIM;
	a.slots = extra ? none : slots;
	a.extra_slots = extra ? slots : none;
	a.slots_stride_elems = a.extra_slots_stride_elems = 1;
	a.out = out;
	a.cache = cache_of(pool, extra ? !encoding : encoding);
	a.extra_cache = cache_of(pool, extra ? encoding : !encoding);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	/* A zero of either sign is 0. */
	for (i = 0; i < NOPE; i++)
		ck_assert_msg(test_bf16_value(out[i]) ==
				      2 * (float)code_value(codes[i], encoding),
			      "code 0x%02x: 0x%04x", codes[i], out[i]);
	memcpy(codes + 9, nan[encoding], 2);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_float_nan(test_bf16_value(out[9]));
	ck_assert_float_nan(test_bf16_value(out[10]));
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{scale_bytes_worked_out_by_hand, 1},
		{a_decode_reads_each_cache_in_its_own_encoding, 2},
		{a_decode_reads_every_code_as_its_value, 4},
	};
	const theme themes[] = {
		THEME("fnuz", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
