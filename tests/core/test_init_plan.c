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
static char text[200];

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
		     "SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 0, want 3840",
		     0, 0);
	w.plan = good;
	w.plan.struct_bytes = 3804;
	init_refused(
		&w, w.regions, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 3804, want 3840",
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

/* The plan was stored and read back. It is made of its config and device, so
 * another value there may be another good plan. */
START_TEST(a_plan_with_any_byte_changed_is_refused)
{
	const spmla_plan good = w.plan;
	const uint32_t sizes = (uint32_t)offsetof(spmla_plan, region_bytes);
	const uint8_t *bytes = (const uint8_t *)&good;
	uint8_t *damaged = (uint8_t *)&w.plan;
	uint32_t i;

	w.context = sizeof(spmla_ctx);
	for (i = 8; i < sizeof good; i++) {
		spmla_diag diag = SPMLA_DIAG_INIT;
		spmla_ctx *ctx = NULL;

		if (i == offsetof(spmla_plan, config))
			i = (uint32_t)offsetof(spmla_plan, extents);
		if (i == sizes) /* the regions do not do for more: see below */
			i += (uint32_t)sizeof good.region_bytes;
		w.plan = good;
		damaged[i] = (uint8_t)~bytes[i];
		ck_assert_int_eq(spmla_init(&ctx, &w.plan, &spmla_cpu, NULL,
					    w.regions, 4, &diag),
				 SPMLA_E_RANGE);
		ck_assert_str_eq(diag.field, "plan byte");
		ck_assert_uint_eq(diag.index, i);
		ck_assert_ptr_null(ctx);
	}
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: plan byte[%u]: got %u, want %u", i - 1,
		 damaged[i - 1], bytes[i - 1]);
	init_refused_with(&w, &spmla_cpu, w.regions, SPMLA_E_RANGE, text);
}
END_TEST

START_TEST(a_plan_with_smaller_regions_is_refused)
{
	const spmla_plan good = w.plan;
	uint32_t m;

	w.context = sizeof(spmla_ctx);
	for (m = 0; m < 4; m++) {
		spmla_diag diag = SPMLA_DIAG_INIT;
		spmla_ctx *ctx = NULL;

		w.plan = good;
		w.plan.region_bytes[m] = 0;
		ck_assert_int_eq(spmla_init(&ctx, &w.plan, &spmla_cpu, NULL,
					    w.regions, 4, &diag),
				 SPMLA_E_RANGE);
		ck_assert_str_eq(diag.field, "plan byte");
		ck_assert_uint_eq(diag.index / 8,
				  offsetof(spmla_plan, region_bytes) / 8 + m);
	}
	/* Nor is a context written where HOST has no room for one. */
	w.plan = good;
	w.plan.region_bytes[0] = 0;
	w.regions[0].bytes = sizeof(spmla_ctx) - 1;
	w.context = 0;
	memset(w.regions[0].base, 0xAB, sizeof(spmla_ctx));
	init_refused(&w, w.regions, SPMLA_E_REGION,
		     "SPMLA_E_REGION: regions.bytes[0]: got %" PRIu64
		     ", want at least %" PRIu64,
		     sizeof(spmla_ctx) - 1, sizeof(spmla_ctx));
}
END_TEST

START_TEST(a_plan_whose_config_was_changed_is_refused)
{
	const spmla_plan good = w.plan;
	uint32_t k;

	w.context = sizeof(spmla_ctx);
	for (k = 0; k < 4; k++) {
		spmla_diag diag = SPMLA_DIAG_INIT;
		spmla_config *c = &w.plan.config;
		spmla_ctx *ctx = NULL;

		w.plan = good;
		c->ring_slots += k == 0;
		c->max_rows -= k == 1;
		c->heads += k == 2;
		w.plan.device.ops ^= k == 3;
		ck_assert_int_ne(spmla_init(&ctx, &w.plan, &spmla_cpu, NULL,
					    w.regions, 4, &diag),
				 SPMLA_OK);
		ck_assert_ptr_null(ctx);
		ck_assert_ptr_nonnull(diag.field);
	}
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
		     "SPMLA_E_STRUCT_SIZE: native.struct_bytes: got 0, want 56",
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
	w.native.struct_bytes = sizeof w.native;
	w.native.flags = 0;
	w.native.reserved = 7;
	init_refused(&w, w.regions, SPMLA_E_RANGE,
		     "SPMLA_E_RANGE: native.reserved: got 7, want 0", 0, 0);
}
END_TEST

START_TEST(a_null_argument_of_init_is_named)
{
	static const char *const names[4] = {"ctx", "plan", "backend",
					     "regions"};
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;
	char want[200];
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
		{a_plan_with_any_byte_changed_is_refused, 1},
		{a_plan_with_smaller_regions_is_refused, 1},
		{a_plan_whose_config_was_changed_is_refused, 1},
		{a_backend_of_another_kind_is_refused, 1},
		{native_handles_that_are_wrong_are_refused, 1},
		{a_null_argument_of_init_is_named, 1},
	};
	const theme themes[] = {
		THEME("refusals", setup, teardown, refusals),
	};

	return RUN_THEMES(themes);
}
