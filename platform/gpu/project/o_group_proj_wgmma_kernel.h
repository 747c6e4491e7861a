/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj by wgmma: a tile is 128 columns of a group, 64 for each of two
 * warpgroups, for up to 64 or 128 tokens. The columns are the rows of A, the
 * tokens are B. With bf16, a chunk already is the panels that wgmma reads. With
 * e4m3, A is converted to f16 in registers, and B to f16 in panels, while the
 * products of the previous part run. The hard idea, as in mqa_logits_wgmma: the
 * order of k is free if both operands have the same, so a lane's 16 bytes of a
 * column are its values for four steps.
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
	O_WGMMA_ITEMS = 2 * O_RING_ITEMS,
	/* Threads that multiply and convert A; the others copy, and convert
	 * B. */
	O_WGMMA_FRONT = O_WGMMA_ITEMS - O_RING_ITEMS,
	O_WGMMA_COLUMNS = 128, /* of a tile */
	O_WGMMA_TOKENS = 128,
	O_WGMMA_FEW = 64,
	O_WGMMA_ROW = 128, /* bytes of a chunk's row: e4m3 a part, bf16 half */
	/* Chunks of the rings: e4m3, then bf16. */
	O_WGMMA_CHUNKS = 4,
	O_WGMMA_FEW_CHUNKS = 6,
	O_WGMMA_BF16_CHUNKS = 6,
	O_WGMMA_BF16_FEW_CHUNKS = 8
};

/* Shared memory of a block, in this order, for tiles of that many tokens.
 *
 *   e4m3:  panels   [2 parts][2] O_WGMMA_PANEL, tokens as f16
 *          scales   f32 [2 parts][tokens]
 *          ring     [chunks] O_RING_CHUNK
 *   bf16:  ring     [chunks] O_WGMMA_BF16_CHUNK
 *          results  bf16 [tokens][O_WGMMA_COLUMNS]
 */
#define O_WGMMA_PANEL(tokens)     (2 * 64 * (tokens))
#define O_WGMMA_SCALES_AT(tokens) (4 * O_WGMMA_PANEL(tokens))
#define O_WGMMA_RING_AT(tokens)   (O_WGMMA_SCALES_AT(tokens) + 8 * (tokens))
#define O_WGMMA_SHARED(tokens, chunks) \
	(O_WGMMA_RING_AT(tokens) +     \
	 (chunks)*O_RING_CHUNK(tokens, O_WGMMA_COLUMNS, O_WGMMA_ROW, 1))
#define O_WGMMA_BF16_CHUNK(tokens) \
	O_RING_CHUNK(tokens, O_WGMMA_COLUMNS, O_WGMMA_ROW, 0)
#define O_WGMMA_BF16_SHARED(tokens, chunks) \
	((chunks)*O_WGMMA_BF16_CHUNK(tokens) + 2 * (tokens)*O_WGMMA_COLUMNS)

enum {
	O_WGMMA_BYTES = O_WGMMA_SHARED(O_WGMMA_TOKENS, O_WGMMA_CHUNKS),
	O_WGMMA_FEW_BYTES = O_WGMMA_SHARED(O_WGMMA_FEW, O_WGMMA_FEW_CHUNKS),
	O_WGMMA_BF16_BYTES =
		O_WGMMA_BF16_SHARED(O_WGMMA_TOKENS, O_WGMMA_BF16_CHUNKS),
	O_WGMMA_BF16_FEW_BYTES =
		O_WGMMA_BF16_SHARED(O_WGMMA_FEW, O_WGMMA_BF16_FEW_CHUNKS)
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	/* Registers of a thread. Four warpgroups of 128 threads have 128 x (2 x
	 * 208 + 2 x 48) = 65536, all that there are. */
	O_WGMMA_FRONT_REGISTERS = 208,
	O_WGMMA_BACK_REGISTERS = 48,
	/* Named barriers: all threads, and those in front. */
	O_WGMMA_ALL = 1,
	O_WGMMA_IN_FRONT = 2,
	O_WGMMA_STEPS = O_PROJ_PART / 16,
	O_WGMMA_SUMS = O_WGMMA_TOKENS / 2 /* the most that a thread has */
};

