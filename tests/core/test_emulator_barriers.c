/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's barriers: correct small kernels give their results under every
 * schedule. Kernels with one fault give wrong results under some schedule, or
 * end the program.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/async.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

static const uint32_t widths[3] = {16, 32, 64};

/* ---- a ring -------------------------------------------------------------- */

enum {
	RING_ITEMS = 192, /* 64 fill it, 64 and 64 read it */
	RING_STAGES = 2,
	RING_TILES = 9,
	RING_FILL = 64,
	RING_READERS = RING_ITEMS - RING_FILL,
	RING_BYTES = 64 + RING_STAGES * 16 * RING_FILL
};

typedef struct ring {
	const uint32_t *from; /* [tiles][RING_FILL][4] */
	uint32_t *sums;       /* [RING_READERS] */
	/* What is wrong: */
	uint32_t early_read; /* readers wait when they have read */
	uint32_t early_fill; /* who fills waits when he has filled */
	uint32_t early_full; /* he arrives before his copies do */
} ring;

/* Waits at the barrier of a tile's stage; `before` is 1 for what was done with
 * the tile that the stage held before. */
static void
ring_wait(const g_mbarrier *of, uint32_t tile, uint32_t before)
{
	g_mbarrier_wait(of + tile % RING_STAGES,
			(tile / RING_STAGES ^ before) & 1u);
}

static void
ring_fill(const ring *a, uint8_t *local)
{
	g_mbarrier *full = (g_mbarrier *)local, *empty = full + RING_STAGES;
	const uint32_t i = g_item();
	uint32_t tile;

	for (tile = 0; tile < RING_TILES; tile++) {
		const uint32_t stage = tile % RING_STAGES;

		if (!a->early_fill)
			ring_wait(empty, tile, 1);
		g_local_copy128(local + 64 + 16 * (stage * RING_FILL + i),
				a->from + 4 * (tile * RING_FILL + i), 1);
		if (a->early_fill)
			ring_wait(empty, tile, 1);
		if (a->early_full)
			g_mbarrier_arrive(full + stage);
		else
			g_mbarrier_arrive_copies(full + stage);
	}
}

/* Every reader reads what each of the 64 has brought. */
static void
ring_read(const ring *a, uint8_t *local)
{
	g_mbarrier *full = (g_mbarrier *)local, *empty = full + RING_STAGES;
	const uint32_t reader = g_item() - RING_FILL;
	uint32_t sum = 0, tile, i;

	for (tile = 0; tile < RING_TILES; tile++) {
		const uint32_t stage = tile % RING_STAGES;
		const uint32_t *words =
			(uint32_t *)(local + 64 + 16 * stage * RING_FILL);

		if (!a->early_read)
			ring_wait(full, tile, 0);
		for (i = 0; i < 4 * RING_FILL; i++)
			sum = sum * 31 + words[i] + reader;
		if (a->early_read)
			ring_wait(full, tile, 0);
		g_mbarrier_arrive(empty + stage);
	}
	a->sums[reader] = sum;
}

static void
ring_run(const void *params)
{
	LOCAL_DYNAMIC(local, RING_BYTES);
	g_mbarrier *full = (g_mbarrier *)local;
	uint32_t i;

	if (g_item() == 0) {
		for (i = 0; i < RING_STAGES; i++) {
			g_mbarrier_init(full + i, RING_FILL);
			g_mbarrier_init(full + RING_STAGES + i, RING_READERS);
		}
		g_mbarriers_publish();
	}
	BARRIER();
	if (g_item() < RING_FILL) {
		G_REGISTERS_DOWN(40);
		ring_fill(params, local);
	} else {
		G_REGISTERS_UP(232);
		ring_read(params, local);
	}
}

static uint32_t ring_from[RING_TILES * RING_FILL * 4];
static uint32_t ring_sums[RING_READERS], ring_want[RING_READERS];

static ring
a_ring(void)
{
	const ring a = {ring_from, ring_sums, 0, 0, 0};
	uint64_t rng = 5;
	uint32_t reader, i;

	memset(ring_want, 0, sizeof ring_want);
	for (i = 0; i < RING_TILES * RING_FILL * 4; i++)
		ring_from[i] = (uint32_t)rng_next(&rng);
	for (reader = 0; reader < RING_READERS; reader++)
		for (i = 0; i < RING_TILES * RING_FILL * 4; i++)
			ring_want[reader] =
				ring_want[reader] * 31 + ring_from[i] + reader;
	return a;
}

static uint32_t
rings_right(uint32_t width, ring *a)
{
	return rig_count(RIG_KERNEL(ring_run, RING_ITEMS, RING_BYTES), width, 1,
			 a, ring_sums, ring_want, sizeof ring_want);
}

