/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend before the first step, on a driver that tests can break:
 * what it learns of a device, and what it refuses, with which words. A refusal
 * leaves no handle behind and the caller's context as it was.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/cuda_fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/launch.h"
#include "spmla/spmla_cuda.h"

static cuda_fake_rig r;

static void
setup(void)
{
	cuda_fake_reset();
	cuda_fake_rig_plan(&r);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fake.alive, 0);
	ck_assert_uint_eq(fake.depth, 0);
	cuda_fake_rig_free(&r);
}

static void
init_says(spmla_status status, const char *want)
{
	cuda_fake_rig_init_says(&r, status, want);
	ck_assert_uint_eq(fake.alive, 0);
	ck_assert_uint_eq(fake.depth, 0);
}

START_TEST(a_device_is_what_its_attributes_say)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_device d = SPMLA_DEVICE_INIT;

	fake.major = 12;
	fake.minor = 1;
	fake.sm_count = 148;
	ck_assert_int_eq(
		spmla_backend_query(&cuda_fake_backend, NULL, &d, NULL),
		SPMLA_OK);
	ck_assert_uint_eq(d.kind, SPMLA_BACKEND_CUDA);
	ck_assert_uint_eq(d.arch, 121);
	ck_assert_uint_eq(d.sm_count, 148);
	ck_assert_uint_eq(d.subgroup_width, 32);
	/* It has not the matrix instructions of 90, and need not. */
	ck_assert(d.ops & SPMLA_I_OP_BIT(SPMLA_OP_mqa_logits));
	ck_assert(d.ops & SPMLA_I_OP_BIT(SPMLA_OP_mqa_logits_gathered));
	/* A context that is not current is made so, and not for longer. */
	cuda_fake_set_current(0);
	native.context = cuda_fake_context();
	ck_assert_int_eq(
		spmla_backend_query(&cuda_fake_backend, &native, &d, NULL),
		SPMLA_OK);
	cuda_fake_query_says(
		NULL, SPMLA_E_NULL,
		"SPMLA_E_NULL: native.context: got NULL, want a pointer");
}
END_TEST

START_TEST(a_device_that_will_not_do_is_told)
{
	fake.major = 7;
	fake.minor = 5;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: device.arch: got 75, want at least "
		"80");
	fake.major = 9;
	fake.warp = 64;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: device.subgroup_width: got 64, want "
		"32");
}
END_TEST

START_TEST(an_old_driver_is_told_with_both_versions)
{
	fake.version = 12080;
	cuda_fake_query_says(
		NULL, SPMLA_E_DRIVER_OLD,
		"SPMLA_E_DRIVER_OLD: cuDriverGetVersion: got 12080, want at "
		"least 13000");
	init_says(SPMLA_E_DRIVER_OLD,
		  "SPMLA_E_DRIVER_OLD: cuDriverGetVersion: got 12080, want at "
		  "least 13000");
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_module_load], 0);
	fake.version = -1;
	cuda_fake_query_says(
		NULL, SPMLA_E_DRIVER_OLD,
		"SPMLA_E_DRIVER_OLD: cuDriverGetVersion: got 0, want at "
		"least 13000");
}
END_TEST

START_TEST(a_driver_that_lacks_a_function_is_told)
{
	spmla_i_cuda_driver driver = cuda_fake_driver;
	spmla_diag diag = SPMLA_DIAG_INIT;

	driver.gpu.graph_upload = NULL;
	ck_assert_int_eq(spmla_i_gpu_start(&driver.gpu, 13000, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: cuGraphUpload: got NULL, want a "
			 "pointer");
	/* Where it is old, that is why. */
	fake.version = 11000;
	ck_assert_int_eq(spmla_i_gpu_start(&driver.gpu, 13000, &diag),
			 SPMLA_E_DRIVER_OLD);
	driver.gpu.driver_version = NULL;
	ck_assert_int_eq(spmla_i_gpu_start(&driver.gpu, 13000, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: cuDriverGetVersion: got NULL, "
			 "want a pointer");
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_init], 1); /* the plan's query */
}
END_TEST

