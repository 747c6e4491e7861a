/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: ragged rows, pages that begin at a column of the token's own, and
 * tokens that a missing page empties.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/index_map.h"

enum { TOKENS = 70, K = 40, COLUMNS = 9, ROWS = 5, AFTER = 0x5A5A5A5A };

static fixture f;
static spmla_index_map_args a;
static int32_t table[ROWS * COLUMNS], row[TOKENS], lens[TOKENS];
static int32_t indices[TOKENS * K], dense[TOKENS * K], counts[2][TOKENS];
static int32_t packed[TOKENS * K + 8], indptr[TOKENS + 1];
static int64_t slot[TOKENS];

static void
setup(void)
{
	spmla_config config;
	uint64_t rng = test_seed() + 5;
	uint32_t t;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	index_random(&rng, table, ROWS * COLUMNS, 1000);
	index_random(&rng, row, TOKENS, ROWS);
	index_random(&rng, indices, TOKENS * K, 16 * COLUMNS);
	for (t = 0; t < TOKENS; t++) {
		lens[t] = (int32_t)rng_below(&rng, K + 10) - 5;
		slot[t] = (int64_t)rng_below(&rng, 8) - 1;
		indices[t * K + rng_below(&rng, K)] = -1;
	}
	a = (spmla_index_map_args){.struct_bytes = sizeof a,
				   .tokens = TOKENS,
				   .k = K,
				   .rows = ROWS,
				   .columns = COLUMNS,
				   .table_stride_elems = COLUMNS,
				   .page_tokens = 16,
				   .token_row = row,
				   .block_table = table,
				   .indices = indices,
				   .indices_stride_elems = K,
				   .lens = lens,
				   .slots = dense,
				   .slots_stride_elems = K,
				   .valid_counts = counts[0],
				   .slot_mapping = slot};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
run(void)
{
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

/* The same call with ragged rows. */
static void
run_ragged(uint32_t capacity)
{
	a.slots = packed;
	a.slots_stride_elems = -1; /* not read */
	a.valid_counts = counts[1];
	a.indptr = indptr;
	a.capacity_elems = capacity;
	memset(packed, 0x5A, sizeof packed);
	memset(indptr, 0x5A, sizeof indptr);
	run();
}

static int32_t
entries_of(uint32_t t)
{
	return slot[t] < 0 || lens[t] < 0 ? 0 : lens[t] < K ? lens[t] : K;
}

START_TEST(ragged_rows_are_those_that_lengths_cut)
{
	int32_t end = 0;
	uint32_t t;

	a.compact = (uint32_t)_i & 1;
	if (_i & 2)
		a.slot_mapping = NULL;
	if (_i & 4)
		a.lens = NULL;
	for (t = 0; t < TOKENS; t++) {
		slot[t] = _i & 2 ? 0 : slot[t];
		lens[t] = _i & 4 ? K : lens[t];
	}
	run();
	run_ragged(TOKENS * K);
	ck_assert_mem_eq(counts[0], counts[1], sizeof counts[0]);
	for (t = 0; t < TOKENS; t++) {
		ck_assert_int_eq(indptr[t], end);
		ck_assert_mem_eq(packed + end, dense + t * K,
				 (uint32_t)entries_of(t) * 4);
		end += entries_of(t);
	}
	ck_assert_int_eq(indptr[TOKENS], end);
	ck_assert_int_eq(packed[end], AFTER);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* Three tokens of 10, 20 and 5: 25 hold the first; 15 are left. */
START_TEST(row_without_room_is_empty_and_reported)
{
	const int32_t want[4] = {0, 10, 25, 25};
	int32_t i;

	a.tokens = 3;
	a.slot_mapping = NULL;
	a.compact = (uint32_t)_i;
	memcpy(lens, (const int32_t[]){10, 20, 5}, 12);
	memcpy(row, (const int32_t[]){0, 3, 4}, 12);
	run();
	run_ragged(25);
	ck_assert_mem_eq(indptr, want, sizeof want);
	ck_assert_mem_eq(packed, dense, 40);
	for (i = 10; i < 25; i++)
		ck_assert_int_eq(packed[i], -1);
	ck_assert_int_eq(packed[25], AFTER);
	ck_assert_int_eq(counts[1][1], 0);
	ck_assert_uint_eq(fixture_status(&f).count, 2);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(fixture_status(&f).row, 3);
}
END_TEST

START_TEST(ragged_rows_cannot_be_in_place)
{
	a.slots = indices;
	a.indptr = indptr;
	a.capacity_elems = TOKENS * K;
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_E_RANGE);
}
END_TEST

/* A flat list of pages: token t's begin at column 3 t. The pages of the second
 * one end with the list; below column 0 there is none. */
START_TEST(pages_may_begin_at_a_column_of_the_tokens_own)
{
	static const int32_t first[3] = {0, 3, -1}, entry[4] = {0, 17, 95, 96};
	const int32_t want[12] = {table[0] * 16,
				  table[1] * 16 + 1,
				  table[5] * 16 + 15,
				  table[6] * 16,
				  table[3] * 16,
				  table[4] * 16 + 1,
				  table[8] * 16 + 15,
				  -1,
				  -1,
				  -1,
				  -1,
				  -1};

	a.tokens = 3;
	a.k = 4;
	a.rows = 1;
	a.lens = NULL;
	a.slot_mapping = NULL;
	a.slots_stride_elems = 4;
	memset(row, 0, sizeof row);
	a.first_cols = first;
	a.indices_stride_elems = 4;
	memcpy(indices, entry, sizeof entry);
	memcpy(indices + 4, entry, sizeof entry);
	memcpy(indices + 8, entry, sizeof entry);
	run();
	ck_assert_mem_eq(dense, want, sizeof want);
	ck_assert_uint_eq(fixture_status(&f).count, 4);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
}
END_TEST

/* Token 1 of three lacks the page of index 33: paged or in a workspace, rows as
 * they are or compact, dense or ragged. Two indices are there. */
START_TEST(a_missing_page_empties_its_token_alone)
{
	static const int32_t entry[4] = {0, 33, 40, 5}, ids[3] = {0, 1, 2};
	static const int32_t starts[3] = {100, 200, 300}, other[3] = {3, 4, 5};
	int32_t want[12], kept[3], t;

	a.tokens = 3;
	a.k = 4;
	a.lens = NULL;
	a.slot_mapping = NULL;
	a.indices_stride_elems = a.slots_stride_elems = 4;
	a.compact = (uint32_t)_i & 1;
	a.entries_before = 7;
	a.other_lens = other;
	a.kept_lens = kept;
	if (_i & 4) {
		a.workspaces = 3;
		a.workspace_ids = ids;
		a.workspace_starts = starts;
	}
	for (t = 0; t < 3; t++) {
		row[t] = t;
		memcpy(indices + 4 * t, entry, sizeof entry);
	}
	run();
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	ck_assert_mem_eq(kept, other, sizeof kept);
	memcpy(want, dense, sizeof want);
	table[COLUMNS + 2] = -1;
	memset(want + 4, 0xff, 16);
	a.whole = 1;
	if (_i & 2)
		run_ragged(TOKENS * K);
	else
		run();
	ck_assert_mem_eq(a.slots, want, sizeof want);
	for (t = 0; t < 3; t++) {
		ck_assert_int_eq(a.valid_counts[t], t == 1 ? 0 : 4 + 7);
		ck_assert_int_eq(kept[t], t == 1 ? 0 : other[t]);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 2);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).row, 1);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{ragged_rows_are_those_that_lengths_cut, 8},
		{pages_may_begin_at_a_column_of_the_tokens_own, 1},
	};
	const theme_test edge[] = {
		{row_without_room_is_empty_and_reported, 2},
		{a_missing_page_empties_its_token_alone, 8},
	};
	const theme_test error[] = {
		{ragged_rows_cannot_be_in_place, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("error", setup, teardown, error),
	};

	return RUN_THEMES(themes);
}