/* Converts a part of the tile's tokens to f16, into two panels. Its values are
 * in the order of a column's values in o_wgmma_columns. A thread converts 64
 * bytes of a token or, in tiles of 64 tokens, half of them. It takes words 0
 * and 1 of four pieces, then words 2 and 3; rows that meet the same banks begin
 * with different words. */
FN void
o_wgmma_tokens(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
	       LOCAL uint8_t *panels)
{
	const uint32_t row = (g_item() - n->item) % n->tokens;
	const uint32_t share = (g_item() - n->item) / n->tokens;
	const uint32_t of = O_RING_ITEMS / n->tokens / 2; /* share 64 bytes */
	const uint32_t span = share / of;
	LOCAL uint16_t *panel =
		(LOCAL uint16_t *)(panels + span * O_WGMMA_PANEL(n->tokens));
	uint32_t turn, j, half, t;

	UNROLL
	for (turn = 0; turn < 2 / of; turn++) {
		const uint32_t first =
			((of == 2 ? share % 2 : turn) ^ row / 8 % 2) * 2;
		uint64_t raw[4];

		UNROLL
		for (t = 0; t < 4; t++)
			raw[t] = *(LOCAL const uint64_t *)(chunk +
							   row * n->bytes +
							   ((4 * span + t) ^
							    (row % 8)) *
								   16 +
							   4 * first);
		UNROLL
		for (j = 0; j < 2; j++) {
			const uint32_t k = 16 * (first + j);
			uint32_t x[4][2];

			UNROLL
			for (t = 0; t < 4; t++)
				g_e4m3x4_to_f16x4((uint32_t)(raw[t] >> 32 * j),
						  x[t]);
			UNROLL
			for (half = 0; half < 2; half++) {
				const uint32_t words[4] = {
					x[0][half], x[1][half], x[2][half],
					x[3][half]};

				g_local_store128(
					panel + g_panel_at(row, k + 8 * half),
					words);
			}
		}
	}
}

/* Converts a lane's fragments of A for each step of a part. */
FN void
o_wgmma_columns(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
		uint32_t a[O_WGMMA_STEPS][4])
{
	const uint32_t g = g_lane() / 4;
	LOCAL const uint8_t *w =
		chunk + (n->tokens + g_item() / 32 * 16 + g) * n->bytes;
	uint32_t span, j;

	UNROLL
	for (span = 0; span < 2; span++) {
		const uint32_t at =
			((4 * span + g_lane() % 4) ^ o_ring_swizzle(g, 0)) * 16;
		uint32_t low[4], high[4];

		g_local_load128(w + at, low);
		g_local_load128(w + 8 * n->bytes + at, high);
		UNROLL
		for (j = 0; j < 4; j++) {
			uint32_t x[2], y[2];

			g_e4m3x4_to_f16x4(low[j], x);
			g_e4m3x4_to_f16x4(high[j], y);
			a[4 * span + j][0] = x[0];
			a[4 * span + j][1] = y[0];
			a[4 * span + j][2] = x[1];
			a[4 * span + j][3] = y[1];
		}
	}
}

FN void
o_wgmma_sync(void)
{
	g_named_sync(O_WGMMA_ALL, O_WGMMA_ITEMS);
}

/* Prepares part `part`, the ring's next chunk, for its products. The threads in
 * front put A into registers, the others B and the scales into shared
 * memory. */
FN void
o_wgmma_prepare(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
		PRIVATE o_ring *r, uint32_t part, LOCAL uint8_t *panels,
		LOCAL float *scales, uint32_t a[O_WGMMA_STEPS][4],
		uint32_t is_front)
{
	LOCAL uint8_t *chunk = o_ring_chunk(n, r, r->from);
	const uint32_t item = g_item() - n->item;

	r->from = r->from + 1 == n->chunks ? 0 : r->from + 1;
	if (is_front) {
		o_wgmma_columns(n, chunk, a);
		return;
	}
	o_wgmma_tokens(n, chunk, panels);
	if (item < n->tokens)
		scales[item] = o_ring_scale(p, o_ring_scales(n, chunk),
					    n->tokens, item, part);
	g_fence_async();
}

