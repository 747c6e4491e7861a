/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb with matrix instructions: a tile is 128 columns of a head for up to
 * 16 tokens, or up to 128, and a quarter of their rope parts. With few tokens
 * the rope parts are loaded during the products and written after them;
 * otherwise both come before.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_KERNEL_H

#include "spmla/platform/gpu/project/project_mma_device.h"
#include "spmla/platform/gpu/project/q_absorb_kernel.h"

#define SPMLA_K_q_absorb_mma(P, S)     SPMLA_K_q_absorb(P, S)
#define SPMLA_K_q_absorb_mma_few(P, S) SPMLA_K_q_absorb(P, S)
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_mma_scalars;
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_mma_few_scalars;

enum {
	Q_ABSORB_MANY = 128, /* tokens of the larger tile */
	/* Chunks of the rings. With so many, an SM has shared memory for four
	 * blocks with few tokens, or two with many. */
	Q_ABSORB_FEW_RING = 3,
	Q_ABSORB_MANY_RING = 3,
	Q_ABSORB_FEW_BYTES =
		Q_ABSORB_FEW_RING * PROJECT_MMA_CHUNK_BYTES(PROJECT_MMA_FEW),
	Q_ABSORB_MANY_BYTES =
		Q_ABSORB_MANY_RING * PROJECT_MMA_CHUNK_BYTES(Q_ABSORB_MANY)
};

#ifdef SPMLA_GPU_KERNELS

typedef struct q_absorb_params {
	SPMLA_KERNEL_FIELDS(q_absorb)
} q_absorb_params;

/* The position of token t, or 0 without rope. One that is negative, or no
 * int32, becomes too large for the rope table. */
FN uint32_t
q_absorb_position(const PRIVATE q_absorb_params *k, uint32_t t)
{
	return k->s.has_rope ? (uint32_t)g_position(k->positions,
						    k->s.positions_wide, t)
			     : 0;
}

FN uint32_t
q_absorb_is_bad(const PRIVATE q_absorb_params *k, uint32_t position)
{
	return k->s.has_rope && position >= k->s.cos_sin_rows;
}

/* Takes 8 values, of which neighbours are pairs, apart into the four first
 * values and the four second ones. q_absorb_together does the reverse. */
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

/* Four pairs of a rope part: two words of first values, two of second ones
 * (INTERLEAVED: four words of pairs, until they are taken apart), and their
 * cosines and sines. */
typedef struct q_absorb_pairs {
	uint32_t x[4], c[4], s[4];
	uint32_t position;
} q_absorb_pairs;

/* Where the two halves of four pairs' 8 values begin: NEOX has all first values
 * in one half, INTERLEAVED has two whole pairs in each. */
FN uint32_t
q_absorb_first(const PRIVATE q_absorb_params *k, uint32_t pair)
{
	return k->s.neox ? pair : 2 * pair;
}

FN uint32_t
q_absorb_second(const PRIVATE q_absorb_params *k, uint32_t pair)
{
	return k->s.neox ? pair + SPMLA_MLA_ROPE / 2 : 2 * pair + 4;
}

/* Starts the loads of four pairs, from pair `pair` on, of token t and head
 * h. */
FN void
q_absorb_ask(const PRIVATE q_absorb_params *k, uint32_t h, uint32_t t,
	     uint32_t pair, PRIVATE q_absorb_pairs *r)
{
	GLOBAL const uint16_t *from = k->q_pe +
				      (int64_t)t * k->s.q_pe_token_stride +
				      (int64_t)h * k->s.q_pe_head_stride;
	const uint64_t low =
		*(GLOBAL const uint64_t *)(from + q_absorb_first(k, pair));
	const uint64_t high =
		*(GLOBAL const uint64_t *)(from + q_absorb_second(k, pair));

	r->x[0] = (uint32_t)low;
	r->x[1] = (uint32_t)(low >> 32);
	r->x[2] = (uint32_t)high;
	r->x[3] = (uint32_t)(high >> 32);
}

/* Starts the loads of their cosines and sines, if they are rotated. Their
 * position is known. */
FN void
q_absorb_ask_rope(const PRIVATE q_absorb_params *k, uint32_t pair,
		  PRIVATE q_absorb_pairs *r)
{
	const uint64_t at = (uint64_t)r->position * SPMLA_MLA_ROPE + pair;

	if (!k->s.has_rope || q_absorb_is_bad(k, r->position))
		return;
	g_reals4(k->cos_sin, k->s.rope_form, at, r->c);
	g_reals4(k->cos_sin, k->s.rope_form, at + SPMLA_MLA_ROPE / 2, r->s);
}

FN void
q_absorb_turn(PRIVATE q_absorb_pairs *r)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		PRIVATE uint32_t *x = r->x + i / 2, *y = r->x + 2 + i / 2;
		const uint32_t shift = 16 * (i % 2);
		const uint32_t keep = 0xffff0000u >> shift;
		const float low = g_bf16_to_f32(*x >> shift & 0xffffu);
		const float high = g_bf16_to_f32(*y >> shift & 0xffffu);
		const float c = g_float(r->c[i]), s = g_float(r->s[i]);

		*x = (*x & keep) | g_f32_to_bf16(low * c - high * s) << shift;
		*y = (*y & keep) | g_f32_to_bf16(high * c + low * s) << shift;
	}
}

