/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj by wgmma: a tile is 128 tokens, 64 for each of two warpgroups,
 * by 64 or 128 columns of a group. The tokens are the rows of A, the columns
 * are B. With bf16, a chunk already is the panels that wgmma reads. With e4m3,
 * a warpgroup that multiplies converts its tokens to f16 in registers, and a
 * third one converts the columns to f16 in panels. As in mqa_logits_wgmma, the
 * order of k is free if both operands have the same, so a lane's 16 bytes of a
 * token are its values for four steps.
 *
 * The hard idea: threads that copy do nothing else. A fence of shared memory
 * waits for all copies that its thread has under way, so a thread that copies
 * and fences runs no further ahead than one copy. With bf16 the threads that
 * multiply fence what others copied. Barriers say when a chunk is there and when
 * all have read it.
 *
 * A sum is made of parts of 128 values: matrix instructions add up a part, and
 * parts, times their scales, are added in order. So a token's bits do not
 * depend on other tokens, nor on its place among them.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/project/o_proj_ring_device.h"

#define SPMLA_K_o_group_proj_bf16_wgmma(P, S)   SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_bf16_wgmma64(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_wgmma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_wgmma64_scalars;
#define SPMLA_K_o_group_proj_wgmma(P, S)   SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_wgmma64(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma64_scalars;

enum {
	/* Threads that multiply; then those that convert columns, if they are
	 * e4m3; then those that copy. */
	O_WGMMA_ITEMS = 512,
	O_WGMMA_FRONT = 256,
	O_WGMMA_MAKERS = 128,
	O_WGMMA_TOKENS = 128, /* of a tile */
	O_WGMMA_COLUMNS = 128,
	O_WGMMA_FEW = 64,  /* columns, for few tokens */
	O_WGMMA_ROW = 128, /* bytes of a chunk's row: e4m3 a part, bf16 half */
	/* Chunks of the rings: e4m3, then bf16. Powers of two. */
	O_WGMMA_CHUNKS = 4,
	O_WGMMA_FEW_CHUNKS = 4,
	O_WGMMA_BF16_CHUNKS = 4,
	O_WGMMA_BF16_FEW_CHUNKS = 8,
	/* Stages: parts of converted columns. Powers of two. */
	O_WGMMA_STAGES = 2,
	O_WGMMA_FEW_STAGES = 4
};

/* Shared memory of a block, in this order, for tiles of that many columns.
 *
 *   all:   o_wgmma_barriers
 *   e4m3:  panels   [stages][2] O_WGMMA_PANEL, columns as f16
 *          ring     [chunks] O_RING_CHUNK
 *   bf16:  ring     [chunks] O_WGMMA_BF16_CHUNK
 *          results  bf16 [O_WGMMA_TOKENS][columns]
 */
#define O_WGMMA_BARRIERS       1024 /* bytes */
#define O_WGMMA_PANEL(columns) (2 * 64 * (columns))
#define O_WGMMA_RING_AT(columns, stages) \
	(O_WGMMA_BARRIERS + (stages)*2 * O_WGMMA_PANEL(columns))
#define O_WGMMA_SHARED(columns, stages, chunks) \
	(O_WGMMA_RING_AT(columns, stages) +     \
	 (chunks)*O_RING_CHUNK(O_WGMMA_TOKENS, columns, O_WGMMA_ROW, 1))
#define O_WGMMA_BF16_CHUNK(columns) \
	O_RING_CHUNK(O_WGMMA_TOKENS, columns, O_WGMMA_ROW, 0)
#define O_WGMMA_BF16_SHARED(columns, chunks)                       \
	(O_WGMMA_BARRIERS + (chunks)*O_WGMMA_BF16_CHUNK(columns) + \
	 2 * O_WGMMA_TOKENS * (columns))

