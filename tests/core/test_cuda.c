/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend at work, on a driver that tests can break: what goes to the
 * driver for an op, a capture and a replay. A failure at any call is reported
 * with the driver's code, leaks nothing, and the context goes on working.
 */
#include "tests/core/one_op_rig.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/cuda_fake.h"

#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "tests/harness/fixture.h"

static cuda_fake_rig r;

static void
setup(void)
{
	cuda_fake_reset();
	cuda_fake_rig_plan(&r);
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
}

static void
teardown(void)
{
	fake.fail_at = 0;
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake.alive, 0);
	ck_assert_uint_eq(fake.depth, 0);
	cuda_fake_rig_free(&r);
}

static void
diag_says(const char *want)
{
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)), want);
}

START_TEST(an_op_is_a_launch_with_its_parameters)
{
	fake.total = 0;
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert_uint_eq(fake.total, 1);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_launch_kernel], 1);
	ck_assert(one_op_came_out());
	/* Any other stream, with no capture open. */
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(3)), SPMLA_OK);
	ck_assert(one_op_came_out());
}
END_TEST

START_TEST(the_legacy_stream_is_refused_everywhere)
{
	spmla_stream legacy = (spmla_stream)(uintptr_t)1;
	const char *null = "SPMLA_E_RANGE: stream (of cuStreamCreate, or "
			   "CU_STREAM_PER_THREAD): got NULL, want a pointer";
	const char *one = "SPMLA_E_RANGE: stream (of cuStreamCreate, or "
			  "CU_STREAM_PER_THREAD): got 1, want at least 2";
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	fake.total = 0;
	ck_assert_int_eq(one_op_enqueue(r.ctx, NULL), SPMLA_E_RANGE);
	diag_says(null);
	ck_assert_int_eq(one_op_enqueue(r.ctx, legacy), SPMLA_E_RANGE);
	diag_says(one);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, NULL), SPMLA_E_RANGE);
	diag_says(null);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, legacy), SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, NULL),
			 SPMLA_E_RANGE);
	diag_says(null);
	ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0, legacy),
			 SPMLA_E_RANGE);
	diag_says(one);
	ck_assert_uint_eq(fake.total, 0);
}
END_TEST

START_TEST(a_replay_is_one_launch_and_nothing_else)
{
	spmla_graph graph;
	uint32_t i;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert(!one_op_came_out());
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(fake.nodes, 1);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_graph_upload], 1);
	ck_assert(!one_op_came_out());
	for (i = 1; i <= 10; i++) {
		memset(fake.calls, 0, sizeof fake.calls);
		fake.total = 0;
		ck_assert_int_eq(spmla_graph_replay(r.ctx, graph, 0,
						    cuda_fake_stream(i % 3)),
				 SPMLA_OK);
		ck_assert(one_op_came_out());
		/* Asking whether the stream captures enqueues nothing. */
		ck_assert_uint_eq(fake.calls[CUDA_FAKE_graph_launch], 1);
		ck_assert_uint_eq(fake.calls[CUDA_FAKE_stream_capturing], 1);
		ck_assert_uint_eq(fake.total, 2);
	}
	ck_assert_uint_eq(fake.alive, 3); /* module, stream, exec */
}
END_TEST

START_TEST(a_capture_has_its_own_stream_and_those_that_join)
{
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(1)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(1)), SPMLA_OK);
	cuda_fake_join(2, 1);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(2)), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(fake.nodes, 2);
	/* One that did not join would run at once. */
	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(1)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)),
			 SPMLA_E_STATE);
	diag_says("SPMLA_E_STATE: stream (outside the capture)");
	ck_assert(!one_op_came_out());
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(the_engines_own_capture_takes_ops_and_no_other)
{
	spmla_graph graph, first;
	void *exec;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &first), SPMLA_OK);
	cuda_fake_capture(0);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert(!one_op_came_out());
	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_E_STATE);
	diag_says("SPMLA_E_STATE: capture: got 1, want 0");
	ck_assert_int_eq(
		spmla_graph_replay(r.ctx, first, 0, cuda_fake_stream(0)),
		SPMLA_E_STATE);
	ck_assert_int_eq(
		spmla_table_write(r.ctx, 0, 0, 0, 1, cuda_fake_stream(0)),
		SPMLA_E_STATE);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	exec = cuda_fake_capture_end(0);
	ck_assert_uint_eq(fake.nodes, 2);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_capture_begin], 1);
	ck_assert(!one_op_came_out());
	cuda_fake_capture_launch(exec);
	ck_assert(one_op_came_out());
	/* Another stream's capture is none of ours. */
	cuda_fake_capture(3);
	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	(void)cuda_fake_capture_end(3);
}
END_TEST

