/* SPDX-License-Identifier: Apache-2.0
 *
 * What spmla_init refuses, with which words, and that a refusal writes neither
 * the regions nor the caller's pointer.
 */
#include "tests/support/bytes.h"
#include "tests/support/fixture.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/backend.h"

/* A plan with all four kinds of memory, and room for each. */
typedef struct world {
	spmla_plan plan;
	spmla_native native;
	spmla_region regions[5]; /* [k] is kind k; [4] is one too many */
	uint32_t count;
	uint64_t room[4];
} world;

static world w;

static void
setup(void)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config config;
	uint32_t m;

	memset(&w, 0, sizeof w);
	w.native = (spmla_native)SPMLA_NATIVE_INIT;
	fixture_config(&config);
	config.cache_layers = 1;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&w.plan, &config, &device, NULL),
			 SPMLA_OK);
	for (m = 0; m < 4; m++) {
		/* twice what is needed, for regions that are moved */
		w.room[m] = 2 * w.plan.region_bytes[m] + 8192;
		w.regions[m] =
			(spmla_region){24, m, test_alloc(w.room[m], 0xAB),
				       w.plan.region_bytes[m]};
	}
	w.count = 4;
}

static void
teardown(void)
{
	uint32_t m;

	for (m = 0; m < 4; m++)
		free(w.regions[m].base);
}

/* Inits with `regions` and wants this refusal. */
static void
refused_with(const spmla_backend *backend, const spmla_region *regions,
	     spmla_status status, const char *want)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *const before = (spmla_ctx *)(void *)&w;
	spmla_ctx *ctx = before;
	char text[200];
	uint32_t m;

	ck_assert_int_eq(spmla_init(&ctx, &w.plan, backend, &w.native, regions,
				    w.count, &diag),
			 status);
	ck_assert_uint_eq(diag.status, status);
	spmla_diag_text(&diag, text, sizeof text);
	ck_assert_str_eq(text, want);
	ck_assert_int_eq(spmla_init(&ctx, &w.plan, backend, &w.native, regions,
				    w.count, NULL),
			 status);
	ck_assert_ptr_eq(ctx, before);
	for (m = 0; m < 4; m++)
		ck_assert_uint_eq(
			bytes_other(w.regions[m].base, w.room[m], 0xAB),
			w.room[m]);
}

