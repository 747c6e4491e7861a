/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP backend at work, on a runtime that tests can break. What it shares
 * with CUDA is tested with CUDA's. These tests look at what is its own: the
 * functions that it calls, the relaxed mode of a capture, and the names of
 * functions that fail.
 */
#include "tests/core/one_op_rig.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/hip_fake.h"

#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "tests/harness/fixture.h"

static cuda_fake_rig r;

static void
setup(void)
{
	hip_fake_reset("gfx90a");
	cuda_fake_rig_plan(&r);
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
}

static void
teardown(void)
{
	fake.fail_at = 0;
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake.alive, 0);
	ck_assert_int_eq(fake_hip.current, 0);
	cuda_fake_rig_free(&r);
}

static spmla_status
work(void)
{
	return one_op_work(r.ctx, cuda_fake_stream(0), cuda_fake_stream(1));
}

START_TEST(a_graph_is_captured_replayed_and_right)
{
	fake.total = 0;
	ck_assert_int_eq(work(), SPMLA_OK);
	ck_assert(one_op_came_out());
	ck_assert_uint_eq(fake.nodes, 1);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_graph_launch], 1);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_graph_upload], 1);
}
END_TEST

START_TEST(streams_that_cannot_be_captured_are_refused)
{
	ck_assert_int_eq(one_op_enqueue(r.ctx, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)),
			 "SPMLA_E_RANGE: stream (of hipStreamCreate, or "
			 "hipStreamPerThread): got NULL, want a pointer");
	ck_assert_int_eq(one_op_enqueue(r.ctx, (spmla_stream)(uintptr_t)1),
			 SPMLA_E_RANGE);
}
END_TEST

/* Whether a failure of this call changes nothing that the caller could use. The
 * second hipSetDevice of a call restores the caller's device. */
static uint32_t
may_be_ignored(int call, uint32_t set_devices)
{
	return call == CUDA_FAKE_graph_destroy ||
	       call == CUDA_FAKE_stream_capturing ||
	       (call == CUDA_FAKE_set_device && set_devices % 2 == 0);
}

START_TEST(whatever_fails_is_told_by_its_name_in_hip)
{
	uint32_t calls, n, told = 0;

	fake.total = 0;
	ck_assert_int_eq(work(), SPMLA_OK);
	calls = fake.total;
	for (n = 1; n <= calls; n++) {
		const char *name;
		spmla_status s;
		spmla_diag diag;

		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
		fake.total = 0;
		fake.calls[CUDA_FAKE_set_device] = 0;
		fake.fail_at = n;
		fake.code = 300 + (int)n;
		s = work();
		diag = *spmla_ctx_diag(r.ctx);
		fake.fail_at = 0;
		if (may_be_ignored(fake.failed,
				   fake.calls[CUDA_FAKE_set_device])) {
			ck_assert_int_eq(s, SPMLA_OK);
		} else {
			name = fake.failed < (int)SPMLA_GPU_CALLS
				       ? spmla_i_hip_platform.names[fake.failed]
				       : cuda_fake_name(
						 (cuda_fake_call)fake.failed);
			told++;
			ck_assert_int_eq(s, SPMLA_E_DEVICE);
			ck_assert(diag.got == 300 + n);
			ck_assert_str_eq(diag.field, name);
			ck_assert_int_eq(strncmp(name, "hip", 3), 0);
		}
		ck_assert_int_eq(work(), SPMLA_OK);
		ck_assert(one_op_came_out());
	}
	ck_assert_uint_ge(told, 9);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_graph_is_captured_replayed_and_right, 1},
		{streams_that_cannot_be_captured_are_refused, 1},
		{whatever_fails_is_told_by_its_name_in_hip, 1},
	};
	const theme themes[] = {
		THEME("graph", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