/* Reports a token without a row of the rope table, once. */
FN void
q_absorb_report(const PRIVATE q_absorb_params *k, uint32_t h, uint32_t t,
		uint32_t pair, const PRIVATE q_absorb_pairs *r)
{
	if (h == 0 && pair == 0 && q_absorb_is_bad(k, r->position))
		g_fault(k->fault_state, k->fault_status, t, G_FAULT_POSITION);
}

/* Rotates and writes them; zeros without a row of the rope table. */
FN void
q_absorb_put(const PRIVATE q_absorb_params *k, uint32_t h, uint32_t t,
	     uint32_t pair, PRIVATE q_absorb_pairs *r)
{
	GLOBAL uint16_t *to = k->q + (int64_t)t * k->s.q_token_stride +
			      (int64_t)h * k->s.q_head_stride +
			      SPMLA_MLA_LATENT;

	if (q_absorb_is_bad(k, r->position)) {
		r->x[0] = r->x[1] = r->x[2] = r->x[3] = 0;
	} else if (k->s.has_rope) {
		if (!k->s.neox)
			q_absorb_apart(r->x);
		q_absorb_turn(r);
		if (!k->s.neox)
			q_absorb_together(r->x);
	}
	*(GLOBAL uint64_t *)(to + q_absorb_first(k, pair)) =
		(uint64_t)r->x[1] << 32 | r->x[0];
	*(GLOBAL uint64_t *)(to + q_absorb_second(k, pair)) =
		(uint64_t)r->x[3] << 32 | r->x[2];
}

/* Writes the lane's columns of a token. A line has 16 tokens and a half 8 of
 * them; lanes 4 i .. 4 i + 3 have token i. A token with a bad position gets
 * zeros. */
FN void
q_absorb_write(const PRIVATE q_absorb_params *k, const PRIVATE project_mma *p,
	       const PRIVATE project_tile *tile, uint32_t line, uint32_t half,
	       float sums[PROJECT_MMA_TILES][4])
{
	const uint32_t t = tile->first + project_row(p) + 16 * line + 8 * half +
			   g_lane() / 4;
	const uint32_t is_there = t < k->s.tokens;
	uint32_t i;

	if (is_there && q_absorb_is_bad(k, q_absorb_position(k, t))) {
		UNROLL
		for (i = 0; i < PROJECT_MMA_TILES; i++)
			sums[i][2 * half] = sums[i][2 * half + 1] = 0.0f;
	}
	project_write(p, sums, half, is_there,
		      k->q + (int64_t)t * k->s.q_token_stride +
			      (int64_t)tile->head * k->s.q_head_stride +
			      tile->column + project_column(p));
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
	/* Only beside the sums of few tokens are there registers for pairs. */
	const uint32_t late = rows == PROJECT_MMA_FEW;
	project_ring r = project_begin(&p, local);
	uint32_t unit, line, half;

	for (unit = g_block(); unit < p.units; unit += g_blocks()) {
		const project_tile tile = project_tile_of(&p, unit);
		const uint32_t mine = tile.first + g_item() / 2;
		/* A quarter of the 32 pairs, 4 a thread. */
		const uint32_t pair = tile.column / PROJECT_MMA_COLUMNS * 8 +
				      g_item() % 2 * 4;
		const uint32_t has_pairs = k->s.has_pe && g_item() < 2 * rows &&
					   mine < k->s.tokens;
		float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4];
		q_absorb_pairs pairs;

		if (has_pairs) {
			q_absorb_ask(k, tile.head, mine, pair, &pairs);
			pairs.position = q_absorb_position(k, mine);
		}
		if (has_pairs && !late) {
			q_absorb_ask_rope(k, pair, &pairs);
			q_absorb_report(k, tile.head, mine, pair, &pairs);
			q_absorb_put(k, tile.head, mine, pair, &pairs);
		}
		project_product(&p, &r, sums);
		if (has_pairs && late)
			q_absorb_ask_rope(k, pair, &pairs);
		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES_OF(&p); line++) {
			UNROLL
			for (half = 0; half < 2; half++)
				q_absorb_write(k, &p, &tile, line, half,
					       sums[line]);
		}
		if (has_pairs && late) {
			q_absorb_report(k, tile.head, mine, pair, &pairs);
			q_absorb_put(k, tile.head, mine, pair, &pairs);
		}
	}
}

SPMLA_KERNEL_BLOCKS(q_absorb_mma, 2)
void
spmla_k_q_absorb_mma(SPMLA_KERNEL_ARGS(q_absorb_mma))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	LOCAL_DYNAMIC(local, Q_ABSORB_MANY_BYTES);

	q_absorb_mma_all(&k, Q_ABSORB_MANY, Q_ABSORB_MANY_RING, local);
}

SPMLA_KERNEL_BLOCKS(q_absorb_mma_few, 4)
void
spmla_k_q_absorb_mma_few(SPMLA_KERNEL_ARGS(q_absorb_mma_few))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	LOCAL_DYNAMIC(local, Q_ABSORB_FEW_BYTES);

	q_absorb_mma_all(&k, PROJECT_MMA_FEW, Q_ABSORB_FEW_RING, local);
}

#endif
#endif
