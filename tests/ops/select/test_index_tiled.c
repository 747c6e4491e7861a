/* SPDX-License-Identifier: Apache-2.0
 *
 * Index keys in tiles: what is written there are the bytes of INDEX_FP8 at the
 * places of the definition, and what reads them gives the same bits. Queries
 * have 65 heads, so no matrix instructions score either.
 */
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"

enum { ENTRIES = 48, PAGES = 3, KEYS = ENTRIES * PAGES, DIM = 128 };
enum { HEADS = 65, MOST_PAGE = ENTRIES * 132 + 16 };

static fixture f;
static _Alignas(16) uint8_t flat[PAGES * MOST_PAGE], tiled[PAGES * MOST_PAGE];
static uint64_t seed;
static uint32_t page_bytes;

static void
setup(void)
{
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
	page_bytes = ENTRIES * 132 + 4;
	memset(flat, 0xAB, sizeof flat);
	memset(tiled, 0xAB, sizeof tiled);
	seed = test_seed();
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

static spmla_cache
cache_of(uint32_t layout, uint32_t encoding)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.encoding = encoding;
	c.entries_per_page = ENTRIES;
	c.pages = PAGES;
	c.page_stride_bytes = page_bytes;
	c.base = layout == SPMLA_LAYOUT_INDEX_FP8 ? flat : tiled;
	return c;
}

/* Where value d of entry e is in a tiled page. */
static uint32_t
place(uint32_t e, uint32_t d)
{
	return e / 16 * 16 * 128 + d / 16 * 256 + e % 16 * 16 + d % 16;
}

/* Random codes but NaN, and scales; `tiled` has the same keys. */
static void
fill(void)
{
	uint32_t p, e, d;

	for (p = 0; p < PAGES; p++)
		for (e = 0; e < ENTRIES; e++) {
			const float scale = 0.5f + rng_float(&seed) / 4;
			uint8_t *a = flat + p * page_bytes,
				*b = tiled + p * page_bytes;

			for (d = 0; d < DIM; d++)
				a[e * DIM + d] = b[place(e, d)] =
					(uint8_t)(rng_next(&seed) & 0xbf) |
					(uint8_t)1;
			memcpy(a + ENTRIES * DIM + e * 4, &scale, 4);
			memcpy(b + ENTRIES * DIM + e * 4, &scale, 4);
		}
}

/* _i: the encoding. */
START_TEST(keys_are_written_at_the_places_of_their_tile)
{
	static uint16_t k[KEYS * DIM];
	static int64_t slots[KEYS];
	spmla_indexer_k_insert_args a = {.struct_bytes = sizeof a};
	uint32_t layout, p, e, d, i;

	for (i = 0; i < KEYS * DIM; i++)
		k[i] = test_bf16(rng_float(&seed));
	for (i = 0; i < KEYS; i++)
		slots[i] = (i * 41 + 7) % KEYS; /* 41 and 144 share no factor */
	a.tokens = KEYS;
	a.scale_mode = SPMLA_SCALE_POW2;
	a.k = k;
	a.k_stride_elems = DIM;
	a.slot_mapping = slots;
	for (layout = 0; layout < 2; layout++) {
		a.cache = cache_of(layout ? SPMLA_LAYOUT_INDEX_FP8_TILED
					  : SPMLA_LAYOUT_INDEX_FP8,
				   (uint32_t)_i);
		ck_assert_int_eq(spmla_indexer_k_insert(f.ctx, &a, NULL),
				 SPMLA_OK);
	}
	fixture_drain(&f);
	for (p = 0; p < PAGES; p++) {
		const uint8_t *x = flat + p * page_bytes,
			      *y = tiled + p * page_bytes;

		for (e = 0; e < ENTRIES; e++)
			for (d = 0; d < DIM; d++)
				ck_assert_uint_eq(y[place(e, d)],
						  x[e * DIM + d]);
		/* Scales, and the gap behind them. */
		ck_assert_mem_eq(y + ENTRIES * DIM, x + ENTRIES * DIM,
				 page_bytes - ENTRIES * DIM);
	}
}
END_TEST

static const int32_t table[PAGES] = {2, 0, 1};

