/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map, the call: what the host refuses, and that a recorded call equals
 * an eager one. The slots are in test_index_map.c.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/index_map.h"

static fixture f;
static int32_t table[6] = {0, 1, 2, 3, 4, 5};
static int32_t row_of[2] = {0, 1};
static int32_t indices[2 * 8];
static int32_t slots[2 * 8];
static int32_t counts[2];
static int32_t ids[2] = {-1, 0};
static int32_t starts[1] = {7};
static int32_t contexts[2] = {12, 12};
static int64_t valid[2] = {5, 0};

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_index_map_args
good_args(void)
{
	const spmla_index_map_args a = {
		sizeof a, 2,      8,      2,        3,       3, 4,    0,     6,
		1,        row_of, table,  NULL,     indices, 8, NULL, slots, 8,
		counts,   ids,    starts, contexts, valid,   0, 0};

	return a;
}

static void
expect_error(const spmla_index_map_args *a, const char *text)
{
	const spmla_status s = spmla_index_map(f.ctx, a, NULL);

	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_msg(!strncmp(text, spmla_status_name(s),
			       strlen(spmla_status_name(s))),
		      "%s", text);
}

START_TEST(every_number_that_is_wrong_is_named)
{
	spmla_index_map_args a = good_args();

	ck_assert_int_eq(spmla_index_map(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(NULL, "SPMLA_E_NULL: index_map: got NULL, want a pointer");
	a.struct_bytes = 1;
	expect_error(&a, "SPMLA_E_STRUCT_SIZE: index_map: got 1, want 152");
	a = good_args();
	a.k = 0;
	expect_error(&a, "SPMLA_E_RANGE: index_map.k: got 0, want at least 1");
	a = good_args();
	a.rows = 0;
	expect_error(&a,
		     "SPMLA_E_RANGE: index_map.rows: got 0, want at least 1");
	a = good_args();
	a.columns = 0;
	expect_error(
		&a, "SPMLA_E_RANGE: index_map.columns: got 0, want at least 1");
	a = good_args();
	a.table_stride_elems = 2;
	expect_error(&a, "SPMLA_E_RANGE: index_map.table_stride_elems: got 2, "
			 "want at least 3");
	a = good_args();
	a.page_tokens = 0;
	expect_error(&a, "SPMLA_E_RANGE: index_map.page_tokens: got 0, "
			 "want at least 1");
	a = good_args();
	a.page_stride_rows = 3;
	expect_error(&a, "SPMLA_E_RANGE: index_map.page_stride_rows: got 3, "
			 "want at least 4");
	a = good_args();
	a.workspaces = 0;
	expect_error(&a, "SPMLA_E_RANGE: index_map.workspaces: got 0, "
			 "want at least 1");
	a = good_args();
	a.compact = 2;
	expect_error(&a, "SPMLA_E_RANGE: index_map.compact: got 2, "
			 "want at most 1");
}
END_TEST

START_TEST(every_stride_that_is_wrong_is_named)
{
	spmla_index_map_args a = good_args();

	a.indices_stride_elems = 7;
	expect_error(&a, "SPMLA_E_RANGE: index_map.indices_stride_elems: "
			 "got 7, want at least 8");
	a = good_args();
	a.slots_stride_elems = -1;
	expect_error(&a, "SPMLA_E_RANGE: index_map.slots_stride_elems: "
			 "got 0, want at least 8");
	a = good_args();
	a.slots = indices;
	a.slots_stride_elems = 9;
	expect_error(&a, "SPMLA_E_RANGE: index_map.slots_stride_elems: "
			 "got 9, want 8");
}
END_TEST

START_TEST(every_pointer_that_is_missing_is_named)
{
	static const struct {
		size_t offset;
		const char *text;
	} fields[5] = {
#define FIELD(name)                            \
	{offsetof(spmla_index_map_args, name), \
	 "SPMLA_E_NULL: index_map." #name ": got NULL, want a pointer"}
		FIELD(token_row), FIELD(block_table),      FIELD(indices),
		FIELD(slots),     FIELD(workspace_starts),
#undef FIELD
	};
	spmla_index_map_args a = good_args();

	memset((uint8_t *)&a + fields[_i].offset, 0, sizeof(void *));
	expect_error(&a, fields[_i].text);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	spmla_index_map_args a = good_args();

	a.workspace_ids = NULL;
	a.workspace_starts = NULL;
	a.workspaces = 0;
	a.valid_counts = NULL;
	a.context_lens = NULL;
	a.slot_mapping = NULL;
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
	memset(&a, 0, sizeof a);
	a.struct_bytes = sizeof a;
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	uint64_t rng = test_seed() + 5;
	spmla_index_map_args a = good_args();
	spmla_graph graph;
	int32_t eager[2 * 8], eager_counts[2];
	uint32_t round, i;

	memset(slots, 0x5A, sizeof slots);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(slots[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 16; i++)
			indices[i] = (int32_t)rng_below(&rng, 14) - 1;
		for (i = 0; i < 6; i++)
			table[i] = (int32_t)rng_below(&rng, 6);
		for (i = 0; i < 2; i++)
			contexts[i] = (int32_t)rng_below(&rng, 13);
		for (i = 0; i < 2; i++)
			valid[i] = (int64_t)rng_below(&rng, 4) - 1;
		a = good_args();
		ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
		memcpy(eager, slots, sizeof eager);
		memcpy(eager_counts, counts, sizeof counts);
		memset(slots, 0x5A, sizeof slots);
		memset(counts, 0x5A, sizeof counts);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(slots, eager, sizeof eager);
		ck_assert_mem_eq(counts, eager_counts, sizeof counts);
	}
}
END_TEST

/* Pages of 64: position 999999 is entry 63 of column 15624, 1000063 that of the
 * last column, 15625. Page 33000000 has the slots from 2112000000 on, whose
 * bytes lie past 2^40. Rows of the table are wider than they have to be. */
START_TEST(positions_of_a_million_tokens_are_mapped)
{
	enum { COLUMNS = 15626, STRIDE = 15700 };
	static const int32_t in[4] = {999999, 1000063, 1000064, 0};
	static const int32_t want[4] = {2112000063, 639, -1, 320};
	int32_t *wide = test_alloc(2 * STRIDE * sizeof *wide, 0xFF);
	spmla_index_map_args a = good_args();
	int32_t got[4];

	wide[STRIDE] = 5;
	wide[STRIDE + 15624] = 33000000;
	wide[STRIDE + 15625] = 9;
	wide[STRIDE + COLUMNS] = 7; /* no column */
	a.tokens = 1;
	a.k = 4;
	a.columns = COLUMNS;
	a.table_stride_elems = STRIDE;
	a.page_tokens = 64;
	a.pool_pages = 33000001;
	a.token_row = &row_of[1];
	a.block_table = wide;
	a.indices = in;
	a.slots = got;
	a.workspace_ids = NULL;
	a.context_lens = NULL;
	a.slot_mapping = NULL;
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got, want, sizeof want);
	ck_assert_int_eq(counts[0], 3);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	free(wide);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_number_that_is_wrong_is_named, 1},
		{every_stride_that_is_wrong_is_named, 1},
		{every_pointer_that_is_missing_is_named, 5},
		{what_is_optional_may_be_missing, 1},
	};
	const theme_test layout[] = {
		{positions_of_a_million_tokens_are_mapped, 1},
	};
	const theme_test graph[] = {
		{replay_sees_what_changed_in_place, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
