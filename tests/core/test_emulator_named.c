/* SPDX-License-Identifier: Apache-2.0
 *
 * Named barriers of the emulator: some of a block's items meet, others only
 * arrive.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/async.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

static const uint32_t widths[3] = {16, 32, 64};

enum { NAMED_ITEMS = 256, NAMED_ROUNDS = 6 };

typedef struct named {
	uint32_t *out; /* [NAMED_ITEMS] */
	uint32_t wrong;
} named;

/* Two halves: one writes and arrives, the other waits, reads and lets the first
 * go on; in each half there is a barrier of its own. */
static void
named_run(const void *params)
{
	LOCAL_DYNAMIC(local, 4 * NAMED_ITEMS);
	uint32_t *words = (uint32_t *)local;
	const named *a = params;
	const uint32_t i = g_item(), half = i / 128;
	uint32_t sum = 0, round, k;

	for (round = 0; round < NAMED_ROUNDS; round++)
		if (half == 0) {
			if (round)
				g_named_sync(2, 256);
			words[i] = round * 1000 + i;
			g_named_arrive(1, 256);
			words[128 + i] = i ^ round;
			g_named_sync(3 + half, 128);
			sum += words[128 + (i + 77) % 128];
			g_named_sync(3 + half, 128);
		} else {
			if (!a->wrong)
				g_named_sync(1, 256);
			for (k = 0; k < 128; k++)
				sum = sum * 3 + words[(i + k) % 128];
			if (a->wrong)
				g_named_sync(1, 256);
			if (round + 1 < NAMED_ROUNDS)
				g_named_arrive(2, 256);
		}
	a->out[i] = sum;
}

static uint32_t
named_right(uint32_t width, uint32_t wrong)
{
	static uint32_t out[NAMED_ITEMS], want[NAMED_ITEMS];
	named a = {out, wrong};
	uint32_t i, round, j;

	memset(want, 0, sizeof want);
	for (i = 0; i < 128; i++)
		for (round = 0; round < NAMED_ROUNDS; round++) {
			uint32_t *w = &want[128 + i];

			want[i] += (i + 77) % 128 ^ round;
			for (j = 0; j < 128; j++)
				*w = *w * 3 + round * 1000 + (i + j) % 128;
		}
	return rig_count(RIG_KERNEL(named_run, NAMED_ITEMS, 4 * NAMED_ITEMS),
			 width, 1, &a, out, want, sizeof want);
}

START_TEST(named_barriers_are_right_under_every_schedule)
{
	uint32_t w;

	for (w = 0; w < 3; w++)
		ck_assert_uint_eq(named_right(widths[w], 0), RIG_SEEDS);
}
END_TEST

START_TEST(read_before_a_named_barrier_is_found)
{
	ck_assert_uint_lt(named_right(32, 1), RIG_SEEDS / 4);
}
END_TEST

/* Votes of 96 items, again and again. In an even round r item 7 r says yes, in
 * an odd round none. */
static void
votes_run(const void *params)
{
	uint32_t *const *out = params;
	const uint32_t i = g_item();
	uint32_t seen = 0, round;

	for (round = 0; round < 12; round++) {
		const uint32_t is = round % 2 == 0 && i == 7 * round;

		if (i < 96)
			seen |= g_named_any(9, 96, is ? 0x100u : 0) << round;
	}
	(*out)[i] = seen;
}

START_TEST(vote_tells_all_whether_one_said_yes)
{
	uint32_t seen[128], *out = seen, w, i;

	for (w = 0; w < 2; w++) {
		rig_run(RIG_KERNEL(votes_run, 128, 0), widths[w], 1, &out, w);
		for (i = 0; i < 128; i++)
			ck_assert_uint_eq(seen[i], i < 96 ? 0x555u : 0);
	}
}
END_TEST

static void
uneven_run(const void *params)
{
	(void)params;
	g_named_sync(1, g_item() < 32 ? 64 : 96);
}

static void
uneven(void)
{
	rig_run(RIG_KERNEL(uneven_run, 96, 0), 32, 1, NULL, 0);
}

static void
short_run(const void *params)
{
	(void)params;
	if (g_item() < 32)
		g_named_sync(1, 64);
}

static void
too_few(void)
{
	rig_run(RIG_KERNEL(short_run, 64, 0), 32, 1, NULL, 0);
}

START_TEST(named_barriers_that_do_not_meet_end_the_program)
{
	must_die(uneven, "items do not mean the same barrier");
	must_die(too_few, "items wait for others that do not come");
}
END_TEST

SUITE
{
	const theme_test names[] = {
		{named_barriers_are_right_under_every_schedule, 1},
		{read_before_a_named_barrier_is_found, 1},
		{vote_tells_all_whether_one_said_yes, 1},
		{named_barriers_that_do_not_meet_end_the_program, 1},
	};
	const theme themes[] = {
		THEME("named", NULL, NULL, names),
	};

	return RUN_THEMES(themes);
}
