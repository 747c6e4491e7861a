/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero backend at work, on a driver that tests can break. A graph is
 * as many lists as the caller said, and no list is submitted while it runs.
 * Nothing waits. Where the host may not read beside the device, consumed
 * records are known when a list has ended. The driver runs commands between two
 * barriers in any order, and ends the test when a running list is submitted or
 * destroyed.
 */
#include "tests/core/one_op_rig.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/cuda_fake.h"
#include "tests/substitutes/ze_fake.h"

#include <string.h>

#include "spmla/internal/backend.h"
#include "spmla/spmla_level_zero.h"
#include "tests/harness/fixture.h"

enum { MOST_COPIES = 4 };

static cuda_fake_rig r;
static spmla_stream list, queue;

static void
open_with(uint32_t copies, uint32_t host_access)
{
	ze_fake_reset();
	fake_ze.host_access = host_access;
	cuda_fake_rig_plan(&r);
	ze_fake_native(&r.native);
	r.native.graph_copies = copies;
	list = ze_fake_list(0);
	queue = r.native.queue;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
}

static void
setup(void)
{
	open_with(0, SPMLA_ZE_ACCESS_CONCURRENT);
}

static void
teardown(void)
{
	fake_ze.fail_at = 0;
	ze_fake_wait();
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake_ze.alive, 0);
	cuda_fake_rig_free(&r);
}

static void
says(const char *want)
{
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)), want);
}

static spmla_graph
record(void)
{
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	return graph;
}

START_TEST(an_op_runs_on_the_list_that_it_is_given)
{
	ck_assert_int_eq(one_op_enqueue(r.ctx, list), SPMLA_OK);
	ck_assert(one_op_came_out());
	ck_assert_int_eq(one_op_enqueue(r.ctx, NULL), SPMLA_E_RANGE);
	says("SPMLA_E_RANGE: stream (an immediate command list): got NULL, "
	     "want a pointer");
}
END_TEST

START_TEST(a_list_is_submitted_again_when_its_fence_is_signalled)
{
	uint32_t copies, i;
	spmla_graph graph;

	for (copies = 1; copies <= MOST_COPIES; copies++) {
		teardown();
		open_with(copies, SPMLA_ZE_ACCESS_CONCURRENT);
		graph = record();
		ck_assert_uint_eq(fake_ze.calls[ZE_FAKE_list_close], copies);
		ck_assert_uint_eq(fake_ze.ran, 0);
		for (i = 0; i < copies; i++)
			ck_assert_int_eq(
				spmla_graph_replay(r.ctx, graph, 0, queue),
				SPMLA_OK);
		/* All run: one more is refused, and waits for nothing. */
		ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, queue),
				 SPMLA_E_BUSY);
		ck_assert_uint_eq(fake_ze.ran, 0);
		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_E_BUSY);
		ze_fake_wait();
		ck_assert(one_op_came_out());
		ck_assert_uint_eq(fake_ze.ran, copies);
		for (i = 0; i < 3 * copies; i++) {
			/* A replay resets a fence and submits a list. */
			fake_ze.total = 0;
			ck_assert_int_eq(
				spmla_graph_replay(r.ctx, graph, 0, queue),
				SPMLA_OK);
			ck_assert_uint_eq(fake_ze.total, 2 + (i ? 1 : copies));
			ze_fake_wait();
			ck_assert(one_op_came_out());
		}
		ck_assert_uint_eq(fake_ze.most_runs, 4);
		ck_assert_uint_eq(fake_ze.calls[ZE_FAKE_queue_execute],
				  4 * copies);
		ck_assert_uint_eq(fake_ze.calls[ZE_FAKE_queue_sync], 0);
	}
}
END_TEST

START_TEST(no_more_than_64_lists_run)
{
	enum { GRAPHS = 17 };
	spmla_graph graphs[GRAPHS];
	spmla_config config;
	uint32_t i;

	teardown();
	ze_fake_reset();
	fake_ze.patience = 1000;
	fixture_config(&config);
	config.max_graphs = GRAPHS;
	cuda_fake_rig_plan_of(&r, &config);
	ze_fake_native(&r.native);
	r.native.graph_copies = MOST_COPIES;
	list = ze_fake_list(0);
	queue = r.native.queue;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	for (i = 0; i < GRAPHS; i++)
		graphs[i] = record();
	for (i = 0; i < 64; i++)
		ck_assert_int_eq(
			spmla_graph_replay(r.ctx, graphs[i / 4], 0, queue),
			SPMLA_OK);
	ck_assert_int_eq(spmla_graph_replay(r.ctx, graphs[16], 0, queue),
			 SPMLA_E_BUSY);
	says("SPMLA_E_BUSY: graphs that run: got 64, want at most 63");
	ze_fake_wait_first();
	ck_assert_int_eq(spmla_graph_replay(r.ctx, graphs[16], 0, queue),
			 SPMLA_OK);
	ze_fake_wait();
	ck_assert_uint_eq(fake_ze.ran, 65);
}
END_TEST

