/* SPDX-License-Identifier: Apache-2.0
 *
 * V4 caches whose e4m3 codes are FNUZ: every code as kv_gather and
 * sparse_decode read it, and as kv_insert and qnorm_rope_kv_insert write it, in
 * values worked out from the definition. To sparse_decode the same values in
 * the other encoding are the same keys.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

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

/* Every value of a code has at most four bits: exact in bf16. */
START_TEST(every_code_is_gathered_as_its_value)
{
	static const uint8_t bytes[] = {ONE, ONE - 9, ONE + 20};
	static _Alignas(16) uint16_t dst[2 * DIM];
	static const int32_t slots[2] = {1, 6};
	spmla_kv_gather_args a = {.struct_bytes = sizeof a, .keys = 2};
	uint32_t b, n, i;

	a.dst = dst;
	a.dst_stride_elems = DIM;
	a.slots = slots;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	for (b = 0; b < sizeof bytes; b++) {
		for (n = 0; n < 2; n++) {
			memset(scales_of(pool, (uint32_t)slots[n]), bytes[b],
			       7);
			/* 896 places for 256 codes. */
			for (i = 0; i < NOPE; i++)
				codes_of(pool, (uint32_t)slots[n])[i] =
					(uint8_t)(n * NOPE + i);
		}
		ck_assert_int_eq(spmla_kv_gather(f.ctx, &a, NULL), SPMLA_OK);
		fixture_drain(&f);
		for (i = 0; i < 2 * DIM; i++) {
			const uint32_t code = (i / DIM * NOPE + i % DIM) & 0xff;
			const uint16_t want =
				i % DIM >= NOPE ? 0
				: code == 0x80
					? 0x7fc0
					: test_bf16((float)ldexp(
						  ref_fnuz_value((uint8_t)code),
						  bytes[b] - ONE));

			ck_assert_msg(dst[i] == want,
				      "code 0x%02x: 0x%04x, want 0x%04x", code,
				      dst[i], want);
		}
	}
}
END_TEST

static _Alignas(16) uint16_t kv[4][DIM];
static const int64_t kv_slots[4] = {0, 3, 5, 7};

static void
insert_alone(void)
{
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = 4};

	a.kv_c = &kv[0][0];
	a.kv_c_stride_elems = DIM;
	a.slot_mapping = kv_slots;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
}

/* By a rotation of 0. */
static void
insert_with_queries(void)
{
	static _Alignas(16) uint16_t q[4][DIM], q_out[4][DIM];
	static const int32_t positions[4];
	static float cos_sin[ROPE];
	spmla_qnorm_rope_kv_insert_args a = {.struct_bytes = sizeof a};
	uint32_t i;

	for (i = 0; i < ROPE / 2; i++)
		cos_sin[i] = 1;
	a.tokens = a.kv_tokens = 4;
	a.heads = a.padded_heads = a.cos_sin_rows = 1;
	a.norm_eps = 1e-6f;
	a.q = &q[0][0];
	a.q_out = &q_out[0][0];
	a.q_token_stride_elems = a.q_head_stride_elems = DIM;
	a.q_out_token_stride_elems = a.q_out_head_stride_elems = DIM;
	a.kv = &kv[0][0];
	a.kv_stride_elems = DIM;
	a.slot_mapping = kv_slots;
	a.positions = positions;
	a.cos_sin = cos_sin;
	a.cache = cache_of(pool, SPMLA_E4M3_FNUZ);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
}

/* Groups with amax 224: the scale is 1, and the values are their codes'. _i:
 * the writer. */
START_TEST(every_code_but_those_of_240_is_written_for_its_value)
{
	uint32_t t, i;

	for (t = 0; t < 4; t++)
		for (i = 0; i < NOPE; i++) {
			uint32_t code = (t * 7 + i / 64) * 63 + i % 64;

			code = i % 64 == 63 ? 0x7e : code & 0xff;
			if ((code & 0x7f) == 0x7f || code == 0x80)
				code = 0x11;
			kv[t][i] =
				test_bf16((float)ref_fnuz_value((uint8_t)code));
		}
	/* What has no code of its own. */
	kv[0][0] = 0x8000;            /* -0 */
	kv[0][1] = test_bf16(-1e-5f); /* rounds to it */
	kv[0][2] = 0x7fc0;
	kv[0][3] = 0xffc0;
	(_i ? insert_with_queries : insert_alone)();
	fixture_drain(&f);
	for (t = 0; t < 4; t++) {
		const uint32_t slot = (uint32_t)kv_slots[t];
		const uint8_t *codes = codes_of(pool, slot);

		for (i = 0; i < 7; i++)
			ck_assert_uint_eq(scales_of(pool, slot)[i], ONE);
		for (i = t == 0 ? 4 : 0; i < NOPE; i++)
			ck_assert(test_bf16((float)ref_fnuz_value(
					  (uint8_t)(codes[i]))) == kv[t][i] &&
				  codes[i] != 0x80);
	}
	ck_assert_uint_eq(codes_of(pool, 0)[0], 0x00);
	ck_assert_uint_eq(codes_of(pool, 0)[1], 0x00);
	ck_assert_uint_eq(codes_of(pool, 0)[2], 0x80);
	ck_assert_uint_eq(codes_of(pool, 0)[3], 0x80);
}
END_TEST

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
 * byte that is one more it is the same key; each cache has its own encoding. */
START_TEST(a_decode_reads_each_cache_in_its_own_encoding)
{
	enum { HEADS = 2, TOPK = 3 };
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
	a.heads = HEADS;
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
	for (i = 0; i < HEADS * DIM; i++)
		ck_assert_float_eq_tol(test_bf16_value(out[0][i]),
				       test_bf16_value(out[2][i]), 0.02f);
	if (fixture_on_cpu())
		ck_assert_mem_eq(out[0], out[2], sizeof out[0]);
}
END_TEST

/* q = 0 and one key: the output is the key. _i: the cache that has it. */
START_TEST(a_decode_reads_every_code_as_its_value)
{
	static _Alignas(16) uint16_t q[DIM], out[DIM];
	static const int32_t none[1] = {-1}, slots[1] = {5};
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a, .tokens = 1};
	uint8_t *codes = codes_of(pool, 5);
	uint32_t i;

	memset(scales_of(pool, 5), ONE + 1, 7);
	for (i = 0; i < NOPE; i++)
		codes[i] = (uint8_t)((i & 0xff) == 0x80 ? 0x7f : i);
	a.heads = a.topk = a.extra_topk = 1;
	a.softmax_scale = 0.05f;
	a.q = q;
	a.q_token_stride_elems = a.q_head_stride_elems = DIM;
	a.out_token_stride_elems = a.out_head_stride_elems = DIM;
	a.slots = _i ? none : slots;
	a.extra_slots = _i ? slots : none;
	a.slots_stride_elems = a.extra_slots_stride_elems = 1;
	a.out = out;
	a.cache = cache_of(pool, _i ? SPMLA_E4M3_FN : SPMLA_E4M3_FNUZ);
	a.extra_cache = cache_of(pool, _i ? SPMLA_E4M3_FNUZ : SPMLA_E4M3_FN);
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < NOPE; i++)
		ck_assert_msg(
			out[i] == test_bf16((float)(2 *
						    ref_fnuz_value(codes[i]))),
			"code 0x%02x: 0x%04x", codes[i], out[i]);
	codes[9] = 0x80;
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
		{scale_bytes_worked_out_by_hand, 1},
		{a_decode_reads_each_cache_in_its_own_encoding, 1},
		{a_decode_reads_every_code_as_its_value, 2},
	};
	const theme themes[] = {
		THEME("fnuz", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
