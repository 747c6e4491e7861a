/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP backend before the first step, on a runtime that tests can break:
 * what it learns of a device in each layout of the properties, and what it
 * refuses, with which words. A refusal leaves no handle behind and the caller's
 * device as it was.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/hip_fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/launch.h"
#include "spmla/spmla_hip.h"

static cuda_fake_rig r;

static void
setup(void)
{
	hip_fake_reset("gfx942:sramecc+:xnack-");
	cuda_fake_rig_plan(&r);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fake.alive, 0);
	ck_assert_int_eq(fake_hip.current, 0);
	cuda_fake_rig_free(&r);
}

static void
init_says(spmla_status status, const char *want)
{
	cuda_fake_rig_init_says(&r, status, want);
	ck_assert_uint_eq(fake.alive, 0);
}

/* A runtime that has one of the three functions, 0 being the newest. */
static void
lacks_newer(uint32_t layout)
{
	if (layout > 0)
		hip_fake_driver.properties_0600 = NULL;
	if (layout > 1)
		hip_fake_driver.properties_0000 = NULL;
}

START_TEST(a_device_is_what_each_layout_of_its_properties_says)
{
	static const struct {
		const char *name;
		uint32_t arch, width;
	} devices[] = {
		{"gfx90a:sramecc+:xnack-", 0x90a, 64},
		{"gfx942", 0x942, 64},
		{"gfx950:sramecc+:xnack-", 0x950, 64},
		{"gfx1100", 0x1100, 32},
		{"gfx1201", 0x1201, 32},
	};
	spmla_device d = SPMLA_DEVICE_INIT;
	uint32_t i, layout;

	for (i = 0; i < sizeof devices / sizeof *devices; i++)
		for (layout = 0; layout < 3; layout++) {
			hip_fake_reset(devices[i].name);
			lacks_newer(layout);
			fake.sm_count = 304 - (int)layout;
			ck_assert_int_eq(spmla_backend_query(&cuda_fake_backend,
							     NULL, &d, NULL),
					 SPMLA_OK);
			ck_assert_uint_eq(d.kind, SPMLA_BACKEND_HIP);
			ck_assert_uint_eq(d.arch, devices[i].arch);
			ck_assert_uint_eq(d.sm_count, 304 - layout);
			ck_assert_uint_eq(d.subgroup_width, devices[i].width);
			ck_assert_uint_eq(
				fake.calls[CUDA_FAKE_properties_0600 + layout],
				1);
		}
}
END_TEST

START_TEST(a_device_that_will_not_do_is_told)
{
	static const char *const strangers[] = {"gfx908", "gfx1030", "gfx9x2",
						"sm_90", ""};
	spmla_device d = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t i;

	fake_hip.arch = "gfx908:sramecc+:xnack-";
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: device.arch (gfx90a, 942, 950, 1100 "
		"or 1201)");
	ck_assert_int_eq(
		spmla_backend_query(&cuda_fake_backend, NULL, &d, &diag),
		SPMLA_E_UNSUPPORTED);
	ck_assert_uint_eq(diag.got, 0x908);
	for (i = 0; i < sizeof strangers / sizeof *strangers; i++) {
		fake_hip.arch = strangers[i];
		ck_assert_int_eq(
			spmla_backend_query(&cuda_fake_backend, NULL, &d, NULL),
			SPMLA_E_UNSUPPORTED);
	}
	fake_hip.arch = "gfx942";
	fake_hip.width = 32;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: device.subgroup_width: got 32, want "
		"64");
	fake_hip.arch = "gfx1100";
	fake_hip.width = 64;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: device.subgroup_width: got 64, want "
		"32");
}
END_TEST

