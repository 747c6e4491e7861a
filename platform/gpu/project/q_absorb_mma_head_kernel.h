/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb of many tokens with matrix instructions: a block keeps the whole
 * matrix of a head in shared memory and walks a range of tokens, so that rows
 * and matrices are read once. Two groups of eight warps take tiles of 32 tokens
 * in turn, each with barriers and a ring of its own: while one multiplies, the
 * other writes. A warp has 64 of the 512 columns.
 *
 * The inner dimension is one part of a sum (project_mma_device.h), added in the
 * same order, so a row has the same bits as in q_absorb_mma.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_HEAD_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_Q_ABSORB_MMA_HEAD_KERNEL_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/project/q_absorb_mma_kernel.h"

#define SPMLA_K_q_absorb_mma_head(P, S) SPMLA_K_q_absorb(P, S)
typedef spmla_k_q_absorb_scalars spmla_k_q_absorb_mma_head_scalars;

enum {
	Q_ABSORB_HEAD_GROUPS = 2,
	Q_ABSORB_HEAD_GROUP = 256, /* threads */
	Q_ABSORB_HEAD_TOKENS = 32, /* of a tile */
	Q_ABSORB_HEAD_ROUND = Q_ABSORB_HEAD_GROUPS * Q_ABSORB_HEAD_TOKENS,
	/* Bytes: a matrix as four panels of 128 columns; a tile as two panels
	 * of 64 values; a group's ring of tiles. */
	Q_ABSORB_HEAD_PANEL = 2 * Q_ABSORB_NOPE * PROJECT_MMA_COLUMNS,
	Q_ABSORB_HEAD_W = 2 * Q_ABSORB_NOPE * SPMLA_MLA_LATENT,
	Q_ABSORB_HEAD_X = 2 * Q_ABSORB_NOPE * Q_ABSORB_HEAD_TOKENS,
	Q_ABSORB_HEAD_TILES = 4, /* of a ring */
	Q_ABSORB_HEAD_RING = Q_ABSORB_HEAD_TILES * Q_ABSORB_HEAD_X,
	Q_ABSORB_HEAD_BYTES =
		Q_ABSORB_HEAD_W + Q_ABSORB_HEAD_GROUPS * Q_ABSORB_HEAD_RING
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* What a thread works on. */
typedef struct q_absorb_head {
	const PRIVATE q_absorb_params *k;
	LOCAL const uint8_t *w;
	LOCAL uint8_t *ring;
	uint32_t head;
	uint32_t end; /* one past the last token of the range */
	uint32_t item;
	uint32_t warp;
} q_absorb_head;

/* Starts the copy of the block's matrix; all threads call it. Pieces are
 * swizzled as in project_copy. */
FN void
q_absorb_head_ask_w(const PRIVATE q_absorb_params *k, uint32_t head,
		    LOCAL uint8_t *to)
{
	enum { ROWS = Q_ABSORB_HEAD_GROUPS * Q_ABSORB_HEAD_GROUP / 64 };
	const uint32_t piece = g_item() % 64;
	GLOBAL const uint16_t *from =
		k->w_uk_t + (int64_t)head * k->s.w_head_stride + 8 * piece;
	uint32_t i;

	to += piece / 16 * Q_ABSORB_HEAD_PANEL;
	UNROLL
	for (i = 0; i < Q_ABSORB_NOPE / ROWS; i++) {
		const uint32_t r = g_item() / 64 + i * ROWS;

		g_local_copy128(to + r * 2 * PROJECT_MMA_COLUMNS +
					(piece % 16 ^ (r & 7u)) * 16,
				from + (int64_t)r * k->s.w_row_stride, 1);
	}
}

/* Starts the copy of the tile from token `first` on into slot n % 4 of the
 * group's ring; zeros behind the last token. */
FN void
q_absorb_head_ask_x(const PRIVATE q_absorb_head *b, uint32_t first, uint32_t n)
{
	enum { ROWS = Q_ABSORB_HEAD_GROUP / 16 };
	const uint32_t piece = b->item % 16;
	LOCAL uint8_t *to = b->ring +
			    n % Q_ABSORB_HEAD_TILES * Q_ABSORB_HEAD_X +
			    piece / 8 * (Q_ABSORB_HEAD_X / 2);
	GLOBAL const uint16_t *from =
		b->k->q_nope + (int64_t)b->head * b->k->s.q_nope_head_stride +
		8 * piece;
	uint32_t i;

	UNROLL
	for (i = 0; i < Q_ABSORB_HEAD_TOKENS / ROWS; i++) {
		const uint32_t r = b->item / 16 + i * ROWS;
		const uint32_t is = first + r < b->end;

		g_local_copy128(to + r * PROJECT_MMA_ROW_BYTES +
					(piece % 8 ^ (r & 7u)) * 16,
				from + (int64_t)(is ? first + r : 0) *
						b->k->s.q_nope_token_stride,
				is);
	}
	g_local_copies_commit();
}

/* Multiplies the tile in slot n % 4 by the warp's 64 columns. */
FN void
q_absorb_head_multiply(const PRIVATE q_absorb_head *b, uint32_t n,
		       float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4])
{
	/* What the lane points at: a row of one of four matrices. */
	const uint32_t row = g_lane() % 16, piece = g_lane() / 16;
	const uint32_t column = b->warp % 2 * PROJECT_MMA_TILES + piece;
	LOCAL const uint8_t *x = b->ring +
				 n % Q_ABSORB_HEAD_TILES * Q_ABSORB_HEAD_X +
				 row * PROJECT_MMA_ROW_BYTES;
	LOCAL const uint8_t *w = b->w + b->warp / 2 * Q_ABSORB_HEAD_PANEL +
				 row * 2 * PROJECT_MMA_COLUMNS;
	uint32_t step, line, tile;

	project_clear(sums);
	UNROLL_BY(4) /* registers are full */
	for (step = 0; step < Q_ABSORB_NOPE / 16; step++) {
		uint32_t a[PROJECT_MMA_LINES][4];

		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES; line++)
			g_load_matrices(
				(LOCAL const uint16_t
					 *)(x +
					    step / 4 * (Q_ABSORB_HEAD_X / 2) +
					    line * 16 * PROJECT_MMA_ROW_BYTES +
					    ((2 * (step % 4) + piece) ^
					     (row & 7u)) *
						    16),
				a[line]);
		UNROLL
		for (tile = 0; tile < PROJECT_MMA_TILES; tile += 2) {
			uint32_t y[4];

			g_load_transposed(
				(LOCAL const uint16_t
					 *)(w +
					    step * 16 * 2 *
						    PROJECT_MMA_COLUMNS +
					    ((column + tile) ^ (row & 7u)) *
						    16),
				y);
			UNROLL
			for (line = 0; line < PROJECT_MMA_LINES; line++) {
				g_mma_bf16(sums[line][tile], a[line], y);
				g_mma_bf16(sums[line][tile + 1], a[line],
					   y + 2);
			}
		}
	}
}

