/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save as a call: every field that is checked, pages far apart,
 * replays.
 */
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/state_rig.h"
#include "tests/reference/narrow_ref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIELD(f) ARG_FIELD(spmla_compress_state_save_args, f)
#define R        "SPMLA_E_RANGE: "
#define N        "SPMLA_E_NULL: "
#define OP       "compress_state_save."
#define PTR      ": got NULL, want a pointer"

static void
expect_errors(state_rig *r, const arg_error *e, uint32_t n)
{
	const spmla_compress_state_save_args good = r->a;

	for (; n > 0; n--, e++) {
		r->a = good;
		memcpy((uint8_t *)&r->a + e->offset, &e->value, e->bytes);
		expect_error(&r->f,
			     spmla_compress_state_save(r->f.ctx, &r->a, NULL),
			     e->text);
	}
	r->a = good;
}

START_TEST(every_field_is_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(struct_bytes), 175, 0,
		 "SPMLA_E_STRUCT_SIZE: compress_state_save: got 175, want 160"},
		{FIELD(ratio), 8, 0,
		 "SPMLA_E_UNSUPPORTED: compress_state_save.ratio: got 8, want "
		 "4"},
		{FIELD(ratio), 0, 0,
		 "SPMLA_E_UNSUPPORTED: compress_state_save.ratio: got 0, want "
		 "4"},
		{FIELD(ratio), 128, 0, R "state.layout: got 10, want 9"},
		{FIELD(form), 2, 0, R OP "form: got 2, want at most 1"},
		{FIELD(state.struct_bytes), 0, 0,
		 "SPMLA_E_STRUCT_SIZE: state.struct_bytes: got 0, want 40"},
		{FIELD(state.layout), 9, 0, R "state.layout: got 9, want 8"},
		{FIELD(state.entries_per_page), 0, 0,
		 R "state.entries_per_page: got 0, want at least 1"},
		{FIELD(state.pages), 0, 0,
		 R "state.pages: got 0, want at least 1"},
		{FIELD(state.page_stride_bytes), 32752, 0,
		 R "state.page_stride_bytes: got 32752, want at least 32768"},
		{FIELD(state.base), 0, 0, N "state.base" PTR},
		{FIELD(kv), 0, 0, N OP "kv" PTR},
		{FIELD(score), 0, 0, N OP "score" PTR},
		{FIELD(kv_stride_elems), 1023, 0,
		 R OP "kv_stride_elems: got 1023, want at least 1024"},
		{FIELD(score_stride_elems), (uint64_t)-1024, 0,
		 R OP "score_stride_elems: got 0, want at least 1024"},
		{FIELD(ape), 0, 0, N OP "ape" PTR},
		{FIELD(positions), 0, 0, N OP "positions" PTR},
		{FIELD(slot_mapping), 0, 0, N OP "slot_mapping" PTR},
	};
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_1024, 3, 4, 2, 0);
	expect_errors(&r, errors, sizeof errors / sizeof *errors);
	state_rig_check(&r); /* and the rest of the fields does not matter */
	ck_assert_int_eq(spmla_compress_state_save(NULL, &r.a, NULL),
			 SPMLA_E_NULL);
	expect_error(&r.f, spmla_compress_state_save(r.f.ctx, NULL, NULL),
		     N "compress_state_save" PTR);
	state_rig_close(&r);
}
END_TEST

/* 128 tokens of a group need two columns of 64. */
START_TEST(fields_of_a_ring_are_checked_and_named)
{
	static const arg_error errors[] = {
		{FIELD(rows), 0, 0, R OP "rows: got 0, want at least 1"},
		{FIELD(columns), 0, 0, R OP "columns: got 0, want at least 1"},
		{FIELD(columns), 1, 0, R OP "columns: got 1, want at least 2"},
		{FIELD(table_stride_elems), 1, 0,
		 R OP "table_stride_elems: got 1, want at least 2"},
		{FIELD(token_row), 0, 0, N OP "token_row" PTR},
		{FIELD(block_table), 0, 0, N OP "block_table" PTR},
		{FIELD(context_lens), 0, 0, N OP "context_lens" PTR},
	};
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_512, 3, 64, 10, 0);
	state_rig_ring(&r, 2);
	(void)state_rig_request(&r, 0, 3, 1, 500);
	expect_errors(&r, errors, sizeof errors / sizeof *errors);
	state_rig_check(&r);
	state_rig_close(&r);
}
END_TEST

START_TEST(no_tokens_need_no_pointers_and_write_nothing)
{
	spmla_compress_state_save_args none = {0};
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 3, 4, 1, 0);
	r.a.tokens = 0;
	state_rig_check(&r);
	none.struct_bytes = (uint32_t)sizeof none;
	ck_assert_int_eq(spmla_compress_state_save(r.f.ctx, &none, NULL),
			 SPMLA_OK);
	state_rig_close(&r);
}
END_TEST

/* Pages 2^31 + 1024 bytes apart: page 2 starts past 2^32. */
START_TEST(pages_may_be_more_than_2_gib_apart)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const uint64_t stride = (UINT64_C(1) << 31) + 1024;
	uint8_t *far_state;
	uint32_t t;
	state_rig r;

	far_state = test_map(bytes);
	state_rig_open(&r, SPMLA_LAYOUT_STATE_256, 3, 4, 3, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = 4 * t + t;
	state_rig_check(&r);
	r.a.state.base = far_state;
	r.a.state.page_stride_bytes = stride;
	ck_assert_int_eq(spmla_compress_state_save(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	fixture_drain(&r.f);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(far_state + t * (stride + 2048),
				 r.state + t * (4 * 2048 + 2048), 2048);
	munmap(far_state, bytes);
	state_rig_close(&r);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_graph graph;
	int32_t i;
	state_rig r;

	state_rig_open(&r, SPMLA_LAYOUT_STATE_512, 2, 64, 10, 0);
	state_rig_ring(&r, 2);
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_compress_state_save(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		(void)state_rig_request(&r, 0, 2, i, 63 * i + 126);
		state_rig_check(&r);
		memset(r.state, 0xAB, r.state_bytes);
		replay(&r.f, graph, 0);
		check_bytes(r.state, r.want, r.state_bytes);
	}
	state_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{fields_of_a_ring_are_checked_and_named, 1},
	};
	const theme_test edge[] = {
		{no_tokens_need_no_pointers_and_write_nothing, 1},
	};
	const theme_test layout[] = {
		{pages_may_be_more_than_2_gib_apart, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
		THEME("graph", NULL, NULL, graph),
	};

	return RUN_THEMES(themes);
}