/* Begins d = A B; d is there after g_wgmma_wait. */
FN void
o_wgmma_begin(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *panels,
	      uint32_t a[O_WGMMA_STEPS][4], PRIVATE float *d)
{
	const g_panel b = g_panel_of(panels, G_GROUP_BYTES, 0);
	uint32_t i;

	g_wgmma_hold_all(d, n->tokens / 2);
	g_wgmma_begin();
	UNROLL
	for (i = 0; i < O_WGMMA_STEPS; i++) {
		const g_panel at = g_panel_step(
			g_panel_on(b, i / 4 * O_WGMMA_PANEL(n->tokens)), i % 4);

		if (n->tokens == O_WGMMA_FEW) {
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

/* Waits for d, and adds it, times the scales of its tokens, to total. */
FN void
o_wgmma_add(const PRIVATE o_ring_shape *n, LOCAL const float *scales,
	    PRIVATE float *d, PRIVATE float *total)
{
	uint32_t i, j;

	g_wgmma_wait();
	g_wgmma_hold_all(d, n->tokens / 2);
	UNROLL
	for (i = 0; i < n->tokens / 8; i++) {
		LOCAL const float *two = scales + 8 * i + g_lane() % 4 * 2;
		const float scale[2] = {two[0], two[1]};

		UNROLL
		for (j = 0; j < 4; j++)
			total[4 * i + j] = g_fma(d[4 * i + j], scale[j % 2],
						 total[4 * i + j]);
	}
}

/* Writes a tile, through shared memory, so that a token's columns are stored
 * together: piece i of token t lies at place i ^ (t % 16). */
FN void
o_wgmma_write(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	      const PRIVATE o_tile *tile, const PRIVATE float *total,
	      LOCAL uint8_t *staged)
{
	enum { PIECES = O_WGMMA_COLUMNS / 8 };
	const uint32_t item = g_item_again(), lane = item % 32;
	const uint32_t own = item / 32 * 2 + lane / 8 % 2;
	uint32_t i, j;

	/* No products read this memory, and the previous tile is stored. */
	g_named_sync(O_WGMMA_IN_FRONT, O_WGMMA_FRONT);
	UNROLL
	for (i = 0; i < n->tokens / 16; i++) {
		const uint32_t t = 16 * i + lane / 16 * 8 + lane % 8;
		uint32_t x[4];

		UNROLL
		for (j = 0; j < 4; j++)
			x[j] = g_bf16x2_bits(total[8 * i + 2 * j],
					     total[8 * i + 2 * j + 1]);
		g_store_transposed((LOCAL uint16_t *)(staged +
						      t * 2 * O_WGMMA_COLUMNS +
						      (own ^ (t % 16)) * 16),
				   x);
	}
	g_named_sync(O_WGMMA_IN_FRONT, O_WGMMA_FRONT);
	/* No lane leaves the loop early: barriers follow. */
	NO_UNROLL
	for (i = item; i < n->tokens * PIECES; i += O_WGMMA_FRONT) {
		const uint32_t t = i / PIECES, piece = i % PIECES;
		const uint32_t is = tile->first + t < p->s.tokens;
		GLOBAL uint16_t *to =
			p->z +
			(int64_t)(tile->first + t) * p->s.z_token_stride +
			(int64_t)tile->group * p->s.z_group_stride +
			tile->column + 8 * piece;
		uint32_t x[4];

		g_local_load128(staged + t * 2 * O_WGMMA_COLUMNS +
					(piece ^ (t % 16)) * 16,
				x);
		if (is && p->s.z_aligned)
			g_store4(to, x);
		UNROLL
		for (j = 0; j < 8; j++)
			if (is && !p->s.z_aligned)
				to[j] = (uint16_t)(x[j / 2] >> j % 2 * 16);
	}
}

/* One of the two halves of the block: `is_front` and `n` are compile-time
 * constants. Each turn of the loop does an even part and an odd one, whose
 * operands have memory and registers of their own. */
FN void
o_wgmma_half(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	     uint32_t is_front, LOCAL uint8_t *local)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	LOCAL uint8_t *panels[2] = {local,
				    local + 2 * O_WGMMA_PANEL(n->tokens)};
	LOCAL float *scales[2] = {
		(LOCAL float *)(local + O_WGMMA_SCALES_AT(n->tokens)),
		(LOCAL float *)(local + O_WGMMA_SCALES_AT(n->tokens)) +
			n->tokens};
	o_ring r = o_ring_begin(p, n, is_front ? 0 : n->chunks,
				local + O_WGMMA_RING_AT(n->tokens));
	uint32_t a[2][O_WGMMA_STEPS][4];
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	uint32_t unit, part, i, odd;

	for (unit = g_block(); unit < r.units; unit += g_blocks()) {
		const o_tile tile = o_tile_of(p, n, unit);

		UNROLL
		for (i = 0; i < n->tokens / 2; i++)
			total[i] = d[i] = 0.0f;
		if (!is_front)
			g_local_copies_wait_but(n->chunks - 1);
		/* All see the chunk, and the previous tile is written. */
		o_wgmma_sync();
		o_wgmma_prepare(p, n, &r, 0, panels[0], scales[0], a[0],
				is_front);
		NO_UNROLL
		for (part = 0; part < parts; part += 2) {
			UNROLL
			for (odd = 0; odd < 2; odd++) {
				const uint32_t next = part + odd + 1;

				if (next > parts)
					break;
				if (!is_front)
					g_local_copies_wait_but(n->chunks - 2);
				/* All see the panels and the next chunk, and
				 * have read this one. */
				o_wgmma_sync();
				if (is_front)
					o_wgmma_begin(n, panels[odd], a[odd],
						      d);
				else
					o_ring_copy(p, n, &r);
				if (next < parts)
					o_wgmma_prepare(p, n, &r, next,
							panels[1 - odd],
							scales[1 - odd],
							a[1 - odd], is_front);
				if (is_front)
					o_wgmma_add(n, scales[odd], d, total);
			}
		}
		if (is_front)
			o_wgmma_write(p, n, &tile, total, panels[0]);
	}
}

/* ---- bf16 ---- */

/* Begins d += A B for a chunk, or d = A B if it `is_first`. */
FN void
o_wgmma_begin_bf16(const PRIVATE o_ring_shape *n, LOCAL const uint8_t *chunk,
		   uint32_t is_first, PRIVATE float *d)
{
	const g_panel b = g_panel_of(chunk, G_GROUP_BYTES, 0);
	const g_panel a = g_panel_of(chunk + (n->tokens + g_item() / 128 * 64) *
						     O_WGMMA_ROW,
				     G_GROUP_BYTES, 0);
	uint32_t i;

	UNROLL
	for (i = 0; i < n->tokens / 2 && is_first; i++) {
		d[i] = 0.0f;
		g_wgmma_hold(d + i);
	}
	g_wgmma_begin();
	UNROLL
	for (i = 0; i < O_WGMMA_STEPS / 2; i++) {
		const g_panel a_at = g_panel_step(a, i);
		const g_panel b_at = g_panel_step(b, i);

		if (n->tokens == O_WGMMA_FEW)
			g_wgmma_bf16_n64(d, a_at, b_at);
		else
			g_wgmma_bf16_n128(d, a_at, b_at);
	}
	g_wgmma_commit();
}

/* In front: begins the products of the ring's next chunk. The other half:
 * starts the copy of a later one. */
FN void
o_wgmma_chunk_bf16(const PRIVATE o_proj_params *p,
		   const PRIVATE o_ring_shape *n, PRIVATE o_ring *r,
		   uint32_t is_front, uint32_t is_first, PRIVATE float *d)
{
	if (!is_front) {
		g_local_copies_wait_but(n->chunks - 3);
		g_fence_async();
	}
	/* All see the chunk. The products of the chunk before the previous one
	 * are over, and the copy may overwrite it. */
	o_wgmma_sync();
	if (is_front)
		o_wgmma_begin_bf16(n, o_ring_chunk(n, r, r->from), is_first, d);
	else
		o_ring_copy(p, n, r);
	r->from = r->from + 1 == n->chunks ? 0 : r->from + 1;
}

/* Adds d, whose products are over, to total. */
FN void
o_wgmma_add_bf16(const PRIVATE o_ring_shape *n, PRIVATE float *d,
		 PRIVATE float *total)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < n->tokens / 2; i++) {
		g_wgmma_hold(d + i);
		total[i] += d[i];
	}
}