enum {
	O_WGMMA_BYTES =
		O_WGMMA_SHARED(O_WGMMA_COLUMNS, O_WGMMA_STAGES, O_WGMMA_CHUNKS),
	O_WGMMA_FEW_BYTES = O_WGMMA_SHARED(O_WGMMA_FEW, O_WGMMA_FEW_STAGES,
					   O_WGMMA_FEW_CHUNKS),
	O_WGMMA_BF16_BYTES =
		O_WGMMA_BF16_SHARED(O_WGMMA_COLUMNS, O_WGMMA_BF16_CHUNKS),
	O_WGMMA_BF16_FEW_BYTES =
		O_WGMMA_BF16_SHARED(O_WGMMA_FEW, O_WGMMA_BF16_FEW_CHUNKS)
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	/* Registers of a thread. Together they are the 512 x 128 that the
	 * block has from its launch on. With a larger sum, threads in front
	 * would wait for ever. */
	O_WGMMA_FRONT_REGISTERS = 192,
	O_WGMMA_BACK_REGISTERS = 64,
	O_WGMMA_IN_FRONT = 1, /* a named barrier */
	O_WGMMA_STEPS = O_PROJ_PART / 16,
	O_WGMMA_SUMS = O_WGMMA_COLUMNS / 2, /* the most that a thread has */
	O_WGMMA_MOST_CHUNKS = 8,
	O_WGMMA_MOST_STAGES = 4
};

typedef struct o_wgmma_barriers {
	/* Of a chunk of the ring: it is there; all warps have read it. */
	g_mbarrier full[O_WGMMA_MOST_CHUNKS], free[O_WGMMA_MOST_CHUNKS];
	/* Of a stage: the panels are there; products are done with them. */
	g_mbarrier made[O_WGMMA_MOST_STAGES], used[O_WGMMA_MOST_STAGES];
} o_wgmma_barriers;
SPMLA_STATIC_ASSERT(sizeof(o_wgmma_barriers) <= O_WGMMA_BARRIERS,
		    "barriers have room");
SPMLA_STATIC_ASSERT(O_WGMMA_FRONT *O_WGMMA_FRONT_REGISTERS +
				    (O_WGMMA_ITEMS - O_WGMMA_FRONT) *
					    O_WGMMA_BACK_REGISTERS ==
			    O_WGMMA_ITEMS * 128,
		    "a block has 128 registers a thread");
SPMLA_STATIC_ASSERT(O_WGMMA_ITEMS - O_WGMMA_FRONT - O_WGMMA_MAKERS ==
			    O_WGMMA_TOKENS,
		    "each thread that copies e4m3 copies a token's scale");

/* Compile-time constants of a kernel. */
typedef struct o_wgmma_shape {
	o_ring_shape ring;
	uint32_t copier; /* the first thread that copies */
	uint32_t stages;
} o_wgmma_shape;

/* Waits for the barrier of chunk or stage `at`, counted from the block's first
 * one. A round is as many chunks as the ring has slots, or as many stages as
 * there are. The phase that ends is this round's; with _last, the one of the
 * round before, and in the first round there is no wait. */
FN void
o_wgmma_wait(LOCAL g_mbarrier *b, uint32_t at, uint32_t slots)
{
	g_mbarrier_wait(b + at % slots, at / slots % 2);
}

FN void
o_wgmma_wait_last(LOCAL g_mbarrier *b, uint32_t at, uint32_t slots)
{
	g_mbarrier_wait(b + at % slots, at / slots % 2 ^ 1);
}

/* A warp arrives, once all its lanes have come here. */
FN void
o_wgmma_arrive(LOCAL g_mbarrier *b)
{
	g_subgroup_barrier();
	if (g_lane() == 0)
		g_mbarrier_arrive(b);
}

/* Called by all threads of the block. */
FN void
o_wgmma_barriers_init(const PRIVATE o_wgmma_shape *n, LOCAL o_wgmma_barriers *b)
{
	uint32_t i;

	if (g_item() == 0) {
		NO_UNROLL
		for (i = 0; i < n->ring.chunks; i++) {
			g_mbarrier_init(&b->full[i], O_WGMMA_ITEMS - n->copier);
			/* All warps in front of those that copy read it. */
			g_mbarrier_init(&b->free[i], n->copier / 32);
		}
		NO_UNROLL
		for (i = 0; i < n->stages; i++) {
			g_mbarrier_init(&b->made[i], O_WGMMA_MAKERS / 32);
			g_mbarrier_init(&b->used[i], O_WGMMA_FRONT / 32);
		}
		g_mbarriers_publish();
	}
	BARRIER();
}

