/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a window and compressed entries side by side, as FlashInfer's kernels
 * take them: swa_index makes the padded left half, index_map or c128a_index the
 * right one and the length, in place.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/c128a_index.h"
#include "spmla/ops/index_map.h"
#include "spmla/ops/swa_index.h"

enum { TOKENS = 20, ROWS = 6, COLUMNS = 9, TOPK = 40, STRIDE = 200 };

static fixture f;
static int32_t pos[TOKENS], row[TOKENS], topk[TOKENS * TOPK];
static int64_t slot[TOKENS];
static int32_t keys[ROWS * COLUMNS], entries[ROWS * COLUMNS];
static struct {
	int32_t rows[TOKENS * STRIDE];
	int32_t lens[TOKENS];
} io, want;
static spmla_swa_index_args swa;
static spmla_index_map_args map;
static spmla_c128a_index_args all;

/* Token 0 at 5 of row 0: keys in pages 5 and 3 of four, compressed entries in
 * pages 2 and 9 of two, three slots apart. Rows of 4 + 4. */
static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	memset(row, 0, sizeof row);
	memset(slot, 0, sizeof slot);
	pos[0] = 5;
	keys[0] = 5;
	keys[1] = 3;
	entries[0] = 2;
	entries[1] = 9;
	swa = (spmla_swa_index_args){.struct_bytes = sizeof swa,
				     .tokens = 1,
				     .window = 3,
				     .width = 4,
				     .rows = ROWS,
				     .columns = COLUMNS,
				     .table_stride_elems = COLUMNS,
				     .page_tokens = 4,
				     .positions = pos,
				     .token_row = row,
				     .slot_mapping = slot,
				     .block_table = keys,
				     .indices = io.rows,
				     .indices_stride_elems = STRIDE,
				     .lens = io.lens,
				     .padded_lens = 1};
	map = (spmla_index_map_args){.struct_bytes = sizeof map,
				     .tokens = 1,
				     .k = 4,
				     .rows = ROWS,
				     .columns = COLUMNS,
				     .table_stride_elems = COLUMNS,
				     .page_tokens = 2,
				     .page_stride_rows = 3,
				     .token_row = row,
				     .block_table = entries,
				     .indices = topk,
				     .indices_stride_elems = TOPK,
				     .slots = io.rows + 4,
				     .slots_stride_elems = STRIDE,
				     .valid_counts = io.lens,
				     .slot_mapping = slot,
				     .compact = 1,
				     .entries_before = 4};
	all = (spmla_c128a_index_args){.struct_bytes = sizeof all,
				       .tokens = 1,
				       .decode_tokens = 1,
				       .ratio = 2,
				       .width = 4,
				       .rows = ROWS,
				       .columns = COLUMNS,
				       .table_stride_elems = COLUMNS,
				       .page_entries = 2,
				       .page_stride_rows = 3,
				       .entries_before = 4,
				       .positions = pos,
				       .slot_mapping = slot,
				       .token_row = row,
				       .block_table = entries,
				       .decode_slots = io.rows + 4,
				       .decode_stride_elems = STRIDE,
				       .decode_lens = io.lens};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