START_TEST(the_device_that_is_named_is_used_and_the_current_one_restored)
{
	const int numbers[] = {0, 1, 2};
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_device d = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		native.device = (void *)(uintptr_t)&numbers[i];
		fake.calls[CUDA_FAKE_set_device] = 0;
		ck_assert_int_eq(spmla_backend_query(&cuda_fake_backend,
						     &native, &d, &diag),
				 i < 2 ? SPMLA_OK : SPMLA_E_DEVICE);
		ck_assert_int_eq(fake_hip.current, 0);
		ck_assert_uint_eq(fake.calls[CUDA_FAKE_set_device],
				  i < 2 ? 2 : 1);
	}
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_DEVICE: hipSetDevice: got 101, want 0");
	/* The handles of a context are of the first device. */
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	fake_hip.current = 1;
	cuda_fake_set_current(0);
	ck_assert_int_eq(spmla_status_clear(r.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_int_eq(fake_hip.current, 1);
	fake_hip.current = 0;
}
END_TEST

START_TEST(an_old_runtime_is_told_with_both_versions)
{
	const char *want = "SPMLA_E_DRIVER_OLD: hipRuntimeGetVersion: got "
			   "50221153, want at least 50400000";

	fake.version = 50221153;
	cuda_fake_query_says(NULL, SPMLA_E_DRIVER_OLD, want);
	init_says(SPMLA_E_DRIVER_OLD, want);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_module_load], 0);
}
END_TEST

START_TEST(a_runtime_that_lacks_a_function_is_told)
{
	hip_fake_driver.gpu.graph_upload = NULL;
	cuda_fake_query_says(NULL, SPMLA_E_NO_DRIVER,
			     "SPMLA_E_NO_DRIVER: hipGraphUpload: got "
			     "NULL, want a pointer");
	hip_fake_reset("gfx942");
	hip_fake_driver.set_device = NULL;
	cuda_fake_query_says(NULL, SPMLA_E_NO_DRIVER,
			     "SPMLA_E_NO_DRIVER: hipSetDevice: got "
			     "NULL, want a pointer");
	hip_fake_reset("gfx942");
	lacks_newer(2);
	hip_fake_driver.properties_before = NULL;
	cuda_fake_query_says(
		NULL, SPMLA_E_NO_DRIVER,
		"SPMLA_E_NO_DRIVER: hipGetDevicePropertiesR0600: got NULL, "
		"want a pointer");
}
END_TEST

/* None of these is asked for, so none can be called: a graph has kernels only
 * and never changes, a launch is not cooperative, and no step takes memory. */
START_TEST(a_graph_has_kernels_only_and_is_not_edited)
{
	static const char *const never[] = {
		"Cooperative", "ExecUpdate", "SetParams", "AddNode",
		"Memcpy",      "HostFunc",   "Malloc",    "DeviceSynchronize"};
	const spmla_i_gpu_library *l = &spmla_i_hip_platform.library;
	uint32_t i, j;

	ck_assert_uint_ge(l->symbol_count, SPMLA_GPU_CALLS);
	for (i = 0; i < l->symbol_count; i++)
		for (j = 0; j < sizeof never / sizeof *never; j++)
			ck_assert_ptr_null(
				strstr(l->symbols[i].name, never[j]));
	ck_assert_int_eq(spmla_i_hip_platform.capture_mode,
			 SPMLA_GPU_CAPTURE_RELAXED);
}
END_TEST

START_TEST(without_a_device_the_code_is_told)
{
	fake.total = 0;
	fake.fail_at = 2; /* hipRuntimeGetVersion, hipInit */
	fake.code = 100;  /* hipErrorNoDevice */
	cuda_fake_query_says(NULL, SPMLA_E_DEVICE,
			     "SPMLA_E_DEVICE: hipInit: got 100, want 0");
}
END_TEST

