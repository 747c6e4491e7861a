/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of index keys in FNUZ: every code, in values worked out from the
 * definition, in pages, in tiles and gathered; as f32 and bf16.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

enum { KEYS = 256, ENTRIES = 32, PAGES = KEYS / ENTRIES, HEADS = 2, DIM = 128 };

static fixture f;
static _Alignas(16) uint8_t pool[PAGES * ENTRIES * 132];
static _Alignas(16) uint8_t tiled[sizeof pool];
static _Alignas(16) uint8_t codes[KEYS * DIM], q[HEADS * DIM];
static float scales[KEYS];
static const float weights[HEADS] = {1, 16};

/* Where dimension 77 of entry e is in a page of tiles. */
static uint32_t
place(uint32_t e)
{
	return e / SPMLA_INDEX_TILE * SPMLA_INDEX_TILE * DIM + 77 / 16 * 256 +
	       e % SPMLA_INDEX_TILE * 16 + 77 % 16;
}

/* Key n is code n in dimension 77, and 0 elsewhere; its scale is 1 or 4. There
 * q is 1 and -1. */
static void
setup(void)
{
	spmla_config config;
	uint32_t n;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
	memset(pool, 0, sizeof pool);
	memset(tiled, 0, sizeof tiled);
	memset(codes, 0, sizeof codes);
	memset(q, 0, sizeof q);
	q[77] = 0x38;
	q[DIM + 77] = 0xb8;
	for (n = 0; n < KEYS; n++) {
		const uint32_t at = n / ENTRIES * ENTRIES * 132;
		uint8_t *page = pool + at;

		scales[n] = n % 3 ? 1 : 4;
		codes[n * DIM + 77] = (uint8_t)n;
		page[n % ENTRIES * DIM + 77] = (uint8_t)n;
		memcpy(page + ENTRIES * DIM + n % ENTRIES * 4, &scales[n], 4);
		tiled[at + place(n % ENTRIES)] = (uint8_t)n;
		memcpy(tiled + at + ENTRIES * DIM + n % ENTRIES * 4, &scales[n],
		       4);
	}
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

/* relu(v) + 16 relu(-v), and 0 for NaN. */
static float
score_of(uint32_t n)
{
	const double v = ref_fnuz_value((uint8_t)n);

	if (n == 0x80)
		return 0;
	return (float)(v < 0 ? -16 * v : v) * scales[n];
}

static void
check(const void *logits, uint32_t bf16)
{
	uint32_t n;

	for (n = 0; n < KEYS; n++) {
		const float got =
			bf16 ? test_bf16_value(((const uint16_t *)logits)[n])
			     : ((const float *)logits)[n];

		ck_assert_msg(got == score_of(n), "code 0x%02x: %g, want %g", n,
			      (double)got, (double)score_of(n));
	}
}

/* Bit 0: bf16, which holds the four bits of a value; bit 1: tiles. */
START_TEST(every_code_in_a_page_scores_as_its_value)
{
	static const int32_t row[1], lens[1] = {KEYS};
	static const int32_t table[PAGES] = {0, 1, 2, 3, 4, 5, 6, 7};
	static float logits[KEYS];
	spmla_mqa_logits_args a = {.struct_bytes = sizeof a, .tokens = 1};

	a.heads = HEADS;
	a.rows = 1;
	a.columns = a.table_stride_elems = PAGES;
	a.q = q;
	a.weights = weights;
	a.token_row = row;
	a.context_lens = lens;
	a.block_table = table;
	a.logits = logits;
	a.logits_elems = KEYS;
	a.row_stride_elems = KEYS;
	a.logits_dtype = _i & 1;
	a.cache = (spmla_cache)SPMLA_CACHE_INIT;
	a.cache.layout =
		_i & 2 ? SPMLA_LAYOUT_INDEX_FP8_TILED : SPMLA_LAYOUT_INDEX_FP8;
	a.cache.encoding = SPMLA_E4M3_FNUZ;
	a.cache.entries_per_page = ENTRIES;
	a.cache.pages = PAGES;
	a.cache.page_stride_bytes = ENTRIES * 132;
	a.cache.base = _i & 2 ? tiled : pool;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	check(logits, _i & 1);
}
END_TEST

START_TEST(every_gathered_code_scores_as_its_value)
{
	static const int32_t start[1], end[1] = {KEYS};
	static float logits[KEYS];
	spmla_mqa_logits_gathered_args a = {.struct_bytes = sizeof a};

	a.tokens = 1;
	a.heads = HEADS;
	a.keys = a.columns = KEYS;
	a.q = q;
	a.weights = weights;
	a.weights_stride_elems = HEADS;
	a.k = codes;
	a.k_scales = scales;
	a.starts = start;
	a.ends = end;
	a.logits = logits;
	a.logits_stride_elems = KEYS;
	a.logits_dtype = (uint32_t)_i;
	a.k_encoding = SPMLA_E4M3_FNUZ;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	check(logits, (uint32_t)_i);
}
END_TEST

SUITE
{
	const theme_test values[] = {
		{every_code_in_a_page_scores_as_its_value, 4},
		{every_gathered_code_scores_as_its_value, 2},
	};
	const theme themes[] = {
		THEME("fnuz", setup, teardown, values),
	};

	return RUN_THEMES(themes);
}