START_TEST(an_invalidated_capture_is_told_and_aborted)
{
	spmla_graph graph = 0;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
				 SPMLA_OK);
		if (i == 0)
			ck_assert_int_eq(
				one_op_enqueue(r.ctx, cuda_fake_stream(0)),
				SPMLA_OK);
		cuda_fake_invalidate(0);
		if (i == 0) {
			ck_assert_int_eq(spmla_graph_end(r.ctx, &graph),
					 SPMLA_E_DEVICE);
			diag_says("SPMLA_E_DEVICE: cuStreamEndCapture: got "
				  "901, want 0");
			/* Ended once, it cannot be ended again. */
			ck_assert_int_eq(spmla_graph_end(r.ctx, &graph),
					 SPMLA_E_CAPTURE);
			diag_says("SPMLA_E_CAPTURE: capture (failed to end)");
		} else {
			ck_assert_int_eq(
				one_op_enqueue(r.ctx, cuda_fake_stream(0)),
				SPMLA_E_DEVICE);
			ck_assert_uint_eq(spmla_ctx_diag(r.ctx)->got, 901);
			ck_assert_int_eq(spmla_graph_end(r.ctx, &graph),
					 SPMLA_E_CAPTURE);
		}
		ck_assert_int_eq(spmla_graph_abort(r.ctx), SPMLA_OK);
		ck_assert_uint_eq(fake.alive, 2);
		ck_assert_uint_eq(graph, 0);
	}
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	ck_assert(one_op_came_out());
}
END_TEST

/* Its end was asked for by a thread that did not begin it. */
START_TEST(a_capture_goes_on_where_another_thread_tried_to_end_it)
{
	spmla_graph graph = 0;
	uint32_t i;

	ck_assert_int_eq(spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
			 SPMLA_OK);
	ck_assert_int_eq(one_op_enqueue(r.ctx, cuda_fake_stream(0)), SPMLA_OK);
	fake.code = 908; /* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */
	for (i = 0; i < 2; i++) {
		fake.total = 0;
		fake.fail_at = 2; /* after the context's push */
		ck_assert_int_eq(i ? spmla_graph_abort(r.ctx)
				   : spmla_graph_end(r.ctx, &graph),
				 SPMLA_E_DEVICE);
		diag_says("SPMLA_E_DEVICE: cuStreamEndCapture: got 908, "
			  "want 0");
		fake.fail_at = 0;
	}
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(fake.nodes, 1);
	ck_assert_int_eq(
		spmla_graph_replay(r.ctx, graph, 0, cuda_fake_stream(0)),
		SPMLA_OK);
	ck_assert(one_op_came_out());
}
END_TEST

static spmla_status
work(void)
{
	return one_op_work(r.ctx, cuda_fake_stream(0), cuda_fake_stream(0));
}

/* Whether a failure of this call changes nothing that the caller could use. */
static uint32_t
may_be_ignored(int call)
{
	return call == CUDA_FAKE_ctx_pop || call == CUDA_FAKE_graph_destroy ||
	       call == CUDA_FAKE_stream_capturing;
}

START_TEST(whatever_fails_is_told_and_nothing_leaks)
{
	uint32_t calls, n, told = 0;

	fake.total = 0;
	ck_assert_int_eq(work(), SPMLA_OK);
	calls = fake.total;
	ck_assert_uint_gt(calls, 12);
	for (n = 1; n <= calls; n++) {
		spmla_status s;
		spmla_diag diag;

		/* A context each, as graphs are for its life. */
		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
		ck_assert_uint_eq(fake.alive, 0);
		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
		fake.total = 0;
		fake.fail_at = n;
		fake.code = 300 + (int)n;
		s = work();
		diag = *spmla_ctx_diag(r.ctx);
		ck_assert_uint_eq(fake.depth, 0);
		fake.fail_at = 0;
		if (may_be_ignored(fake.failed)) {
			ck_assert_int_eq(s, SPMLA_OK);
		} else {
			const char *name =
				cuda_fake_name((cuda_fake_call)fake.failed);

			told++;
			ck_assert_int_eq(s, SPMLA_E_DEVICE);
			ck_assert(diag.got == 300 + n);
			ck_assert_int_eq(
				strncmp(diag.field, name, strlen(diag.field)),
				0);
			ck_assert_uint_le(fake.alive, 3);
		}
		/* All goes on as if nothing had been. */
		ck_assert_int_eq(work(), SPMLA_OK);
		ck_assert(one_op_came_out());
	}
	ck_assert_uint_ge(told, 9);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{an_op_is_a_launch_with_its_parameters, 1},
		{the_legacy_stream_is_refused_everywhere, 1},
		{a_replay_is_one_launch_and_nothing_else, 1},
		{a_capture_has_its_own_stream_and_those_that_join, 1},
		{the_engines_own_capture_takes_ops_and_no_other, 1},
		{an_invalidated_capture_is_told_and_aborted, 1},
		{a_capture_goes_on_where_another_thread_tried_to_end_it, 1},
		{whatever_fails_is_told_and_nothing_leaks, 1},
	};
	const theme themes[] = {
		THEME("graph", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
