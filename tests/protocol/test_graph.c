/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures and graphs: their errors, that a failed capture leaves no
 * trace.
 */
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/engine.h"
#include "tests/harness/themes.h"

enum { NODES = 40 };

static attn_rig r;
static attn_inputs in;

static void
open_with(uint32_t native_flags)
{
	spmla_config config;

	attn_config(&config, 8);
	config.max_graph_nodes = NODES;
	attn_inputs_open(&in);
	attn_open(&r, &config, &in, native_flags);
}

static void
setup(void)
{
	open_with(0);
}

static void
setup_deferred(void)
{
	open_with(SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	fixture_drain(&r.f);
	attn_close(&r);
	attn_inputs_close(&in);
}

static void
begin(void)
{
	ck_assert_int_eq(spmla_graph_begin(r.f.ctx, NULL), SPMLA_OK);
}

static void
abort_capture(void)
{
	ck_assert_int_eq(spmla_graph_abort(r.f.ctx), SPMLA_OK);
}

static spmla_status
prologue(spmla_source source)
{
	return spmla_step_prologue(r.f.ctx, &rig_shapes[0], source, NULL);
}

/* ---- Begin, end, abort ------------------------------------------------- */

START_TEST(begin_end_and_abort_want_their_turn)
{
	static const char *const open = "SPMLA_E_STATE: capture: got 1, want 0";
	static const char *const none = "SPMLA_E_STATE: capture: got 0, want 1";
	spmla_graph graph = 99;
	engine_list list;

	ck_assert_int_eq(spmla_graph_begin(NULL, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_end(NULL, &graph), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_abort(NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_replay(NULL, 1, 1, NULL), SPMLA_E_NULL);
	expect_error(&r.f, spmla_graph_end(r.f.ctx, &graph), none);
	expect_error(&r.f, spmla_graph_abort(r.f.ctx), none);
	begin();
	expect_error(&r.f, spmla_graph_begin(r.f.ctx, NULL), open);
	expect_error(&r.f, engine_capture_begin(r.f.ctx), open);
	expect_error(&r.f, engine_capture_end(r.f.ctx, &list),
		     "SPMLA_E_STATE: capture: got 0, want 1");
	expect_error(&r.f, engine_capture_abort(r.f.ctx),
		     "SPMLA_E_STATE: capture: got 0, want 1");
	expect_error(&r.f, spmla_graph_end(r.f.ctx, NULL),
		     "SPMLA_E_NULL: graph: got NULL, want a pointer");
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(graph, 1);
	expect_error(&r.f, spmla_graph_end(r.f.ctx, &graph), none);
	ck_assert_uint_eq(graph, 1);
}
END_TEST

START_TEST(an_engine_capture_wants_its_turn_too)
{
	static const char *const open = "SPMLA_E_STATE: capture: got 1, want 0";
	engine_list list = 0;
	spmla_graph graph;

	ck_assert_int_eq(engine_capture_begin(NULL), SPMLA_E_NULL);
	ck_assert_int_eq(engine_capture_end(NULL, &list), SPMLA_E_NULL);
	ck_assert_int_eq(engine_capture_abort(NULL), SPMLA_E_NULL);
	ck_assert_int_eq(engine_launch(NULL, 1), SPMLA_E_NULL);
	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	expect_error(&r.f, engine_capture_begin(r.f.ctx), open);
	expect_error(&r.f, spmla_graph_begin(r.f.ctx, NULL), open);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_E_STATE);
	ck_assert_int_eq(spmla_graph_abort(r.f.ctx), SPMLA_E_STATE);
	ck_assert_int_eq(engine_capture_end(r.f.ctx, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(engine_capture_end(r.f.ctx, &list), SPMLA_OK);
	ck_assert_int_eq(engine_launch(r.f.ctx, list), SPMLA_OK);
}
END_TEST

START_TEST(nothing_is_launched_inside_a_capture)
{
	static const char *const open = "SPMLA_E_STATE: capture: got 1, want 0";
	const spmla_graph graph =
		capture_prologue(&r.f, &rig_shapes[0], SPMLA_FROM_RING);
	const engine_list list =
		capture_list(&r.f, &rig_shapes[0], SPMLA_FROM_RING);

	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	begin();
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, graph, 1, NULL), open);
	expect_error(&r.f, engine_launch(r.f.ctx, list), open);
	abort_capture();
	replay(&r.f, graph, 1);
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(capturing_consumes_nothing_and_runs_nothing)
{
	const uint64_t *consumed =
		spmla_view(r.f.ctx, SPMLA_BUF_RING_CONSUMED, NULL);
	spmla_graph graph;

	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	attn_forget(&r);
	begin();
	ck_assert_int_eq(attn_enqueue(&r, &rig_shapes[1], SPMLA_FROM_RING),
			 SPMLA_OK);
	ck_assert_uint_eq(write_one(&r.f, 1, 6), 2); /* writing is legal */
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(fixture_pending(&r.f), 0);
	ck_assert_uint_eq(*consumed, 0);
	ck_assert_uint_eq(r.out[0][0], 0xABAB);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 2), SPMLA_OK);
	replay(&r.f, graph, 1);
	fixture_drain(&r.f);
	ck_assert_uint_eq(*consumed, 1);
	ck_assert_uint_ne(r.out[0][0], 0xABAB);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(two_ring_prologues_in_one_capture_are_refused)
{
	spmla_graph graph = 0;

	begin();
	ck_assert_int_eq(prologue(SPMLA_FROM_RING), SPMLA_OK);
	ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
	ck_assert_int_eq(prologue(SPMLA_FROM_RING), SPMLA_OK);
	expect_error(&r.f, spmla_graph_end(r.f.ctx, &graph),
		     "SPMLA_E_CAPTURE: FROM_RING prologues in the capture: got "
		     "2, want at most 1");
	ck_assert_uint_eq(graph, 0);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_E_CAPTURE);
	abort_capture();
	graph = capture_prologue(&r.f, &rig_shapes[0], SPMLA_FROM_RING);
	replay(&r.f, graph, write_one(&r.f, 0, 5));
}
END_TEST

/* ---- A failed capture -------------------------------------------------- */

/* What an engine may get wrong inside a capture. */
static spmla_status
go_wrong(uint32_t how)
{
	spmla_v32_layer layer = r.layer[0];
	const spmla_shape huge = {17, 1, 1, 0};

	switch (how) {
	case 0:
		layer.kv_c = NULL;
		return spmla_v32_insert(r.f.ctx, &layer, &rig_shapes[0], NULL);
	case 1:
		layer.struct_bytes = 0;
		return spmla_v32_attend(r.f.ctx, &layer, &rig_shapes[0], NULL);
	case 2:
		layer.index.pages = 63;
		return spmla_v32_index(r.f.ctx, &layer, &rig_shapes[0], NULL);
	case 3:
		return spmla_v32_index(r.f.ctx, NULL, &rig_shapes[0], NULL);
	case 4:
		return spmla_v32_insert(r.f.ctx, &layer, &huge, NULL);
	case 5:
		return spmla_v32_attn(r.f.ctx, &layer, NULL, NULL);
	case 6:
		return spmla_step_prologue(r.f.ctx, &huge, SPMLA_FROM_RING,
					   NULL);
	case 7:
		layer.topk_lens = NULL;
		return spmla_v32_index(r.f.ctx, &layer, &rig_shapes[0], NULL);
	default:
		return spmla_table_write(r.f.ctx, 0, 0, 0, 0, NULL);
	}
}

START_TEST(a_failed_op_fails_the_capture_and_abort_gives_all_back)
{
	spmla_graph graph;
	uint32_t how, i;

	for (how = 0; how < 9; how++) {
		begin();
		for (i = 0; i < NODES - 1; i++)
			ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
		ck_assert_int_ne(go_wrong(how), SPMLA_OK);
		ck_assert_int_eq(prologue(SPMLA_FROM_RING), SPMLA_OK);
		ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph),
				 SPMLA_E_CAPTURE);
		abort_capture();
	}
	attn_fill_step(&in, 1);
	begin(); /* all the nodes, and the context, are as before */
	ck_assert_int_eq(attn_enqueue(&r, &rig_shapes[0], SPMLA_FROM_RING),
			 SPMLA_OK);
	for (i = 1 + 7 * ATTN_LAYERS; i < NODES; i++)
		ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(graph, 1);
	replay(&r.f, graph, write_one(&r.f, 0, 5));
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_failed_op_outside_a_capture_fails_none)
{
	spmla_graph graph;
	uint32_t how;

	for (how = 0; how < 8; how++)
		ck_assert_int_ne(go_wrong(how), SPMLA_OK);
	begin();
	ck_assert_int_eq(prologue(SPMLA_FROM_RING), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_OK);
}
END_TEST

