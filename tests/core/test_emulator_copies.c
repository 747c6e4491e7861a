/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies under way of the emulator, which land and read their source at any
 * time until the wait for them, and the memory of a block.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/async.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

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

/* ---- bulk copies --------------------------------------------------------- */

typedef struct bulk {
	const uint8_t *from;
	uint8_t *out; /* [32] bytes of the copy, as the items saw them */
	uint32_t bytes;
	uint32_t early; /* they do not wait */
} bulk;

static void
bulk_run(const void *params)
{
	LOCAL_DYNAMIC(local, 1024);
	const bulk *a = params;
	g_mbarrier *full = (g_mbarrier *)(void *)(local + 512);

	local[g_item()] = 0x11;
	if (g_item() == 0) {
		g_mbarrier_init(full, 1);
		g_mbarriers_publish();
	}
	BARRIER();
	if (g_item() == 0) {
		g_bulk_copy(local, a->from, a->bytes, full);
		g_mbarrier_arrive_expect(full, a->bytes);
	}
	if (!a->early)
		g_mbarrier_wait(full, 0);
	a->out[g_item()] = local[g_item()];
	g_mbarrier_wait(full, 0);
}

static const uint8_t bulk_from[32] __attribute__((aligned(16))) = {
	9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8,
	9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8};

/* The number of schedules in which every item saw the copy. */
static uint32_t
bulk_seen(uint32_t early)
{
	uint32_t seen = 0, seed;
	uint8_t out[32];

	for (seed = 0; seed < 20; seed++) {
		const bulk a = {bulk_from, out, 32, early};

		rig_run(RIG_KERNEL(bulk_run, 32, 1024), 32, 1, &a, seed);
		seen += memcmp(out, bulk_from, 32) == 0;
	}
	return seen;
}

START_TEST(bulk_copy_is_there_once_its_bytes_are_counted)
{
	ck_assert_uint_eq(bulk_seen(0), 20);
	ck_assert_uint_lt(bulk_seen(1), 20);
}
END_TEST

static void
odd_bulk(void)
{
	uint8_t out[32];
	const bulk a = {bulk_from, out, 24, 0};

	rig_run(RIG_KERNEL(bulk_run, 32, 1024), 32, 1, &a, 0);
}

START_TEST(bulk_copy_of_odd_bytes_ends_the_program)
{
	must_die(odd_bulk, "a bulk copy of odd bytes");
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
	const theme_test memory[] = {
		{groups_that_are_waited_for_are_there, 1},
		{source_is_read_at_any_time_until_the_wait, 1},
		{copy_to_an_odd_address_ends_the_program, 1},
		{bulk_copy_is_there_once_its_bytes_are_counted, 1},
		{bulk_copy_of_odd_bytes_ends_the_program, 1},
		{block_finds_its_memory_worthless, 1},
	};
	const theme themes[] = {
		THEME("memory", NULL, NULL, memory),
	};

	return RUN_THEMES(themes);
}
