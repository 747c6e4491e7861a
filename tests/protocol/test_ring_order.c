/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring, the order of launches: which tickets a replay and an engine's own
 * launch may take, and three buckets that share the ring.
 */
#include <string.h>

#include "tests/harness/engine.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static ring_rig r;

static void
setup(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	ring_close(&r);
}

START_TEST(replay_takes_the_next_ticket_only)
{
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[0], 0, NULL),
		     "SPMLA_E_TICKET: ticket: got 0, want 1");
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[0], 1, NULL),
		     "SPMLA_E_TICKET: ticket (not written): got 1, want at "
		     "most 0");
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ck_assert_uint_eq(write_one(&r.f, 0, 6), 2);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[0], 2, NULL),
		     "SPMLA_E_TICKET: ticket: got 2, want 1");
	replay(&r.f, r.graphs[0], 1);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[0], 1, NULL),
		     "SPMLA_E_TICKET: ticket: got 1, want 2");
	replay(&r.f, r.graphs[1], 2);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, r.graphs[1], 3, NULL),
		     "SPMLA_E_TICKET: ticket (not written): got 3, want at "
		     "most 2");
	ck_assert_uint_eq(fixture_pending(&r.f), 2);
	fixture_drain(&r.f);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_graph_without_a_ring_prologue_takes_no_ticket)
{
	spmla_config config;
	spmla_graph graph;

	fixture_drain(&r.f);
	fixture_close(&r.f);
	fixture_config(&config); /* six graphs were all that there may be */
	fixture_open(&r.f, &config, SPMLA_NATIVE_DEFERRED);
	graph = capture_prologue(&r.f, &rig_shapes[0], SPMLA_ADVANCE);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, graph, 1, NULL),
		     "SPMLA_E_TICKET: ticket (graph takes none): got 1, "
		     "want 0");
	replay(&r.f, graph, 0);
	replay(&r.f, graph, 0);
	fixture_drain(&r.f);
	ck_assert_uint_eq(ring_consumed(&r), 0);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 1), SPMLA_OK);
}
END_TEST

START_TEST(replay_refuses_graphs_that_it_does_not_know)
{
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, 0, 1, NULL),
		     "SPMLA_E_RANGE: graph (of spmla_graph_end): got 0, want "
		     "at most 6");
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, 7, 1, NULL),
		     "SPMLA_E_RANGE: graph (of spmla_graph_end): got 7, want "
		     "at most 6");
	expect_error(&r.f, spmla_graph_replay(r.f.ctx, UINT32_MAX, 1, NULL),
		     "SPMLA_E_RANGE: graph (of spmla_graph_end): got "
		     "4294967295, want at most 6");
	/* An engine's own list is none. */
	ck_assert_int_eq(spmla_graph_replay(r.f.ctx, r.lists[0], 1, NULL),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(engine_launch(r.f.ctx, r.graphs[0]), SPMLA_E_RANGE);
	ck_assert_int_eq(engine_launch(r.f.ctx, 0), SPMLA_E_RANGE);
	ck_assert_int_eq(engine_launch(r.f.ctx, 7), SPMLA_E_RANGE);
	ck_assert_uint_eq(fixture_pending(&r.f), 0);
	replay(&r.f, r.graphs[0], 1);
}
END_TEST

START_TEST(launched_takes_tickets_in_order_and_each_once)
{
	expect_error(&r.f, spmla_step_launched(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket (not written): got 1, want at "
		     "most 0");
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ck_assert_uint_eq(write_one(&r.f, 1, 5), 2);
	expect_error(&r.f, spmla_step_launched(r.f.ctx, 2),
		     "SPMLA_E_TICKET: ticket: got 2, want 1");
	expect_error(&r.f, spmla_step_launched(r.f.ctx, 0),
		     "SPMLA_E_TICKET: ticket: got 0, want 1");
	ring_launch(&r, 0);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, 1), SPMLA_OK);
	expect_error(&r.f, spmla_step_launched(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket: got 1, want 2");
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 1),
		     "SPMLA_E_TICKET: ticket: got 1, want 2");
	replay(&r.f, r.graphs[0], 2);
	fixture_drain(&r.f);
	ck_assert_uint_eq(ring_consumed(&r), 2);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(launched_may_come_after_the_device_is_done)
{
	uint64_t t;

	for (t = 1; t <= 3; t++) {
		ck_assert_uint_eq(write_one(&r.f, 0, 5), t);
		ring_launch(&r, 0);
		fixture_drain(&r.f);
	}
	for (t = 1; t <= 3; t++)
		ck_assert_int_eq(spmla_step_launched(r.f.ctx, t), SPMLA_OK);
	ck_assert_int_eq(spmla_step_launched(r.f.ctx, 3), SPMLA_E_TICKET);
	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
}
END_TEST

START_TEST(an_eager_prologue_is_the_launch)
{
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 2);
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 3);
	ring_launch(&r, 0); /* ticket 1, not told */
	fixture_drain(&r.f);
	ck_assert_int_eq(spmla_step_prologue(r.f.ctx, &rig_shapes[0],
					     SPMLA_FROM_RING, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 3), SPMLA_OK);
	expect_error(&r.f, spmla_step_undo(r.f.ctx, 2),
		     "SPMLA_E_TICKET: ticket (launched): got 2, want at "
		     "least 3");
	fixture_drain(&r.f);
	ck_assert_uint_eq(ring_consumed(&r), 2);
}
END_TEST

/* ---- Three buckets ----------------------------------------------------- */

START_TEST(three_buckets_share_the_ring_in_any_order)
{
	static draft log[8];
	uint64_t rng = test_seed() + 1, written = 0, launched = 0, ran = 0;
	uint32_t bucket[8];
	sim s;

	sim_open(&s, &r.f.plan, rng);
	while (ran < 600) {
		const uint32_t dice = rng_below(&rng, 3);
		const uint32_t at = written % 8;

		if (dice == 0 && written - ran < 4) {
			bucket[at] = rng_below(&rng, 3);
			sim_draft(&s, &rig_shapes[bucket[at]], &log[at]);
			ck_assert_uint_eq(draft_write(&r.f, &log[at]),
					  ++written);
		} else if (dice == 1 && launched < written) {
			replay(&r.f, r.graphs[bucket[launched % 8]],
			       launched + 1);
			launched++;
		} else if (dice == 2 && ran < launched) {
			const spmla_shape *shape = &rig_shapes[bucket[ran % 8]];

			ring_run_one(&r);
			model_record(&r.m, &log[ran++ % 8], shape);
			model_check(&r.m, &r.f, shape);
		}
	}
	ck_assert_int_eq(spmla_step_resync(r.f.ctx),
			 launched > ran ? SPMLA_E_BUSY : SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test tickets[] = {
		{replay_takes_the_next_ticket_only, 1},
		{a_graph_without_a_ring_prologue_takes_no_ticket, 1},
		{replay_refuses_graphs_that_it_does_not_know, 1},
	};
	const theme_test engine[] = {
		{launched_takes_tickets_in_order_and_each_once, 1},
		{launched_may_come_after_the_device_is_done, 1},
		{an_eager_prologue_is_the_launch, 1},
	};
	const theme_test buckets[] = {
		{three_buckets_share_the_ring_in_any_order, 1},
	};
	const theme themes[] = {
		THEME("tickets", setup, teardown, tickets),
		THEME("the engine's own launches", setup, teardown, engine),
		THEME("three buckets", setup, teardown, buckets),
	};

	return RUN_THEMES(themes);
}
