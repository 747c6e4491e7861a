/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index, the call: what the host refuses, and that a recorded call equals
 * an eager one. The rows are in test_c128a_index.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/c128a_index.h"

#define FIELD(field) ARG_FIELD(spmla_c128a_index_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: c128a_index."
#define NO_POINTER(field)                                   \
	{                                                   \
		FIELD(field), 0, SPMLA_E_NULL,              \
			"SPMLA_E_NULL: c128a_index." #field \
			": got NULL, want a pointer"        \
	}

static fixture f;
static int32_t pos[4], row[2], table[2 * 3];
static int64_t slot[4];
static struct {
	int32_t slots[2 * 8];
	int32_t lens[2];
	int32_t local[2 * 8];
	int32_t local_lens[2];
} io;
static spmla_c128a_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	a = (spmla_c128a_index_args){.struct_bytes = sizeof a,
				     .tokens = 4,
				     .decode_tokens = 2,
				     .ratio = 4,
				     .width = 6,
				     .rows = 2,
				     .columns = 3,
				     .table_stride_elems = 3,
				     .page_entries = 2,
				     .page_stride_rows = 3,
				     .pool_pages = 64,
				     .positions = pos,
				     .slot_mapping = slot,
				     .token_row = row,
				     .block_table = table,
				     .decode_slots = io.slots,
				     .decode_stride_elems = 8,
				     .decode_lens = io.lens,
				     .prefill_indices = io.local,
				     .prefill_stride_elems = 8,
				     .prefill_lens = io.local_lens};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_status
call(const void *args)
{
	return spmla_c128a_index(f.ctx, args, NULL);
}

START_TEST(every_field_is_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
		 "SPMLA_E_STRUCT_SIZE: c128a_index: got 8, want 136"},
		{FIELD(decode_tokens), 5,
		 RANGE "decode_tokens: got 5, want at most 4"},
		{FIELD(ratio), 0, RANGE "ratio: got 0, want at least 1"},
		{FIELD(width), 0, RANGE "width: got 0, want at least 1"},
		{FIELD(width), UINT32_C(1) << 31,
		 RANGE "width: got 2147483648, want at most 2147483647"},
		{FIELD(rows), 0, RANGE "rows: got 0, want at least 1"},
		{FIELD(columns), 0, RANGE "columns: got 0, want at least 1"},
		{FIELD(table_stride_elems), 2,
		 RANGE "table_stride_elems: got 2, want at least 3"},
		{FIELD(page_entries), 0,
		 RANGE "page_entries: got 0, want at least 1"},
		{FIELD(page_entries), UINT32_C(1) << 31,
		 RANGE "page_entries: got 2147483648, want at most 2147483647"},
		{FIELD(page_stride_rows), 1,
		 RANGE "page_stride_rows: got 1, want at least 2"},
		{FIELD(decode_stride_elems), 5,
		 RANGE "decode_stride_elems: got 5, want at least 6"},
		{FIELD(prefill_stride_elems), UINT64_MAX,
		 RANGE "prefill_stride_elems: got 0, want at least 6"},
		NO_POINTER(positions),
		NO_POINTER(slot_mapping),
		NO_POINTER(token_row),
		NO_POINTER(block_table),
		NO_POINTER(decode_slots),
		NO_POINTER(decode_lens),
		NO_POINTER(prefill_indices),
	};

	index_check_errors(&f, call, &a, sizeof a, errors,
			   sizeof errors / sizeof *errors);
	ck_assert_int_eq(io.slots[0], 0x5A5A5A5A);
	ck_assert_int_eq(io.local[0], 0x5A5A5A5A);
	ck_assert_int_eq(spmla_c128a_index(NULL, &a, NULL), SPMLA_E_NULL);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	a.page_stride_rows = a.pool_pages = 0;
	a.prefill_lens = NULL;
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(io.lens[0], 0);
	ck_assert_int_eq(io.local_lens[0], 0x5A5A5A5A);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const spmla_c128a_index_args good = a;
	uint64_t rng = test_seed() + 5;
	spmla_graph graph;
	uint32_t round, i;
	uint8_t eager[sizeof io];

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(io.slots[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		index_random(&rng, table, 6, 64);
		index_random(&rng, pos, 4, 24);
		index_random(&rng, row, 2, 2);
		for (i = 0; i < 4; i++)
			slot[i] = (int64_t)rng_below(&rng, 4) - 1;
		ck_assert_int_eq(call(&good), SPMLA_OK);
		memcpy(eager, &io, sizeof io);
		memset(&io, 0x5A, sizeof io);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(&io, eager, sizeof io);
	}
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{what_is_optional_may_be_missing, 1},
	};
	const theme_test graph[] = {
		{replay_sees_what_changed_in_place, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
