/* SPDX-License-Identifier: Apache-2.0
 *
 * Every code of e4m3 in either encoding: each writer of a cache gives every
 * bf16 number its code, and each gather reads all 256 as their values.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/code_walk.h"
#include "tests/reference/narrow_ref.h"

enum { TOKENS = 16, WIDEST = 512, ROPE = 64 };
enum { ROW = 656 }; /* no entry has more bytes */

static fixture f;
static _Alignas(16) uint8_t pool[TOKENS * ROW];
static _Alignas(16) uint16_t rows[TOKENS][WIDEST], rope[TOKENS][ROPE];
static const int64_t slots[TOKENS] = {0, 1, 2,  3,  4,  5,  6,  7,
				      8, 9, 10, 11, 12, 13, 14, 15};

static void
setup(void)
{
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
	memset(rows, 0, sizeof rows);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

/* One page. */
static spmla_cache
cache_of(uint32_t layout, uint32_t encoding)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.encoding = encoding;
	c.entries_per_page = TOKENS;
	c.pages = 1;
	c.page_stride_bytes =
		TOKENS * (uint64_t)(layout == SPMLA_LAYOUT_FP8_DS_MLA ? ROW
				    : layout == SPMLA_LAYOUT_V4_FP8   ? 584
				    : layout == SPMLA_LAYOUT_V4_E4M3  ? 512
								      : 132);
	c.base = pool;
	return c;
}

/* Where value d of entry e lies. */
static uint8_t *
code_at(uint32_t layout, uint32_t e, uint32_t d)
{
	switch (layout) {
	case SPMLA_LAYOUT_FP8_DS_MLA:
		return pool + e * ROW + d;
	case SPMLA_LAYOUT_V4_FP8:
		return pool + e * 576 + d;
	case SPMLA_LAYOUT_V4_E4M3:
		return pool + e * 512 + d;
	case SPMLA_LAYOUT_INDEX_FP8:
		return pool + e * 128 + d;
	default: /* in a tile of 16 keys, runs of 16 values */
		return pool + d / 16 * 256 + e * 16 + d % 16;
	}
}

/* ---- Writers ------------------------------------------------------------- */

static void
by_kv_insert(const spmla_cache *cache, uint32_t mode)
{
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = TOKENS};

	a.scale_mode = mode;
	a.kv_scale = 1;
	a.kv_c = rows;
	a.k_pe = rope;
	a.kv_c_stride_elems = WIDEST;
	a.k_pe_stride_elems = ROPE;
	a.slot_mapping = slots;
	a.cache = *cache;
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
}

static spmla_indexer_k_insert_args
index_args(const spmla_cache *cache, uint32_t mode)
{
	spmla_indexer_k_insert_args a = {.struct_bytes = sizeof a};

	a.tokens = TOKENS;
	a.scale_mode = mode;
	a.k = rows;
	a.k_stride_elems = WIDEST;
	a.slot_mapping = slots;
	a.cache = *cache;
	return a;
}

static void
by_indexer_k_insert(const spmla_cache *cache, uint32_t mode)
{
	const spmla_indexer_k_insert_args a = index_args(cache, mode);

	ck_assert_int_eq(spmla_indexer_k_insert(f.ctx, &a, NULL), SPMLA_OK);
}

/* Beside rows of kv_insert, which go elsewhere. */
static void
by_kv_insert_index(const spmla_cache *cache, uint32_t mode)
{
	static _Alignas(16) uint8_t other[TOKENS * ROW];
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = TOKENS};

	a.scale_mode = SPMLA_SCALE_POW2;
	a.kv_c = rows;
	a.k_pe = rope;
	a.kv_c_stride_elems = WIDEST;
	a.k_pe_stride_elems = ROPE;
	a.slot_mapping = slots;
	a.cache = cache_of(SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_E4M3_FN);
	a.cache.base = other;
	a.index = index_args(cache, mode);
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
}