START_TEST(who_asks_again_gets_in)
{
	const spmla_graph graph = record();
	uint32_t i, busy = 0;

	fake_ze.patience = 3;
	for (i = 0; i < 30; i++)
		while (spmla_graph_replay(r.ctx, graph, 0, queue) ==
		       SPMLA_E_BUSY)
			busy++;
	says("SPMLA_E_BUSY: copies of the graph that run: got 2, want at most "
	     "1");
	ck_assert_uint_ge(busy, 28);
	ck_assert_uint_ge(fake_ze.ran, 28);
}
END_TEST

/* Two kernels. The second reads what the first wrote, in one graph or
 * in two that follow each other on the queue: without the barriers the second
 * would come first in some round, and find a row of no elements. */
START_TEST(barriers_keep_kernels_and_graphs_in_order)
{
	static int32_t best, lens;
	spmla_topk_args a = one_op_args(), b = a;
	spmla_graph both, first, second;
	uint32_t round;

	a.lens = &lens;
	b.k = 1;
	b.context_lens = &lens;
	b.indices = &best;
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(r.ctx, &a, list), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(r.ctx, &b, list), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &both), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(r.ctx, &a, list), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &first), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(r.ctx, &b, list), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &second), SPMLA_OK);
	for (round = 0; round < 20; round++) {
		lens = 0;
		if (round % 2) {
			ck_assert_int_eq(
				spmla_graph_replay(r.ctx, both, 0, queue),
				SPMLA_OK);
		} else {
			ck_assert_int_eq(
				spmla_graph_replay(r.ctx, first, 0, queue),
				SPMLA_OK);
			ck_assert_int_eq(
				spmla_graph_replay(r.ctx, second, 0, queue),
				SPMLA_OK);
		}
		ze_fake_wait();
		ck_assert_int_eq(best, 2);
		best = -7;
	}
	ck_assert_uint_eq(fake_ze.shuffled, 0);
}
END_TEST

/* The engine's own list, without a barrier, empties the row that the graph
 * reads: the graph's first command is one. */
START_TEST(a_graph_comes_after_what_the_engine_submitted)
{
	const ze_fake_driver *d = &ze_fake_driver_table;
	const spmla_ze_list_desc desc = {SPMLA_ZE_LIST_DESC, NULL, 1, 0};
	const uint8_t zero = 0;
	static int32_t best, lens;
	spmla_topk_args a = one_op_args();
	spmla_ze_list fill;
	spmla_graph graph;
	uint32_t round;

	a.k = 1;
	a.context_lens = &lens;
	a.indices = &best;
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(r.ctx, &a, list), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(d->own.list_create(r.native.context, r.native.device,
					    &desc, &fill),
			 0);
	ck_assert_int_eq(d->own.append_fill(fill, &lens, &zero, 1, sizeof lens,
					    NULL, 0, NULL),
			 0);
	ck_assert_int_eq(d->own.list_close(fill), 0);
	for (round = 0; round < 20; round++) {
		lens = 2;
		best = -7;
		ck_assert_int_eq(d->own.queue_execute(queue, 1, &fill, NULL),
				 0);
		ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, queue),
				 SPMLA_OK);
		ze_fake_wait();
		ck_assert_int_eq(best, -1);
	}
	ck_assert_int_eq(d->own.list_destroy(fill), 0);
}
END_TEST

/* The same on an immediate list, where the operation runs at once. */
START_TEST(an_op_comes_after_what_the_engine_appended)
{
	const uint8_t zero = 0;
	static int32_t best, lens;
	spmla_topk_args a = one_op_args();
	uint32_t round;

	a.k = 1;
	a.context_lens = &lens;
	a.indices = &best;
	for (round = 0; round < 20; round++) {
		lens = 2;
		best = -7;
		ck_assert_int_eq(ze_fake_driver_table.own.append_fill(
					 list, &lens, &zero, 1, sizeof lens,
					 NULL, 0, NULL),
				 0);
		ck_assert_int_eq(spmla_topk(r.ctx, &a, list), SPMLA_OK);
		ck_assert_int_eq(best, -1);
	}
}
END_TEST

