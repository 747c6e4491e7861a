/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj of bf16 by wgmma. Those that fetch copy chunks, half a part of
 * each row, which are the panels that wgmma reads. The hard idea: threads that
 * copy do nothing else. A fence of shared memory waits for all copies that its
 * thread has under way, so a thread that copies and fences runs no further
 * ahead than one copy. So those that multiply fence what others copied.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_BF16_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_BF16_WGMMA_KERNEL_H

#include "spmla/platform/gpu/project/o_proj_wgmma_device.h"

#define SPMLA_K_o_group_proj_bf16_wgmma(P, S)   SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_bf16_wgmma64(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_wgmma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_wgmma64_scalars;

enum {
	/* Chunks of the ring. Powers of two. */
	O_BF16_CHUNKS = 4,
	O_BF16_FEW_CHUNKS = 8
};

/* Shared memory of a block: the data are a ring of chunks. */
#define O_BF16_SHARED(columns, chunks) \
	(O_WGMMA_DATA_AT(columns) +    \
	 (chunks)*O_RING_CHUNK(O_WGMMA_TOKENS, columns, O_WGMMA_ROW, 0))

enum {
	O_BF16_BYTES = O_BF16_SHARED(O_WGMMA_COLUMNS, O_BF16_CHUNKS),
	O_BF16_FEW_BYTES = O_BF16_SHARED(O_WGMMA_FEW, O_BF16_FEW_CHUNKS)
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	/* Rows that threads copy at once, a piece of 16 bytes each. */
	O_BF16_AT_ONCE = O_WGMMA_BACK * 16 / O_WGMMA_ROW
};

typedef struct o_bf16_barriers {
	/* Of a chunk of the ring: it is there; products have read it. */
	g_mbarrier full[O_BF16_FEW_CHUNKS], free[O_BF16_FEW_CHUNKS];
} o_bf16_barriers;
SPMLA_STATIC_ASSERT(sizeof(o_bf16_barriers) <= O_WGMMA_BARRIERS,
		    "barriers have room");

/* A thread's piece of its rows of a tile. */
typedef struct o_bf16_rows {
	GLOBAL const uint8_t *o[O_WGMMA_TOKENS / O_BF16_AT_ONCE];
	GLOBAL const uint8_t *w[O_WGMMA_COLUMNS / O_BF16_AT_ONCE];
} o_bf16_rows;

/* Finds the thread's rows of a tile. A row behind the last token is the last
 * token's again; its sums are not stored. */
FN void
o_bf16_rows_of(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	       uint32_t unit, uint32_t item, PRIVATE o_bf16_rows *rows)
{
	const o_tile tile = o_tile_of(p, n->tokens, n->columns, unit);
	const uint32_t last = p->s.tokens - 1;
	uint32_t i;

	UNROLL
	for (i = 0; i < O_WGMMA_TOKENS / O_BF16_AT_ONCE; i++) {
		const uint32_t t = tile.first + item / 8 + i * O_BF16_AT_ONCE;

		rows->o[i] =
			p->o +
			((int64_t)(t < last ? t : last) * p->s.o_token_stride +
			 (int64_t)tile.group * p->s.o_group_stride) *
				2 +
			item % 8 * 16;
	}
	UNROLL
	for (i = 0; i < n->columns / O_BF16_AT_ONCE; i++)
		rows->w[i] = p->w +
			     ((int64_t)tile.group * p->s.w_group_stride +
			      (int64_t)(tile.column + item / 8 +
					i * O_BF16_AT_ONCE) *
				      p->s.w_row_stride) *
				     2 +
			     item % 8 * 16;
}

/* Starts the copies of a chunk, and moves the rows on to the next one. */
FN void
o_bf16_copy_chunk(const PRIVATE o_ring_shape *n, uint32_t item,
		  PRIVATE o_bf16_rows *rows, LOCAL uint8_t *chunk)
{
	const uint32_t row = item / 8;
	LOCAL uint8_t *to =
		chunk + row * O_WGMMA_ROW + (item % 8 ^ row % 8) * 16;
	uint32_t i;

	UNROLL
	for (i = 0; i < O_WGMMA_TOKENS / O_BF16_AT_ONCE; i++) {
		g_local_copy128(to + i * O_BF16_AT_ONCE * O_WGMMA_ROW,
				rows->o[i], 1);
		rows->o[i] += O_WGMMA_ROW;
	}
	to += O_WGMMA_TOKENS * O_WGMMA_ROW;
	UNROLL
	for (i = 0; i < n->columns / O_BF16_AT_ONCE; i++) {
		g_local_copy128(to + i * O_BF16_AT_ONCE * O_WGMMA_ROW,
				rows->w[i], 1);
		rows->w[i] += O_WGMMA_ROW;
	}
}