/* The rows of a tile from which a thread copies: a piece of 16 bytes of each. */
typedef struct o_wgmma_rows {
	GLOBAL const uint8_t *o[O_WGMMA_TOKENS / 16];
	GLOBAL const uint8_t *w[O_WGMMA_COLUMNS / 16];
	GLOBAL const uint32_t *o_scale;
	GLOBAL const uint32_t *w_scale;
} o_wgmma_rows;

/* Finds the thread's rows of a tile. A row behind the last token is the last
 * token's again; its sums are not stored. */
FN void
o_wgmma_rows_of(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
		uint32_t unit, uint32_t item, PRIVATE o_wgmma_rows *rows)
{
	const o_tile tile = o_tile_of(p, &n->ring, unit);
	const uint32_t step = (O_WGMMA_ITEMS - n->copier) / 8;
	const uint32_t bytes = n->ring.fp8 ? 1 : 2, last = p->s.tokens - 1;
	uint32_t i;

	UNROLL
	for (i = 0; i < O_WGMMA_TOKENS / step; i++) {
		const uint32_t t = tile.first + item / 8 + i * step;

		rows->o[i] =
			p->o +
			((int64_t)(t < last ? t : last) * p->s.o_token_stride +
			 (int64_t)tile.group * p->s.o_group_stride) *
				bytes +
			item % 8 * 16;
	}
	UNROLL
	for (i = 0; i < n->ring.columns / step; i++)
		rows->w[i] = p->w +
			     ((int64_t)tile.group * p->s.w_group_stride +
			      (int64_t)(tile.column + item / 8 + i * step) *
				      p->s.w_row_stride) *
				     bytes +
			     item % 8 * 16;
	rows->o_scale = p->o_scales;
	rows->w_scale = (GLOBAL const uint32_t *)p->w_scales;
	if (n->ring.fp8) {
		const uint32_t t = tile.first + item;

		rows->o_scale +=
			(int64_t)tile.group * p->s.o_scale_group_stride +
			(t < last ? t : last);
		rows->w_scale +=
			(int64_t)tile.group * p->s.w_scale_group_stride +
			(int64_t)(tile.column / O_PROJ_PART) *
				p->s.w_scale_row_stride;
	}
}

/* Starts the copies of chunk `number` of a tile, and moves the rows on to the
 * next one. */
FN void
o_wgmma_ask(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
	    uint32_t item, uint32_t number, PRIVATE o_wgmma_rows *rows,
	    LOCAL uint8_t *chunk)
{
	const uint32_t step = (O_WGMMA_ITEMS - n->copier) / 8;
	const uint32_t row = item / 8, piece = item % 8;
	LOCAL uint32_t *scales = o_ring_scales(&n->ring, chunk);
	LOCAL uint8_t *to =
		chunk + row * O_WGMMA_ROW +
		(piece ^ o_ring_swizzle(row, n->ring.tokens_by_8)) * 16;
	uint32_t i;

	UNROLL
	for (i = 0; i < O_WGMMA_TOKENS / step; i++) {
		g_local_copy128(to + i * step * O_WGMMA_ROW, rows->o[i], 1);
		rows->o[i] += O_WGMMA_ROW;
	}
	to = chunk + (O_WGMMA_TOKENS + row) * O_WGMMA_ROW +
	     (piece ^ o_ring_swizzle(row, n->ring.columns_by_8)) * 16;
	UNROLL
	for (i = 0; i < n->ring.columns / step; i++) {
		g_local_copy128(to + i * step * O_WGMMA_ROW, rows->w[i], 1);
		rows->w[i] += O_WGMMA_ROW;
	}
	if (n->ring.fp8) {
		g_local_copy32(scales + item, rows->o_scale, 1);
		if (!p->s.packed || number % 4 == 3)
			rows->o_scale += p->s.o_scale_stride;
		if (item == 0)
			g_local_copy32(scales + O_WGMMA_TOKENS,
				       rows->w_scale + number, 1);
	}
}

