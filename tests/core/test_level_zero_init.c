/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero backend before the first step, on a driver that tests can
 * break: what it learns of a device, and what it refuses, with which words, the
 * compiler's among them. A refusal leaves no handle behind.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/cuda_fake.h"
#include "tests/substitutes/ze_fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/launch.h"
#include "spmla/platform/level_zero/init_level_zero.h"
#include "spmla/spmla_level_zero.h"

static cuda_fake_rig r;

static void
setup(void)
{
	ze_fake_reset();
	cuda_fake_rig_plan(&r);
	ze_fake_native(&r.native);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fake_ze.alive, 0);
	cuda_fake_rig_free(&r);
}

static void
init_says(spmla_status status, const char *want)
{
	cuda_fake_rig_init_says(&r, status, want);
	ck_assert_uint_eq(fake_ze.alive, 0);
}

START_TEST(a_device_is_what_its_properties_say)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_device d = SPMLA_DEVICE_INIT;
	uint32_t i;

	fake_ze.device_id = 0x0bd5;
	fake_ze.slices = 1;
	fake_ze.subslices = 64;
	native.device = r.native.device;
	for (i = 0; i < 2; i++) { /* the first one, the one that is named */
		ck_assert_int_eq(spmla_backend_query(&cuda_fake_backend,
						     i ? &native : NULL, &d,
						     NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(d.kind, SPMLA_BACKEND_LEVEL_ZERO);
		ck_assert_uint_eq(d.arch, 0x0bd5);
		ck_assert_uint_eq(d.sm_count, 64);
		ck_assert_uint_eq(d.subgroup_width, 16);
	}
}
END_TEST

/* _i: what the driver before ours has. */
START_TEST(a_driver_without_gpus_is_passed_over)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_device d = SPMLA_DEVICE_INIT;
	uint32_t i;

	fake_ze.other_driver = 1 + (uint32_t)_i;
	native.device = r.native.device;
	for (i = 0; i < 2; i++) {
		d.arch = 0;
		ck_assert_int_eq(spmla_backend_query(&cuda_fake_backend,
						     i ? &native : NULL, &d,
						     NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(d.arch, fake_ze.device_id);
	}
}
END_TEST

/* _i: a driver before ours has a device that is no GPU and has no parts. */
START_TEST(a_part_of_a_device_is_a_device_of_its_own)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_ze_device part = NULL;
	spmla_device d = SPMLA_DEVICE_INIT;
	spmla_config config;
	uint32_t count = 1;

	fake_ze.other_driver = _i ? 2 : 0;
	fake_ze.part_slices = 2; /* of 5, with 4 cores each */
	ck_assert_int_eq(ze_fake_driver_table.own.sub_devices(r.native.device,
							      &count, &part),
			 0);
	native.device = part;
	ck_assert_int_eq(
		spmla_backend_query(&cuda_fake_backend, &native, &d, NULL),
		SPMLA_OK);
	ck_assert_uint_eq(d.sm_count, 8);
	fixture_config(&config);
	ck_assert_int_eq(spmla_plan_make(&r.plan, &config, &d, NULL), SPMLA_OK);
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.sm_count: got 8, want 20");
	r.native.device = part;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	r.ctx = NULL;
}
END_TEST

START_TEST(a_device_that_will_not_do_is_told)
{
	spmla_native native = SPMLA_NATIVE_INIT;

	native.device = &native;
	cuda_fake_query_says(&native, SPMLA_E_RANGE,
			     "SPMLA_E_RANGE: native.device (of zeDeviceGet)");
	fake_ze.type = 4;
	native.device = r.native.device;
	cuda_fake_query_says(
		&native, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: native.device (a GPU): got 4, want 1");
	cuda_fake_query_says(
		NULL, SPMLA_E_DEVICE,
		"SPMLA_E_DEVICE: zeDeviceGet: GPUs: got 0, want at least 1");
	fake_ze.type = SPMLA_ZE_DEVICE_GPU;
	fake_ze.group_items = 512;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: maxTotalGroupSize of the device: got "
		"512, want at least 1024");
	fake_ze.group_items = 1024;
	fake_ze.subgroup_size = 32;
	cuda_fake_query_says(
		NULL, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: subGroupSizes of the device: got 0, "
		"want 16");
	fake_ze.subgroup_size = 16;
	fake_ze.devices = 0;
	cuda_fake_query_says(
		NULL, SPMLA_E_DEVICE,
		"SPMLA_E_DEVICE: zeDeviceGet: GPUs: got 0, want at least 1");
	fake_ze.devices = 1;
	fake_ze.queue_group_flags = 2;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: queue groups that compute: got 0, want "
		  "at least 1");
}
END_TEST