/* One of the two halves of the block: `is_front` and `n` are compile-time
 * constants. Products may be reading two chunks of the ring; the others are for
 * copies that run ahead. */
FN void
o_wgmma_half_bf16(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
		  uint32_t is_front, LOCAL uint8_t *local)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	LOCAL uint8_t *staged =
		local + n->chunks * O_WGMMA_BF16_CHUNK(n->tokens);
	o_ring r = o_ring_begin(p, n, is_front ? 0 : n->chunks - 2, local);
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	uint32_t unit, part, i;

	for (unit = g_block(); unit < r.units; unit += g_blocks()) {
		const o_tile tile = o_tile_of(p, n, unit);

		UNROLL
		for (i = 0; i < n->tokens / 2; i++)
			total[i] = d[i] = 0.0f;
		NO_UNROLL
		for (part = 0; part < parts; part++) {
			o_wgmma_chunk_bf16(p, n, &r, is_front, 1, d);
			o_wgmma_chunk_bf16(p, n, &r, is_front, 0, d);
			if (is_front) {
				g_wgmma_wait();
				o_wgmma_add_bf16(n, d, total);
			}
		}
		if (is_front)
			o_wgmma_write(p, n, &tile, total, staged);
	}
}

FN void
o_wgmma_run(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	    uint32_t is_front, LOCAL uint8_t *local)
{
	if (n->fp8)
		o_wgmma_half(p, n, is_front, local);
	else
		o_wgmma_half_bf16(p, n, is_front, local);
}

