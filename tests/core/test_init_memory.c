/* SPDX-License-Identifier: Apache-2.0
 *
 * Init and steps stay inside the memory that was planned: guard pages around
 * each region, and bytes that belong to no buffer keep their value.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/harness/red_zone.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

enum { STEPS = 40 };

/* A region between two pages that cannot be touched. */
typedef struct guarded {
	unsigned char *map;
	uint64_t map_bytes;
	unsigned char *room; /* the pages in between */
	uint64_t room_bytes;
	unsigned char *base;
	uint64_t bytes;
} guarded;

typedef struct world {
	spmla_plan plan;
	guarded memory[SPMLA_MEMORY_COUNT];
	spmla_region regions[SPMLA_MEMORY_COUNT];
	uint32_t count;
	spmla_ctx *ctx;
} world;

/* right: as near to the upper guard as the alignment allows. */
static void
guard(guarded *g, uint64_t bytes, uint64_t align, uint32_t right)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	g->bytes = bytes;
	g->room_bytes = (bytes + page - 1) / page * page;
	g->map_bytes = g->room_bytes + 2 * page;
	g->map = mmap(NULL, g->map_bytes, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(g->map, MAP_FAILED);
	g->room = g->map + page;
	ck_assert_int_eq(
		mprotect(g->room, g->room_bytes, PROT_READ | PROT_WRITE), 0);
	memset(g->room, 0xAB, g->room_bytes);
	g->base = g->room;
	if (right)
		g->base += (g->room_bytes - bytes) / align * align;
}

static void
open_world(world *w, const spmla_config *config, uint32_t right,
	   uint32_t native_flags)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_device device = SPMLA_DEVICE_INIT;
	uint32_t m;

	memset(w, 0, sizeof *w);
	native.flags = native_flags;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&w->plan, config, &device, NULL),
			 SPMLA_OK);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		guarded *g = &w->memory[m];

		if (w->plan.region_bytes[m] == 0)
			continue;
		guard(g, w->plan.region_bytes[m], w->plan.region_align[m],
		      right);
		w->regions[w->count++] =
			(spmla_region){24, m, g->base, g->bytes};
	}
	ck_assert_int_eq(spmla_init(&w->ctx, &w->plan, &spmla_cpu, &native,
				    w->regions, w->count, NULL),
			 SPMLA_OK);
}

static void
close_world(world *w)
{
	uint32_t m;

	ck_assert_int_eq(spmla_fini(w->ctx), SPMLA_OK);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		if (w->memory[m].map)
			munmap(w->memory[m].map, w->memory[m].map_bytes);
}

/* Whether a byte of a region lies in some buffer. */
static void
mark(const world *w, uint32_t memory, unsigned char *mine)
{
	uint32_t i;

	for (i = 0; i < w->plan.row_count; i++) {
		const spmla_extent *e = &w->plan.extents[i];

		if (e->memory == memory)
			memset(mine + e->offset_bytes, 1, e->bytes);
	}
}

/* Every byte that belongs to no buffer is as it was; returns how many. */
static uint64_t
check_unowned(const world *w)
{
	uint64_t unowned = 0, i;
	uint32_t m;

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const guarded *g = &w->memory[m];
		unsigned char *mine;

		if (!g->map)
			continue;
		mine = calloc(1, g->room_bytes);
		ck_assert_ptr_nonnull(mine);
		mark(w, m, mine + (g->base - g->room));
		for (i = 0; i < g->room_bytes; i++) {
			if (mine[i])
				continue;
			unowned++;
			if (g->room[i] != 0xAB)
				ck_abort_msg("%s: byte %" PRId64 " was written",
					     spmla_memory_name(m),
					     (int64_t)i - (g->base - g->room));
		}
		free(mine);
	}
	return unowned;
}

static void
run_guarded(uint32_t flags, uint32_t layers, uint32_t right, uint32_t deferred)
{
	spmla_config config;
	uint64_t unowned;
	v32_rig rig;
	world w;

	fixture_config(&config);
	config.flags = flags;
	config.cache_layers = layers;
	open_world(&w, &config, right, deferred);
	unowned = check_unowned(&w);
	/* 256 B behind every buffer but the last of each region */
	if (flags & SPMLA_CONFIG_APART)
		ck_assert_uint_ge(unowned, 256 * (w.plan.row_count - w.count));
	v32_rig_open(&rig, w.ctx, layers ? layers - 1 : 0, 11);
	rig.bucket = 2; /* the largest: buffers are used to their ends */
	(void)v32_rig_decode(&rig, w.ctx, STEPS);
	(void)check_unowned(&w);
	v32_rig_close(&rig);
	close_world(&w);
}

START_TEST(init_and_steps_stay_inside_the_regions)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		run_guarded(0, i & 1 ? 2 : 0, i >> 1 & 1, i >> 2 & 1);
}
END_TEST

START_TEST(red_zones_keep_their_bytes_while_steps_run)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		run_guarded(SPMLA_CONFIG_APART, i & 1 ? 2 : 0, i >> 1 & 1,
			    i >> 2 & 1);
}
END_TEST