START_TEST(an_old_driver_is_told_with_both_versions)
{
	const char *want = "SPMLA_E_DRIVER_OLD: zeDriverGetApiVersion: got "
			   "65538, want at least 65539";

	fake_ze.version = 0x10002;
	cuda_fake_query_says(NULL, SPMLA_E_DRIVER_OLD, want);
	init_says(SPMLA_E_DRIVER_OLD, want);
	ck_assert_uint_eq(fake_ze.calls[ZE_FAKE_module_create], 0);
}
END_TEST

START_TEST(without_a_driver_the_code_is_told)
{
	fake_ze.total = 0;
	fake_ze.fail_at = 1;
	fake_ze.code = 0x78000001; /* UNINITIALIZED: the loader found none */
	cuda_fake_query_says(NULL, SPMLA_E_DEVICE,
			     "SPMLA_E_DEVICE: zeInit: got 2013265921, want 0");
}
END_TEST

START_TEST(a_loader_that_lacks_a_function_is_told)
{
	spmla_i_ze_driver driver = ze_fake_driver_table.own;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;

	driver.fence_reset = NULL;
	ck_assert_int_eq(spmla_i_ze_query(&driver, NULL, &device, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: zeFenceReset: got NULL, want a "
			 "pointer");
}
END_TEST

START_TEST(without_a_loader_the_backend_says_so)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;

	if (dlopen("libze_loader.so.1", RTLD_NOW)) {
		printf("SKIPPED: this machine has Level Zero's loader\n");
		return;
	}
	ck_assert_int_eq(
		spmla_backend_query(&spmla_level_zero, NULL, &device, &diag),
		SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: libze_loader.so.1: got NULL, want "
			 "a pointer");
	ck_assert_int_eq(spmla_init(&ctx, &r.plan, &spmla_level_zero, NULL,
				    r.regions, SPMLA_MEMORY_COUNT, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_ptr_null(ctx);
}
END_TEST

START_TEST(a_loader_that_is_nowhere_is_named)
{
	static const char *const names[] = {"libze_loader.so.none", NULL};
	spmla_i_gpu_library library = spmla_i_ze_library;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_i_ze_driver driver;

	library.names = names;
	ck_assert_int_eq(spmla_i_gpu_load(&driver, &library, &diag),
			 SPMLA_E_NO_DRIVER);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_DRIVER: libze_loader.so.none: got NULL, "
			 "want a pointer");
}
END_TEST

/* None of these is asked for, so none can be called. */
START_TEST(no_list_is_edited_and_nothing_waits_for_one)
{
	static const char *const never[] = {"zeCommandListReset",
					    "Update",
					    "Mutable",
					    "LaunchCooperative",
					    "LaunchMultiple",
					    "Synchronize",
					    "zeEvent",
					    "zeMemAlloc"};
	const spmla_i_gpu_library *l = &spmla_i_ze_library;
	uint32_t i, j;

	ck_assert_uint_ge(l->symbol_count, 30);
	for (i = 0; i < l->symbol_count; i++)
		for (j = 0; j < sizeof never / sizeof *never; j++)
			ck_assert_ptr_null(
				strstr(l->symbols[i].name, never[j]));
}
END_TEST

START_TEST(what_the_compiler_said_is_in_the_diag)
{
	static char long_log[30000];

	fake_ze.build_log = "error: undefined reference to `x'";
	init_says(SPMLA_E_DEVICE,
		  "SPMLA_E_DEVICE: zeModuleCreate: error: undefined reference "
		  "to `x': got 1879048196, want 0");
	/* The log went, too; its text lies in the HOST region. */
	ck_assert_uint_ge((uintptr_t)r.diag.field,
			  (uintptr_t)r.regions[SPMLA_MEMORY_HOST].base);
	/* The beginning of a long one. */
	memset(long_log, 'x', 5000);
	fake_ze.build_log = long_log;
	r.ctx = NULL;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_E_DEVICE);
	ck_assert_uint_eq(strlen(r.diag.field), SPMLA_I_ZE_LOG_BYTES - 1);
	ck_assert_int_eq(strncmp(r.diag.field, "zeModuleCreate: xxxx", 20), 0);
	/* None, for which there is no room. */
	memset(long_log, 'x', sizeof long_log - 1);
	init_says(SPMLA_E_DEVICE, "SPMLA_E_DEVICE: zeModuleCreate: : got "
				  "1879048196, want 0");
	/* Graphs that would be dropped lie where a log was. */
	fake_ze.build_log = NULL;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(kernels_are_built_for_large_buffers_and_exact_quotients)
{
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_ptr_nonnull(strstr(
		fake_ze.flags, "-ze-opt-greater-than-4GB-buffer-required"));
	ck_assert_ptr_nonnull(strstr(fake_ze.flags,
				     "-cl-fp32-correctly-rounded-divide-sqrt"));
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_kernel_that_does_not_fit_the_device_is_told)
{
	fake_ze.resident = 0;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: spmla_k_c128a_index: got 0, want at "
		  "least 1");
}
END_TEST

