/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan, the backend and the native handles that spmla_init refuses, with
 * which words, and that a refusal writes nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/core/init_rig.h"
#include "tests/harness/themes.h"

static init_rig w;

static void
setup(void)
{
	init_open(&w);
}

static void
teardown(void)
{
	init_close(&w);
}

START_TEST(a_plan_that_was_not_made_or_is_of_another_version_is_refused)
{
	const spmla_plan good = w.plan;
	const uint32_t others[2] = {SPMLA_VERSION - 1, SPMLA_VERSION + 1};
	uint32_t i;

	memset(&w.plan, 0, sizeof w.plan);
	init_refused(&w, w.regions, SPMLA_E_STRUCT_SIZE,
		     "SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 0, want 3816",
		     0, 0);
	w.plan = good;
	w.plan.struct_bytes = 3804;
	init_refused(
		&w, w.regions, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 3804, want 3816",
		0, 0);
	for (i = 0; i < 2; i++) {
		w.plan = good;
		w.plan.version = others[i];
		init_refused(&w, w.regions, SPMLA_E_UNSUPPORTED,
			     "SPMLA_E_UNSUPPORTED: plan.version: got %" PRIu64
			     ", want %" PRIu64,
			     others[i], SPMLA_VERSION);
	}
}
END_TEST

START_TEST(a_plan_that_leads_astray_is_refused)
{
	const spmla_plan good = w.plan;
	uint32_t i;

	w.plan.row_count = 97;
	init_refused(&w, w.regions, SPMLA_E_RANGE,
		     "SPMLA_E_RANGE: plan.row_count: got 97, want at most 96",
		     0, 0);
	for (i = 0; i < 8; i++) {
		spmla_extent *e = &w.plan.extents[5];

		w.plan = good;
		e->buf = i == 0 ? 1000000 : e->buf;
		e->memory = i == 1 ? 4 : e->memory;
		e->life = i == 2 ? 5 : e->life;
		e->bytes = i == 3 ? UINT64_MAX : e->bytes;
		e->offset_bytes =
			i == 4 ? good.region_bytes[e->memory] : e->offset_bytes;
		/* What another build might have had. */
		e->life = i == 5 ? SPMLA_LIFE_ATTEND : e->life;
		e->branch = i == 6 ? 1 : e->branch;
		e->memory = i == 7 ? SPMLA_MEMORY_HOST : e->memory;
		init_refused(&w, w.regions, SPMLA_E_RANGE,
			     "SPMLA_E_RANGE: plan.extents[5]", 0, 0);
	}
	w.plan = good;
	w.plan.extents[0].bytes -= 8;
	init_refused(
		&w, w.regions, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: plan.extents: CONTEXT bytes: got %" PRIu64
		", want %" PRIu64,
		good.extents[0].bytes - 8, good.extents[0].bytes);
}
END_TEST

START_TEST(a_backend_of_another_kind_is_refused)
{
	spmla_backend backend = spmla_cpu;

	backend.kind = 2;
	init_refused_with(
		&w, &backend, w.regions, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: plan.device.kind: got 1, want 2");
}
END_TEST

START_TEST(native_handles_that_are_wrong_are_refused)
{
	spmla_device device = SPMLA_DEVICE_INIT;

	w.native.struct_bytes = 0;
	init_refused(&w, w.regions, SPMLA_E_STRUCT_SIZE,
		     "SPMLA_E_STRUCT_SIZE: native.struct_bytes: got 0, want 48",
		     0, 0);
	ck_assert_int_eq(
		spmla_backend_query(&spmla_cpu, &w.native, &device, NULL),
		SPMLA_E_STRUCT_SIZE);
	w.native.struct_bytes = 48;
	w.native.flags = 8;
	init_refused(&w, w.regions, SPMLA_E_RANGE,
		     "SPMLA_E_RANGE: native.flags: got 8, want at most 7", 0,
		     0);
	ck_assert_int_eq(
		spmla_backend_query(&spmla_cpu, &w.native, &device, NULL),
		SPMLA_E_RANGE);
	ck_assert_uint_eq(device.sm_count, 0);
}
END_TEST

START_TEST(a_null_argument_of_init_is_named)
{
	static const char *const names[4] = {"ctx", "plan", "backend",
					     "regions"};
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;
	char text[200], want[200];
	uint32_t i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(spmla_init(i == 0 ? NULL : &ctx,
					    i == 1 ? NULL : &w.plan,
					    i == 2 ? NULL : &spmla_cpu, NULL,
					    i == 3 ? NULL : w.regions, 4,
					    &diag),
				 SPMLA_E_NULL);
		spmla_diag_text(&diag, text, sizeof text);
		snprintf(want, sizeof want,
			 "SPMLA_E_NULL: %s: got NULL, want a pointer",
			 names[i]);
		ck_assert_str_eq(text, want);
		ck_assert_ptr_null(ctx);
	}
}
END_TEST

SUITE
{
	const theme_test refusals[] = {
		{a_plan_that_was_not_made_or_is_of_another_version_is_refused,
		 1},
		{a_plan_that_leads_astray_is_refused, 1},
		{a_backend_of_another_kind_is_refused, 1},
		{native_handles_that_are_wrong_are_refused, 1},
		{a_null_argument_of_init_is_named, 1},
	};
	const theme themes[] = {
		THEME("refusals", setup, teardown, refusals),
	};

	return RUN_THEMES(themes);
}