/* Copies all chunks of the block's tiles. */
FN void
o_wgmma_copy(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
	     LOCAL o_wgmma_barriers *b, LOCAL uint8_t *ring)
{
	const uint32_t units = o_tiles(p, &n->ring);
	const uint32_t chunks =
		p->s.inner / (n->ring.fp8 ? O_PROJ_PART : O_PROJ_PART / 2);
	uint32_t item = g_item() - n->copier, unit, i, at = 0;
	o_wgmma_rows rows;

	g_wgmma_defer(&item); /* or it is read anew each time */
	for (unit = g_block(); unit < units; unit += g_blocks()) {
		o_wgmma_rows_of(p, n, unit, item, &rows);
		NO_UNROLL
		for (i = 0; i < chunks; i++, at++) {
			const uint32_t slot = at % n->ring.chunks;

			o_wgmma_wait_last(b->free, at, n->ring.chunks);
			o_wgmma_ask(p, n, item, i, &rows,
				    o_ring_chunk(&n->ring, ring, slot));
			g_mbarrier_arrive_copies(&b->full[slot]);
		}
	}
}

/* ---- e4m3 ---- */

/* Where a stage's panels lie. */
FN LOCAL uint8_t *
o_wgmma_panels(const PRIVATE o_wgmma_shape *n, LOCAL uint8_t *local,
	       uint32_t stage)
{
	return local + O_WGMMA_BARRIERS +
	       stage * 2 * O_WGMMA_PANEL(n->ring.columns);
}

/* Loads half a part of a column. */
FN void
o_wgmma_load_column(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
		    uint32_t row, uint32_t side, uint32_t raw[4][4])
{
	uint32_t t;

	UNROLL
	for (t = 0; t < 4; t++)
		g_local_load128(chunk + (n->tokens + row) * n->bytes +
					((4 * side + t) ^ row % 8) * 16,
				raw[t]);
}

/* Converts it to f16, in a panel. Its values are in the order of a token's
 * values in o_wgmma_tokens: word j of four pieces is step j. */
FN void
o_wgmma_column(const PRIVATE o_ring_shape *n, uint32_t raw[4][4], uint32_t row,
	       uint32_t side, LOCAL uint8_t *panels)
{
	LOCAL uint16_t *panel =
		(LOCAL uint16_t *)(panels + side * O_WGMMA_PANEL(n->columns));
	uint32_t j, half, t;

	UNROLL
	for (j = 0; j < 4; j++) {
		uint32_t x[4][2];

		UNROLL
		for (t = 0; t < 4; t++)
			g_e4m3x4_to_f16x4(raw[t][j], x[t]);
		UNROLL
		for (half = 0; half < 2; half++) {
			const uint32_t words[4] = {x[0][half], x[1][half],
						   x[2][half], x[3][half]};

			g_local_store128(
				panel + g_panel_at(row, 16 * j + 8 * half),
				words);
		}
	}
}

/* Converts the columns of all parts of the block's tiles. A thread converts
 * half a part of a column or, in tiles of 128 columns, both halves. */