static uint32_t (*find)(const char *name, ze_fake_kernel *kernel);

static uint32_t
find_with_more(const char *name, ze_fake_kernel *kernel)
{
	const uint32_t found = find(name, kernel);

	kernel->args++;
	return found;
}

START_TEST(a_kernel_with_other_arguments_is_told)
{
	char want[128];
	const uint32_t args =
		spmla_i_gpu_kernels[SPMLA_KERNEL_c128a_index].pointers + 1;

	find = fake_ze.find;
	fake_ze.find = find_with_more;
	snprintf(want, sizeof want,
		 "SPMLA_E_UNSUPPORTED: spmla_k_c128a_index: got %u, want %u",
		 args + 1, args);
	init_says(SPMLA_E_UNSUPPORTED, want);
}
END_TEST

/* The rig's memory is full of 0xAB. */
START_TEST(init_empties_the_devices_memory)
{
	const uint8_t *state;
	uint64_t bytes, i;

	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	state = spmla_view(r.ctx, SPMLA_BUF_STEP_STATE, &bytes);
	ck_assert_uint_gt(bytes, 0);
	for (i = 0; i < bytes; i++)
		ck_assert_uint_eq(state[i], 0);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(without_spirv_there_is_no_backend)
{
	const spmla_i_ze_image none[SPMLA_ZE_MODULES] = {{NULL, 0}, {NULL, 0}};
	spmla_diag diag = SPMLA_DIAG_INIT;

	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_i_ze_init(r.ctx, &ze_fake_driver_table.own, none,
					 &r.native, &diag),
			 SPMLA_E_NO_BLOB);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_NO_BLOB: bytes of kernels for Level Zero: "
			 "got 0, want at least 1");
}
END_TEST

START_TEST(the_callers_handles_are_wanted)
{
	const spmla_native whole = r.native;

	r.native.context = NULL;
	init_says(SPMLA_E_NULL, "SPMLA_E_NULL: native.context: got NULL, want "
				"a pointer");
	r.native = whole;
	r.native.device = NULL;
	init_says(SPMLA_E_NULL, "SPMLA_E_NULL: native.device: got NULL, want a "
				"pointer");
	r.native = whole;
	r.native.graph_copies = 5;
	init_says(SPMLA_E_RANGE, "SPMLA_E_RANGE: native.graph_copies: got 5, "
				 "want at most 4");
	r.native = whole;
	r.native.reserved = 1;
	init_says(SPMLA_E_RANGE,
		  "SPMLA_E_RANGE: native.reserved: got 1, want 0");
	r.native = whole;
	r.native.flags = SPMLA_NATIVE_DEFERRED;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: native.flags: got 1, want 0");
	/* One of before graph_copies. */
	r.native = whole;
	r.native.struct_bytes = 48;
	r.native.graph_copies = 77;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_plan_for_another_device_is_refused)
{
	r.plan.device.arch = 0x0bd5;
	init_says(SPMLA_E_UNSUPPORTED,
		  "SPMLA_E_UNSUPPORTED: plan.device.arch: got 3029, want "
		  "57867");
	r.plan.device.arch = 0xe20b;
	r.plan.device.kind = SPMLA_BACKEND_HIP;
	ck_assert_int_ne(cuda_fake_rig_init(&r), SPMLA_OK);
}
END_TEST

/* What a device of that number loads, with these flags: the portable kernels,
 * and those by dpas if `tiles`, of a module of their own. */
