/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb of many tokens by wgmma. A piece of the matrix is 128 of its 512
 * columns, so a tile is one chunk, and each of two warpgroups multiplies it by
 * two pieces. Half of the threads behind write the rope parts.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_WGMMA_KERNEL_H

#include "spmla/platform/gpu/project/project_wgmma_device.h"
#include "spmla/platform/gpu/project/q_absorb_mma_kernel.h"

#define SPMLA_K_q_absorb_wgmma(P, S) SPMLA_K_q_absorb(P, S)
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_wgmma_scalars;

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	/* Threads behind that copy tokens. The others write rope parts: of a
	 * tile, a thread has four pairs of each of four tokens. */
	Q_ABSORB_WGMMA_COPIERS = 128,
	Q_ABSORB_WGMMA_EACH = 4,
	Q_ABSORB_WGMMA_STEP = PROJECT_WGMMA_TOKENS / Q_ABSORB_WGMMA_EACH,
	/* Registers of a thread in front and behind. Together they are the 512
	 * x 128 that the block has from its launch on. */
	Q_ABSORB_WGMMA_UP = 144,
	Q_ABSORB_WGMMA_DOWN = 112
};
SPMLA_STATIC_ASSERT(PROJECT_WGMMA_FRONT *Q_ABSORB_WGMMA_UP +
				    PROJECT_WGMMA_BACK * Q_ABSORB_WGMMA_DOWN ==
			    PROJECT_WGMMA_ITEMS * 128,
		    "a block has 128 registers a thread");

/* The position of the lane's token of a warp's 16, from token `first` on;
 * behind the range's last token, that one's. */
FN uint32_t
q_absorb_wgmma_position(const PRIVATE q_absorb_params *k,
			const PRIVATE project_walk *p, uint32_t first)
{
	const uint32_t t = first + g_lane() % 16, last = p->end - 1;

	return q_absorb_position(k, t < last ? t : last);
}

/* Which of a warp's 16 tokens, of which `live` exist, have no row of the rope
 * table. Reports them if it `reports`. */
FN uint32_t
q_absorb_wgmma_bad(const PRIVATE q_absorb_params *k, uint32_t first,
		   uint32_t live, uint32_t position, uint32_t reports)
{
	const uint32_t is_bad = g_lane() < 16 && g_lane() < live &&
				q_absorb_is_bad(k, position);

	if (is_bad && reports)
		g_fault(k->fault_state, k->fault_status, first + g_lane(),
			G_FAULT_POSITION);
	return (uint32_t)g_ballot(is_bad);
}

/* The piece of the warpgroup's panel i, of four. */
FN uint32_t
q_absorb_wgmma_piece(uint32_t i)
{
	return g_item() / 128 + i / 2 * 2;
}

/* A warp's 16 tokens of a tile: `live` exist, those in `bad` become zeros. */
typedef struct q_absorb_warp {
	GLOBAL uint16_t *to;
	uint32_t live, bad;
} q_absorb_warp;

/* Writes the products of the warpgroup's panel i. */
FN void
q_absorb_wgmma_write(const PRIVATE q_absorb_params *k,
		     const PRIVATE project_walk *p,
		     const PRIVATE q_absorb_warp *w, uint32_t i,
		     PRIVATE float *d)
{
	project_walk_write(
		p, d, w->live, w->bad,
		w->to + q_absorb_wgmma_piece(i) * PROJECT_WGMMA_SIDE +
			i % 2 * PROJECT_WGMMA_COLUMNS,
		k->s.q_token_stride);
}

/* Multiplies the unit's tokens by the warpgroup's two pieces, a panel at a
 * time: one product runs while the one before it is written. The positions of
 * the next tile are loaded beside this one. */
FN void
q_absorb_wgmma_front(const PRIVATE q_absorb_params *k,
		     const PRIVATE project_walk *p)
{
	const uint32_t tiles = project_walk_tiles(p);
	const uint32_t reports = p->head == 0 && g_item() < 128;
	/* The first of the warp's tokens. */
	uint32_t first = p->first + g_item() % 128 / 32 * 16;
	uint32_t next = q_absorb_wgmma_position(k, p, first), tile, i;

	NO_UNROLL
	for (tile = 0; tile < tiles; tile++, first += PROJECT_WGMMA_TOKENS) {
		float d[2][PROJECT_WGMMA_SUMS];
		q_absorb_warp w;

		w.live = first < p->end ? p->end - first : 0;
		w.bad = q_absorb_wgmma_bad(k, first, w.live, next, reports);
		w.to = k->q + (int64_t)first * k->s.q_token_stride +
		       (int64_t)p->head * k->s.q_head_stride;
		next = q_absorb_wgmma_position(k, p,
					       first + PROJECT_WGMMA_TOKENS);
		project_walk_wait_chunk(p, tile);
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t piece = q_absorb_wgmma_piece(i);

			if (tile == 0 && i % 2 == 0)
				project_walk_wait_piece(p, piece);
			project_walk_product(p, tile, piece, i % 2, d[i % 2]);
			if (i == 0)
				continue;
			g_wgmma_wait_but(1);
			q_absorb_wgmma_write(k, p, &w, i - 1, d[(i - 1) % 2]);
		}
		g_wgmma_wait();
		project_walk_free(p, tile);
		q_absorb_wgmma_write(k, p, &w, 3, d[1]);
	}
}

/* The thread's token i of a tile; behind the range's last token, that one
 * again. */