FN void
o_wgmma_convert(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
		LOCAL o_wgmma_barriers *b, LOCAL uint8_t *local)
{
	const uint32_t sides = 2 * n->ring.columns / O_WGMMA_MAKERS;
	LOCAL uint8_t *ring =
		local + O_WGMMA_RING_AT(n->ring.columns, n->stages);
	const uint32_t all =
		(o_tiles(p, &n->ring) - g_block() + g_blocks() - 1) /
		g_blocks() * (p->s.inner / O_PROJ_PART);
	uint32_t item = g_item() - O_WGMMA_FRONT, at, i;
	const uint32_t row = item % n->ring.columns;
	uint32_t side, raw[4][4];

	g_wgmma_defer(&item); /* or it is read anew each time */
	side = item / n->ring.columns;
	if (all == 0)
		return;
	o_wgmma_wait(b->full, 0, n->ring.chunks);
	o_wgmma_load_column(&n->ring, ring, row, side, raw);
	NO_UNROLL
	for (at = 0; at < all; at++) {
		const uint32_t slot = at % n->ring.chunks;
		const uint32_t stage = at % n->stages;
		LOCAL uint8_t *chunk = o_ring_chunk(&n->ring, ring, slot);
		LOCAL uint8_t *panels = o_wgmma_panels(n, local, stage);

		o_wgmma_wait_last(b->used, at, n->stages);
		o_wgmma_column(&n->ring, raw, row, side, panels);
		NO_UNROLL
		for (i = 1; i < sides; i++) {
			o_wgmma_load_column(&n->ring, chunk, row, i, raw);
			o_wgmma_column(&n->ring, raw, row, i, panels);
		}
		o_wgmma_arrive(&b->free[slot]);
		/* Before the fence, so that the load does not wait for it. */
		if (at + 1 < all) {
			o_wgmma_wait(b->full, at + 1, n->ring.chunks);
			chunk = o_ring_chunk(&n->ring, ring,
					     (at + 1) % n->ring.chunks);
			o_wgmma_load_column(&n->ring, chunk, row, side, raw);
		}
		g_fence_async(); /* panels */
		o_wgmma_arrive(&b->made[stage]);
	}
}

/* Loads what a lane needs of half a part of the tile's tokens: a row's piece for
 * four steps, and the same of the row 8 below. */
FN void
o_wgmma_load(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
	     uint32_t item, uint32_t half, uint32_t raw[2][4])
{
	const uint32_t g = item % 32 / 4;
	LOCAL const uint8_t *row =
		chunk + (item / 32 * 16 + g) * n->bytes +
		((4 * half + item % 4) ^ o_ring_swizzle(g, 0)) * 16;

	g_local_load128(row, raw[0]);
	g_local_load128(row + 8 * n->bytes, raw[1]);
}

/* Converts it to the fragments of A of each step. */
FN void
o_wgmma_tokens(uint32_t raw[4][4], uint32_t a[O_WGMMA_STEPS][4])
{
	uint32_t i;

	UNROLL
	for (i = 0; i < O_WGMMA_STEPS; i++) {
		uint32_t x[2], y[2];

		g_e4m3x4_to_f16x4(raw[i / 4 * 2][i % 4], x);
		g_e4m3x4_to_f16x4(raw[i / 4 * 2 + 1][i % 4], y);
		a[i][0] = x[0];
		a[i][1] = y[0];
		a[i][2] = x[1];
		a[i][3] = y[1];
	}
}

/* Begins d = A B; d is there after g_wgmma_wait. */
FN void
o_wgmma_begin(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *panels,
	      uint32_t a[O_WGMMA_STEPS][4], PRIVATE float *d)
{
	const g_panel b = g_panel_of(panels, G_GROUP_BYTES, 0);
	uint32_t i;

	g_wgmma_hold_all(d, n->columns / 2);
	g_wgmma_begin();
	UNROLL
	for (i = 0; i < O_WGMMA_STEPS; i++) {
		const g_panel at = g_panel_step(
			g_panel_on(b, i / 4 * O_WGMMA_PANEL(n->columns)),
			i % 4);

		if (n->columns == O_WGMMA_FEW) {
			if (i == 0)
				g_wgmma_f16_n64_registers_first(d, a[i], at);
			else
				g_wgmma_f16_n64_registers(d, a[i], at);
		} else {
			if (i == 0)
				g_wgmma_f16_n128_registers_first(d, a[i], at);
			else
				g_wgmma_f16_n128_registers(d, a[i], at);
		}
	}
	g_wgmma_commit();
}