START_TEST(without_a_runtime_the_backend_says_so)
{
	static const char *const names[] = {
		"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (dlopen(names[i], RTLD_NOW)) {
			printf("SKIPPED: this machine has a HIP runtime\n");
			return;
		}
	ck_assert_int_eq(spmla_backend_query(&spmla_hip, NULL, &device, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: libamdhip64.so.7: got NULL, want "
			 "a pointer");
	ck_assert_int_eq(spmla_init(&ctx, &r.plan, &spmla_hip, NULL, r.regions,
				    SPMLA_MEMORY_COUNT, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_ptr_null(ctx);
}
END_TEST

START_TEST(an_architecture_takes_its_own_code_object_or_none)
{
	static const spmla_i_hip_part parts[] = {{0x90a, 0, 100},
						 {0x1100, 4096, 200}};
	const uint8_t *blob = (const uint8_t *)parts;
	spmla_i_gpu_image image;
	spmla_diag diag = SPMLA_DIAG_INIT;

	image = spmla_i_hip_image(blob, parts, 2, 0x1100);
	ck_assert_ptr_eq(image.data, blob + 4096);
	ck_assert_uint_eq(image.bytes, 200);
	ck_assert_uint_eq(image.driver_version, SPMLA_HIP_OLDEST);
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	image = spmla_i_hip_image(blob, parts, 2, 0x942);
	ck_assert_int_eq(spmla_i_gpu_init(r.ctx, &hip_fake_driver.gpu, &image,
					  NULL, &diag),
			 SPMLA_E_NO_BLOB);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_BLOB: bytes of kernels for gfx942: got 0, "
			 "want at least 1");
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_plan_for_another_device_is_refused)
{
	r.plan.device.arch = 0x90a; /* an older one: its kernels do not run */
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.arch: got 2314, want 2370");
	r.plan.device.arch = 0x942;
	r.plan.device.kind = SPMLA_BACKEND_CUDA;
	ck_assert_int_ne(cuda_fake_rig_init(&r), SPMLA_OK);
	r.plan.device.kind = SPMLA_BACKEND_HIP;
	r.native.flags = SPMLA_NATIVE_DEFERRED;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: native.flags: got 1, want 0");
}
END_TEST

/* Kernels with matrix instructions are only for CUDA. */
START_TEST(portable_kernels_are_loaded_and_no_others)
{
	const spmla_i_gpu_state *state;
	uint32_t i, portable = 0;

	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	state = spmla_view(r.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
	for (i = 0; i < SPMLA_KERNEL_COUNT; i++) {
		const uint32_t is =
			spmla_i_gpu_kernels[i].needs == SPMLA_GPU_NEEDS_NOTHING;

		ck_assert_uint_eq(state->resident_blocks[i], is ? 8 : 0);
		ck_assert_int_eq(state->kernels[i] != NULL, is);
		portable += is;
	}
	ck_assert_uint_ge(portable, 40);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_module_function], portable);
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_set_function_attribute], 0);
	ck_assert_uint_eq(fake.alive, 2); /* module, stream */
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

/* What the runtime calls the function that failed. */
static const char *
failed_name(void)
{
	return fake.failed < (int)SPMLA_GPU_CALLS
		       ? spmla_i_hip_platform.names[fake.failed]
		       : cuda_fake_name((cuda_fake_call)fake.failed);
}

START_TEST(whatever_fails_in_init_is_told_and_nothing_stays)
{
	uint32_t calls, n;

	fake.total = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	calls = fake.total;
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_gt(calls, 15);
	for (n = 1; n < calls; n++) { /* the last restores the device */
		r.ctx = NULL;
		fake.total = 0;
		fake.fail_at = n;
		fake.code = 200 + (int)n;
		ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_E_DEVICE);
		ck_assert_int_ge(fake.failed, 0);
		ck_assert_str_eq(r.diag.field, failed_name());
		ck_assert(r.diag.got == 200 + n);
		ck_assert_uint_eq(fake.alive, 0);
		ck_assert_int_eq(fake_hip.current, 0);
		ck_assert_ptr_null(r.ctx);
	}
	fake.fail_at = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_device_is_what_each_layout_of_its_properties_says, 1},
		{a_device_that_will_not_do_is_told, 1},
		{the_device_that_is_named_is_used_and_the_current_one_restored,
		 1},
		{an_old_runtime_is_told_with_both_versions, 1},
		{a_runtime_that_lacks_a_function_is_told, 1},
		{a_graph_has_kernels_only_and_is_not_edited, 1},
		{without_a_device_the_code_is_told, 1},
		{without_a_runtime_the_backend_says_so, 1},
		{an_architecture_takes_its_own_code_object_or_none, 1},
		{a_plan_for_another_device_is_refused, 1},
		{portable_kernels_are_loaded_and_no_others, 1},
		{whatever_fails_in_init_is_told_and_nothing_stays, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
