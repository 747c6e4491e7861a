/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of subgroups of 32, whose fragments mma.h describes. The lane that
 * goes on first computes all sums, for the others too.
 */
#define SPMLA_GPU_KERNELS 1
#include "tests/emulator/machine_state.h"
#include "tests/emulator/machine_sums.h"

#include "spmla/platform/gpu/dialect/mma.h"

enum { ROWS = 16, COLUMNS = 8, STEPS = 16, LANES = 32, IN_ROW = 4 };

/* Words 0 and 1 have the first halves of rows g and g + 8 of A, words 2 and 3
 * their second halves. Words 4 and 5 have the halves of column g of B. Four
 * lanes together have eight consecutive values. */
static void
multiply(float sums[ROWS][COLUMNS], const uint32_t *words, uint32_t is_bf16)
{
	float a[ROWS][STEPS], b[STEPS][COLUMNS], column[8];
	uint32_t i, g, k;

	for (i = 0; i < 4; i++)
		for (g = 0; g < 8; g++)
			machine_values(&a[g + i % 2 * 8][i / 2 * 8],
				       words + i * LANES + g * IN_ROW, is_bf16);
	for (i = 0; i < 2; i++)
		for (g = 0; g < COLUMNS; g++) {
			machine_values(column,
				       words + (4 + i) * LANES + g * IN_ROW,
				       is_bf16);
			for (k = 0; k < 8; k++)
				b[8 * i + k][g] = column[k];
		}
	machine_add(sums[0], a[0], STEPS, ROWS, b[0], COLUMNS, COLUMNS, STEPS);
}

void
spmla_i_emu_mma(float *c, const uint32_t *a, const uint32_t *b,
		uint32_t is_bf16)
{
	const uint32_t g = spmla_i_emu_lane() / 4, t = spmla_i_emu_lane() % 4;
	const uint32_t given[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
	const uint32_t *words = spmla_i_emu_exchange(given, 6);
	float(*sums)[COLUMNS] = (float(*)[COLUMNS])machine.group->sums;
	uint32_t i;

	if (machine_is_first())
		multiply(sums, words, is_bf16);
	for (i = 0; i < 4; i++)
		c[i] += sums[g + i / 2 * 8][2 * t + i % 2];
}