/* A prefill as large as the plan allows, rows of the workspace to the last. */
static void
prefill_once(v32_rig *rig, spmla_ctx *ctx)
{
	static const int32_t pages[8] = {9, 2, 40, 63, 17, 5, 0, 31};
	const spmla_shape shape = {40, 2, 40, 100};
	const spmla_request requests[2] = {{2, 37, 64, SPMLA_REQUEST_JOIN},
					   {5, 3, 36, SPMLA_REQUEST_JOIN}};
	const spmla_table_store stores[2] = {
		{SPMLA_GROUP_MAIN, 2, 0, 4, pages},
		{SPMLA_GROUP_MAIN, 5, 0, 3, pages + 4}};
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;

	step.requests = requests;
	step.stores = stores;
	step.request_count = step.store_count = 2;
	v32_must(ctx, spmla_step_write(ctx, &step, &ticket, NULL));
	v32_must(ctx, spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(ctx, spmla_v32_prefill(ctx, &rig->layer, &shape, NULL));
	(void)spmla_cpu_queue_run(ctx, UINT32_MAX);
}

START_TEST(a_prefill_stays_inside_the_regions)
{
	spmla_config config;
	v32_rig rig;
	uint32_t i;
	world w;

	for (i = 0; i < 8; i++) {
		fixture_config(&config);
		config.flags = i & 1 ? SPMLA_CONFIG_APART : 0;
		config.cache_layers = 1;
		config.max_prefill_tokens = 40;
		config.prefill_workspace_tokens = 100;
		config.logits_budget_bytes = 1024; /* one row */
		config.queue_entries = 200;
		open_world(&w, &config, i >> 1 & 1, i >> 2 & 1);
		v32_rig_open(&rig, w.ctx, 0, 12);
		prefill_once(&rig, w.ctx);
		(void)v32_rig_decode(&rig, w.ctx, 3);
		prefill_once(&rig, w.ctx);
		(void)check_unowned(&w);
		v32_rig_close(&rig);
		close_world(&w);
	}
}
END_TEST

/* The bits of a run do not depend on the layout or on when ops run. */
START_TEST(the_layout_changes_no_result)
{
	static const uint32_t flags[4] = {0, SPMLA_CONFIG_APART,
					  SPMLA_CONFIG_BATCH_INVARIANT, 0};
	uint64_t hash[4];
	spmla_config config;
	v32_rig rig;
	uint32_t i;
	world w;

	for (i = 0; i < 4; i++) {
		fixture_config(&config);
		config.flags = flags[i];
		config.cache_layers = i == 3 ? 2 : 0;
		open_world(&w, &config, i & 1, i & 1);
		v32_rig_open(&rig, w.ctx, config.cache_layers ? 1 : 0, 11);
		hash[i] = v32_rig_decode(&rig, w.ctx, STEPS);
		v32_rig_close(&rig);
		close_world(&w);
		ck_assert_uint_eq(hash[i], hash[0]);
	}
}
END_TEST

START_TEST(memory_is_the_callers_again_after_fini)
{
	uint64_t first, second;
	spmla_config config;
	v32_rig rig;
	fixture f;
	uint32_t m, i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, 11);
	first = v32_rig_decode(&rig, f.ctx, STEPS);
	v32_rig_close(&rig);
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_OK);
	/* Twice is an error, not a crash. */
	ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_E_NULL);
	/* In the same memory as it was left, and then overwritten. */
	for (m = 0; m < 2; m++) {
		for (i = 0; m == 1 && i < 3; i++) {
			red_zone_lift(f.memory[i], f.plan.region_bytes[i]);
			memset(f.memory[i], 0xCD, f.plan.region_bytes[i]);
		}
		ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, &spmla_cpu, NULL,
					    f.regions, f.region_count, NULL),
				 SPMLA_OK);
		v32_rig_open(&rig, f.ctx, 0, 11);
		second = v32_rig_decode(&rig, f.ctx, STEPS);
		v32_rig_close(&rig);
		ck_assert_uint_eq(second, first);
		if (m == 0)
			ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_OK);
	}
	fixture_close(&f);
}
END_TEST

/* One step of each in turn, with different inputs. */
START_TEST(two_contexts_do_not_see_each_other)
{
	uint64_t alone[2];
	spmla_config config;
	v32_rig rig[2];
	fixture f[2];
	uint32_t i, n;

	fixture_config(&config);
	for (i = 0; i < 2; i++) {
		fixture_open(&f[0], &config, 0);
		v32_rig_open(&rig[0], f[0].ctx, 0, 100 + i);
		alone[i] = v32_rig_decode(&rig[0], f[0].ctx, STEPS);
		v32_rig_close(&rig[0]);
		fixture_close(&f[0]);
	}
	ck_assert_uint_ne(alone[0], alone[1]);
	for (i = 0; i < 2; i++) {
		fixture_open(&f[i], &config, 0);
		v32_rig_open(&rig[i], f[i].ctx, 0, 100 + i);
	}
	for (i = 0; i < 2; i++)
		v32_rig_capture(&rig[i], f[i].ctx);
	for (n = 0; n < STEPS; n++)
		for (i = 0; i < 2; i++)
			v32_rig_step(&rig[i], f[i].ctx, n);
	ck_assert_uint_eq(rig[0].hash, alone[0]);
	ck_assert_uint_eq(rig[1].hash, alone[1]);
	for (i = 0; i < 2; i++) {
		v32_rig_close(&rig[i]);
		fixture_close(&f[i]);
	}
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{init_and_steps_stay_inside_the_regions, 1},
		{red_zones_keep_their_bytes_while_steps_run, 1},
		{a_prefill_stays_inside_the_regions, 1},
		{the_layout_changes_no_result, 1},
		{memory_is_the_callers_again_after_fini, 1},
		{two_contexts_do_not_see_each_other, 1},
	};
	const theme themes[] = {
		THEME("memory", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
