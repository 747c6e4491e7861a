/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb by matrix instructions: a tile is 128 columns of a head for up to 16
 * tokens, or up to 128, and a quarter of their rope parts, which are turned
 * while the first chunks are on their way.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_KERNEL_H

#include "spmla/platform/gpu/project/project_mma_device.h"
#include "spmla/platform/gpu/project/q_absorb_kernel.h"

#define SPMLA_K_q_absorb_mma(P, S)     SPMLA_K_q_absorb(P, S)
#define SPMLA_K_q_absorb_mma_few(P, S) SPMLA_K_q_absorb(P, S)
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_mma_scalars;
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_mma_few_scalars;

#ifdef SPMLA_GPU_KERNELS

typedef struct q_absorb_params {
	SPMLA_KERNEL_FIELDS(q_absorb)
} q_absorb_params;

/* Whether token t has a row of the rope table, if it needs one. */
FN uint32_t
q_absorb_has_row(const PRIVATE q_absorb_params *k, uint32_t t)
{
	return !k->s.has_rope ||
	       (uint32_t)g_position(k->positions, k->s.positions_wide, t) <
		       k->s.cos_sin_rows;
}

/* Four values, and the four that they turn with, from 8 of which pairs are
 * neighbours; and back. */
FN void
q_absorb_apart(PRIVATE uint32_t *x)
{
	const uint32_t y[4] = {x[0], x[1], x[2], x[3]};

	x[0] = (y[0] & 0xffffu) | y[1] << 16;
	x[1] = (y[2] & 0xffffu) | y[3] << 16;
	x[2] = y[0] >> 16 | (y[1] & 0xffff0000u);
	x[3] = y[2] >> 16 | (y[3] & 0xffff0000u);
}

FN void
q_absorb_together(PRIVATE uint32_t *x)
{
	const uint32_t y[4] = {x[0], x[1], x[2], x[3]};

	x[0] = (y[0] & 0xffffu) | y[2] << 16;
	x[1] = y[0] >> 16 | (y[2] & 0xffff0000u);
	x[2] = (y[1] & 0xffffu) | y[3] << 16;
	x[3] = y[1] >> 16 | (y[3] & 0xffff0000u);
}

/* Turns four pairs: two words of first values, then two of second ones. */
FN void
q_absorb_turn(const PRIVATE q_absorb_params *k, uint64_t at,
	      PRIVATE uint32_t *x)
{
	uint32_t c[4], sine[4], i;

	g_reals4(k->cos_sin, k->s.rope_form, at, c);
	g_reals4(k->cos_sin, k->s.rope_form, at + SPMLA_MLA_ROPE / 2, sine);
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t shift = 16 * (i % 2);
		const float low = g_bf16_to_f32(x[i / 2] >> shift & 0xffffu);
		const float high =
			g_bf16_to_f32(x[2 + i / 2] >> shift & 0xffffu);
		const float cosine = g_float(c[i]), s = g_float(sine[i]);
		const uint32_t keep = 0xffff0000u >> shift;

		x[i / 2] = (x[i / 2] & keep) |
			   g_f32_to_bf16(low * cosine - high * s) << shift;
		x[2 + i / 2] = (x[2 + i / 2] & keep) |
			       g_f32_to_bf16(high * cosine + low * s) << shift;
	}
}