/* Copies all chunks of the block's tiles. */
FN void
o_bf16_copy(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	    LOCAL o_bf16_barriers *b, LOCAL uint8_t *ring)
{
	const uint32_t units = (uint32_t)p->s.tiles;
	uint32_t item = g_item() - O_WGMMA_FRONT, unit, i, at = 0;
	o_bf16_rows rows;

	g_wgmma_defer(&item); /* or it is read anew each time */
	for (unit = g_block(); unit < units; unit += g_blocks()) {
		o_bf16_rows_of(p, n, unit, item, &rows);
		NO_UNROLL
		for (i = 0; i < p->s.inner * 2 / O_WGMMA_ROW; i++, at++) {
			const uint32_t slot = at % n->chunks;

			o_wgmma_wait_last(b->free, at, n->chunks);
			o_bf16_copy_chunk(n, item, &rows,
					  o_ring_chunk(n, ring, slot));
			g_mbarrier_arrive_copies(&b->full[slot]);
		}
	}
}

/* Begins d += A B for a chunk, or d = A B if it `is_first`. */
FN void
o_bf16_chunk(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
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
	for (i = 0; i < O_WGMMA_ROW / 32; i++) {
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
o_bf16_multiply(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
		LOCAL o_bf16_barriers *b, LOCAL uint8_t *local)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	const uint32_t units = (uint32_t)p->s.tiles;
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	LOCAL uint8_t *ring = local + O_WGMMA_DATA_AT(n->columns);
	uint32_t unit, part, i, at = 0;

	for (unit = g_block(); unit < units; unit += g_blocks()) {
		UNROLL
		for (i = 0; i < n->columns / 2; i++)
			total[i] = 0.0f;
		NO_UNROLL
		for (part = 0; part < parts; part++, at += 2) {
			UNROLL
			for (i = 0; i < 2; i++) {
				o_wgmma_wait(b->full, at + i, n->chunks);
				g_fence_async(); /* what was copied */
				o_bf16_chunk(n,
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
		o_wgmma_write(p, n->columns, unit, total, local);
	}
}

/* The arguments are compile-time constants. */
FN o_ring_shape
o_bf16_shape(uint32_t columns, uint32_t chunks)
{
	o_ring_shape n;

	n.fp8 = n.parts = 0;
	n.tokens = O_WGMMA_TOKENS;
	n.columns = columns;
	n.bytes = O_WGMMA_ROW;
	n.chunks = chunks;
	n.tokens_by_8 = n.columns_by_8 = 1;
	return n;
}

FN void
o_bf16_all(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	   LOCAL uint8_t *local)
{
	LOCAL o_bf16_barriers *b = (LOCAL o_bf16_barriers *)local;

	if (g_item() < n->chunks) {
		g_mbarrier_init(&b->full[g_item()], O_WGMMA_BACK);
		g_mbarrier_init(&b->free[g_item()], O_WGMMA_FRONT / 32);
		g_mbarriers_publish();
	}
	BARRIER();
	if (g_item() < O_WGMMA_FRONT) {
		G_REGISTERS_UP(O_WGMMA_FRONT_REGISTERS);
		o_bf16_multiply(p, n, b, local);
	} else {
		G_REGISTERS_DOWN(O_WGMMA_BACK_REGISTERS);
		o_bf16_copy(p, n, b, local + O_WGMMA_DATA_AT(n->columns));
	}
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma, 1)
void
spmla_k_o_group_proj_bf16_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n = o_bf16_shape(O_WGMMA_COLUMNS, O_BF16_CHUNKS);
	LOCAL_DYNAMIC(local, O_BF16_BYTES);

	o_bf16_all(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma64, 1)
void
spmla_k_o_group_proj_bf16_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n = o_bf16_shape(O_WGMMA_FEW, O_BF16_FEW_CHUNKS);
	LOCAL_DYNAMIC(local, O_BF16_FEW_BYTES);

	o_bf16_all(&p, &n, local);
}

#endif
#endif