/* Swaps words between the lanes of two neighbouring rows, so that each store
 * writes whole lines of 128 bytes. The even row's four lanes get the first 64
 * bytes of both rows, the odd row's lanes the last 64. */
FN void
q_absorb_head_pair(PRIVATE uint32_t *x)
{
	const uint32_t odd = g_lane() / 4 % 2;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t got = g_shuffle_xor(odd ? x[i] : x[4 + i], 4);

		if (odd)
			x[i] = got;
		else
			x[4 + i] = got;
	}
}

/* Writes the products of the tile from token `first` on; zeros for a token
 * without a row of the rope table. */
FN void
q_absorb_head_write(const PRIVATE q_absorb_head *b, uint32_t first,
		    float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4])
{
	const PRIVATE q_absorb_params *k = b->k;
	/* Column of the lane's 8 values. */
	const uint32_t column = b->warp * 64 + g_lane() % 8 * 8;
	uint32_t i, j;

	UNROLL
	for (i = 0; i < 2 * PROJECT_MMA_LINES; i++) {
		const uint32_t row = first + 8 * i + g_lane() / 4;
		const uint32_t bad =
			row < b->end &&
			q_absorb_is_bad(k, q_absorb_position(k, row));
		uint32_t words[PROJECT_MMA_TILES];

		UNROLL
		for (j = 0; j < PROJECT_MMA_TILES; j++) {
			PRIVATE const float *sum = sums[i / 2][j] + i % 2 * 2;

			words[j] = bad ? 0 : g_f32_to_bf16x2(sum[0], sum[1]);
		}
		project_turn(words);
		project_turn(words + 4);
		q_absorb_head_pair(words);
		UNROLL
		for (j = 0; j < 2; j++) {
			const uint32_t t = (row & ~1u) + j;

			if (t < b->end)
				g_store128(k->q +
						   (int64_t)t *
							   k->s.q_token_stride +
						   (int64_t)b->head *
							   k->s.q_head_stride +
						   column,
					   words + 4 * j);
		}
	}
}

