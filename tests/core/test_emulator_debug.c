/* SPDX-License-Identifier: Apache-2.0
 *
 * The debug build of kernels (debug.h) in the emulator: a place that is read
 * after it was given back shows, though nobody has overwritten it, and a wait
 * for an arrival that is lost ends. In the ordinary build the first goes
 * unnoticed.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/mma.h"
#include "spmla/platform/gpu/step/fault_device.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 64, STAGES = 2, ROUNDS = 7, BLOCKS = 2 };

typedef struct ring {
	spmla_g_state *state;
	spmla_g_status *status;
	uint32_t *out;   /* [BLOCKS][32]: each consumer's sum */
	uint32_t late;   /* the last stages are read once they are given back */
	uint32_t silent; /* the kernel is of no debug build */
} ring;

typedef struct ring_memory {
	g_mbarrier full[STAGES], free[STAGES];
	uint32_t stage[STAGES][32];
} ring_memory;

static void
produce(ring_memory *mem)
{
	uint32_t m;

	for (m = 0; m < ROUNDS; m++) {
		g_mbarrier_wait(&mem->free[m % STAGES], m / STAGES % 2 ^ 1u);
		mem->stage[m % STAGES][g_lane()] = 100 * m + g_lane();
		g_subgroup_barrier();
		if (g_lane() == 0)
			g_mbarrier_arrive(&mem->full[m % STAGES]);
	}
}

static void
consume(const ring *a, ring_memory *mem)
{
	uint32_t sum = 0, m;

	for (m = 0; m < ROUNDS; m++) {
		uint32_t *stage = mem->stage[m % STAGES], x;

		g_mbarrier_wait(&mem->full[m % STAGES], m / STAGES % 2);
		x = stage[g_lane()];
		g_subgroup_barrier();
		if (G_DEBUG)
			g_spoil((uint8_t *)stage, 4 * 32, g_lane(), 32);
		g_subgroup_barrier();
		if (g_lane() == 0)
			g_mbarrier_arrive(&mem->free[m % STAGES]);
		/* Nobody writes there any more. */
		if (a->late && m >= ROUNDS - STAGES)
			x = stage[g_lane()];
		sum += x;
	}
	a->out[32 * g_block() + g_lane()] = sum;
}

static void
ring_run(const void *params)
{
	LOCAL_DYNAMIC(local, sizeof(ring_memory));
	ring_memory *mem = (ring_memory *)(void *)local;
	const ring *a = params;
	uint32_t i;

	if (!a->silent)
		G_DEBUG_BEGIN(a->state, a->status);
	if (g_item() == 0)
		for (i = 0; i < STAGES; i++) {
			g_mbarrier_init(&mem->full[i], 1);
			g_mbarrier_init(&mem->free[i], 1);
		}
	BARRIER();
	if (g_item() < 32)
		produce(mem);
	else
		consume(a, mem);
}

/* Runs it in that build, with an arrival of block 0 lost (0: none). Returns
 * whether the blocks from `first` on have the right sums. */
static uint32_t
run_ring(ring a, uint32_t debug, uint32_t lost, uint32_t seed, uint32_t first,
	 spmla_g_status *status)
{
	uint32_t out[BLOCKS * 32], want[BLOCKS * 32], i;
	spmla_g_state state;

	memset(&state, 0, sizeof state);
	memset(status, 0, sizeof *status);
	memset(out, 0xAB, sizeof out);
	state.serial = (uint64_t)lost << 32 | 5;
	state.step = 9;
	a.state = &state;
	a.status = status;
	a.out = out;
	emulator_debug(debug);
	rig_run(RIG_KERNEL(ring_run, ITEMS, sizeof(ring_memory)), 32, BLOCKS,
		&a, seed);
	for (i = 0; i < BLOCKS * 32; i++)
		want[i] = 100 * (ROUNDS - 1) * ROUNDS / 2 + ROUNDS * (i % 32);
	return memcmp(out + 32 * first, want + 32 * first,
		      (BLOCKS - first) * 32 * sizeof *out) == 0;
}

static void
teardown(void)
{
	emulator_debug(getenv("SPMLA_TEST_KERNEL_DEBUG") != NULL);
}

/* _i: the build. */
START_TEST(results_of_the_debug_build_are_the_same)
{
	const ring a = {0};
	spmla_g_status status;
	uint32_t seed;

	for (seed = 0; seed < RIG_SEEDS; seed++) {
		ck_assert(run_ring(a, (uint32_t)_i, 0, seed, 0, &status));
		ck_assert_uint_eq(status.count, 0);
	}
}
END_TEST

START_TEST(read_of_what_was_given_back_shows_in_the_debug_build)
{
	const ring a = {.late = 1};
	spmla_g_status status;
	uint32_t seed;

	for (seed = 0; seed < RIG_SEEDS; seed++) {
		ck_assert(run_ring(a, 0, 0, seed, 0, &status));
		ck_assert(!run_ring(a, 1, 0, seed, 0, &status));
	}
}
END_TEST

/* _i: which arrival. Nobody waits for the last ones, that stages are free. */
START_TEST(wait_for_an_arrival_that_is_lost_ends_and_is_reported)
{
	const ring a = {0};
	const uint32_t lost = (uint32_t)_i + 1;
	uint32_t seed;

	for (seed = 0; seed < RIG_SEEDS; seed++) {
		spmla_g_status s;
		const uint32_t right = run_ring(a, 1, lost, seed, 1, &s);

		ck_assert(right); /* the other block's */
		ck_assert_uint_eq(s.count, 1);
		ck_assert_uint_eq((uint32_t)s.key, G_FAULT_TIMEOUT);
		ck_assert_uint_eq(s.key >> 32, 0);
		ck_assert_uint_eq(s.step, 9);
	}
}
END_TEST

START_TEST(kernel_that_does_not_begin_loses_nothing)
{
	const ring a = {.silent = 1};
	spmla_g_status status;

	ck_assert(run_ring(a, 1, 1, 0, 0, &status));
	ck_assert_uint_eq(status.count, 0);
}
END_TEST

SUITE
{
	const theme_test debug[] = {
		{results_of_the_debug_build_are_the_same, 2},
		{read_of_what_was_given_back_shows_in_the_debug_build, 1},
		{wait_for_an_arrival_that_is_lost_ends_and_is_reported,
		 2 * (ROUNDS - STAGES)},
		{kernel_that_does_not_begin_loses_nothing, 1},
	};
	const theme themes[] = {
		THEME("debug build", NULL, teardown, debug),
	};

	return RUN_THEMES(themes);
}