FN uint32_t
q_absorb_wgmma_token(const PRIVATE project_walk *p, uint32_t tile, uint32_t i)
{
	const uint32_t t = p->first + tile * PROJECT_WGMMA_TOKENS +
			   g_item() % Q_ABSORB_WGMMA_COPIERS / 8 +
			   i * Q_ABSORB_WGMMA_STEP;

	return t < p->end ? t : p->end - 1;
}

/* Starts the loads of the thread's pairs of a tile, with no branch between
 * tokens: one without a row of the rope table loads row 0, and q_absorb_put
 * ignores it. `form` is k->s.rope_form. */
FN void
q_absorb_wgmma_ask(const PRIVATE q_absorb_params *k,
		   const PRIVATE project_walk *p, uint32_t form, uint32_t tile,
		   PRIVATE q_absorb_pairs *pairs)
{
	const uint32_t pair = g_item() % 8 * 4;
	uint32_t i;

	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++)
		q_absorb_ask(k, p->head, q_absorb_wgmma_token(p, tile, i), pair,
			     pairs + i);
	if (!k->s.has_rope)
		return;
	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++) {
		const uint32_t row = q_absorb_is_bad(k, pairs[i].position)
					     ? 0
					     : pairs[i].position;
		const uint64_t at = (uint64_t)row * SPMLA_MLA_ROPE + pair;

		g_reals4(k->cos_sin, form, at, pairs[i].c);
		g_reals4(k->cos_sin, form, at + SPMLA_MLA_ROPE / 2, pairs[i].s);
	}
}

/* Writes the rope parts of a tile. `positions` are those of the thread's
 * tokens; those of the next tile are loaded beside. Threads whose token is past
 * the last write the last one's bytes, as its own threads do. */
FN void
q_absorb_wgmma_rope(const PRIVATE q_absorb_params *k,
		    const PRIVATE project_walk *p, uint32_t tile,
		    PRIVATE uint32_t *positions)
{
	q_absorb_pairs pairs[Q_ABSORB_WGMMA_EACH];
	uint32_t i;

	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++)
		pairs[i].position = positions[i];
	/* The usual form as a constant: its loads have no branch between
	 * them. */
	if (k->s.rope_form == G_REALS_WIDE)
		q_absorb_wgmma_ask(k, p, G_REALS_WIDE, tile, pairs);
	else
		q_absorb_wgmma_ask(k, p, k->s.rope_form, tile, pairs);
	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++)
		positions[i] = q_absorb_position(
			k, q_absorb_wgmma_token(p, tile + 1, i));
	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++)
		q_absorb_put(k, p->head, q_absorb_wgmma_token(p, tile, i),
			     g_item() % 8 * 4, pairs + i);
}

/* Copies the unit's matrix and tokens, or the matrix alone. Then the threads
 * that copy no tokens write the rope parts. */
FN void
q_absorb_wgmma_back(const PRIVATE q_absorb_params *k,
		    const PRIVATE project_walk *p)
{
	const uint32_t tiles = project_walk_tiles(p);
	const uint32_t copies =
		g_item() < PROJECT_WGMMA_FRONT + Q_ABSORB_WGMMA_COPIERS;
	uint32_t positions[Q_ABSORB_WGMMA_EACH], i;

	NO_UNROLL
	for (i = 0; i < PROJECT_WGMMA_PIECES || (copies && i < tiles); i++) {
		if (copies && i < tiles)
			project_walk_copy_chunk(p, i, i, 0);
		if (i < PROJECT_WGMMA_PIECES)
			project_walk_copy_piece(p, i);
	}
	if (copies || !k->s.has_pe)
		return;
	UNROLL
	for (i = 0; i < Q_ABSORB_WGMMA_EACH; i++)
		positions[i] =
			q_absorb_position(k, q_absorb_wgmma_token(p, 0, i));
	NO_UNROLL
	for (i = 0; i < tiles; i++)
		q_absorb_wgmma_rope(k, p, i, positions);
}

SPMLA_KERNEL_BLOCKS(q_absorb_wgmma, 1)
void
spmla_k_q_absorb_wgmma(SPMLA_KERNEL_ARGS(q_absorb_wgmma))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	LOCAL_DYNAMIC(local, PROJECT_WGMMA_BYTES);
	project_walk p;
	uint32_t unit;

	p.x = k.q_nope;
	p.w = k.w_uk_t;
	p.x_token_stride = k.s.q_nope_token_stride;
	p.x_head_stride = k.s.q_nope_head_stride;
	p.w_head_stride = k.s.w_head_stride;
	p.w_row_stride = k.s.w_row_stride;
	p.piece_step = PROJECT_WGMMA_SIDE;
	p.tokens = k.s.tokens;
	p.range = k.s.range;
	p.parts = 1;
	p.copiers = Q_ABSORB_WGMMA_COPIERS;
	project_walk_begin(&p, local);
	/* Two loops, so that each has registers of its own. */
	if (g_item() < PROJECT_WGMMA_FRONT) {
		G_REGISTERS_UP(Q_ABSORB_WGMMA_UP);
		for (unit = g_block(); unit < k.s.units; unit += g_blocks()) {
			project_walk_to(&p, unit);
			q_absorb_wgmma_front(&k, &p);
			project_walk_leave(&p);
			project_walk_on(&p);
		}
	} else {
		G_REGISTERS_DOWN(Q_ABSORB_WGMMA_DOWN);
		for (unit = g_block(); unit < k.s.units; unit += g_blocks()) {
			project_walk_to(&p, unit);
			q_absorb_wgmma_back(&k, &p);
			project_walk_on(&p);
		}
	}
}

#endif
#endif