START_TEST(without_a_driver_the_backend_says_so)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	spmla_status s;

	if (library) {
		printf("SKIPPED: this machine has a CUDA driver\n");
		dlclose(library);
		return;
	}
	ck_assert_int_eq(spmla_backend_query(&spmla_cuda, NULL, &device, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: libcuda.so.1: got NULL, want a "
			 "pointer");
	s = spmla_init(&ctx, &r.plan, &spmla_cuda, NULL, r.regions,
		       SPMLA_MEMORY_COUNT, &diag);
	ck_assert_int_eq(s, SPMLA_E_NO_DRIVER);
	ck_assert_ptr_null(ctx);
}
END_TEST

START_TEST(a_library_without_kernels_says_so)
{
	static const spmla_i_gpu_image none = {"", 0, 0,
					       "bytes of kernels for CUDA"};
	spmla_diag diag = SPMLA_DIAG_INIT;

	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_i_gpu_init(r.ctx, &cuda_fake_driver.gpu, &none,
					  NULL, &diag),
			 SPMLA_E_NO_BLOB);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_BLOB: bytes of kernels for CUDA: got 0, "
			 "want at least 1");
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

/* The plan again, for that arch and that many multiprocessors. */
static void
replan(uint32_t arch, uint32_t sm_count)
{
	spmla_device device = r.plan.device;

	device.arch = arch;
	device.sm_count = sm_count;
	ck_assert_int_eq(spmla_plan_make(&r.plan, &r.plan.config, &device, 0),
			 SPMLA_OK);
}

START_TEST(a_plan_for_another_device_is_refused)
{
	replan(100, 4);
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.arch: got 100, want at "
		  "most 90");
	replan(90, 2); /* the regions do for it */
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.sm_count: got 2, want 4");
	replan(90, 4);
	r.plan.device.subgroup_width = 16;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.subgroup_width: got 16, "
		  "want 32");
	r.plan.device.subgroup_width = 32;
	r.native.flags = SPMLA_NATIVE_DEFERRED;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: native.flags: got 1, want 0");
}
END_TEST