run(uint32_t is_all)
{
	memset(&io, 0x5A, sizeof io);
	ck_assert_int_eq(spmla_swa_index(f.ctx, &swa, NULL), SPMLA_OK);
	if (is_all)
		ck_assert_int_eq(spmla_c128a_index(f.ctx, &all, NULL),
				 SPMLA_OK);
	else
		ck_assert_int_eq(spmla_index_map(f.ctx, &map, NULL), SPMLA_OK);
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

static void
expect(const int32_t *entries_of_row, int32_t len)
{
	ck_assert_mem_eq(io.rows, entries_of_row, 8 * sizeof *entries_of_row);
	ck_assert_int_eq(io.rows[8], 0x5A5A5A5A);
	ck_assert_int_eq(io.lens[0], len);
}

/* The window of 5 is 3, 4, 5: entry 3 of page 5, 0 and 1 of page 3. Entries 1,
 * 2 and 0 are 2 * 3 + 1, 9 * 3 and 2 * 3. */
START_TEST(window_and_topk_lie_side_by_side)
{
	memcpy(topk, (const int32_t[]){1, -1, 2, 0}, 16);
	run(0);
	expect((const int32_t[]){23, 12, 13, -1, 7, 27, 6, -1}, 7);
	map.compact = 0;
	run(0);
	expect((const int32_t[]){23, 12, 13, -1, 7, -1, 27, 6}, 7);
	memset(topk, 0xFF, 16);
	run(0);
	expect((const int32_t[]){23, 12, 13, -1, -1, -1, -1, -1}, 4);
}
END_TEST

/* (5 + 1) / 2 = 3 entries; at 0 none is whole. */
START_TEST(window_and_all_entries_lie_side_by_side)
{
	run(1);
	expect((const int32_t[]){23, 12, 13, -1, 6, 7, 27, -1}, 7);
	pos[0] = 0;
	run(1);
	expect((const int32_t[]){20, -1, -1, -1, -1, -1, -1, -1}, 4);
}
END_TEST

START_TEST(token_without_a_slot_has_an_empty_row_of_both)
{
	static const int32_t none[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

	slot[0] = -1;
	memset(topk, 0, 16);
	run((uint32_t)_i);
	expect(none, 0);
	map.compact = 0;
	run((uint32_t)_i);
	expect(none, 0);
}
END_TEST

/* A token's row, in 64 bits: its window, then its top-k or all its entries. */
static void
oracle(uint32_t t, uint32_t is_all)
{
	const int64_t r = row[t], p = pos[t], left = swa.width;
	int32_t *out = want.rows + t * STRIDE;
	const int64_t whole = (p + 1) / all.ratio;
	int64_t k, n = left;

	for (k = 0; k < left + map.k; k++)
		out[k] = -1;
	want.lens[t] = 0;
	if (slot[t] < 0)
		return;
	for (k = p < swa.window ? 0 : p - swa.window + 1; k <= p; k++)
		*out++ = (int32_t)(keys[r * COLUMNS + k / 16] * 16 + k % 16);
	out = want.rows + t * STRIDE;
	for (k = 0; k < (int64_t)map.k; k++) {
		const int64_t e = is_all ? k : topk[t * TOPK + k];

		if (e >= 0 && (!is_all || e < whole))
			out[n++] =
				(int32_t)(entries[r * COLUMNS + e / 16] * 19 +
					  e % 16);
	}
	want.lens[t] = (int32_t)n;
}

START_TEST(random_rows_are_those_of_the_mixed_form)
{
	static const uint32_t widths[3] = {32, 100, 64};
	uint64_t rng = test_seed() + 77 + (uint64_t)_i;
	const uint32_t is_all = (uint32_t)_i % 2;
	uint32_t i, t;

	swa.width = map.entries_before = all.entries_before = widths[_i % 3];
	swa.window = 1 + rng_below(&rng, swa.width);
	map.k = all.width = TOPK - 4 * ((uint32_t)_i % 4);
	map.slots = all.decode_slots = io.rows + swa.width;
	swa.tokens = map.tokens = all.tokens = all.decode_tokens = TOKENS;
	swa.page_tokens = map.page_tokens = all.page_entries = 16;
	map.page_stride_rows = all.page_stride_rows = 19;
	all.ratio = 4;
	index_random(&rng, keys, ROWS * COLUMNS, 1000);
	index_random(&rng, entries, ROWS * COLUMNS, 1000);
	index_random(&rng, row, TOKENS, ROWS);
	index_random(&rng, pos, TOKENS, 16 * COLUMNS);
	memset(&want, 0x5A, sizeof want);
	for (t = 0; t < TOKENS; t++) {
		const uint32_t whole = ((uint32_t)pos[t] + 1) / 4;

		slot[t] = (int64_t)rng_below(&rng, 6) - 1;
		for (i = 0; i < TOPK; i++)
			topk[t * TOPK + i] =
				i < whole ? (int32_t)rng_below(&rng, whole)
					  : -1;
		oracle(t, is_all);
	}
	run(is_all);
	ck_assert_mem_eq(&io, &want, sizeof io);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{window_and_topk_lie_side_by_side, 1},
		{window_and_all_entries_lie_side_by_side, 1},
	};
	const theme_test edge[] = {
		{token_without_a_slot_has_an_empty_row_of_both, 2},
	};
	const theme_test determinism[] = {
		{random_rows_are_those_of_the_mixed_form, 24},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
