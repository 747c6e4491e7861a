/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of tiles as the vendors' manuals lay them out: which lane has which
 * value of A, B and C. It shares nothing with tile.h but the function's name,
 * so that a fragment that is loaded wrongly gives a wrong product. A lane has
 * words[w * width + lane]; a word has two values of 16 bits.
 */
#define SPMLA_EMULATOR    1
#define SPMLA_GPU_KERNELS 1
#include "tests/emulator/machine_state.h"
#include "tests/emulator/machine_sums.h"

#include "spmla/platform/gpu/dialect/tile.h"

#include <stdlib.h>
#include <string.h>

enum { DIM = 16, WORDS = 8 };

/* Where a value is: a word of a lane, and which half. */
typedef struct place {
	uint32_t lane;
	uint32_t word;
	uint32_t half;
} place;

/* SPMLA_TEST_WMMA=12 is the WMMA of gfx12; otherwise gfx11 is modelled. */
static uint32_t
wmma(void)
{
	static uint32_t kind;
	const char *text;

	if (!kind) {
		text = getenv("SPMLA_TEST_WMMA");
		kind = text && strcmp(text, "12") == 0 ? G_TILE_WMMA12
						       : G_TILE_WMMA11;
	}
	return kind;
}

uint32_t
spmla_i_emu_tile_kind(void)
{
	switch (machine.width) {
	case 16:
		return G_TILE_DPAS;
	case 32:
		return wmma();
	default:
		return G_TILE_MFMA;
	}
}

/* Row `at` of A or column `at` of B, value k. */
static place
place_of(uint32_t kind, uint32_t is_a, uint32_t at, uint32_t k)
{
	switch (kind) {
	case G_TILE_MFMA: /* four k of lane group k / 4 */
		return (place){at + k / 4 * DIM, k % 4 / 2, k % 2};
	case G_TILE_WMMA12: /* eight k of lane group k / 8 */
		return (place){at + k / 8 * DIM, k % 8 / 2, k % 2};
	case G_TILE_WMMA11:
		return (place){at, k / 2, k % 2};
	default: /* of A, a register is a row, whose columns are lanes */
		return is_a ? (place){k, at / 2, at % 2}
			    : (place){at, k / 2, k % 2};
	}
}

/* The row of sum i of a lane. */
static uint32_t
row_of(uint32_t kind, uint32_t lane, uint32_t i)
{
	switch (kind) {
	case G_TILE_MFMA:
		return 4 * (lane / DIM) + i;
	case G_TILE_WMMA12:
		return 8 * (lane / DIM) + i;
	case G_TILE_WMMA11: /* lanes 0 .. 15 have the even rows */
		return 2 * i + lane / DIM;
	default:
		return i;
	}
}

/* The 16 values of a row of A or a column of B. */
static void
values_of(float *to, const uint32_t *words, uint32_t kind, uint32_t is_a,
	  uint32_t at)
{
	uint32_t k;

	for (k = 0; k < DIM; k++) {
		const place p = place_of(kind, is_a, at, k);
		const uint32_t half =
			words[p.word * machine.width + p.lane] >> 16 * p.half &
			0xffffu;

		to[k] = g_bf16_to_f32(half);
	}
}

/* WMMA of gfx11 may read either half of the lanes, so both must have the same
 * words. */
static void
check_halves(const uint32_t *words)
{
	uint32_t i;

	for (i = 0; i < 2 * WORDS * 32; i += 32)
		if (memcmp(words + i, words + i + DIM, DIM * sizeof *words))
			machine_fail("halves of a subgroup have different A or "
				     "B");
}

/* Rows of A times B. */
static void
multiply_all(uint32_t kind, float sums[DIM][DIM], const uint32_t *a,
	     const uint32_t *b, uint32_t rows)
{
	float column[DIM], x[DIM][DIM], y[DIM][DIM];
	uint32_t i, k;

	for (i = 0; i < DIM; i++) {
		values_of(column, b, kind, 0, i);
		for (k = 0; k < DIM; k++)
			y[k][i] = column[k];
	}
	for (i = 0; i < rows; i++)
		values_of(x[i], a, kind, 1, i);
	machine_add(sums[0], x[0], DIM, rows, y[0], DIM, DIM, DIM);
}

/* One instruction: `count` sums of C, of a_words and b_words of the lane. */
static void
multiply(uint32_t kind, float *c, uint32_t count, const uint32_t *a,
	 uint32_t a_words, const uint32_t *b, uint32_t b_words)
{
	const uint32_t width = machine.width, lane = spmla_i_emu_lane();
	float(*sums)[DIM] = (float(*)[DIM])machine.group->sums;
	uint32_t words[2 * WORDS], i;
	const uint32_t *all;

	memcpy(words, a, a_words * sizeof *words);
	memcpy(words + a_words, b, b_words * sizeof *words);
	all = spmla_i_emu_exchange(words, a_words + b_words);
	if (machine_is_first()) {
		if (kind == G_TILE_WMMA11)
			check_halves(all);
		multiply_all(kind, sums, all, all + a_words * width,
			     count * width / DIM);
	}
	for (i = 0; i < count; i++)
		c[i] += sums[row_of(kind, lane, i)][lane % DIM];
}

void
spmla_i_emu_dpas(float *c, const uint32_t *a, const uint32_t *b)
{
	multiply(G_TILE_DPAS, c, 8, a, 4, b, 8);
}

void
spmla_i_emu_tile(float *c, const uint32_t *a, const uint32_t *b)
{
	const uint32_t kind = spmla_i_emu_tile_kind();

	switch (kind) {
	case G_TILE_DPAS:
		spmla_i_emu_dpas(c, a, b);
		spmla_i_emu_dpas(c + 8, a + 4, b);
		return;
	case G_TILE_WMMA11:
		multiply(kind, c, 8, a, 8, b, 8);
		return;
	case G_TILE_WMMA12:
		multiply(kind, c, 8, a, 4, b, 4);
		return;
	default:
		multiply(kind, c, 4, a, 2, b, 2);
	}
}
