/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: slots of indices, by table and by workspace, and what is none.
 * Rows behind a window are in test_index_map_mixed.c.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_map_rig.h"

static index_map_rig r;

static void
setup(void)
{
	index_map_open(&r);
}

static void
teardown(void)
{
	index_map_close(&r);
}

/* 0 is entry 0 of page 5: 5 * 4; 7 is entry 3 of page 3: 3 * 4 + 3. */
START_TEST(index_becomes_page_times_page_size_plus_offset)
{
	static const int32_t indices[6] = {0, 7, -1, 4, 3, INT32_MIN};
	static const int32_t want[6] = {20, 15, -1, 12, 23, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 6);

	index_map_expect(&r, &a, want, 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	static const int32_t indices[2] = {1, 7};
	static const int32_t want[2] = {5 * 9 + 1, 3 * 9 + 3};
	spmla_index_map_args a = index_map_small(&r, indices, 2);

	a.page_stride_rows = 9;
	index_map_expect(&r, &a, want, 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

START_TEST(index_past_the_table_is_minus_one_and_no_error)
{
	static const int32_t indices[4] = {8, 7, INT32_MAX, 1 << 30};
	static const int32_t want[4] = {-1, 15, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 4);

	index_map_expect(&r, &a, want, 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

START_TEST(entries_at_and_past_the_length_are_not_read)
{
	static const int32_t indices[4] = {1, INT32_MAX, 6, 0x5A5A5A5A};
	static const int32_t lens[4] = {0, 1, 3, 99};
	static const int32_t want[4][4] = {{-1, -1, -1, -1},
					   {21, -1, -1, -1},
					   {21, -1, 14, -1},
					   {21, -1, 14, -1}};
	spmla_index_map_args a = index_map_small(&r, indices, 4);

	a.lens = &lens[_i];
	index_map_expect(&r, &a, want[_i], 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

START_TEST(page_outside_the_pool_is_minus_one_and_reported)
{
	static const int32_t pages[6] = {8,         -1,      INT32_MAX,
					 INT32_MIN, 1 << 30, -2};
	static const int32_t indices[3] = {4, 0, -1};
	static const int32_t want[3] = {-1, 20, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 3);

	r.table[1] = pages[_i];
	index_map_expect(&r, &a, want, SPMLA_FAULT_PAGE, 0);
	index_map_check(&r, &a, 1);
}
END_TEST

START_TEST(without_a_pool_size_any_page_from_zero_on_is_valid)
{
	static const int32_t indices[3] = {7, 0, 3};
	static const int32_t want[3] = {INT32_MAX, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 3);

	a.pool_pages = 0;
	r.table[0] = (INT32_MAX >> 2) + 1; /* slots from 2^31 on */
	r.table[1] = INT32_MAX >> 2;
	index_map_expect(&r, &a, want, SPMLA_FAULT_INDEX, 0);
	r.table[0] = 1 << 30; /* 2^32 */
	index_map_expect(&r, &a, want, SPMLA_FAULT_INDEX, 0);
	index_map_check(&r, &a, 2);
	r.table[0] = -3;
	index_map_expect(&r, &a, want, SPMLA_FAULT_PAGE, 0);
}
END_TEST

START_TEST(column_not_written_is_minus_one_and_reported)
{
	static const int32_t cols[3][2] = {{1, 2}, {0, 2}, {-5, 2}};
	static const int32_t indices[2] = {0, 4};
	static const int32_t want[3][2] = {{20, -1}, {-1, -1}, {-1, -1}};
	spmla_index_map_args a = index_map_small(&r, indices, 2);

	a.table_cols = cols[_i];
	index_map_expect(&r, &a, want[_i], SPMLA_FAULT_PAGE, 0);
	index_map_check(&r, &a, _i ? 2 : 1);
}
END_TEST

START_TEST(row_outside_the_table_is_minus_one_and_reported)
{
	static const int32_t rows[4] = {2, -1, INT32_MAX, INT32_MIN};
	static const int32_t indices[4] = {1, -1, 6, 1};
	static const int32_t want[4] = {21, -1, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 2);

	a.tokens = 2;
	r.row_of[1] = rows[_i];
	index_map_expect(&r, &a, want, SPMLA_FAULT_ROW, 1);
	index_map_check(&r, &a, 2);
}
END_TEST

START_TEST(token_of_a_workspace_adds_the_start)
{
	static const int32_t ids[2] = {-1, 1}, starts[2] = {1000, 100};
	static const int32_t indices[6] = {1, 8, -1, 7, 0, 8};
	static const int32_t want[6] = {21, -1, -1, 107, 100, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 3);

	r.row_of[1] = -77; /* not looked at */
	a.tokens = a.workspaces = 2;
	a.workspace_ids = ids;
	a.workspace_starts = starts;
	index_map_check(&r, &a, 0);
	index_map_expect(&r, &a, want, 0, 0);
}
END_TEST

START_TEST(workspace_that_does_not_exist_or_overflows_is_reported)
{
	static const int32_t ids[4] = {2, INT32_MAX, 0, 1};
	static const int32_t starts[2] = {INT32_MAX - 5, -10};
	static const int32_t indices[2] = {6, -1};
	static const int32_t want[2] = {-1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 2);

	a.workspaces = 2;
	a.workspace_ids = &ids[_i];
	a.workspace_starts = starts;
	index_map_expect(&r, &a, want,
			 _i < 2 ? SPMLA_FAULT_ROW : SPMLA_FAULT_INDEX, 0);
	index_map_check(&r, &a, 1);
}
END_TEST

/* Both tokens have a context of 5: of the paged one 4 is its last position, in
 * page 3, of the one with a workspace 104; 5 would be row 105, which is the
 * next request's. 8 is past the columns too, -1 is none and no mistake. */
START_TEST(index_at_or_past_the_context_is_minus_one_and_reported)
{
	static const int32_t ids[2] = {-1, 0}, starts[1] = {100};
	static const int32_t contexts[2] = {5, 5};
	static const int32_t indices[8] = {4, 5, -1, 8, 4, 5, -1, INT32_MAX};
	static const int32_t want[8] = {12, -1, -1, -1, 104, -1, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 4);

	a.tokens = 2;
	a.workspaces = 1;
	a.workspace_ids = ids;
	a.workspace_starts = starts;
	a.context_lens = contexts;
	index_map_expect(&r, &a, want, SPMLA_FAULT_INDEX, 0);
	index_map_check(&r, &a, 4);
	a.tokens = 1;
	a.indices += 4;
	a.workspace_ids++;
	r.row_of[0] = -7; /* in no table: the report names the token */
	index_map_expect(&r, &a, want + 4, SPMLA_FAULT_INDEX, 0);
	index_map_check(&r, &a, 2);
}
END_TEST

/* Entries past the length are not looked at. */
START_TEST(context_that_is_empty_or_negative_has_no_index)
{
	static const int32_t contexts[3] = {0, -1, INT32_MIN};
	static const int32_t indices[4] = {0, -1, INT32_MIN, 1}, len = 3;
	static const int32_t want[4] = {-1, -1, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 4);

	a.lens = &len;
	a.context_lens = &contexts[_i];
	index_map_expect(&r, &a, want, SPMLA_FAULT_INDEX, 0);
	index_map_check(&r, &a, 1);
}
END_TEST

/* Indices 0, -1, 7, one with a page outside the pool, and 3 leave the slots 20,
 * 15 and 23; the bad page is still reported. */
START_TEST(compact_rows_begin_with_their_slots_in_order)
{
	static const int32_t indices[6] = {0, -1, 7, 9, -5, 3};
	static const int32_t want[6] = {20, 15, 23, -1, -1, -1};
	static const int32_t lens[3] = {6, 3, 0};
	static const int32_t cut[6] = {20, 15, -1, -1, -1, -1};
	static const int32_t none[6] = {-1, -1, -1, -1, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 6);

	a.compact = 1;
	index_map_expect(&r, &a, want, 0, 0); /* 9 is past the columns */
	index_map_check(&r, &a, 0);
	a.columns = 3; /* and here in page 0x7777 */
	index_map_expect(&r, &a, want, SPMLA_FAULT_PAGE, 0);
	index_map_check(&r, &a, 1);
	a.lens = &lens[1];
	index_map_expect(&r, &a, cut, 0, 0);
	a.lens = &lens[2];
	index_map_expect(&r, &a, none, 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

/* Its row of the table, its context and its indices belong to nobody. */
START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int32_t indices[4] = {0, 4, 0, 4}, contexts[2] = {5, -3};
	static const int64_t slots[2] = {7, -1};
	static const int32_t want[4] = {20, 12, -1, -1};
	spmla_index_map_args a = index_map_small(&r, indices, 2);

	a.tokens = 2;
	a.compact = (uint32_t)_i;
	a.slot_mapping = slots;
	a.context_lens = contexts;
	r.row_of[1] = -9;
	index_map_expect(&r, &a, want, 0, 0);
	index_map_check(&r, &a, 0);
}
END_TEST

START_TEST(random_rows_of_any_k_equal_the_rule)
{
	static const uint32_t ks[7] = {1, 7, 48, 127, 129, 200, 500};
	static const uint32_t sizes[4] = {1, 2, 61, 64};
	static int32_t indices[INDEX_MAP_MAX], pages[16 * 13];
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t k = ks[_i % 7], size = sizes[_i % 4];
	int32_t lens[8], ids[8], cols[16], starts[3] = {0, 100, 1 << 20};
	int32_t contexts[8];
	int64_t valid[8];
	spmla_index_map_args a = index_map_small(&r, indices, k);
	uint32_t i;

	a.tokens = 8;
	a.rows = 16;
	a.columns = 11;
	a.table_stride_elems = 13;
	a.page_tokens = size;
	a.page_stride_rows = _i % 3 ? size + (uint32_t)_i % 3 : 0;
	a.pool_pages = 1000;
	a.block_table = pages;
	a.indices_stride_elems = k + 2;
	a.lens = _i & 1 ? lens : NULL;
	a.table_cols = _i & 2 ? cols : NULL;
	a.workspaces = 3;
	a.workspace_ids = _i & 4 ? ids : NULL;
	a.workspace_starts = starts;
	for (i = 0; i < 16 * 13; i++)
		pages[i] = (int32_t)rng_below(&rng, 1000);
	for (i = 0; i < INDEX_MAP_MAX; i++)
		indices[i] = (int32_t)rng_below(&rng, size * 12) - 3;
	for (i = 0; i < 16; i++)
		cols[i] = 11 + (int32_t)rng_below(&rng, 3);
	for (i = 0; i < 8; i++) {
		r.row_of[i] = (int32_t)rng_below(&rng, 16);
		lens[i] = (int32_t)rng_below(&rng, k + 2) - 1;
		ids[i] = (int32_t)rng_below(&rng, 4) - 1;
		contexts[i] = (int32_t)size * 12; /* above all of them */
		valid[i] = (int64_t)rng_below(&rng, 4) - 1;
	}
	a.compact = (uint32_t)_i / 16 % 2;
	a.slot_mapping = _i & 32 ? valid : NULL;
	a.context_lens = _i & 8 ? contexts : NULL;
	index_map_check(&r, &a, 0);
}
END_TEST

/* Pages of 64: position 999999 is entry 63 of column 15624, position 1000063 is
 * entry 63 of the last column, 15625. Page 33000000 has the slots from
 * 2112000000 on, whose bytes lie past 2^40. Rows of the table are wider than
 * they have to be. */
START_TEST(positions_of_a_million_tokens_are_mapped)
{
	enum { COLUMNS = 15626, STRIDE = 15700 };
	static const int32_t in[4] = {999999, 1000063, 1000064, 0};
	static const int32_t want[4] = {2112000063, 639, -1, 320};
	int32_t *wide = test_alloc(2 * STRIDE * sizeof *wide, 0xFF);
	spmla_index_map_args a = index_map_small(&r, in, 4);

	wide[STRIDE] = 5;
	wide[STRIDE + 15624] = 33000000;
	wide[STRIDE + 15625] = 9;
	wide[STRIDE + COLUMNS] = 7; /* no column */
	r.row_of[0] = 1;
	a.columns = COLUMNS;
	a.table_stride_elems = STRIDE;
	a.page_tokens = 64;
	a.pool_pages = 33000001;
	a.block_table = wide;
	index_map_expect(&r, &a, want, 0, 0);
	free(wide);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{index_becomes_page_times_page_size_plus_offset, 1},
		{token_of_a_workspace_adds_the_start, 1},
		{compact_rows_begin_with_their_slots_in_order, 1},
		{random_rows_of_any_k_equal_the_rule, 64},
	};
	const theme_test edge[] = {
		{index_past_the_table_is_minus_one_and_no_error, 1},
		{token_without_a_slot_has_an_empty_row, 2},
		{entries_at_and_past_the_length_are_not_read, 4},
		{page_outside_the_pool_is_minus_one_and_reported, 6},
		{without_a_pool_size_any_page_from_zero_on_is_valid, 1},
		{column_not_written_is_minus_one_and_reported, 3},
		{row_outside_the_table_is_minus_one_and_reported, 4},
		{workspace_that_does_not_exist_or_overflows_is_reported, 4},
		{index_at_or_past_the_context_is_minus_one_and_reported, 1},
		{context_that_is_empty_or_negative_has_no_index, 3},
	};
	const theme_test layout[] = {
		{pages_apart_multiply_by_their_own_stride, 1},
		{positions_of_a_million_tokens_are_mapped, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