/* Four pairs of the rope part, from pair `pair` on, of token t and head h. */
FN void
q_absorb_pairs(const PRIVATE q_absorb_params *k, uint32_t h, uint32_t t,
	       uint32_t pair)
{
	const uint32_t a = k->s.neox ? pair : 2 * pair;
	const uint32_t b = k->s.neox ? pair + SPMLA_MLA_ROPE / 2 : a + 4;
	GLOBAL const uint16_t *from = k->q_pe +
				      (int64_t)t * k->s.q_pe_token_stride +
				      (int64_t)h * k->s.q_pe_head_stride;
	GLOBAL uint16_t *to = k->q + (int64_t)t * k->s.q_token_stride +
			      (int64_t)h * k->s.q_head_stride +
			      SPMLA_MLA_LATENT;
	const uint64_t low = *(GLOBAL const uint64_t *)(from + a);
	const uint64_t high = *(GLOBAL const uint64_t *)(from + b);
	uint32_t x[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
			 (uint32_t)(high >> 32)};

	if (!q_absorb_has_row(k, t)) {
		if (h == 0 && pair == 0)
			g_fault(k->fault_state, k->fault_status, t,
				G_FAULT_POSITION);
		x[0] = x[1] = x[2] = x[3] = 0;
	} else if (k->s.has_rope) {
		const uint32_t position = (uint32_t)g_position(
			k->positions, k->s.positions_wide, t);

		if (!k->s.neox)
			q_absorb_apart(x);
		q_absorb_turn(k, (uint64_t)position * SPMLA_MLA_ROPE + pair, x);
		if (!k->s.neox)
			q_absorb_together(x);
	}
	*(GLOBAL uint64_t *)(to + a) = (uint64_t)x[1] << 32 | x[0];
	*(GLOBAL uint64_t *)(to + b) = (uint64_t)x[3] << 32 | x[2];
}

/* Both kernels; `rows` and `ring` are constants. */
FN void
q_absorb_mma_all(const PRIVATE q_absorb_params *k, uint32_t rows, uint32_t ring,
		 LOCAL uint8_t *local)
{
	const project_mma p = {k->q_nope,
			       k->w_uk_t,
			       k->s.q_nope_token_stride,
			       k->s.q_nope_head_stride,
			       k->s.w_head_stride,
			       k->s.w_row_stride,
			       k->s.tokens,
			       k->s.units,
			       Q_ABSORB_NOPE,
			       SPMLA_MLA_LATENT,
			       rows,
			       ring};
	project_ring r = project_begin(&p, local);
	uint32_t unit, line, half;

	for (unit = g_block(); unit < p.units; unit += g_blocks()) {
		const project_tile tile = project_tile_of(&p, unit);
		const uint32_t mine = tile.first + g_item() / 2;
		float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4];

		/* A quarter of the 32 pairs, 4 a thread. */
		if (k->s.has_pe && g_item() < 2 * rows && mine < k->s.tokens)
			q_absorb_pairs(k, tile.head, mine,
				       tile.column / PROJECT_MMA_COLUMNS * 8 +
					       g_item() % 2 * 4);
		project_product(&p, &r, sums);
		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES_OF(&p); line++) {
			UNROLL
			for (half = 0; half < 2; half++) {
				const uint32_t t = tile.first +
						   project_row(&p) + 16 * line +
						   8 * half + g_lane() / 4;
				const uint32_t is_there = t < k->s.tokens;
				uint32_t i;

				if (is_there && !q_absorb_has_row(k, t)) {
					UNROLL
					for (i = 0; i < PROJECT_MMA_TILES; i++)
						sums[line][i][2 * half] =
							sums[line][i]
							    [2 * half + 1] =
								    0.0f;
				}
				project_write(
					&p, sums[line], half, is_there,
					k->q +
						(int64_t)t *
							k->s.q_token_stride +
						(int64_t)tile.head *
							k->s.q_head_stride +
						tile.column +
						project_column(&p));
			}
		}
	}
}

SPMLA_KERNEL_BLOCKS(q_absorb_mma, 2)
void
spmla_k_q_absorb_mma(SPMLA_KERNEL_ARGS(q_absorb_mma))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	LOCAL_DYNAMIC(local, PROJECT_MMA_MANY_BYTES);

	q_absorb_mma_all(&k, PROJECT_MMA_MANY, PROJECT_MMA_MANY_RING, local);
}

SPMLA_KERNEL_BLOCKS(q_absorb_mma_few, 2)
void
spmla_k_q_absorb_mma_few(SPMLA_KERNEL_ARGS(q_absorb_mma_few))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	LOCAL_DYNAMIC(local, PROJECT_MMA_FEW_BYTES);

	q_absorb_mma_all(&k, PROJECT_MMA_FEW, PROJECT_MMA_FEW_RING, local);
}

#endif
#endif