/* Adds d, whose products are over, times the scales of its two tokens, to
 * total. */
FN void
o_wgmma_add(const PRIVATE o_ring_shape *n, const PRIVATE float *scale,
	    PRIVATE float *d, PRIVATE float *total)
{
	uint32_t i;

	g_wgmma_hold_all(d, n->columns / 2);
	UNROLL
	for (i = 0; i < n->columns / 2; i++)
		total[i] = g_fma(d[i], scale[i / 2 % 2], total[i]);
}

/* Writes a tile, through shared memory, so that a token's columns are stored
 * together: piece i of token t lies at place i ^ (t % 8). */
FN void
o_wgmma_write(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	      uint32_t unit, const PRIVATE float *total, LOCAL uint8_t *staged)
{
	const uint32_t item = g_item_again(), lane = item % 32;
	const uint32_t own = item / 32 * 16 + lane % 16;
	const uint32_t pieces = n->columns / 8; /* of a token */
	const o_tile tile = o_tile_of(p, n, unit);
	uint32_t i, j;

	/* No products read this memory, and the previous tile is stored. */
	g_named_sync(O_WGMMA_IN_FRONT, O_WGMMA_FRONT);
	UNROLL
	for (i = 0; i < pieces / 2; i++) {
		const uint32_t piece = 2 * i + lane / 16;
		uint32_t x[4];

		UNROLL
		for (j = 0; j < 4; j++)
			x[j] = g_bf16x2_bits(total[8 * i + 2 * j],
					     total[8 * i + 2 * j + 1]);
		g_store_matrices((LOCAL uint16_t *)(staged +
						    own * 2 * n->columns +
						    (piece ^ own % 8) * 16),
				 x);
	}
	g_named_sync(O_WGMMA_IN_FRONT, O_WGMMA_FRONT);
	/* No lane leaves the loop early: barriers follow. */
	NO_UNROLL
	for (i = item; i < O_WGMMA_TOKENS * pieces; i += O_WGMMA_FRONT) {
		const uint32_t t = i / pieces, piece = i % pieces;
		const uint32_t is = tile.first + t < p->s.tokens;
		GLOBAL uint16_t *to =
			p->z + (int64_t)(tile.first + t) * p->s.z_token_stride +
			(int64_t)tile.group * p->s.z_group_stride +
			tile.column + 8 * piece;
		uint32_t x[4];

		g_local_load128(
			staged + t * 2 * n->columns + (piece ^ t % 8) * 16, x);
		if (is && p->s.z_aligned)
			g_store4(to, x);
		UNROLL
		for (j = 0; j < 8; j++)
			if (is && !p->s.z_aligned)
				to[j] = (uint16_t)(x[j / 2] >> j % 2 * 16);
	}
}

/* Multiplies all tiles of the block. With packed scales a tile has a multiple
 * of four parts, so the scales of part `at` are in byte at % 4 of a word. */
