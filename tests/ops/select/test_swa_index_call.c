/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index, the call: what the host refuses, and that a recorded call equals
 * an eager one. The windows are in test_swa_index.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/swa_index.h"

#define FIELD(field) ARG_FIELD(spmla_swa_index_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: swa_index."
#define NO_POINTER(field)                                 \
	{                                                 \
		FIELD(field), 0, SPMLA_E_NULL,            \
			"SPMLA_E_NULL: swa_index." #field \
			": got NULL, want a pointer"      \
	}

static fixture f;
static int32_t pos[2], row[2], table[2 * 3], replay[2], query[3], seq[2];
static int64_t slot[2];
static struct {
	int32_t indices[2 * 8];
	int32_t lens[2];
	int32_t gather[2];
} io;
static spmla_swa_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	a = (spmla_swa_index_args){.struct_bytes = sizeof a,
				   .tokens = 2,
				   .window = 6,
				   .width = 8,
				   .rows = 2,
				   .columns = 3,
				   .table_stride_elems = 3,
				   .page_tokens = 4,
				   .page_stride_rows = 5,
				   .pool_pages = 64,
				   .requests = 2,
				   .positions = pos,
				   .token_row = row,
				   .slot_mapping = slot,
				   .block_table = table,
				   .replay_starts = replay,
				   .indices = io.indices,
				   .indices_stride_elems = 8,
				   .lens = io.lens,
				   .query_start_loc = query,
				   .seq_lens = seq,
				   .gather_lens = io.gather};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_status
call(const void *args)
{
	return spmla_swa_index(f.ctx, args, NULL);
}

/* A ring for windows of 6 in pages of 4: 4 + 4 positions hold 6 only where they
 * start a page, (6 + 4 - 2) / 4 + 1 = 3 columns hold them anywhere; 3 hold
 * images of 2 too, (8 + 4 - 2) / 4 + 1. */
START_TEST(every_field_is_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
		 "SPMLA_E_STRUCT_SIZE: swa_index: got 8, want 168"},
		{FIELD(window), 0, RANGE "window: got 0, want at least 1"},
		{FIELD(width), 5, RANGE "width: got 5, want at least 6"},
		{FIELD(width), UINT32_C(1) << 31,
		 RANGE "width: got 2147483648, want at most 2147483647"},
		{FIELD(rows), 0, RANGE "rows: got 0, want at least 1"},
		{FIELD(columns), 0, RANGE "columns: got 0, want at least 1"},
		{FIELD(table_stride_elems), 2,
		 RANGE "table_stride_elems: got 2, want at least 3"},
		{FIELD(page_tokens), 0,
		 RANGE "page_tokens: got 0, want at least 1"},
		{FIELD(page_tokens), UINT32_C(1) << 31,
		 RANGE "page_tokens: got 2147483648, want at most 2147483647"},
		{FIELD(page_stride_rows), 3,
		 RANGE "page_stride_rows: got 3, want at least 4"},
		{FIELD(ring), 2, RANGE "ring: got 2, want at most 1"},
		{FIELD(indices_stride_elems), 7,
		 RANGE "indices_stride_elems: got 7, want at least 8"},
		{FIELD(indices_stride_elems), UINT64_MAX,
		 RANGE "indices_stride_elems: got 0, want at least 8"},
		{FIELD(padded_lens), 2,
		 RANGE "padded_lens: got 2, want at most 1"},
		NO_POINTER(positions),
		NO_POINTER(token_row),
		NO_POINTER(slot_mapping),
		NO_POINTER(block_table),
		NO_POINTER(indices),
		NO_POINTER(lens),
		NO_POINTER(query_start_loc),
		NO_POINTER(seq_lens),
		NO_POINTER(gather_lens),
	};
	static const int32_t spans[4];
	static const arg_error images[] = {
		{FIELD(max_image), 0,
		 RANGE "max_image: got 0, want at least 1"},
		{FIELD(max_image), 3, RANGE "width: got 8, want at least 9"},
	};
	static const arg_error narrow[] = {
		{FIELD(columns), 2, RANGE "columns: got 2, want at least 3"},
	};

	index_check_errors(&f, call, &a, sizeof a, errors,
			   sizeof errors / sizeof *errors);
	a.ring = 1;
	index_check_errors(&f, call, &a, sizeof a, narrow, 1);
	a.ring = 0;
	a.image_spans = spans;
	a.max_image = 2;
	index_check_errors(&f, call, &a, sizeof a, images, 2);
	a.ring = 1;
	index_check_errors(&f, call, &a, sizeof a, narrow, 1);
	ck_assert_int_eq(io.indices[0], 0x5A5A5A5A);
	ck_assert_int_eq(io.gather[0], 0x5A5A5A5A);
	ck_assert_int_eq(spmla_swa_index(NULL, &a, NULL), SPMLA_E_NULL);
}
END_TEST

START_TEST(what_is_optional_may_be_missing)
{
	a.replay_starts = NULL;
	a.page_stride_rows = a.pool_pages = a.requests = 0;
	a.query_start_loc = a.seq_lens = NULL;
	a.gather_lens = NULL;
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(io.lens[0], 1);
	ck_assert_int_eq(io.gather[0], 0x5A5A5A5A);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	const spmla_swa_index_args good = a;
	uint64_t rng = test_seed() + 5;
	spmla_graph graph;
	uint32_t round, i;
	uint8_t eager[sizeof io];

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(call(&a), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(io.indices[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		index_random(&rng, table, 6, 64);
		index_random(&rng, pos, 2, 12);
		index_random(&rng, replay, 2, 3);
		for (i = 0; i < 2; i++) {
			row[i] = (int32_t)rng_below(&rng, 2);
			slot[i] = (int64_t)rng_below(&rng, 4) - 1;
			query[i + 1] = query[i] + (int32_t)rng_below(&rng, 3);
			seq[i] = 5 + (int32_t)rng_below(&rng, 9);
		}
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