START_TEST(an_engine_capture_holds_what_did_not_fail)
{
	engine_list list;

	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	ck_assert_int_eq(prologue(SPMLA_FROM_RING), SPMLA_OK);
	ck_assert_int_ne(go_wrong(0), SPMLA_OK);
	ck_assert_int_eq(engine_capture_end(r.f.ctx, &list), SPMLA_OK);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ck_assert_int_eq(engine_launch(r.f.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, 1), SPMLA_OK);
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

SUITE
{
	const theme_test turns[] = {
		{begin_end_and_abort_want_their_turn, 1},
		{an_engine_capture_wants_its_turn_too, 1},
		{nothing_is_launched_inside_a_capture, 1},
		{capturing_consumes_nothing_and_runs_nothing, 1},
		{two_ring_prologues_in_one_capture_are_refused, 1},
	};
	const theme_test failed[] = {
		{a_failed_op_fails_the_capture_and_abort_gives_all_back, 1},
		{a_failed_op_outside_a_capture_fails_none, 1},
		{an_engine_capture_holds_what_did_not_fail, 1},
	};
	const theme themes[] = {
		THEME("begin, end, abort", setup, teardown, turns),
		THEME("begin, end, abort, queued", setup_deferred, teardown,
		      turns),
		THEME("a failed capture", setup, teardown, failed),
	};

	return RUN_THEMES(themes);
}