FN void
o_wgmma_multiply(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
		 LOCAL o_wgmma_barriers *b, LOCAL uint8_t *local)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	const uint32_t chunks = n->ring.chunks;
	const uint32_t units = o_tiles(p, &n->ring);
	LOCAL uint8_t *ring =
		local + O_WGMMA_RING_AT(n->ring.columns, n->stages);
	uint32_t a[O_WGMMA_STEPS][4], raw[4][4];
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	uint32_t unit, part, i, at = 0, item = g_item();

	g_wgmma_defer(&item); /* or it is read anew each time */
	for (unit = g_block(); unit < units; unit += g_blocks()) {
		UNROLL
		for (i = 0; i < n->ring.columns / 2; i++)
			total[i] = d[i] = 0.0f;
		o_wgmma_wait(b->full, at, chunks);
		o_wgmma_load(&n->ring,
			     o_ring_chunk(&n->ring, ring, at % chunks), item, 0,
			     raw);
		NO_UNROLL
		for (part = 1;; part++, at++) {
			const uint32_t stage = at % n->stages;
			LOCAL uint8_t *chunk =
				o_ring_chunk(&n->ring, ring, at % chunks);
			float scale[2];

			UNROLL
			for (i = 0; i < 2; i++)
				scale[i] = o_ring_scale(
					p, o_ring_scales(&n->ring, chunk),
					O_WGMMA_TOKENS,
					item / 32 * 16 + item % 32 / 4 + 8 * i,
					at);
			o_wgmma_load(&n->ring, chunk, item, 1, raw + 2);
			o_wgmma_tokens(raw, a);
			o_wgmma_arrive(&b->free[at % chunks]);
			o_wgmma_wait(b->made, at, n->stages);
			o_wgmma_begin(&n->ring, o_wgmma_panels(n, local, stage),
				      a, d);
			if (part < parts) {
				o_wgmma_wait(b->full, at + 1, chunks);
				o_wgmma_load(&n->ring,
					     o_ring_chunk(&n->ring, ring,
							  (at + 1) % chunks),
					     item, 0, raw);
			}
			g_wgmma_wait();
			if (part < parts)
				o_wgmma_arrive(&b->used[stage]);
			o_wgmma_add(&n->ring, scale, d, total);
			if (part == parts)
				break;
		}
		/* Results are staged in the last part's panels. */
		o_wgmma_write(p, &n->ring, unit, total,
			      o_wgmma_panels(n, local, at % n->stages));
		o_wgmma_arrive(&b->used[at++ % n->stages]);
	}
}

/* ---- bf16 ---- */

/* Begins d += A B for a chunk, or d = A B if it `is_first`. */
FN void
o_wgmma_chunk_bf16(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
		   uint32_t is_first, PRIVATE float *d)
{
	const g_panel a = g_panel_of(chunk + g_item() / 128 * 64 * O_WGMMA_ROW,
				     G_GROUP_BYTES, 0);
	const g_panel b = g_panel_of(chunk + O_WGMMA_TOKENS * O_WGMMA_ROW,
				     G_GROUP_BYTES, 0);
	uint32_t i;

	UNROLL
	for (i = 0; i < n->columns / 2 && is_first; i++) {
		d[i] = 0.0f;
		g_wgmma_hold(d + i);
	}
	g_wgmma_begin();
	UNROLL
	for (i = 0; i < O_WGMMA_STEPS / 2; i++) {
		const g_panel a_at = g_panel_step(a, i);
		const g_panel b_at = g_panel_step(b, i);

		if (n->columns == O_WGMMA_FEW)
			g_wgmma_bf16_n64(d, a_at, b_at);
		else
			g_wgmma_bf16_n128(d, a_at, b_at);
	}
	g_wgmma_commit();
}

/* Multiplies all tiles of the block. A part is two chunks. The fence is here,
 * not where they were copied. */
FN void
o_wgmma_multiply_bf16(const PRIVATE o_proj_params *p,
		      const PRIVATE o_ring_shape *n, LOCAL o_wgmma_barriers *b,
		      LOCAL uint8_t *ring)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	const uint32_t units = o_tiles(p, n);
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	uint32_t unit, part, i, at = 0;

	for (unit = g_block(); unit < units; unit += g_blocks()) {
		UNROLL
		for (i = 0; i < n->columns / 2; i++)
			total[i] = d[i] = 0.0f;
		NO_UNROLL
		for (part = 0; part < parts; part++, at += 2) {
			UNROLL
			for (i = 0; i < 2; i++) {
				o_wgmma_wait(b->full, at + i, n->chunks);
				g_fence_async(); /* what was copied */
				o_wgmma_chunk_bf16(
					n,
					o_ring_chunk(n, ring,
						     (at + i) % n->chunks),
					i == 0, d);
			}
			g_wgmma_wait();
			UNROLL
			for (i = 0; i < 2; i++)
				o_wgmma_arrive(&b->free[(at + i) % n->chunks]);
			g_wgmma_hold_all(d, n->columns / 2);
			UNROLL
			for (i = 0; i < n->columns / 2; i++)
				total[i] += d[i];
		}
		o_wgmma_write(p, n, unit, total,
			      ring + n->chunks *
					      O_WGMMA_BF16_CHUNK(n->columns));
	}
}