START_TEST(the_engine_appends_to_every_copy)
{
	const ze_fake_driver *d = &ze_fake_driver_table;
	static uint32_t mark;
	const uint8_t byte = 7;
	spmla_graph graph;
	uint32_t i;

	ck_assert_ptr_null(spmla_level_zero_list(r.ctx, 0));
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, list), SPMLA_OK);
	for (i = 0; i < 2; i++) {
		void *copy = spmla_level_zero_list(r.ctx, i);

		ck_assert_ptr_nonnull(copy);
		ck_assert_int_eq(d->own.append_fill(copy, &mark, &byte, 1,
						    sizeof mark, NULL, 0, NULL),
				 0);
	}
	ck_assert_ptr_null(spmla_level_zero_list(r.ctx, 2));
	ck_assert_ptr_null(spmla_level_zero_list(r.ctx, UINT32_MAX));
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	for (i = 0; i < 4; i++) {
		mark = 0;
		ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, queue),
				 SPMLA_OK);
		ze_fake_wait();
		ck_assert_uint_eq(mark, 0x07070707);
	}
}
END_TEST

START_TEST(lists_and_queues_are_not_mixed_up)
{
	const spmla_graph graph = record();
	spmla_graph none;

	ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, list),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(one_op_enqueue(r.ctx, r.native.queue), SPMLA_E_RANGE);
	says("SPMLA_E_RANGE: stream (an immediate command list, not "
	     "native.queue)");
	ck_assert_int_eq(spmla_graph_begin(r.ctx, r.native.queue),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, ze_fake_list(1)), SPMLA_E_STATE);
	says("SPMLA_E_STATE: stream (outside the capture)");
	ck_assert_int_eq(spmla_graph_end(r.ctx, &none), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(r.ctx), SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, ze_fake_list(1)), SPMLA_OK);
	ck_assert(one_op_came_out());
}
END_TEST

START_TEST(without_a_queue_there_are_no_graphs)
{
	teardown();
	ze_fake_reset();
	cuda_fake_rig_plan(&r);
	ze_fake_native(&r.native);
	r.native.queue = NULL;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	list = ze_fake_list(0);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_E_NULL);
	says("SPMLA_E_NULL: native.queue: got NULL, want a pointer");
	ck_assert_int_eq(one_op_enqueue(r.ctx, list), SPMLA_OK);
	ck_assert(one_op_came_out());
}
END_TEST

/* An empty step of the graph, written and replayed. */
static void
step(spmla_graph graph)
{
	spmla_step empty = SPMLA_STEP_INIT;
	uint64_t ticket;

	ck_assert_int_eq(spmla_step_write(r.ctx, &empty, &ticket, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, ticket, queue),
			 SPMLA_OK);
}

static spmla_graph
record_step(void)
{
	const spmla_shape shape = r.plan.config.buckets[0];
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, list), SPMLA_OK);
	ck_assert_int_eq(
		spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_RING, list),
		SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	return graph;
}

START_TEST(records_are_consumed_when_their_list_has_ended)
{
	uint32_t at_once, i;

	for (at_once = 0; at_once < 2; at_once++) {
		spmla_graph graph;
		uint64_t *counter;

		teardown();
		open_with(4, at_once ? SPMLA_ZE_ACCESS_CONCURRENT : 0);
		graph = record_step();
		counter = spmla_view(r.ctx, SPMLA_BUF_RING_CONSUMED, NULL);
		for (i = 0; i < 2; i++)
			step(graph);
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 0);
		ze_fake_wait();
		ck_assert(*counter == 2);
		step(graph);
		/* As if the device had come so far while the list runs. */
		*counter = 3;
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), at_once ? 3 : 2);
		*counter = 2;
		ze_fake_wait();
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 3);
		for (i = 0; i < 12; i++) {
			step(graph);
			ze_fake_wait();
		}
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 15);
		for (i = 0; i < 2; i++)
			step(graph);
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 15);
		ze_fake_wait_first();
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 16);
		ze_fake_wait();
		ck_assert_uint_eq(spmla_i_consumed(r.ctx), 17);
		ck_assert_int_eq(spmla_step_resync(r.ctx), SPMLA_OK);
		step(graph);
	}
}
END_TEST