/* By a rotation of 0. */
static void
by_qnorm(const spmla_cache *cache, uint32_t mode)
{
	static _Alignas(16) uint16_t q[TOKENS][WIDEST], q_out[TOKENS][WIDEST];
	static const int32_t positions[TOKENS];
	static float cos_sin[ROPE];
	spmla_qnorm_rope_kv_insert_args a = {.struct_bytes = sizeof a};
	uint32_t i;

	(void)mode;
	for (i = 0; i < ROPE / 2; i++)
		cos_sin[i] = 1;
	a.tokens = a.kv_tokens = TOKENS;
	a.heads = a.padded_heads = a.cos_sin_rows = 1;
	a.norm_eps = 1e-6f;
	a.kv_scale = 1;
	a.q = &q[0][0];
	a.q_out = &q_out[0][0];
	a.q_token_stride_elems = a.q_head_stride_elems = WIDEST;
	a.q_out_token_stride_elems = a.q_out_head_stride_elems = WIDEST;
	a.kv = &rows[0][0];
	a.kv_stride_elems = WIDEST;
	a.slot_mapping = slots;
	a.positions = positions;
	a.cos_sin = cos_sin;
	a.cache = *cache;
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
}

static const struct {
	void (*write)(const spmla_cache *cache, uint32_t mode);
	uint32_t layout;
	uint32_t mode;
	uint32_t values; /* of a row; those that are rotated would lose -0 */
	uint32_t group;
} writers[] = {
	{by_kv_insert, SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_SCALE_POW2, 512, 128},
	{by_kv_insert, SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_SCALE_RAW, 512, 128},
	{by_kv_insert, SPMLA_LAYOUT_V4_FP8, 0, 448, 64},
	{by_kv_insert, SPMLA_LAYOUT_V4_E4M3, 0, 512, 0},
	{by_kv_insert_index, SPMLA_LAYOUT_INDEX_FP8, SPMLA_SCALE_POW2, 128,
	 128},
	{by_kv_insert_index, SPMLA_LAYOUT_INDEX_FP8, SPMLA_SCALE_RAW, 128, 128},
	{by_kv_insert_index, SPMLA_LAYOUT_INDEX_FP8_TILED, SPMLA_SCALE_POW2,
	 128, 128},
	{by_indexer_k_insert, SPMLA_LAYOUT_INDEX_FP8, SPMLA_SCALE_POW2, 128,
	 128},
	{by_indexer_k_insert, SPMLA_LAYOUT_INDEX_FP8, SPMLA_SCALE_RAW, 128,
	 128},
	{by_indexer_k_insert, SPMLA_LAYOUT_INDEX_FP8_TILED, SPMLA_SCALE_POW2,
	 128, 128},
	{by_qnorm, SPMLA_LAYOUT_V4_FP8, 0, 448, 64},
	{by_qnorm, SPMLA_LAYOUT_V4_E4M3, 0, 448, 0},
};
enum { WRITERS = sizeof writers / sizeof *writers };

/* Walks once. The first row begins with `shift` zeros: kernels take several
 * values at a time, and a number should come up in each of their places. */
static void
walk(int writer, const spmla_cache *cache, uint32_t shift)
{
	const uint32_t n = writers[writer].values;
	uint32_t first = shift, t, i;
	code_walk w;

	memset(rows, 0, sizeof rows);
	code_walk_begin(&w, cache->encoding, writers[writer].group);
	while (code_walk_more(&w)) {
		for (t = 0; t < TOKENS; t++, first = 0)
			code_walk_row(&w, rows[t] + first, n - first);
		memset(pool, 0xab, sizeof pool);
		writers[writer].write(cache, writers[writer].mode);
		fixture_drain(&f);
		for (t = 0; t < TOKENS; t++)
			for (i = 0; i < n; i++)
				code_walk_check(&w, rows[t][i],
						*code_at(cache->layout, t, i));
	}
	code_walk_end(&w);
}

/* _i / 2: the writer; _i % 2: the encoding. */
START_TEST(every_bf16_is_written_as_its_code)
{
	const spmla_cache cache =
		cache_of(writers[_i / 2].layout, (uint32_t)_i % 2);
	uint32_t shift;

	/* Groups begin where rows do. */
	for (shift = 0; shift < (writers[_i / 2].group ? 1 : 4); shift++)
		walk(_i / 2, &cache, shift);
}
END_TEST

/* ---- Gathers ------------------------------------------------------------- */

/* The scale of all values. */
static void
put_scales(uint32_t layout, float scale)
{
	uint32_t t, g;

	for (t = 0; t < TOKENS; t++)
		if (layout == SPMLA_LAYOUT_FP8_DS_MLA)
			for (g = 0; g < 4; g++)
				memcpy(pool + t * ROW + 512 + 4 * g, &scale, 4);
		else if (layout == SPMLA_LAYOUT_V4_FP8)
			memset(pool + TOKENS * 576 + 8 * t, 127 + ilogbf(scale),
			       7);
}

