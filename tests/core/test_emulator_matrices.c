/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of the emulator: loads and stores of 8 x 8 ones.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/mma.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

/* ---- 8 x 8 --------------------------------------------------------------- */

typedef struct small {
	const uint32_t *x; /* [32 lanes][4] */
	uint16_t *out;     /* [32 rows][8], as they lie in local memory */
	uint32_t *back;    /* [32 lanes][4]: as they are loaded again */
	uint32_t hasty;    /* a lane reads before the others have written */
} small;

/* Row r of matrix i lies at row 5 (8 i + r) mod 32. */
static void
small_run(const void *params)
{
	LOCAL_DYNAMIC(local, 512);
	const small *a = params;
	uint16_t *row = (uint16_t *)local + 8 * (5 * g_lane() % 32);
	uint32_t x[4];

	memcpy(x, a->x + 4 * g_lane(), sizeof x);
	g_store_matrices(row, x);
	if (!a->hasty)
		g_subgroup_barrier();
	memcpy(a->out + 8 * g_lane(), local + 16 * g_lane(), 16);
	g_subgroup_barrier();
	g_load_matrices(row, x);
	memcpy(a->back + 4 * g_lane(), x, sizeof x);
}

/* By hand: lane 4 g + t has columns 2t and 2t + 1 of row g. */
static uint32_t
small_right(uint32_t hasty)
{
	static uint32_t x[32][4], back[32][4];
	static uint16_t out[32][8], want[32][8];
	const small a = {x[0], out[0], back[0], hasty};
	uint32_t right, m, r, c, l;

	for (m = 0; m < 4; m++)
		for (r = 0; r < 8; r++)
			for (c = 0; c < 8; c++) {
				const uint32_t v = 1000 * m + 100 * r + c;

				want[5 * (8 * m + r) % 32][c] = (uint16_t)v;
				l = 4 * r + c / 2;
				x[l][m] = c % 2 ? x[l][m] | v << 16 : v;
			}
	right = rig_count(RIG_KERNEL(small_run, 32, 512), 32, 1, &a, out, want,
			  sizeof want);
	ck_assert_mem_eq(back, x, sizeof x);
	return right;
}

START_TEST(stored_matrices_lie_in_their_rows_and_load_again)
{
	ck_assert_uint_eq(small_right(0), RIG_SEEDS);
}
END_TEST

START_TEST(read_before_all_lanes_have_stored_is_found)
{
	ck_assert_uint_lt(small_right(1), RIG_SEEDS / 4);
}
END_TEST

SUITE
{
	const theme_test matrices[] = {
		{stored_matrices_lie_in_their_rows_and_load_again, 1},
		{read_before_all_lanes_have_stored_is_found, 1},
	};
	const theme themes[] = {THEME("8 x 8", NULL, NULL, matrices)};

	return RUN_THEMES(themes);
}
