/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring, device side: one launch takes one record, in order, whatever graph
 * it is; a launch without its record, or with one that is too large, is an
 * empty step. An engine's own lists stand for engines that keep the order
 * themselves, and here they do not.
 */
#include <string.h>

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

/* A step that only the third bucket can take: four query tokens. */
static void
large(draft *d)
{
	static const int32_t pages[2] = {60, 61};

	draft_clear(d);
	draft_request(d, 6, 4, 20, SPMLA_REQUEST_JOIN);
	draft_store(d, 6, 0, 2, pages);
}

/* ---- No record --------------------------------------------------------- */

START_TEST(a_launch_without_a_record_is_an_empty_step)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ring_launch(&r, i);
		fixture_drain(&r.f);
		expect_empty_step(&r.f, &rig_shapes[i]);
		expect_status(&r.f, i + 1, SPMLA_FAULT_TICKET_MISSING,
			      SPMLA_NO_INDEX, 1);
		ck_assert_uint_eq(ring_consumed(&r), 0);
	}
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	replay(&r.f, r.graphs[0], 1);
	fixture_drain(&r.f);
	ck_assert_uint_eq(ring_consumed(&r), 1);
	ck_assert_uint_eq(fixture_status(&r.f).count, 3);
}
END_TEST

START_TEST(a_double_launch_leaves_the_next_record_to_its_own_launch)
{
	draft d;

	draft_one(&d, 2, 9);
	replay(&r.f, r.graphs[1], draft_write(&r.f, &d));
	ring_launch(&r, 1); /* the same step again */
	ring_run_one(&r);
	ring_check(&r, &d, 1);
	ring_run_one(&r);
	model_empty(&r.m, SPMLA_FAULT_TICKET_MISSING);
	model_check(&r.m, &r.f, &rig_shapes[1]);
	ck_assert_uint_eq(ring_consumed(&r), 1);
	draft_one(&d, 3, 10);
	replay(&r.f, r.graphs[1], draft_write(&r.f, &d));
	ring_run_one(&r);
	ring_check(&r, &d, 1);
	ck_assert_uint_eq(ring_consumed(&r), 2);
}
END_TEST

START_TEST(a_record_that_was_undone_is_missing)
{
	ck_assert_uint_eq(write_one(&r.f, 0, 5), 1);
	replay(&r.f, r.graphs[0], 1);
	ck_assert_uint_eq(write_one(&r.f, 1, 6), 2);
	ck_assert_int_eq(spmla_step_undo(r.f.ctx, 2), SPMLA_OK);
	ring_launch(&r, 0);
	fixture_drain(&r.f);
	expect_empty_step(&r.f, &rig_shapes[0]);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 2);
	ck_assert_uint_eq(ring_consumed(&r), 1);
}
END_TEST

START_TEST(an_older_ticket_in_the_slot_never_matches)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
	fixture_drain(&r.f); /* slot 5 % 4 holds ticket 1 */
	ring_launch(&r, 0);
	fixture_drain(&r.f);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 5);
	ck_assert_uint_eq(ring_consumed(&r), 4);
}
END_TEST

START_TEST(a_launch_with_an_empty_ring_never_reads_what_lies_there)
{
	uint8_t *ring = spmla_view(r.f.ctx, SPMLA_BUF_STEP_RING, NULL);
	const uint64_t bytes = r.f.plan.record_bytes;
	uint32_t i;

	for (i = 0; i < 4; i++) { /* no ticket, but else full of nonsense */
		memset(ring + i * bytes, 0xEE, (size_t)bytes);
		memset(ring + i * bytes, 0, 8);
	}
	ring_launch(&r, 2);
	fixture_drain(&r.f);
	expect_empty_step(&r.f, &rig_shapes[2]);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 1);
}
END_TEST

/* ---- Too large --------------------------------------------------------- */

/* The record of d does not fit bucket `b`: a replay is refused, an engine's own
 * launch is an empty step. */
static void
expect_too_large(draft *d, uint32_t b)
{
	const uint64_t ticket = draft_write(&r.f, d);

	ck_assert_int_eq(spmla_graph_replay(r.f.ctx, r.graphs[b], ticket, NULL),
			 SPMLA_E_RANGE);
	ck_assert_uint_eq(fixture_pending(&r.f), 0);
	ring_launch_ticket(&r, b, ticket);
	fixture_drain(&r.f);
	expect_empty_step(&r.f, &rig_shapes[b]);
	expect_status(&r.f, 1, SPMLA_FAULT_TOO_LARGE, SPMLA_NO_INDEX, ticket);
	ck_assert_uint_eq(ring_consumed(&r), ticket);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
}

