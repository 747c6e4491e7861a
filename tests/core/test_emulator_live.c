/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of the emulator that hand words to each other and wait for them: they
 * are alive together in most runs and follow one another in some, and a kernel
 * must end in both.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/dialect.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

enum { ITEMS = 64, BLOCKS = 7, PATIENCE = 2000 };

typedef struct sums {
	uint32_t *parts; /* [BLOCKS][4], and what says that they are there */
	uint32_t *count; /* blocks that have given theirs */
	uint32_t *total;
	uint32_t *seen; /* [BLOCKS]: the total, as the block saw it, or 0 */
	uint32_t for_ever;
} sums;

static uint32_t
part_of(uint32_t block)
{
	return 100 + block * block;
}

/* Its part, of four words, and the number of blocks that gave theirs. */
static uint32_t
give(const sums *a)
{
	const uint32_t part = part_of(g_block());
	const uint32_t words[4] = {part, part + 1, part + 2, part + 3};

	g_store4_device(a->parts + 4 * g_block(), words);
	return g_add(a->count, 1) + 1;
}

/* The last block to come adds the parts; others wait for the total, as long as
 * they have patience. */
static void
sums_run(const void *params)
{
	const sums *a = params;
	uint32_t words[4], total = 0, tries, i;

	if (g_item())
		return;
	if (give(a) == g_blocks()) {
		for (i = 0; i < g_blocks(); i++) {
			g_load2_device(a->parts + 4 * i, words);
			g_load2_device(a->parts + 4 * i + 2, words + 2);
			total += words[0] + words[1] + words[2] + words[3];
		}
		g_store_device(a->total, total);
	}
	for (tries = 0; tries < PATIENCE || a->for_ever; tries++) {
		total = g_load_device(a->total);
		if (total)
			break;
		g_sleep(100);
	}
	g_store_device(a->seen + g_block(), total);
}

static void
run_sums(sums a, uint32_t live, uint32_t number, uint32_t *seen)
{
	emulator_kernel kernel = RIG_KERNEL(sums_run, ITEMS, 0);
	_Alignas(16) uint32_t parts[BLOCKS][4] = {{0}};
	uint32_t count = 0, total = 0, want = 0, i;

	kernel.live = live;
	a.parts = parts[0];
	a.count = &count;
	a.total = &total;
	a.seen = seen;
	rig_run(kernel, 32, BLOCKS, &a, number);
	for (i = 0; i < BLOCKS; i++)
		want += 4 * part_of(i) + 6;
	ck_assert_uint_eq(total, want);
	for (i = 0; i < BLOCKS; i++)
		ck_assert(seen[i] == 0 || seen[i] == want);
}

START_TEST(blocks_are_alive_together_or_follow_one_another)
{
	const sums a = {0};
	uint32_t seen[BLOCKS], runs, i, all, ends_alone = 0, together = 0;

	for (runs = 0; runs < RIG_SEEDS; runs++) {
		run_sums(a, 1, runs, seen);
		for (all = i = 0; i < BLOCKS; i++)
			all += seen[i] != 0;
		together += all == BLOCKS;
		ends_alone += all == 1;
	}
	ck_assert_uint_eq(together + ends_alone, RIG_SEEDS);
	ck_assert_uint_gt(together, RIG_SEEDS / 2);
	ck_assert_uint_gt(ends_alone, 0);
}
END_TEST

START_TEST(blocks_of_other_kernels_follow_one_another)
{
	const sums a = {0};
	uint32_t seen[BLOCKS], i, all = 0;

	run_sums(a, 0, 0, seen);
	for (i = 0; i < BLOCKS; i++)
		all += seen[i] != 0;
	ck_assert_uint_eq(all, 1);
}
END_TEST

/* Sooner or later it is alone. */
static void
waits_for_ever(void)
{
	const sums a = {.for_ever = 1};
	uint32_t seen[BLOCKS], runs;

	for (runs = 0; runs < RIG_SEEDS; runs++)
		run_sums(a, 1, runs, seen);
}

START_TEST(wait_without_end_ends_the_program)
{
	must_die(waits_for_ever,
		 "items ask again and again for what does not come");
}
END_TEST

SUITE
{
	const theme_test live[] = {
		{blocks_are_alive_together_or_follow_one_another, 1},
		{blocks_of_other_kernels_follow_one_another, 1},
		{wait_without_end_ends_the_program, 1},
	};
	const theme themes[] = {THEME("live", NULL, NULL, live)};

	return RUN_THEMES(themes);
}