/* ---- kernels ---- */

/* The arguments are compile-time constants. */
FN o_wgmma_shape
o_wgmma_shape_of(uint32_t fp8, uint32_t columns, uint32_t chunks,
		 uint32_t stages)
{
	o_wgmma_shape n;

	n.ring.fp8 = fp8;
	n.ring.tokens = O_WGMMA_TOKENS;
	n.ring.columns = columns;
	n.ring.bytes = O_WGMMA_ROW;
	n.ring.parts = fp8;
	n.ring.chunks = chunks;
	n.ring.tokens_by_8 = !fp8;
	n.ring.columns_by_8 = 1;
	n.copier = O_WGMMA_FRONT + (fp8 ? O_WGMMA_MAKERS : 0);
	n.stages = stages;
	return n;
}

FN void
o_wgmma_e4m3(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
	     LOCAL uint8_t *local)
{
	LOCAL o_wgmma_barriers *b = (LOCAL o_wgmma_barriers *)local;

	o_wgmma_barriers_init(n, b);
	if (g_item() < O_WGMMA_FRONT) {
		G_REGISTERS_UP(O_WGMMA_FRONT_REGISTERS);
		o_wgmma_multiply(p, n, b, local);
	} else {
		G_REGISTERS_DOWN(O_WGMMA_BACK_REGISTERS);
		if (g_item() < n->copier)
			o_wgmma_convert(p, n, b, local);
		else
			o_wgmma_copy(p, n, b,
				     local + O_WGMMA_RING_AT(n->ring.columns,
							     n->stages));
	}
}

FN void
o_wgmma_bf16(const PRIVATE o_proj_params *p, const PRIVATE o_wgmma_shape *n,
	     LOCAL uint8_t *local)
{
	LOCAL o_wgmma_barriers *b = (LOCAL o_wgmma_barriers *)local;
	LOCAL uint8_t *ring = local + O_WGMMA_BARRIERS;

	o_wgmma_barriers_init(n, b);
	if (g_item() < O_WGMMA_FRONT) {
		G_REGISTERS_UP(O_WGMMA_FRONT_REGISTERS);
		o_wgmma_multiply_bf16(p, &n->ring, b, ring);
	} else {
		G_REGISTERS_DOWN(O_WGMMA_BACK_REGISTERS);
		o_wgmma_copy(p, n, b, ring);
	}
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma, 1)
void
spmla_k_o_group_proj_bf16_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n =
		o_wgmma_shape_of(0, O_WGMMA_COLUMNS, O_WGMMA_BF16_CHUNKS, 0);
	LOCAL_DYNAMIC(local, O_WGMMA_BF16_BYTES);

	o_wgmma_bf16(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma64, 1)
void
spmla_k_o_group_proj_bf16_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n =
		o_wgmma_shape_of(0, O_WGMMA_FEW, O_WGMMA_BF16_FEW_CHUNKS, 0);
	LOCAL_DYNAMIC(local, O_WGMMA_BF16_FEW_BYTES);

	o_wgmma_bf16(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma, 1)
void
spmla_k_o_group_proj_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n = o_wgmma_shape_of(
		1, O_WGMMA_COLUMNS, O_WGMMA_CHUNKS, O_WGMMA_STAGES);
	LOCAL_DYNAMIC(local, O_WGMMA_BYTES);

	o_wgmma_e4m3(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma64, 1)
void
spmla_k_o_group_proj_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n = o_wgmma_shape_of(
		1, O_WGMMA_FEW, O_WGMMA_FEW_CHUNKS, O_WGMMA_FEW_STAGES);
	LOCAL_DYNAMIC(local, O_WGMMA_FEW_BYTES);

	o_wgmma_e4m3(&p, &n, local);
}

#endif
#endif