/* The body of all kernels; the fields of n are compile-time constants. */
FN void
o_wgmma_all(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	    LOCAL uint8_t *local)
{
	if (g_item() < O_WGMMA_FRONT) {
		G_REGISTERS_UP(O_WGMMA_FRONT_REGISTERS);
		o_wgmma_run(p, n, 1, local);
	} else {
		G_REGISTERS_DOWN(O_WGMMA_BACK_REGISTERS);
		o_wgmma_run(p, n, 0, local);
	}
}

/* The arguments are compile-time constants. */
FN o_ring_shape
o_wgmma_shape(uint32_t fp8, uint32_t tokens, uint32_t chunks)
{
	o_ring_shape n;

	n.fp8 = fp8;
	n.item = O_WGMMA_FRONT;
	n.tokens = tokens;
	n.columns = O_WGMMA_COLUMNS;
	n.bytes = O_WGMMA_ROW;
	n.parts = fp8;
	n.chunks = chunks;
	n.tokens_by_8 = 1;
	n.columns_by_8 = !fp8;
	return n;
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma, 1)
void
spmla_k_o_group_proj_bf16_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n =
		o_wgmma_shape(0, O_WGMMA_TOKENS, O_WGMMA_BF16_CHUNKS);
	LOCAL_DYNAMIC(local, O_WGMMA_BF16_BYTES);

	o_wgmma_all(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_wgmma64, 1)
void
spmla_k_o_group_proj_bf16_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_bf16_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n =
		o_wgmma_shape(0, O_WGMMA_FEW, O_WGMMA_BF16_FEW_CHUNKS);
	LOCAL_DYNAMIC(local, O_WGMMA_BF16_FEW_BYTES);

	o_wgmma_all(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma, 1)
void
spmla_k_o_group_proj_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_wgmma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n = o_wgmma_shape(1, O_WGMMA_TOKENS, O_WGMMA_CHUNKS);
	LOCAL_DYNAMIC(local, O_WGMMA_BYTES);

	o_wgmma_all(&p, &n, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_wgmma64, 1)
void
spmla_k_o_group_proj_wgmma64(SPMLA_KERNEL_ARGS(o_group_proj_wgmma64))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_ring_shape n =
		o_wgmma_shape(1, O_WGMMA_FEW, O_WGMMA_FEW_CHUNKS);
	LOCAL_DYNAMIC(local, O_WGMMA_FEW_BYTES);

	o_wgmma_all(&p, &n, local);
}

#endif
#endif