START_TEST(gathered_keys_are_those_of_flat_pages)
{
	static uint8_t k[2][KEYS * DIM];
	static float scales[2][KEYS];
	static const int32_t starts[2] = {0, KEYS - 5};
	spmla_indexer_k_gather_args a = {.struct_bytes = sizeof a};
	uint32_t i;

	fill();
	a.requests = a.rows = 1;
	a.keys = KEYS;
	a.columns = a.table_stride_elems = PAGES;
	a.cu_seq_lens = starts;
	a.block_table = table;
	for (i = 0; i < 2; i++) {
		a.dst_k = k[i];
		a.dst_scale = scales[i];
		a.cache = cache_of(i ? SPMLA_LAYOUT_INDEX_FP8_TILED
				     : SPMLA_LAYOUT_INDEX_FP8,
				   SPMLA_E4M3_FN);
		ck_assert_int_eq(spmla_indexer_k_gather(f.ctx, &a, NULL),
				 SPMLA_OK);
	}
	fixture_drain(&f);
	ck_assert_mem_eq(k[1], k[0], sizeof k[0]);
	ck_assert_mem_eq(scales[1], scales[0], sizeof scales[0]);
	ck_assert_mem_eq(k[1], flat + 2 * page_bytes, ENTRIES * DIM);
}
END_TEST

static uint8_t q[HEADS * DIM];
static float weights[HEADS];

static void
fill_queries(void)
{
	uint32_t i;

	for (i = 0; i < HEADS * DIM; i++)
		q[i] = (uint8_t)(rng_next(&seed) & 0xbf);
	for (i = 0; i < HEADS; i++)
		weights[i] = rng_float(&seed);
}

/* The scores of KEYS - 3 keys, of f32 or bf16. */
static void
score(spmla_cache cache, uint32_t dtype, void *logits)
{
	static const int32_t row[1], lens[1] = {KEYS - 3};
	spmla_mqa_logits_args a = {.struct_bytes = sizeof a, .tokens = 1};

	/* More heads have one kernel for both layouts on every device. */
	a.heads = fixture_tiles(&f) ? 64 : HEADS;
	a.rows = 1;
	a.columns = a.table_stride_elems = PAGES;
	a.q = q;
	a.weights = weights;
	a.token_row = row;
	a.context_lens = lens;
	a.block_table = table;
	a.logits_elems = KEYS;
	a.row_stride_elems = KEYS;
	a.logits = logits;
	a.logits_dtype = dtype;
	a.cache = cache;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

/* _i: the encoding, and 2 for pages that kernels by matrix instructions take.
 */
START_TEST(scores_are_those_of_flat_pages)
{
	static float flats[KEYS], tiles[KEYS];
	const uint32_t encoding = (uint32_t)_i & 1;

	if (_i & 2)
		page_bytes = MOST_PAGE;
	fill();
	fill_queries();
	score(cache_of(SPMLA_LAYOUT_INDEX_FP8, encoding), SPMLA_REAL_F32,
	      flats);
	score(cache_of(SPMLA_LAYOUT_INDEX_FP8_TILED, encoding), SPMLA_REAL_F32,
	      tiles);
	ck_assert_mem_eq(tiles, flats, sizeof flats);
	ck_assert_float_ne(flats[0], flats[1]);
}
END_TEST

/* A page has more keys than the CPU converts at a time. _i: the layout. */
START_TEST(scores_of_bf16_are_those_of_f32_rounded)
{
	const spmla_cache cache = cache_of(_i ? SPMLA_LAYOUT_INDEX_FP8_TILED
					      : SPMLA_LAYOUT_INDEX_FP8,
					   SPMLA_E4M3_FN);
	static uint16_t narrow[KEYS];
	static float wide[KEYS];
	uint32_t i;

	fill();
	fill_queries();
	memset(narrow, 0x5A, sizeof narrow);
	score(cache, SPMLA_REAL_F32, wide);
	score(cache, SPMLA_REAL_BF16, narrow);
	for (i = 0; i < KEYS - 3; i++)
		ck_assert_uint_eq(narrow[i], test_bf16(wide[i]));
	for (; i < KEYS; i++)
		ck_assert_uint_eq(narrow[i], 0x5A5A);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{keys_are_written_at_the_places_of_their_tile, 2},
		{gathered_keys_are_those_of_flat_pages, 1},
		{scores_are_those_of_flat_pages, 4},
		{scores_of_bf16_are_those_of_f32_rounded, 2},
	};
	const theme themes[] = {
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
