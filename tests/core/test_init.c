/* SPDX-License-Identifier: Apache-2.0
 *
 * The regions that spmla_init takes and refuses, with which words, and that a
 * refusal writes neither the regions nor the caller's pointer. Its other
 * arguments are in test_init_plan.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
		init_refused_with(&w, &spmla_cpu, r, SPMLA_E_REGION, want);
	}
}
END_TEST

START_TEST(a_base_off_its_alignment_is_refused_in_every_kind)
{
	spmla_region r[4];
	char want[200];
	uint32_t m, part;

	for (m = 0; m < 4; m++)
		for (part = 1; part <= 2; part++) {
			memcpy(r, w.regions, sizeof r);
			r[m].base = (unsigned char *)r[m].base +
				    (part == 1 ? 1 : 128);
			snprintf(
				want, sizeof want,
				"SPMLA_E_REGION: regions.base[%u]: got %" PRIu64
				", want a multiple of 256",
				m, (uint64_t)(uintptr_t)r[m].base);
			init_refused_with(&w, &spmla_cpu, r, SPMLA_E_REGION,
					  want);
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
		init_refused_with(&w, &spmla_cpu, r, SPMLA_E_REGION, want);
	}
	w.count = 4;
	memcpy(r, w.regions, sizeof r);
	r[3] = r[1];
	init_refused(
		&w, r, SPMLA_E_REGION,
		"SPMLA_E_REGION: regions.memory[3]: got 1 again, want it once",
		0, 0);
	w.count = 0;
	init_refused(
		&w, r, SPMLA_E_REGION,
		"SPMLA_E_REGION: regions: HOST: got 0, want at least %" PRIu64,
		w.plan.region_bytes[0], 0);
}
END_TEST

START_TEST(a_region_that_makes_no_sense_is_refused)
{
	spmla_region r[5];

	memcpy(r, w.regions, sizeof r);
	r[1].struct_bytes = 20;
	init_refused(
		&w, r, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: regions.struct_bytes[1]: got 20, want 24",
		0, 0);
	memcpy(r, w.regions, sizeof r);
	r[2].memory = 4;
	init_refused(
		&w, r, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: regions.memory[2]: got 4, want 0, 1, 2 or 3", 0,
		0);
	memcpy(r, w.regions, sizeof r);
	r[0].base = NULL;
	init_refused(&w, r, SPMLA_E_NULL,
		     "SPMLA_E_NULL: regions.base[0]: got NULL, want a pointer",
		     0, 0);
	memcpy(r, w.regions, sizeof r);
	r[3].bytes = UINT64_MAX;
	init_refused(&w, r, SPMLA_E_OVERFLOW,
		     "SPMLA_E_OVERFLOW: regions.bytes[3]: "
		     "got 18446744073709551615, want at most %" PRIu64,
		     UINT64_MAX - (uint64_t)(uintptr_t)r[3].base, 0);
	memcpy(r, w.regions, sizeof r);
	w.count = 5;
	init_refused(&w, r, SPMLA_E_RANGE,
		     "SPMLA_E_RANGE: region_count: got 5, want at most 4", 0,
		     0);
}
END_TEST

/* The array ends with the first 8 bytes of a region of some other version: only
 * they lie in memory that may be read. */
START_TEST(nothing_of_a_region_of_another_size_is_read_but_its_size)
{
	static const uint32_t size[4] = {0, 8, 16, 32};
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *tail = map + page - 8;
	char want[200];
	uint32_t i;

	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_eq(mprotect(map + page, page, PROT_NONE), 0);
	memcpy(tail - 24, &w.regions[0], 24);
	w.count = 2;
	for (i = 0; i < 4; i++) {
		memcpy(tail, &size[i], sizeof size[i]);
		snprintf(want, sizeof want,
			 "SPMLA_E_STRUCT_SIZE: regions.struct_bytes[1]: "
			 "got %u, want 24",
			 size[i]);
		init_refused_with(&w, &spmla_cpu,
				  (const spmla_region *)(void *)(tail - 24),
				  SPMLA_E_STRUCT_SIZE, want);
	}
	munmap(map, 2 * page);
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
	init_refused(&w, r, SPMLA_E_OVERLAP,
		     "SPMLA_E_OVERLAP: regions.base[2]: got %" PRIu64
		     ", want at least %" PRIu64,
		     (uint64_t)(uintptr_t)r[2].base,
		     (uint64_t)(uintptr_t)base + host);
	/* HOST says that it is larger than needed, and reaches CACHE. */
	memcpy(r, w.regions, sizeof r);
	r[0].bytes = near_end + 257;
	r[3].base = base + near_end + 256;
	init_refused(&w, r, SPMLA_E_OVERLAP,
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

SUITE
{
	const theme_test shape[] = {
		{exactly_the_planned_bytes_will_do, 1},
		{regions_come_in_any_order, 1},
	};
	const theme_test refusals[] = {
		{one_byte_less_is_too_small_in_every_kind, 1},
		{a_base_off_its_alignment_is_refused_in_every_kind, 1},
		{a_kind_that_is_missing_or_comes_twice_is_refused, 1},
		{a_region_that_makes_no_sense_is_refused, 1},
		{nothing_of_a_region_of_another_size_is_read_but_its_size, 1},
		{regions_that_share_a_byte_are_refused, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("refusals", setup, teardown, refusals),
	};

	return RUN_THEMES(themes);
}
