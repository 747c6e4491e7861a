/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows times a matrix for each head by wgmma: what q_absorb and v_up of many
 * tokens share. A block keeps a head's whole matrix in shared memory and walks
 * a range of tokens, so that rows and matrices are read once. Eight warps, in
 * front, multiply tiles of 64 tokens; eight behind them copy what these need.
 * Those that copy do not fence: a fence waits for all copies of its thread.
 *
 * A matrix is four pieces of 128 x 128 values, and a tile is chunks of 128
 * values of each token. Both are two panels (wgmma.h) of 64 values side by
 * side. Chunks pass through a ring. Barriers say that a piece or a chunk is
 * there, and that products have read a chunk or the matrix.
 *
 * A sum is made of parts of 128 values: matrix instructions add up a part, and
 * parts are added in order, as in project_mma_device.h. So a row's bits depend
 * neither on the other rows nor on the kernel.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_PROJECT_WGMMA_DEVICE_H
#define SPMLA_PLATFORM_GPU_PROJECT_PROJECT_WGMMA_DEVICE_H

#include "spmla/platform/gpu/dialect/wgmma.h"

enum {
	PROJECT_WGMMA_ITEMS = 512,
	PROJECT_WGMMA_FRONT = 256, /* threads that multiply */
	PROJECT_WGMMA_BACK = PROJECT_WGMMA_ITEMS - PROJECT_WGMMA_FRONT,
	PROJECT_WGMMA_TOKENS = 64,  /* of a tile */
	PROJECT_WGMMA_SIDE = 128,   /* of a piece */
	PROJECT_WGMMA_COLUMNS = 64, /* of a panel */
	PROJECT_WGMMA_PIECES = 4,
	PROJECT_WGMMA_CHUNKS = 5, /* of the ring */
	/* Bytes. A warp's results are a panel's columns of 16 tokens. */
	PROJECT_WGMMA_PIECE = 2 * PROJECT_WGMMA_SIDE * PROJECT_WGMMA_SIDE,
	PROJECT_WGMMA_CHUNK = 2 * PROJECT_WGMMA_TOKENS * PROJECT_WGMMA_SIDE,
	PROJECT_WGMMA_RESULTS = 2 * 16 * PROJECT_WGMMA_COLUMNS,
	PROJECT_WGMMA_BARRIERS = 1024,
	/* Shared memory of a block: barriers, the matrix, the ring, and results
	 * of the warps in front. */
	PROJECT_WGMMA_BYTES = PROJECT_WGMMA_BARRIERS +
			      PROJECT_WGMMA_PIECES * PROJECT_WGMMA_PIECE +
			      PROJECT_WGMMA_CHUNKS * PROJECT_WGMMA_CHUNK +
			      PROJECT_WGMMA_FRONT / 32 * PROJECT_WGMMA_RESULTS
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { PROJECT_WGMMA_SUMS = PROJECT_WGMMA_COLUMNS / 2 /* of a thread */ };

typedef struct project_wgmma_barriers {
	g_mbarrier piece[PROJECT_WGMMA_PIECES];
	g_mbarrier full[PROJECT_WGMMA_CHUNKS];
	g_mbarrier free[PROJECT_WGMMA_CHUNKS];
	g_mbarrier read; /* products have read the matrix */
} project_wgmma_barriers;
SPMLA_STATIC_ASSERT(sizeof(project_wgmma_barriers) <= PROJECT_WGMMA_BARRIERS,
		    "barriers have room");

/* A call, and what a block works on. */
typedef struct project_walk {
	GLOBAL const uint16_t *x; /* [tokens][heads][128 * parts] */
	GLOBAL const uint16_t *w; /* [heads][rows][columns] */
	int64_t x_token_stride, x_head_stride;
	int64_t w_head_stride, w_row_stride;
	int64_t piece_step; /* elements from a piece to the next one */
	uint32_t tokens, range;
	/* Compile-time constants of each kernel: */
	uint32_t parts;   /* chunks of a tile */
	uint32_t copiers; /* threads behind that copy chunks */
	LOCAL project_wgmma_barriers *barriers;
	LOCAL uint8_t *matrix;
	/* Of the block's unit: */
	uint32_t head, first, end; /* tokens [first, end) */
	uint32_t at;               /* chunks of the units before */
	uint32_t round;            /* units before */
} project_walk;

FN LOCAL uint8_t *
project_walk_piece(const PRIVATE project_walk *p, uint32_t piece)
{
	return p->matrix + piece * PROJECT_WGMMA_PIECE;
}

/* The chunk in a slot of the ring. */
FN LOCAL uint8_t *
project_walk_chunk(const PRIVATE project_walk *p, uint32_t slot)
{
	return project_walk_piece(p, PROJECT_WGMMA_PIECES) +
	       slot * PROJECT_WGMMA_CHUNK;
}

/* Where 16 bytes of the warp's token t are staged. */
FN LOCAL uint8_t *
project_walk_staged(const PRIVATE project_walk *p, uint32_t t, uint32_t piece)
{
	return project_walk_chunk(p, PROJECT_WGMMA_CHUNKS) +
	       g_item() / 32 * PROJECT_WGMMA_RESULTS + t * 128 +
	       (piece ^ t % 8) * 16;
}

FN uint32_t
project_walk_tiles(const PRIVATE project_walk *p)
{
	return (p->end - p->first - 1) / PROJECT_WGMMA_TOKENS + 1;
}

/* Makes the barriers. */
FN void
project_walk_begin(PRIVATE project_walk *p, LOCAL uint8_t *local)
{
	uint32_t i;

	p->barriers = (LOCAL project_wgmma_barriers *)local;
	p->matrix = local + PROJECT_WGMMA_BARRIERS;
	p->at = p->round = 0;
	if (g_item() == 0) {
		for (i = 0; i < PROJECT_WGMMA_PIECES; i++)
			g_mbarrier_init(&p->barriers->piece[i],
					PROJECT_WGMMA_BACK);
		for (i = 0; i < PROJECT_WGMMA_CHUNKS; i++) {
			g_mbarrier_init(&p->barriers->full[i], p->copiers);
			g_mbarrier_init(&p->barriers->free[i],
					PROJECT_WGMMA_FRONT / 32);
		}
		g_mbarrier_init(&p->barriers->read, PROJECT_WGMMA_FRONT / 32);
		g_mbarriers_publish();
	}
	BARRIER();
}

/* Finds a unit: a head and a range of tokens. */
FN void
project_walk_to(PRIVATE project_walk *p, uint32_t unit)
{
	const uint32_t ranges = (p->tokens - 1) / p->range + 1;
	const uint32_t left = p->tokens - unit % ranges * p->range;

	p->head = unit / ranges;
	p->first = p->tokens - left;
	p->end = p->first + (left < p->range ? left : p->range);
}

/* Goes on from a unit. */
FN void
project_walk_on(PRIVATE project_walk *p)
{
	p->at += project_walk_tiles(p) * p->parts;
	p->round++;
}

/* ---- behind -------------------------------------------------------------- */

/* Starts the thread's share of a copy to two panels: 128 values of each of
 * `rows` rows, by the first `items` threads behind. Rows from `live` on become
 * zeros and are not read. */
FN void
project_walk_copy(LOCAL uint8_t *to, GLOBAL const uint16_t *from,
		  int64_t stride, uint32_t rows, uint32_t live, uint32_t items)
{
	const uint32_t once = items / 16; /* rows */
	const uint32_t item = g_item() - PROJECT_WGMMA_FRONT;
	const uint32_t row = item / 16, piece = item % 16;
	GLOBAL const uint8_t *at =
		(GLOBAL const uint8_t *)(from + row * stride + 8 * piece);
	uint32_t i;

	to += piece / 8 * rows * 128 + row * 128 + (piece % 8 ^ row % 8) * 16;
	UNROLL
	for (i = 0; i < rows / once; i++) {
		g_local_copy128(to + i * once * 128, at, row + i * once < live);
		at = g_here_at(at + 2 * once * stride);
	}
}

/* Starts the thread's share of the copy of piece i, as soon as the matrix of
 * the unit before has been read. */
FN void
project_walk_copy_piece(const PRIVATE project_walk *p, uint32_t i)
{
	g_mbarrier_wait(&p->barriers->read, p->round % 2 ^ 1);
	project_walk_copy(project_walk_piece(p, i),
			  p->w + (int64_t)p->head * p->w_head_stride +
				  i * p->piece_step,
			  p->w_row_stride, PROJECT_WGMMA_SIDE,
			  PROJECT_WGMMA_SIDE, PROJECT_WGMMA_BACK);
	g_mbarrier_arrive_copies(&p->barriers->piece[i]);
}

/* The same of chunk i of the unit, part `part` of a tile, as soon as there is
 * room. Copiers call it. */
FN void
project_walk_copy_chunk(const PRIVATE project_walk *p, uint32_t i,
			uint32_t tile, uint32_t part)
{
	const uint32_t slot = (p->at + i) % PROJECT_WGMMA_CHUNKS;
	const uint32_t first = p->first + tile * PROJECT_WGMMA_TOKENS;

	g_mbarrier_wait(&p->barriers->free[slot],
			(p->at + i) / PROJECT_WGMMA_CHUNKS % 2 ^ 1);
	project_walk_copy(project_walk_chunk(p, slot),
			  p->x + (int64_t)p->head * p->x_head_stride +
				  (int64_t)first * p->x_token_stride +
				  part * PROJECT_WGMMA_SIDE,
			  p->x_token_stride, PROJECT_WGMMA_TOKENS,
			  p->end - first, p->copiers);
	g_mbarrier_arrive_copies(&p->barriers->full[slot]);
}

/* ---- in front ------------------------------------------------------------ */

/* Waits for chunk i of the unit. */
FN void
project_walk_wait_chunk(const PRIVATE project_walk *p, uint32_t i)
{
	i += p->at;
	g_mbarrier_wait(&p->barriers->full[i % PROJECT_WGMMA_CHUNKS],
			i / PROJECT_WGMMA_CHUNKS % 2);
	g_fence_async(); /* what was copied */
}

FN void
project_walk_wait_piece(const PRIVATE project_walk *p, uint32_t piece)
{
	g_mbarrier_wait(&p->barriers->piece[piece], p->round % 2);
	g_fence_async();
}

/* A warp arrives, once all its lanes have come here. */
FN void
project_walk_arrive(LOCAL g_mbarrier *b)
{
	g_subgroup_barrier();
	if (g_lane() == 0)
		g_mbarrier_arrive(b);
}

/* The warp has read chunk i of the unit. */
FN void
project_walk_free(const PRIVATE project_walk *p, uint32_t i)
{
	project_walk_arrive(
		&p->barriers->free[(p->at + i) % PROJECT_WGMMA_CHUNKS]);
}

/* The warp has read the unit's matrix for the last time. */
FN void
project_walk_leave(const PRIVATE project_walk *p)
{
	project_walk_arrive(&p->barriers->read);
}

/* Begins d = the tokens of chunk i times the columns of a piece's panel. */
FN void
project_walk_product(const PRIVATE project_walk *p, uint32_t i, uint32_t piece,
		     uint32_t panel, PRIVATE float *d)
{
	const g_panel a = g_panel_of(
		project_walk_chunk(p, (p->at + i) % PROJECT_WGMMA_CHUNKS),
		G_GROUP_BYTES, 0);
	const g_panel b = g_panel_of(project_walk_piece(p, piece) +
					     panel * PROJECT_WGMMA_PIECE / 2,
				     G_GROUP_BYTES, 0);
	uint32_t k;

	g_wgmma_begin();
	UNROLL
	for (k = 0; k < PROJECT_WGMMA_SIDE / 16; k++) {
		const g_panel a_at = g_panel_step(
			g_panel_on(a, k / 4 * G_PANEL_BYTES), k % 4);
		const g_panel b_at = g_panel_on(b, k * 2 * G_GROUP_BYTES);

		if (k == 0)
			g_wgmma_bf16_n64_across_first(d, a_at, b_at);
		else
			g_wgmma_bf16_n64_across(d, a_at, b_at);
	}
	g_wgmma_commit();
}

/* Writes a panel's columns of the first `live` of the warp's 16 tokens, from
 * `to` on, through shared memory, so that its columns are stored together.
 * Tokens in the bits of `bad` become zeros. */
FN void
project_walk_write(const PRIVATE project_walk *p, PRIVATE float *sums,
		   uint32_t live, uint32_t bad, GLOBAL uint16_t *to,
		   int64_t stride)
{
	const uint32_t lane = g_lane();
	const uint32_t t = lane / 8, piece = lane % 8;
	uint32_t i, j, x[4][4];

	g_wgmma_hold_all(sums, PROJECT_WGMMA_SUMS);
	UNROLL
	for (i = 0; i < 4; i++) {
		UNROLL
		for (j = 0; j < 4; j++)
			x[i][j] = g_f32_to_bf16x2(sums[8 * i + 2 * j],
						  sums[8 * i + 2 * j + 1]);
		g_store_matrices((LOCAL uint16_t *)project_walk_staged(
					 p, lane % 16, 2 * i + lane / 16),
				 x[i]);
	}
	g_subgroup_barrier();
	UNROLL
	for (i = 0; i < 4; i++)
		g_local_load128(project_walk_staged(p, t + 4 * i, piece), x[i]);
	to += (int64_t)t * stride + piece * 8;
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t row = t + 4 * i;

		if (bad >> row & 1u)
			x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0;
		if (row < live)
			g_store128(to, x[i]);
		to += 4 * stride;
	}
	g_subgroup_barrier(); /* what comes next is staged here */
}

#endif
#endif