/* Every value of a code has at most four bits: exact in bf16. _i / 2: the
 * layout; _i % 2: the encoding. */
START_TEST(every_code_is_gathered_as_its_value)
{
	static const struct {
		uint32_t layout, codes, dim;
	} kinds[] = {{SPMLA_LAYOUT_FP8_DS_MLA, 512, 576},
		     {SPMLA_LAYOUT_V4_FP8, 448, 512},
		     {SPMLA_LAYOUT_V4_E4M3, 512, 512}};
	static const float scales[] = {1, 0x1p-9f, 0x1p20f, 0.75f};
	static _Alignas(16) uint16_t dst[TOKENS * 576];
	static int32_t from[TOKENS];
	const uint32_t layout = kinds[_i / 2].layout, dim = kinds[_i / 2].dim;
	spmla_kv_gather_args a = {.struct_bytes = sizeof a, .keys = TOKENS};
	uint32_t s, t, i;

	a.dst = dst;
	a.dst_stride_elems = dim;
	a.slots = from;
	a.cache = cache_of(layout, (uint32_t)_i % 2);
	/* Scales of V4_FP8 are powers of two. */
	for (s = 0; s < (layout == SPMLA_LAYOUT_V4_FP8 ? 3 : 4); s++) {
		memset(pool, 0, sizeof pool);
		put_scales(layout, scales[s]);
		a.kv_scale = scales[s];
		for (t = 0; t < TOKENS; t++) {
			from[t] = (int32_t)(TOKENS - 1 - t);
			for (i = 0; i < kinds[_i / 2].codes; i++)
				*code_at(layout, TOKENS - 1 - t, i) =
					(uint8_t)(i + 37 * t);
		}
		ck_assert_int_eq(spmla_kv_gather(f.ctx, &a, NULL), SPMLA_OK);
		fixture_drain(&f);
		for (i = 0; i < TOKENS * dim; i++) {
			const uint8_t code =
				(uint8_t)(i % dim + 37 * (i / dim));
			const double x = code_value(code, a.cache.encoding) *
					 (double)scales[s];
			const uint16_t want = i % dim >= kinds[_i / 2].codes ? 0
					      : isnan(x) ? 0x7fc0
							 : test_bf16((float)x);

			if (dst[i] != want)
				ck_abort_msg("code 0x%02x: 0x%04x, want 0x%04x",
					     code, dst[i], want);
		}
	}
}
END_TEST

/* Codes are copied. _i: bit 0 the encoding, bit 1 tiles. */
START_TEST(every_code_of_an_index_key_is_gathered_as_it_is)
{
	static _Alignas(16) uint8_t k[TOKENS * 128];
	static float scales[TOKENS];
	static const int32_t bounds[2] = {0, TOKENS}, table[1] = {0};
	const uint32_t layout =
		_i & 2 ? SPMLA_LAYOUT_INDEX_FP8_TILED : SPMLA_LAYOUT_INDEX_FP8;
	spmla_indexer_k_gather_args a = {.struct_bytes = sizeof a};
	uint32_t t, i;

	a.requests = a.rows = a.columns = a.table_stride_elems = 1;
	a.keys = TOKENS;
	a.cu_seq_lens = bounds;
	a.block_table = table;
	a.dst_k = k;
	a.dst_scale = scales;
	a.cache = cache_of(layout, (uint32_t)_i & 1);
	for (t = 0; t < TOKENS; t++)
		for (i = 0; i < 128; i++)
			*code_at(layout, t, i) = (uint8_t)(128 * t + i);
	ck_assert_int_eq(spmla_indexer_k_gather(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < TOKENS * 128; i++)
		ck_assert_uint_eq(k[i], i & 0xff);
}
END_TEST

SUITE
{
	const theme_test codes[] = {
		{every_bf16_is_written_as_its_code, 2 * WRITERS},
		{every_code_is_gathered_as_its_value, 6},
		{every_code_of_an_index_key_is_gathered_as_it_is, 4},
	};
	const theme themes[] = {
		THEME("codes", setup, teardown, codes),
	};

	return RUN_THEMES(themes);
}