START_TEST(a_record_larger_than_its_bucket_is_an_empty_step_and_used_up)
{
	draft d;
	uint32_t i;

	large(&d); /* next_n 4 */
	expect_too_large(&d, 0);
	expect_too_large(&d, 1);
	draft_clear(&d); /* five requests, one of them paused */
	for (i = 0; i < 5; i++)
		draft_request(&d, i, i > 0, 5, SPMLA_REQUEST_JOIN);
	expect_too_large(&d, 0);
	expect_too_large(&d, 1);
	draft_clear(&d); /* six tokens */
	for (i = 0; i < 3; i++)
		draft_request(&d, i, 2, 5, SPMLA_REQUEST_JOIN);
	expect_too_large(&d, 0);
	draft_one(&d, 1, 7);
	replay(&r.f, r.graphs[0], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ring_check(&r, &d, 0);
}
END_TEST

START_TEST(a_record_over_the_live_context_of_its_shape_is_too_large)
{
	const spmla_shape tight = {4, 4, 1, 40};
	draft d;
	uint64_t t;

	draft_one(&d, 1, 40);
	draft_request(&d, 2, 0, 500, 0); /* paused rows do not count */
	for (t = 1; t <= 2; t++) {
		ck_assert_uint_eq(draft_write(&r.f, &d), t);
		ck_assert_int_eq(spmla_step_prologue(r.f.ctx, &tight,
						     SPMLA_FROM_RING, NULL),
				 SPMLA_OK);
		fixture_drain(&r.f);
		model_record(&r.m, &d, &tight);
		ck_assert_uint_eq(r.m.requests, t == 1 ? 2 : 0);
		model_check(&r.m, &r.f, &tight);
		d.requests[0].seq_len_tokens++;
	}
}
END_TEST

/* Each measure alone, with the bucket's and one more. */
START_TEST(a_replay_of_a_record_that_is_too_large_is_refused_by_name)
{
	static const char *const text[3] = {
		"SPMLA_E_RANGE: record: tokens (of the graph's shape): got 6, "
		"want at most 4",
		"SPMLA_E_RANGE: record: requests (of the graph's shape): got "
		"5, want at most 4",
		"SPMLA_E_RANGE: record: next_n (of the graph's shape): got 2, "
		"want at most 1",
	};
	draft d;
	uint32_t i, k;

	for (k = 0; k < 3; k++) {
		draft_clear(&d);
		for (i = 0; i < (k == 0 ? 3 : k == 1 ? 5 : 1); i++)
			draft_request(&d, i, k == 1 ? i > 0 : 2, 5,
				      SPMLA_REQUEST_JOIN);
		expect_error(&r.f,
			     spmla_graph_replay(r.f.ctx, r.graphs[0],
						draft_write(&r.f, &d), NULL),
			     text[k]);
		ck_assert_int_eq(spmla_step_undo(r.f.ctx, 1), SPMLA_OK);
	}
	ck_assert_uint_eq(fixture_pending(&r.f), 0);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(a_record_that_a_small_graph_refused_is_launched_by_a_larger_one)
{
	draft d;
	uint64_t ticket;

	large(&d);
	ticket = draft_write(&r.f, &d);
	ck_assert_int_eq(spmla_graph_replay(r.f.ctx, r.graphs[1], ticket, NULL),
			 SPMLA_E_RANGE);
	replay(&r.f, r.graphs[2], ticket);
	fixture_drain(&r.f);
	ring_check(&r, &d, 2); /* joined, and its stores are there */
}
END_TEST

START_TEST(a_graph_of_less_live_context_refuses_a_record_of_more)
{
	const spmla_shape tight = {4, 4, 1, 40};
	spmla_config config;
	spmla_graph graph;
	uint64_t ticket;
	fixture f;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	graph = capture_prologue(&f, &tight, SPMLA_FROM_RING);
	ticket = write_one(&f, 0, 41);
	expect_error(&f, spmla_graph_replay(f.ctx, graph, ticket, NULL),
		     "SPMLA_E_RANGE: record: live context (of the graph's "
		     "shape): got 41, want at most 40");
	ck_assert_int_eq(spmla_step_undo(f.ctx, ticket), SPMLA_OK);
	replay(&f, graph, write_one(&f, 0, 40));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}
END_TEST

START_TEST(table_stores_and_joins_of_a_record_that_is_too_large_are_not_applied)
{
	static const int32_t other[2] = {30, 31};
	draft d;

	large(&d);
	replay(&r.f, r.graphs[2], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ring_check(&r, &d, 2);
	draft_clear(&d);
	draft_request(&d, 6, 4, 21, SPMLA_REQUEST_JOIN);
	draft_store(&d, 6, 0, 2, other);
	expect_too_large(&d, 1);
	draft_clear(&d);
	draft_request(&d, 6, 4, 21, 0);
	replay(&r.f, r.graphs[2], draft_write(&r.f, &d));
	fixture_drain(&r.f);
	ring_check(&r, &d, 2); /* pages 60 and 61 */
}
END_TEST

/* ---- A record that went bad -------------------------------------------- */

START_TEST(a_record_whose_lists_leave_its_slot_is_too_large)
{
	/* requests, stores and pages of the header, and more than fits */
	static const struct {
		size_t at;
		uint32_t value;
	} bad[] = {{20, UINT32_MAX}, {20, 0x10000000}, {24, UINT32_MAX},
		   {24, 100},        {28, UINT32_MAX}, {28, 1000}};
	uint64_t ticket;
	uint32_t i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ticket = write_one(&r.f, 2, 9);
		memcpy(ring_slot(&r, ticket) + bad[i].at, &bad[i].value, 4);
		ring_launch_ticket(&r, 2, ticket);
		fixture_drain(&r.f);
		expect_empty_step(&r.f, &rig_shapes[2]);
		expect_status(&r.f, 1, SPMLA_FAULT_TOO_LARGE, SPMLA_NO_INDEX,
			      ticket);
		ck_assert_uint_eq(ring_consumed(&r), ticket);
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	}
}
END_TEST

START_TEST(random_bytes_in_a_slot_never_fault)
{
	const int64_t *slots =
		spmla_view(r.f.ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	uint64_t rng = test_seed() + 4;
	uint32_t round, i;
	draft d;
	sim s;

	sim_open(&s, &r.f.plan, test_seed());
	for (round = 0; round < 3000; round++) {
		const uint32_t b = rng_below(&rng, 3);
		uint64_t ticket;
		uint8_t *slot;

		sim_draft(&s, &rig_shapes[b], &d);
		ticket = draft_write(&r.f, &d);
		slot = ring_slot(&r, ticket);
		for (i = rng_below(&rng, 8); i > 0; i--)
			slot[8 + rng_below(&rng, 300)] =
				(uint8_t)rng_next(&rng);
		ring_launch_ticket(&r, b, ticket);
		fixture_drain(&r.f);
		ck_assert_uint_eq(ring_consumed(&r), ticket);
		for (i = 0; i < rig_shapes[b].tokens; i++) {
			ck_assert_int_ge(slots[i], -1);
			ck_assert_int_lt(slots[i], 1024);
		}
	}
}
END_TEST

SUITE
{
	const theme_test missing[] = {
		{a_launch_without_a_record_is_an_empty_step, 1},
		{a_double_launch_leaves_the_next_record_to_its_own_launch, 1},
		{a_record_that_was_undone_is_missing, 1},
		{an_older_ticket_in_the_slot_never_matches, 1},
		{a_launch_with_an_empty_ring_never_reads_what_lies_there, 1},
	};
	const theme_test too_large[] = {
		{a_replay_of_a_record_that_is_too_large_is_refused_by_name, 1},
		{a_record_that_a_small_graph_refused_is_launched_by_a_larger_one,
		 1},
		{a_graph_of_less_live_context_refuses_a_record_of_more, 1},
		{a_record_larger_than_its_bucket_is_an_empty_step_and_used_up,
		 1},
		{a_record_over_the_live_context_of_its_shape_is_too_large, 1},
		{table_stores_and_joins_of_a_record_that_is_too_large_are_not_applied,
		 1},
	};
	const theme_test bad[] = {
		{a_record_whose_lists_leave_its_slot_is_too_large, 1},
		{random_bytes_in_a_slot_never_fault, 1},
	};
	const theme themes[] = {
		THEME("no record", setup, teardown, missing),
		THEME("too large", setup, teardown, too_large),
		THEME("a bad record", setup, teardown, bad),
	};

	return RUN_THEMES(themes);
}
