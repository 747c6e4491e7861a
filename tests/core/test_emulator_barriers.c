/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers, mbarriers and copies under way of the emulator: small kernels that
 * are right have their results under every schedule, and those that are wrong
 * in one thing are found out under some, or end the program.
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

/* Of bytes that never come the phase waits, for no arrival more. */
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

/* ---- named barriers ------------------------------------------------------ */

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

/* Votes of 96 items, again and again, of which in round r item 7 r says yes,
 * but in the odd rounds none. */
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

/* ---- copies -------------------------------------------------------------- */

typedef struct copies {
	uint32_t *from; /* 32 items x 3 groups x 4 words */
	uint32_t *out;  /* the same */
	uint32_t groups_left;
	uint32_t early; /* the sources change before the wait */
} copies;

enum { COPIES = 32 * 3 * 4 };

/* Three groups of 16, 8 and 4 bytes; reads after a wait for all but some. */
static void
copies_run(const void *params)
{
	LOCAL_DYNAMIC(local, 4 * COPIES);
	const copies *a = params;
	uint8_t *own = local + 48 * g_item();
	uint32_t *from = a->from + 12 * g_item();

	memset(own, 0x11, 48);
	g_local_copy128(own, from, 1);
	g_local_copies_commit();
	g_local_copy64(own + 16, from + 4, 1);
	g_local_copy64(own + 24, from + 6, 0);
	g_local_copies_commit();
	g_local_copy32(own + 32, from + 8, 1);
	g_local_copies_commit();
	if (a->early)
		from[0] = 77;
	g_local_copies_wait_but(a->groups_left);
	memcpy(a->out + 12 * g_item(), own, 48);
	g_local_copies_wait();
}

static void
copy_groups(uint32_t left, uint32_t early, uint32_t seed, uint32_t *from,
	    uint32_t *out)
{
	copies a = {from, out, left, early};
	uint32_t i;

	for (i = 0; i < COPIES; i++)
		from[i] = 1000 + i;
	rig_run(RIG_KERNEL(copies_run, 32, 4 * COPIES), 32, 1, &a, seed);
}

/* What a group's word is: landed, or NaN. */
static uint32_t
group_of(uint32_t word)
{
	return word < 4 ? 0 : word < 8 ? 1 : 2;
}

START_TEST(groups_that_are_waited_for_are_there)
{
	uint32_t from[COPIES], out[COPIES], late = 0, soon = 0, left, seed, i;

	for (left = 0; left < 4; left++)
		for (seed = 0; seed < 10; seed++) {
			copy_groups(left, 0, seed, from, out);
			for (i = 0; i < COPIES; i++) {
				const uint32_t w = i % 12;
				uint32_t want = w < 6 || w == 8 ? 1000 + i : 0;

				if (w > 8)
					want = 0x11111111u;
				if (group_of(w) + left < 3 || w > 8) {
					ck_assert_uint_eq(out[i], want);
					continue;
				}
				late += out[i] == ~0u;
				soon += out[i] == want;
				ck_assert(out[i] == ~0u || out[i] == want);
			}
		}
	ck_assert_uint_gt(late, 100);
	ck_assert_uint_gt(soon, 100);
}
END_TEST

START_TEST(source_is_read_at_any_time_until_the_wait)
{
	uint32_t from[COPIES], out[COPIES], old = 0, new = 0, i;

	copy_groups(0, 1, 0, from, out);
	for (i = 0; i < COPIES; i += 12) {
		old += out[i] == 1000 + i;
		new += out[i] == 77;
	}
	ck_assert_uint_eq(old + new, 32);
	ck_assert_uint_gt(old, 0);
	ck_assert_uint_gt(new, 0);
}
END_TEST

static void
odd_run(const void *params)
{
	LOCAL_DYNAMIC(local, 1024);

	g_local_copy64(local + 4, params, 1);
}

static void
odd(void)
{
	static const uint64_t from[1];

	rig_run(RIG_KERNEL(odd_run, 32, 1024), 32, 1, from, 0);
}

START_TEST(copy_to_an_odd_address_ends_the_program)
{
	must_die(odd, "a copy to or from an odd address");
}
END_TEST

/* ---- memory of a block --------------------------------------------------- */

static void
size_run(const void *params)
{
	LOCAL_DYNAMIC(local, 512);

	(void)params;
	local[g_item()] = 0;
}

static void
size_differs(void)
{
	rig_run(RIG_KERNEL(size_run, 32, 1024), 32, 1, NULL, 0);
}

/* Each block finds it worthless, aligned, and the items of a block share it. */
static void
memory_run(const void *params)
{
	LOCAL_DYNAMIC(local, 4096);
	uint32_t *const *out = params;
	uint32_t bad = ((uintptr_t)local & 1023u) != 0, i;

	for (i = 0; i < 4096; i++)
		bad |= local[i] != 0xC9;
	BARRIER();
	local[g_item()] = (uint8_t)g_item();
	BARRIER();
	bad |= local[g_item() ^ 1u] != (g_item() ^ 1u);
	(*out)[g_block()] += bad;
}

START_TEST(block_finds_its_memory_worthless)
{
	uint32_t bad[5] = {0}, *out = bad, i;

	rig_run(RIG_KERNEL(memory_run, 64, 4096), 32, 5, &out, 0);
	for (i = 0; i < 5; i++)
		ck_assert_uint_eq(bad[i], 0);
	must_die(size_differs, "LOCAL_DYNAMIC is not as large as");
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
	const theme_test names[] = {
		{named_barriers_are_right_under_every_schedule, 1},
		{read_before_a_named_barrier_is_found, 1},
		{vote_tells_all_whether_one_said_yes, 1},
		{named_barriers_that_do_not_meet_end_the_program, 1},
	};
	const theme_test memory[] = {
		{groups_that_are_waited_for_are_there, 1},
		{source_is_read_at_any_time_until_the_wait, 1},
		{copy_to_an_odd_address_ends_the_program, 1},
		{block_finds_its_memory_worthless, 1},
	};
	const theme themes[] = {
		THEME("rings", NULL, NULL, rings),
		THEME("mbarriers", NULL, NULL, mbarriers),
		THEME("named", NULL, NULL, names),
		THEME("memory", NULL, NULL, memory),
	};

	return RUN_THEMES(themes);
}
