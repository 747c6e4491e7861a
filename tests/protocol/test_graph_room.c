/* SPDX-License-Identifier: Apache-2.0
 *
 * Planned room for graphs and for the deferred queue: what happens when it is
 * used up; and an engine's own launches beside replays. Nodes and the queue
 * take planned room on the CPU only: elsewhere both are the driver's.
 */
#include <string.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"

enum { NODES = 40, GRAPHS = 3, ENTRIES = 5 };

static fixture f;

static void
open_with(uint32_t native_flags)
{
	spmla_config config;

	fixture_config(&config);
	config.ring_slots = 8;
	config.max_graph_nodes = NODES;
	config.max_graphs = GRAPHS;
	config.queue_entries = ENTRIES;
	fixture_open(&f, &config, native_flags);
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
	fixture_drain(&f);
	fixture_close(&f);
}

static void
begin(void)
{
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
}

static spmla_status
prologue(spmla_source source)
{
	return spmla_step_prologue(f.ctx, &rig_shapes[0], source, NULL);
}

/* ---- Room -------------------------------------------------------------- */

START_TEST(nodes_are_counted_over_all_graphs)
{
	spmla_graph graph;
	uint32_t i;

	if (f.backend != &spmla_cpu)
		return;
	begin();
	for (i = 0; i < NODES - 3; i++)
		ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	begin();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
	expect_error(&f, prologue(SPMLA_ADVANCE),
		     "SPMLA_E_SPACE: config.max_graph_nodes: got 41, want at "
		     "most 40");
	expect_error(&f, spmla_graph_end(f.ctx, &graph),
		     "SPMLA_E_CAPTURE: status of an op in the capture: got 61, "
		     "want 0");
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
	begin();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(prologue(SPMLA_ADVANCE), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(graph, 2);
}
END_TEST

START_TEST(graphs_and_lists_share_their_number)
{
	static const char *const text =
		"SPMLA_E_SPACE: config.max_graphs: got 4, want at most 3";

	(void)capture_prologue(&f, &rig_shapes[0], SPMLA_FROM_RING);
	(void)capture_list(&f, &rig_shapes[0], SPMLA_FROM_RING);
	(void)capture_prologue(&f, &rig_shapes[0], SPMLA_ADVANCE);
	expect_error(&f, spmla_graph_begin(f.ctx, NULL), text);
	expect_error(&f, engine_capture_begin(f.ctx), text);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_E_STATE);
}
END_TEST

START_TEST(a_full_queue_refuses_a_replay_and_the_ticket_stays_due)
{
	static const char *const text =
		"SPMLA_E_SPACE: config.queue_entries: got 6, want at most 5";
	const spmla_graph graph =
		capture_prologue(&f, &rig_shapes[0], SPMLA_FROM_RING);
	uint64_t t;

	if (f.backend != &spmla_cpu)
		return;
	for (t = 1; t <= ENTRIES; t++)
		replay(&f, graph, write_one(&f, 0, 5));
	ck_assert_uint_eq(write_one(&f, 1, 6), 6);
	expect_error(&f, spmla_graph_replay(f.ctx, graph, 6, NULL), text);
	expect_error(&f, prologue(SPMLA_FROM_RING), text);
	expect_error(&f, prologue(SPMLA_ADVANCE), text);
	expect_error(&f, spmla_table_write(f.ctx, 0, 0, 0, 0, NULL), text);
	ck_assert_int_eq(spmla_step_undo(f.ctx, 6), SPMLA_OK);
	ck_assert_uint_eq(write_one(&f, 2, 7), 6);
	expect_error(&f, spmla_graph_replay(f.ctx, graph, 6, NULL), text);
	ck_assert_uint_eq(fixture_pending(&f), ENTRIES);
	ck_assert_uint_eq(fixture_run(&f, 1), 1);
	replay(&f, graph, 6);
	ck_assert_uint_eq(fixture_run(&f, 100), ENTRIES);
	ck_assert_uint_eq(fixture_run(&f, 100), 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	ck_assert_uint_eq(write_one(&f, 2, 7), 7);
}
END_TEST

/* ---- Both forms -------------------------------------------------------- */

START_TEST(an_engine_may_mix_its_launches_with_replays)
{
	const spmla_graph graph =
		capture_prologue(&f, &rig_shapes[0], SPMLA_FROM_RING);
	const engine_list list =
		capture_list(&f, &rig_shapes[1], SPMLA_FROM_RING);
	const int32_t *lens = spmla_view(f.ctx, SPMLA_BUF_SEQ_LENS, NULL);
	uint32_t i;
	uint64_t t;

	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(write_one(&f, i, 10 + i), i + 1);
	for (t = 1; t <= 5; t++) {
		if (t % 2) {
			replay(&f, graph, t);
			continue;
		}
		ck_assert_int_eq(engine_launch(f.ctx, list), SPMLA_OK);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, t + 1, NULL),
				 SPMLA_E_TICKET); /* not told yet */
		ck_assert_int_eq(spmla_step_launched(f.ctx, t), SPMLA_OK);
	}
	for (i = 0; i < 5; i++) {
		ck_assert_uint_eq(fixture_run(&f, 1), 1);
		ck_assert_int_eq(lens[0], (int32_t)(10 + i));
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

SUITE
{
	const theme_test graph_room[] = {
		{nodes_are_counted_over_all_graphs, 1},
		{graphs_and_lists_share_their_number, 1},
	};
	const theme_test queue[] = {
		{a_full_queue_refuses_a_replay_and_the_ticket_stays_due, 1},
		{an_engine_may_mix_its_launches_with_replays, 1},
	};
	const theme themes[] = {
		THEME("graphs", setup, teardown, graph_room),
		THEME("the queue", setup_deferred, teardown, queue),
	};

	return RUN_THEMES(themes);
}