/* Whether the kernels of a plan of that arch have places on the device. */
static void
has_places(uint32_t arch, uint32_t wgmma, uint32_t most, uint32_t few)
{
	const spmla_i_gpu_state *state;

	replan(arch, 4);
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	state = spmla_view(r.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
#define HAS(stem) (state->resident_blocks[SPMLA_KERNEL_##stem] != 0)
	ck_assert_uint_eq(HAS(sparse_decode_wgmma), wgmma);
	ck_assert_uint_eq(HAS(sparse_decode_mma), most);
	ck_assert_uint_eq(HAS(sparse_decode_mma_few), few);
	ck_assert_uint_eq(HAS(mqa_logits_mma), few);
	ck_assert(HAS(sparse_decode));
#undef HAS
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	r.ctx = NULL;
}

START_TEST(a_plan_for_an_older_device_takes_its_kernels)
{
	has_places(90, 1, 1, 1);
	has_places(89, 0, 0, 1);
	has_places(80, 0, 1, 1);
	has_places(75, 0, 0, 0);
	fake.major = 12; /* as large as the one to come */
	has_places(120, 0, 0, 1);
	has_places(100, 0, 1, 1);
}
END_TEST

START_TEST(a_kernel_that_does_not_fit_is_named)
{
	char want[200];

#ifndef SPMLA_KERNEL_DEBUG /* its kernels have a stack */
	fake.local_bytes = 48;
	snprintf(want, sizeof want, "SPMLA_E_UNSUPPORTED: %s: got 48, want 0",
		 spmla_i_gpu_kernels[0].name);
	init_says(SPMLA_E_UNSUPPORTED, want);
	fake.local_bytes = 0;
#endif
	fake.blocks = 0;
	snprintf(want, sizeof want,
		 "SPMLA_E_UNSUPPORTED: %s: got 0, want at least 1",
		 spmla_i_gpu_kernels[0].name);
	init_says(SPMLA_E_UNSUPPORTED, want);
}
END_TEST

START_TEST(init_zeroes_what_lives_as_long_as_the_context)
{
	const spmla_i_gpu_state *state;
	uint64_t zeroed = 0;
	uint32_t i, j;

	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	for (i = 0; i < r.plan.row_count; i++) {
		const spmla_extent *e = &r.plan.extents[i];
		const uint8_t *at = spmla_view(r.ctx, (spmla_buf)e->buf, NULL);
		const uint8_t want = e->life == SPMLA_LIFE_CONTEXT ? 0 : 0xAB;

		if (e->memory != SPMLA_MEMORY_DEVICE)
			continue;
		for (j = 0; j < e->bytes; j++)
			ck_assert_uint_eq(at[j], want);
		zeroed += want == 0 ? e->bytes : 0;
	}
	ck_assert_uint_eq(fake.memset_bytes, zeroed);
	ck_assert_uint_eq(fake.not_waited_for, 0);
	ck_assert_uint_gt(zeroed, 0);
	state = spmla_view(r.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
	for (i = 0; i < SPMLA_KERNEL_COUNT; i++) {
		const uint32_t has =
			spmla_i_gpu_runs((spmla_i_kernel)i, &r.plan);

		ck_assert_int_eq(state->kernels[i] != NULL, has);
		/* 2 x 4 SMs */
		ck_assert_uint_eq(state->resident_blocks[i], has ? 8 : 0);
	}
	ck_assert_uint_eq(fake.alive, 2); /* module, stream */
	ck_assert_uint_eq(fake.depth, 0);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(whatever_fails_in_init_is_told_and_nothing_stays)
{
	uint32_t calls, n;
	char want[200];

	fake.total = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	calls = fake.total;
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_gt(calls, 15);
	for (n = 1; n < calls; n++) { /* the last is a pop */
		r.ctx = NULL;
		fake.total = 0;
		fake.fail_at = n;
		fake.code = 1000 + (int)n;
		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_E_DEVICE);
		ck_assert_int_ge(fake.failed, 0);
		snprintf(want, sizeof want, "%s",
			 cuda_fake_name((cuda_fake_call)fake.failed));
		/* The versions of symbols are no part of a name. */
		if (strstr(want, "_v2"))
			*strstr(want, "_v2") = 0;
		ck_assert_str_eq(r.diag.field, want);
		ck_assert(r.diag.got == 1000 + n);
		ck_assert_uint_eq(fake.alive, 0);
		ck_assert_uint_eq(fake.depth, 0);
		ck_assert_ptr_null(r.ctx);
	}
	fake.fail_at = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(fini_gives_back_what_it_can)
{
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	/* The engine has destroyed the context, and all in it: no call. */
	fake.total = 0;
	fake.fail_at = 1;
	fake.code = 709; /* CUDA_ERROR_CONTEXT_IS_DESTROYED */
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake.total, 1);
	fake.alive -= 2;
}
END_TEST

/* Steps that were launched and never ran: on a device that is lost, by the
 * call of the driver that says so, nothing is waited for. */
START_TEST(a_lost_device_does_not_hold_the_context)
{
	const spmla_step step = SPMLA_STEP_INIT;
	uint32_t n;

	for (n = 1; n <= 2; n++) { /* cuCtxPushCurrent, cuStreamIsCapturing */
		uint64_t ticket = 0;

		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
		ck_assert_int_eq(spmla_step_write(r.ctx, &step, &ticket, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_step_launched(r.ctx, ticket), SPMLA_OK);
		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_E_BUSY);
		ck_assert_uint_eq(fake.depth, 0);
		fake.total = 0;
		fake.fail_at = n;
		fake.code = 719; /* CUDA_ERROR_LAUNCH_FAILED */
		ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
		ck_assert_uint_eq(fake.alive, 0);
		ck_assert_uint_eq(fake.depth, 0);
		fake.fail_at = 0;
	}
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_device_is_what_its_attributes_say, 1},
		{a_device_that_will_not_do_is_told, 1},
		{an_old_driver_is_told_with_both_versions, 1},
		{a_driver_that_lacks_a_function_is_told, 1},
		{without_a_driver_the_backend_says_so, 1},
		{a_library_without_kernels_says_so, 1},
		{a_plan_for_another_device_is_refused, 1},
		{a_plan_for_an_older_device_takes_its_kernels, 1},
		{a_kernel_that_does_not_fit_is_named, 1},
		{init_zeroes_what_lives_as_long_as_the_context, 1},
		{whatever_fails_in_init_is_told_and_nothing_stays, 1},
		{fini_gives_back_what_it_can, 1},
		{a_lost_device_does_not_hold_the_context, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
