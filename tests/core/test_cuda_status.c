/* SPDX-License-Identifier: Apache-2.0
 *
 * The sticky status of a CUDA context, on a driver that tests can break. A
 * clear also clears the device's part; if it fails, the status stays as it is.
 * Calls of the CPU backend do not touch such a context.
 */
#include "tests/substitutes/cuda_fake.h"

#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "spmla/ops/topk.h"
#include "spmla/spmla_cpu.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum { ROWS = 4 };

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
	cuda_fake_rig_free(&r);
}

/* A row of scores outside their buffer. */
static void
report(uint32_t row)
{
	static const int32_t lens[ROWS] = {1, 1, 1, 1};
	static const float score[1] = {1};
	int64_t starts[ROWS] = {0};
	int32_t out[ROWS];
	const spmla_topk_args a = {sizeof a, ROWS,   1,    0,   score,
				   1,        starts, lens, out, 1,
				   NULL,     0,      0,    0,   {0}};

	starts[row] = -1;
	ck_assert_int_eq(spmla_topk(r.ctx, &a, cuda_fake_stream(0)), SPMLA_OK);
}

static void
diag_says(const char *want)
{
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)), want);
}

START_TEST(clearing_the_status_clears_what_the_device_has_of_it)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	uint32_t round;

	for (round = 0; round < 2; round++) {
		report(3 - round);
		ck_assert_int_eq(spmla_status_read(r.ctx, &status), SPMLA_OK);
		ck_assert_uint_eq(status.count, 1);
		ck_assert_uint_eq(status.row, 3 - round);
		ck_assert_uint_eq(status.fault, SPMLA_FAULT_LOGITS);
		fake.memset_bytes = 0;
		ck_assert_int_eq(spmla_status_clear(r.ctx), SPMLA_OK);
		ck_assert_uint_eq(fake.memset_bytes, 52);
		ck_assert_uint_eq(fake.not_waited_for, 0);
		ck_assert_uint_eq(fake.depth, 0);
	}
}
END_TEST

/* Every buffer of the context's life, in the driver's memory; then it waits. */
START_TEST(a_wake_zeroes_what_init_did)
{
	const spmla_plan *plan = spmla_ctx_plan(r.ctx);
	uint64_t bytes = 0;
	uint32_t i, call;

	for (i = 0; i < plan->row_count; i++)
		if (plan->extents[i].memory == SPMLA_MEMORY_DEVICE &&
		    plan->extents[i].life == SPMLA_LIFE_CONTEXT)
			bytes += plan->extents[i].bytes;
	fake.memset_bytes = 0;
	ck_assert_int_eq(spmla_wake(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake.memset_bytes, bytes);
	ck_assert_uint_eq(fake.not_waited_for, 0);
	ck_assert_uint_eq(fake.depth, 0);
	fake.code = 700;
	for (call = 1; call <= 2; call++) { /* push, the first memset */
		fake.total = 0;
		fake.fail_at = call;
		ck_assert_int_eq(spmla_wake(r.ctx), SPMLA_E_DEVICE);
		fake.fail_at = 0;
		ck_assert_uint_eq(fake.depth, 0);
	}
	ck_assert_int_eq(spmla_wake(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_status_that_cannot_be_cleared_is_still_there)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	uint32_t call;

	report(2);
	fake.code = 700;
	for (call = 1; call <= 3; call++) { /* push, memset, wait */
		fake.total = 0;
		fake.fail_at = call;
		ck_assert_int_eq(spmla_status_clear(r.ctx), SPMLA_E_DEVICE);
		fake.fail_at = 0;
		if (call == 2)
			diag_says("SPMLA_E_DEVICE: cuMemsetD8Async: got 700, "
				  "want 0");
		ck_assert_int_eq(spmla_status_read(r.ctx, &status), SPMLA_OK);
		ck_assert_uint_eq(status.count, 1);
		ck_assert_uint_eq(status.fault, SPMLA_FAULT_LOGITS);
		ck_assert_uint_eq(status.row, 2);
	}
	ck_assert_int_eq(spmla_status_clear(r.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_status_read(r.ctx, &status), SPMLA_OK);
	ck_assert_uint_eq(status.count, 0);
}
END_TEST

static void
is_of_another_backend(spmla_status s)
{
	ck_assert_int_eq(s, SPMLA_E_UNSUPPORTED);
	diag_says("SPMLA_E_UNSUPPORTED: ctx (of another backend): got 2, "
		  "want 1");
}

START_TEST(calls_of_the_cpu_leave_it_alone)
{
	spmla_cpu_list list = 5;
	spmla_graph graph;
	uint32_t open;

	for (open = 0; open < 2; open++) {
		const spmla_i_gpu_state *state =
			spmla_view(r.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
		spmla_i_gpu_state before;

		if (open)
			ck_assert_int_eq(
				spmla_graph_begin(r.ctx, cuda_fake_stream(0)),
				SPMLA_OK);
		before = *state;
		fake.total = 0;
		is_of_another_backend(spmla_cpu_capture_begin(r.ctx));
		is_of_another_backend(spmla_cpu_capture_end(r.ctx, &list));
		is_of_another_backend(spmla_cpu_capture_end(r.ctx, NULL));
		is_of_another_backend(spmla_cpu_capture_abort(r.ctx));
		is_of_another_backend(spmla_cpu_launch(r.ctx, 1));
		ck_assert_uint_eq(spmla_cpu_queue_run(r.ctx, 1), 0);
		ck_assert_uint_eq(spmla_cpu_queue_pending(r.ctx), 0);
		ck_assert_str_eq(spmla_cpu_variant(r.ctx), "");
		ck_assert_uint_eq(fake.total, 0);
		ck_assert_uint_eq(list, 5);
		ck_assert_mem_eq(state, &before, sizeof before);
	}
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{clearing_the_status_clears_what_the_device_has_of_it, 1},
		{a_wake_zeroes_what_init_did, 1},
		{a_status_that_cannot_be_cleared_is_still_there, 1},
		{calls_of_the_cpu_leave_it_alone, 1},
	};
	const theme themes[] = {THEME("status", setup, teardown, tests)};

	return RUN_THEMES(themes);
}