static void
refused(const spmla_region *regions, spmla_status status, const char *format,
	uint64_t a, uint64_t b)
{
	char want[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(want, sizeof want, format, a, b);
#pragma GCC diagnostic pop
	refused_with(&spmla_cpu, regions, status, want);
}

START_TEST(exactly_the_planned_bytes_will_do)
{
	spmla_ctx *ctx = NULL;

	ck_assert_int_eq(spmla_init(&ctx, &w.plan, &spmla_cpu, &w.native,
				    w.regions, w.count, NULL),
			 SPMLA_OK);
	/* The context lies at the start of the HOST region. */
	ck_assert_ptr_eq((void *)ctx, w.regions[0].base);
	ck_assert_int_eq(spmla_fini(ctx), SPMLA_OK);
}
END_TEST

START_TEST(regions_come_in_any_order)
{
	spmla_ctx *ctx = NULL;
	spmla_region r[4] = {w.regions[3], w.regions[1], w.regions[0],
			     w.regions[2]};

	ck_assert_int_eq(
		spmla_init(&ctx, &w.plan, &spmla_cpu, NULL, r, 4, NULL),
		SPMLA_OK);
	ck_assert_ptr_eq((void *)ctx, w.regions[0].base);
	ck_assert_int_eq(spmla_fini(ctx), SPMLA_OK);
}
END_TEST

START_TEST(one_byte_less_is_too_small_in_every_kind)
{
	spmla_region r[4];
	char want[200];
	uint32_t m;

	for (m = 0; m < 4; m++) {
		const uint64_t bytes = w.plan.region_bytes[m];

		memcpy(r, w.regions, sizeof r);
		r[m].bytes--;
		snprintf(want, sizeof want,
			 "SPMLA_E_REGION: regions.bytes[%u]: got %" PRIu64
			 ", want at least %" PRIu64,
			 m, bytes - 1, bytes);
		refused_with(&spmla_cpu, r, SPMLA_E_REGION, want);
	}
}
END_TEST

START_TEST(a_base_off_its_alignment_is_refused_in_every_kind)
{
	static const uint64_t align[4] = {256, 4096, 256, 256};
	spmla_region r[4];
	char want[200];
	uint32_t m, part;

	for (m = 0; m < 4; m++)
		for (part = 1; part <= 2; part++) {
			memcpy(r, w.regions, sizeof r);
			r[m].base = (unsigned char *)r[m].base +
				    (part == 1 ? 1 : align[m] / 2);
			snprintf(
				want, sizeof want,
				"SPMLA_E_REGION: regions.base[%u]: got %" PRIu64
				", want a multiple of %" PRIu64,
				m, (uint64_t)(uintptr_t)r[m].base, align[m]);
			refused_with(&spmla_cpu, r, SPMLA_E_REGION, want);
		}
}
END_TEST

START_TEST(a_kind_that_is_missing_or_comes_twice_is_refused)
{
	static const char *const names[4] = {"HOST", "PINNED", "DEVICE",
					     "CACHE"};
	spmla_region r[4];
	char want[200];
	uint32_t m, k, n;

	for (m = 0; m < 4; m++) {
		for (k = 0, n = 0; k < 4; k++)
			if (k != m)
				r[n++] = w.regions[k];
		w.count = 3;
		snprintf(want, sizeof want,
			 "SPMLA_E_REGION: regions: %s: got 0, want at least "
			 "%" PRIu64,
			 names[m], w.plan.region_bytes[m]);
		refused_with(&spmla_cpu, r, SPMLA_E_REGION, want);
	}
	w.count = 4;
	memcpy(r, w.regions, sizeof r);
	r[3] = r[1];
	refused(r, SPMLA_E_REGION,
		"SPMLA_E_REGION: regions.memory[3]: got 1 again, want it once",
		0, 0);
	w.count = 0;
	refused(r, SPMLA_E_REGION,
		"SPMLA_E_REGION: regions: HOST: got 0, want at least %" PRIu64,
		w.plan.region_bytes[0], 0);
}
END_TEST

START_TEST(a_region_that_makes_no_sense_is_refused)
{
	spmla_region r[5];

	memcpy(r, w.regions, sizeof r);
	r[1].struct_bytes = 20;
	refused(r, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: regions.struct_bytes[1]: got 20, want 24",
		0, 0);
	memcpy(r, w.regions, sizeof r);
	r[2].memory = 4;
	refused(r, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: regions.memory[2]: got 4, want at most 3", 0,
		0);
	memcpy(r, w.regions, sizeof r);
	r[0].base = NULL;
	refused(r, SPMLA_E_NULL,
		"SPMLA_E_NULL: regions.base[0]: got NULL, want a pointer", 0,
		0);
	memcpy(r, w.regions, sizeof r);
	r[3].bytes = UINT64_MAX;
	refused(r, SPMLA_E_OVERFLOW,
		"SPMLA_E_OVERFLOW: regions.bytes[3]: "
		"got 18446744073709551615, want at most %" PRIu64,
		UINT64_MAX - (uint64_t)(uintptr_t)r[3].base, 0);
	memcpy(r, w.regions, sizeof r);
	w.count = 5;
	refused(r, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: region_count: got 5, want at most 4", 0, 0);
}
END_TEST

START_TEST(regions_that_share_a_byte_are_refused)
{
	const uint64_t host = w.plan.region_bytes[0];
	const uint64_t near_end = (host - 1) / 256 * 256;
	unsigned char *base = w.regions[0].base;
	spmla_region r[4];
	spmla_ctx *ctx;

	/* DEVICE starts at the last 256 bytes of HOST. */
	memcpy(r, w.regions, sizeof r);
	r[2].base = base + near_end;
	refused(r, SPMLA_E_OVERLAP,
		"SPMLA_E_OVERLAP: regions.base[2]: got %" PRIu64
		", want at least %" PRIu64,
		(uint64_t)(uintptr_t)r[2].base,
		(uint64_t)(uintptr_t)base + host);
	/* HOST says that it is larger than needed, and reaches CACHE. */
	memcpy(r, w.regions, sizeof r);
	r[0].bytes = near_end + 257;
	r[3].base = base + near_end + 256;
	refused(r, SPMLA_E_OVERLAP,
		"SPMLA_E_OVERLAP: regions.base[3]: got %" PRIu64
		", want at least %" PRIu64,
		(uint64_t)(uintptr_t)r[3].base,
		(uint64_t)(uintptr_t)base + near_end + 257);
	/* One right behind the other is fine: out of one block. */
	free(w.regions[3].base);
	w.room[3] = 4096 + w.plan.region_bytes[2] + w.plan.region_bytes[3];
	w.regions[3].base = test_alloc(w.room[3], 0xAB);
	memcpy(r, w.regions, sizeof r);
	r[3].bytes = (r[3].bytes + 255) / 256 * 256;
	r[2].base = (unsigned char *)r[3].base + r[3].bytes;
	ck_assert_int_eq(
		spmla_init(&ctx, &w.plan, &spmla_cpu, NULL, r, 4, NULL),
		SPMLA_OK);
	ck_assert_int_eq(spmla_fini(ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_plan_that_was_not_made_or_is_of_another_version_is_refused)
{
	const spmla_plan good = w.plan;
	const uint32_t others[2] = {SPMLA_VERSION - 1, SPMLA_VERSION + 1};
	uint32_t i;

	memset(&w.plan, 0, sizeof w.plan);
	refused(w.regions, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 0, want 2704", 0,
		0);
	w.plan = good;
	w.plan.struct_bytes = 2692;
	refused(w.regions, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got 2692, want 2704",
		0, 0);
	for (i = 0; i < 2; i++) {
		w.plan = good;
		w.plan.version = others[i];
		refused(w.regions, SPMLA_E_UNSUPPORTED,
			"SPMLA_E_UNSUPPORTED: plan.version: got %" PRIu64
			", want %" PRIu64,
			others[i], SPMLA_VERSION);
	}
}
END_TEST

START_TEST(a_plan_that_leads_outside_its_regions_is_refused)
{
	const spmla_plan good = w.plan;
	uint32_t i;

	w.plan.row_count = 65;
	refused(w.regions, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: plan.row_count: got 65, want at most 64", 0, 0);
	for (i = 0; i < 5; i++) {
		spmla_extent *e = &w.plan.extents[5];

		w.plan = good;
		e->buf = i == 0 ? 1000000 : e->buf;
		e->memory = i == 1 ? 4 : e->memory;
		e->life = i == 2 ? 4 : e->life;
		e->bytes = i == 3 ? UINT64_MAX : e->bytes;
		e->offset_bytes =
			i == 4 ? good.region_bytes[e->memory] : e->offset_bytes;
		refused(w.regions, SPMLA_E_RANGE,
			"SPMLA_E_RANGE: plan.extents[5]", 0, 0);
	}
	w.plan = good;
	w.plan.extents[0].bytes -= 8;
	refused(w.regions, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: plan.extents: CONTEXT bytes: got %" PRIu64
		", want %" PRIu64,
		good.extents[0].bytes - 8, good.extents[0].bytes);
}
END_TEST

START_TEST(a_backend_of_another_kind_is_refused)
{
	spmla_backend backend = spmla_cpu;

	backend.kind = 2;
	refused_with(&backend, w.regions, SPMLA_E_UNSUPPORTED,
		     "SPMLA_E_UNSUPPORTED: plan.device.kind: got 1, want 2");
}
END_TEST

START_TEST(native_handles_that_are_wrong_are_refused)
{
	spmla_device device = SPMLA_DEVICE_INIT;

	w.native.struct_bytes = 0;
	refused(w.regions, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: native.struct_bytes: got 0, want 48", 0,
		0);
	ck_assert_int_eq(
		spmla_backend_query(&spmla_cpu, &w.native, &device, NULL),
		SPMLA_E_STRUCT_SIZE);
	w.native.struct_bytes = 48;
	w.native.flags = 8;
	refused(w.regions, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: native.flags: got 8, want at most 7", 0, 0);
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

int
main(void)
{
	Suite *s = suite_create("init");
	TCase *c = tcase_create("refusals");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, exactly_the_planned_bytes_will_do);
	tcase_add_test(c, regions_come_in_any_order);
	tcase_add_test(c, one_byte_less_is_too_small_in_every_kind);
	tcase_add_test(c, a_base_off_its_alignment_is_refused_in_every_kind);
	tcase_add_test(c, a_kind_that_is_missing_or_comes_twice_is_refused);
	tcase_add_test(c, a_region_that_makes_no_sense_is_refused);
	tcase_add_test(c, regions_that_share_a_byte_are_refused);
	tcase_add_test(
		c,
		a_plan_that_was_not_made_or_is_of_another_version_is_refused);
	tcase_add_test(c, a_plan_that_leads_outside_its_regions_is_refused);
	tcase_add_test(c, a_backend_of_another_kind_is_refused);
	tcase_add_test(c, native_handles_that_are_wrong_are_refused);
	tcase_add_test(c, a_null_argument_of_init_is_named);
	suite_add_tcase(s, c);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