START_TEST(the_status_is_not_read_while_a_list_may_write_it)
{
	uint32_t at_once;

	for (at_once = 0; at_once < 2; at_once++) {
		spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
		spmla_graph graph;

		teardown();
		open_with(2, at_once ? SPMLA_ZE_ACCESS_CONCURRENT : 0);
		graph = record_step();
		ck_assert_int_eq(spmla_status_read(r.ctx, &status), SPMLA_OK);
		step(graph);
		ck_assert_int_eq(spmla_status_read(r.ctx, &status),
				 at_once ? SPMLA_OK : SPMLA_E_BUSY);
		ze_fake_wait();
		ck_assert_int_eq(spmla_status_read(r.ctx, &status), SPMLA_OK);
		ck_assert_uint_eq(status.count, 0);
	}
}
END_TEST

/* A graph that takes no record counts for nothing. */
START_TEST(graphs_without_a_record_consume_none)
{
	spmla_graph steps, other;

	teardown();
	open_with(4, 0);
	steps = record_step();
	other = record();
	step(steps);
	ck_assert_int_eq(spmla_graph_replay(r.ctx, other, 0, queue), SPMLA_OK);
	step(steps);
	ze_fake_wait_first();
	ck_assert_uint_eq(spmla_i_consumed(r.ctx), 1);
	ze_fake_wait_first();
	ck_assert_uint_eq(spmla_i_consumed(r.ctx), 1);
	ze_fake_wait();
	ck_assert_uint_eq(spmla_i_consumed(r.ctx), 2);
}
END_TEST

static spmla_status
work(void)
{
	return one_op_work(r.ctx, list, queue);
}

START_TEST(whatever_fails_is_told_by_its_name)
{
	uint32_t calls, n, told = 0;

	fake_ze.total = 0;
	ck_assert_int_eq(work(), SPMLA_OK);
	calls = fake_ze.total;
	for (n = 1; n <= calls; n++) {
		spmla_diag diag;

		ze_fake_wait();
		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
		ck_assert_uint_eq(fake_ze.alive, 0);
		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
		fake_ze.total = 0;
		fake_ze.fail_at = n;
		fake_ze.code = 300 + (int)n;
		ck_assert_int_eq(work(), SPMLA_E_DEVICE);
		diag = *spmla_ctx_diag(r.ctx);
		fake_ze.fail_at = 0;
		ck_assert(diag.got == 300 + n);
		/* A barrier behind a kernel is reported as its launch. */
		if (fake_ze.failed != ZE_FAKE_append_barrier)
			ck_assert_str_eq(
				diag.field,
				ze_fake_name((ze_fake_call)fake_ze.failed));
		told++;
		ze_fake_wait();
		ck_assert_int_eq(work(), SPMLA_OK);
		ze_fake_wait();
		ck_assert(one_op_came_out());
	}
	ck_assert_uint_ge(told, 20);
}
END_TEST

START_TEST(a_lost_device_can_be_left)
{
	const spmla_graph graph = record_step();

	step(graph);
	fake_ze.total = 0;
	fake_ze.fail_at = 1; /* zeDeviceGetStatus */
	fake_ze.code = 0x70000001;
	ck_assert_uint_eq(r.ctx->backend->lost(r.ctx), 1);
	/* A query that fails alone tells nothing of what runs. */
	fake_ze.total = 0;
	ck_assert_uint_eq(r.ctx->backend->pending(r.ctx), 1);
	fake_ze.total = 0;
	fake_ze.fails_on = 1;
	ck_assert_uint_eq(r.ctx->backend->pending(r.ctx), 0);
	fake_ze.fail_at = fake_ze.fails_on = 0;
	ck_assert_uint_eq(r.ctx->backend->lost(r.ctx), 0);
	ck_assert_uint_eq(r.ctx->backend->pending(r.ctx), 1);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{an_op_runs_on_the_list_that_it_is_given, 1},
		{a_list_is_submitted_again_when_its_fence_is_signalled, 1},
		{no_more_than_64_lists_run, 1},
		{who_asks_again_gets_in, 1},
		{barriers_keep_kernels_and_graphs_in_order, 1},
		{a_graph_comes_after_what_the_engine_submitted, 1},
		{an_op_comes_after_what_the_engine_appended, 1},
		{the_engine_appends_to_every_copy, 1},
		{lists_and_queues_are_not_mixed_up, 1},
		{without_a_queue_there_are_no_graphs, 1},
		{records_are_consumed_when_their_list_has_ended, 1},
		{the_status_is_not_read_while_a_list_may_write_it, 1},
		{graphs_without_a_record_consume_none, 1},
		{whatever_fails_is_told_by_its_name, 1},
		{a_lost_device_can_be_left, 1},
	};
	const theme themes[] = {
		THEME("graph", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