static void
loads(uint32_t number, uint32_t flags, uint32_t tiles)
{
	const spmla_i_ze_state *state;
	uint32_t i, loaded = 0;

	r.plan.device.arch = fake_ze.device_id = number;
	r.plan.config.flags = flags;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	state = spmla_view(r.ctx, SPMLA_BUF_BACKEND_STATE, NULL);
	for (i = 0; i < SPMLA_KERNEL_COUNT; i++) {
		const uint32_t needs = spmla_i_gpu_kernels[i].needs;
		const uint32_t is = needs == SPMLA_GPU_NEEDS_NOTHING ||
				    (tiles && needs == SPMLA_GPU_NEEDS_TILE);

		ck_assert_uint_eq(state->resident_blocks[i], is ? 8 : 0);
		ck_assert_int_eq(state->kernels[i] != NULL, is);
		loaded += is;
	}
	/* those of the last module */
	ck_assert_int_eq(strstr(fake_ze.flags, "-ze-opt-large-register-file") !=
				 NULL,
			 tiles);
	ck_assert_uint_ge(loaded, 40 + 2 * tiles);
	ck_assert_uint_eq(fake_ze.indirect, 1);
	/* modules, list */
	ck_assert_uint_eq(fake_ze.alive, loaded + 2 + tiles);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_eq(fake_ze.alive, 0);
}

START_TEST(portable_kernels_are_loaded_and_unproven_ones_if_allowed)
{
	const uint32_t allow = SPMLA_CONFIG_ALLOW_UNPROVEN;

	if (_i == 0)
		loads(0xe20b, 0, 0); /* Arc B580 */
	else if (_i == 1)
		loads(0xe20b, allow, 1);
	else if (_i == 2)
		loads(0x0bd5, allow, 1); /* Data Center GPU Max 1550 */
	else
		loads(0x56a0, allow, 0); /* Arc A770: dpas of 8 lanes */
}
END_TEST

START_TEST(whatever_fails_in_init_is_told_and_nothing_stays)
{
	uint32_t calls, n;

	fake_ze.total = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	calls = fake_ze.total;
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
	ck_assert_uint_gt(calls, 200);
	for (n = 1; n <= calls; n++) {
		r.ctx = NULL;
		fake_ze.total = 0;
		fake_ze.fail_at = n;
		fake_ze.code = 200 + (int)n;
		if (cuda_fake_rig_init(&r) == SPMLA_OK) {
			/* The log of a build that went well. */
			ck_assert_int_eq(fake_ze.failed, ZE_FAKE_log_destroy);
			ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
			continue;
		}
		ck_assert_int_eq(r.diag.status, SPMLA_E_DEVICE);
		ck_assert_int_ge(fake_ze.failed, 0);
		ck_assert_str_eq(r.diag.field,
				 ze_fake_name((ze_fake_call)fake_ze.failed));
		ck_assert(r.diag.got == 200 + n);
		ck_assert_uint_eq(fake_ze.alive, 0);
		ck_assert_ptr_null(r.ctx);
	}
	fake_ze.fail_at = 0;
	ck_assert_int_eq(cuda_fake_rig_init(&r), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(r.ctx), SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_device_is_what_its_properties_say, 1},
		{a_driver_without_gpus_is_passed_over, 2},
		{a_part_of_a_device_is_a_device_of_its_own, 2},
		{a_device_that_will_not_do_is_told, 1},
		{an_old_driver_is_told_with_both_versions, 1},
		{without_a_driver_the_code_is_told, 1},
		{a_loader_that_lacks_a_function_is_told, 1},
		{without_a_loader_the_backend_says_so, 1},
		{a_loader_that_is_nowhere_is_named, 1},
		{no_list_is_edited_and_nothing_waits_for_one, 1},
		{what_the_compiler_said_is_in_the_diag, 1},
		{kernels_are_built_for_large_buffers_and_exact_quotients, 1},
		{a_kernel_that_does_not_fit_the_device_is_told, 1},
		{a_kernel_with_other_arguments_is_told, 1},
		{init_empties_the_devices_memory, 1},
		{without_spirv_there_is_no_backend, 1},
		{the_callers_handles_are_wanted, 1},
		{a_plan_for_another_device_is_refused, 1},
		{portable_kernels_are_loaded_and_unproven_ones_if_allowed, 4},
		{whatever_fails_in_init_is_told_and_nothing_stays, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