/* Does the group's tiles of the block's range, from token `first` on. */
FN void
q_absorb_head_walk(const PRIVATE q_absorb_head *b, uint32_t first,
		   uint32_t group)
{
	const PRIVATE q_absorb_params *k = b->k;
	/* Four pairs a thread, eight threads a token. */
	const uint32_t pair = b->item % 8 * 4;
	uint32_t n = 0, t;

	NO_UNROLL
	for (t = first; t < b->end; t += Q_ABSORB_HEAD_ROUND) {
		const uint32_t mine = t + b->item / 8;
		const uint32_t has_pairs = k->s.has_pe && mine < b->end;
		float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4];
		q_absorb_pairs pairs;

		if (has_pairs) {
			q_absorb_ask(k, b->head, mine, pair, &pairs);
			pairs.position = q_absorb_position(k, mine);
		}
		g_local_copies_wait_but(Q_ABSORB_HEAD_TILES - 2);
		/* The group sees the tile, and has read the one before. */
		g_named_sync(1 + group, Q_ABSORB_HEAD_GROUP);
		q_absorb_head_ask_x(
			b, t + (Q_ABSORB_HEAD_TILES - 1) * Q_ABSORB_HEAD_ROUND,
			n + Q_ABSORB_HEAD_TILES - 1);
		q_absorb_head_multiply(b, n++, sums);
		if (has_pairs)
			q_absorb_ask_rope(k, pair, &pairs);
		q_absorb_head_write(b, t, sums);
		if (has_pairs) {
			q_absorb_report(k, b->head, mine, pair, &pairs);
			q_absorb_put(k, b->head, mine, pair, &pairs);
		}
	}
	g_local_copies_wait();
}

SPMLA_KERNEL_BLOCKS(q_absorb_mma_head, 1)
void
spmla_k_q_absorb_mma_head(SPMLA_KERNEL_ARGS(q_absorb_mma_head))
{
	const q_absorb_params k = {SPMLA_KERNEL_VALUES(q_absorb)};
	const uint32_t ranges = (k.s.tokens - 1) / k.s.range + 1;
	const uint32_t group = g_item() / Q_ABSORB_HEAD_GROUP;
	LOCAL_DYNAMIC(local, Q_ABSORB_HEAD_BYTES);
	q_absorb_head b;
	uint32_t unit, i;

	b.k = &k;
	b.w = local;
	b.ring = local + Q_ABSORB_HEAD_W + group * Q_ABSORB_HEAD_RING;
	b.item = g_item() % Q_ABSORB_HEAD_GROUP;
	b.warp = b.item / 32;
	for (unit = g_block(); unit < ranges * k.s.heads; unit += g_blocks()) {
		const uint32_t begin = unit % ranges * k.s.range;
		const uint32_t left = k.s.tokens - begin;
		const uint32_t first = begin + group * Q_ABSORB_HEAD_TOKENS;

		b.head = unit / ranges;
		b.end = begin + (left < k.s.range ? left : k.s.range);
		q_absorb_head_ask_w(&k, b.head, local);
		UNROLL
		for (i = 0; i + 1 < Q_ABSORB_HEAD_TILES; i++)
			q_absorb_head_ask_x(&b, first + i * Q_ABSORB_HEAD_ROUND,
					    i);
		g_local_copies_wait_but(Q_ABSORB_HEAD_TILES - 2);
		BARRIER(); /* all see the matrix */
		q_absorb_head_walk(&b, first, group);
		BARRIER(); /* all have read it */
	}
}

#endif
#endif