START_TEST(ring_is_right_under_every_schedule)
{
	ring a = a_ring();
	uint32_t w;

	for (w = 0; w < 3; w++)
		ck_assert_uint_eq(rings_right(widths[w], &a), RIG_SEEDS);
}
END_TEST

/* A slip shows under nearly every schedule here. */
START_TEST(read_before_the_copy_is_found)
{
	ring a = a_ring();

	a.early_read = 1;
	ck_assert_uint_lt(rings_right(32, &a), RIG_SEEDS / 4);
}
END_TEST

START_TEST(stage_that_is_filled_again_too_early_is_found)
{
	ring a = a_ring();

	a.early_fill = 1;
	ck_assert_uint_lt(rings_right(32, &a), RIG_SEEDS / 4);
}
END_TEST

START_TEST(arrival_before_the_copies_is_found)
{
	ring a = a_ring();

	a.early_full = 1;
	ck_assert_uint_lt(rings_right(32, &a), RIG_SEEDS / 4);
}
END_TEST

/* ---- mbarriers that are used wrongly ------------------------------------- */

static void
no_init_run(const void *params)
{
	LOCAL_DYNAMIC(local, 8);

	(void)params;
	g_mbarrier_arrive((g_mbarrier *)local);
}

static void
no_init(void)
{
	rig_run(RIG_KERNEL(no_init_run, 32, 8), 32, 1, NULL, 0);
}

/* The phase waits for bytes that never come, and for no arrival more. */
static void
too_many_run(const void *params)
{
	LOCAL_DYNAMIC(local, 8);
	g_mbarrier *b = (g_mbarrier *)local;

	(void)params;
	if (g_item() == 0)
		g_mbarrier_init(b, 32);
	BARRIER();
	g_mbarrier_arrive_expect(b, 16);
	BARRIER();
	if (g_item() == 3)
		g_mbarrier_arrive(b);
}

static void
too_many(void)
{
	rig_run(RIG_KERNEL(too_many_run, 32, 8), 32, 1, NULL, 0);
}

static void
never_run(const void *params)
{
	LOCAL_DYNAMIC(local, 8);
	g_mbarrier *b = (g_mbarrier *)local;

	(void)params;
	if (g_item() == 0)
		g_mbarrier_init(b, 32);
	BARRIER();
	if (g_item())
		g_mbarrier_arrive(b);
	g_mbarrier_wait(b, 0);
}

static void
never(void)
{
	rig_run(RIG_KERNEL(never_run, 32, 8), 32, 1, NULL, 0);
}

START_TEST(mbarrier_that_is_none_ends_the_program)
{
	must_die(no_init,
		 "emulator: no_init_run, block 0: no mbarrier is there");
}
END_TEST

START_TEST(arrival_too_many_ends_the_program)
{
	must_die(too_many, "an arrival too many at an mbarrier");
}
END_TEST

START_TEST(wait_for_ever_ends_the_program_and_says_where)
{
	must_die(never, "items wait for others that do not come");
	must_die(never, "block 0, from item 0 on: at an mbarrier tests/core/"
			"test_emulator_barriers.c:");
}
END_TEST

/* ---- phases -------------------------------------------------------------- */

/* Item 0 makes a phase of each parity; what it may see in between is written
 * down by hand. */
static void
phases_run(const void *params)
{
	LOCAL_DYNAMIC(local, 8);
	g_mbarrier *b = (g_mbarrier *)local;
	uint32_t *const *out = params;

	if (g_item())
		return;
	g_mbarrier_init(b, 2);
	g_mbarrier_wait(b, 1); /* the one before the first is over */
	(*out)[0]++;
	g_mbarrier_arrive(b);
	g_mbarrier_arrive(b);
	g_mbarrier_wait(b, 0);
	(*out)[0]++;
	g_mbarrier_arrive(b);
	g_mbarrier_arrive(b);
	g_mbarrier_wait(b, 1);
	(*out)[0]++;
}

START_TEST(phases_follow_each_other)
{
	uint32_t count = 0, *out = &count;

	rig_run(RIG_KERNEL(phases_run, 32, 8), 32, 1, &out, 0);
	ck_assert_uint_eq(count, 3);
}
END_TEST

SUITE
{
	const theme_test rings[] = {
		{ring_is_right_under_every_schedule, 1},
		{read_before_the_copy_is_found, 1},
		{stage_that_is_filled_again_too_early_is_found, 1},
		{arrival_before_the_copies_is_found, 1},
	};
	const theme_test mbarriers[] = {
		{phases_follow_each_other, 1},
		{mbarrier_that_is_none_ends_the_program, 1},
		{arrival_too_many_ends_the_program, 1},
		{wait_for_ever_ends_the_program_and_says_where, 1},
	};
	const theme themes[] = {
		THEME("rings", NULL, NULL, rings),
		THEME("mbarriers", NULL, NULL, mbarriers),
	};

	return RUN_THEMES(themes);
}
