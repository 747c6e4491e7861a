/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj of e4m3 by warpgroups' matrix instructions: a tile is 128
 * columns of a group, 64 of each warpgroup, for up to 64 or 128 tokens. Columns
 * are the rows of A, from registers; tokens are B, panels of f16. The hard
 * idea, as in mqa_logits_wgmma: the order of k is free as long as both sides
 * keep it, so a lane's 16 bytes of a column are its values of four steps. While
 * the products of a part run, the next one is converted.
 *
 * A block's tiles are one line of chunks, a part of 128 values of each row and
 * its scales, which a ring in shared memory holds; copies run ahead of the
 * products over the ends of tiles.
 *
 * Matrix instructions add a part; parts, times their scales, are added in
 * order. So a token's bits do not depend on the others, nor on where it stands.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_WGMMA_KERNEL_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/project/o_group_proj_kernel.h"

#define SPMLA_K_o_group_proj_wgmma(P, S)    SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_wgmma_64(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_wgmma_64_scalars;

enum {
	O_WGMMA_ITEMS = 256,
	O_WGMMA_COLUMNS = 128, /* of a tile */
	O_WGMMA_TOKENS = 128,
	O_WGMMA_FEW = 64,
	O_WGMMA_ROW = 128, /* bytes of a row in a chunk */
	/* A chunk in bytes: tokens, columns, the tokens' scales and the
	 * columns' one. */
#define O_WGMMA_CHUNK_SCALES_AT(tokens) \
	(((tokens) + O_WGMMA_COLUMNS) * O_WGMMA_ROW)
#define O_WGMMA_CHUNK_BYTES(tokens) \
	(O_WGMMA_CHUNK_SCALES_AT(tokens) + 4 * ((tokens) + 4))
/* Shared memory in bytes: two parts as panels, their scales, ring. */
#define O_WGMMA_PANEL(tokens)     (2 * 64 * (tokens))
#define O_WGMMA_SCALES_AT(tokens) (4 * O_WGMMA_PANEL(tokens))
#define O_WGMMA_RING_AT(tokens)   (O_WGMMA_SCALES_AT(tokens) + 8 * (tokens))
#define O_WGMMA_SHARED(tokens, chunks) \
	(O_WGMMA_RING_AT(tokens) + (chunks)*O_WGMMA_CHUNK_BYTES(tokens))
	O_WGMMA_CHUNKS = 4,
	O_WGMMA_FEW_CHUNKS = 6,
	O_WGMMA_BYTES = O_WGMMA_SHARED(O_WGMMA_TOKENS, O_WGMMA_CHUNKS),
	O_WGMMA_FEW_BYTES = O_WGMMA_SHARED(O_WGMMA_FEW, O_WGMMA_FEW_CHUNKS)
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	O_WGMMA_STEPS = O_PROJ_PART / 16,
	O_WGMMA_SUMS = O_WGMMA_TOKENS / 2 /* most of a thread */
};

typedef struct o_wgmma_params {
	SPMLA_KERNEL_FIELDS(o_group_proj)
} o_wgmma_params;

/* Constants of a kernel. */
typedef struct o_wgmma_shape {
	uint32_t tokens; /* of a tile */
	uint32_t chunks; /* of the ring */
} o_wgmma_shape;

typedef struct o_wgmma_tile {
	uint32_t first, column, group;
} o_wgmma_tile;

/* Where the copies are. */
typedef struct o_wgmma_ring {
	LOCAL uint8_t *at;
	GLOBAL const uint8_t *o; /* the thread's first row of the tile */
	GLOBAL const uint8_t *w;
	o_wgmma_tile tile;          /* of the next copy */
	uint32_t unit, units, part; /* its number, and that of the part */
	uint32_t to, from;          /* places of the next copy, and product */
} o_wgmma_ring;

FN o_wgmma_tile
o_wgmma_tile_of(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
		uint32_t unit)
{
	const uint32_t tiles = p->s.columns / O_WGMMA_COLUMNS;
	const uint32_t groups = (p->s.tokens - 1) / n->tokens + 1;
	const o_wgmma_tile tile = {unit % groups * n->tokens,
				   unit / groups % tiles * O_WGMMA_COLUMNS,
				   unit / groups / tiles};

	return tile;
}

FN LOCAL uint8_t *
o_wgmma_chunk(const PRIVATE o_wgmma_shape *n, const PRIVATE o_wgmma_ring *r,
	      uint32_t place)
{
	return r->at + place * O_WGMMA_CHUNK_BYTES(n->tokens);
}

FN LOCAL uint32_t *
o_wgmma_chunk_scales(const PRIVATE o_wgmma_shape *n, LOCAL uint8_t *chunk)
{
	return (LOCAL uint32_t *)(chunk + O_WGMMA_CHUNK_SCALES_AT(n->tokens));
}

/* The scales as they are in memory. */
FN void
o_wgmma_copy_scales(const PRIVATE o_wgmma_params *p,
		    const PRIVATE o_wgmma_shape *n,
		    const PRIVATE o_wgmma_ring *r, LOCAL uint32_t *to)
{
	const uint32_t t = g_item();

	if (t < n->tokens)
		g_local_copy32(
			to + t,
			p->o_scales +
				(int64_t)r->tile.group *
					p->s.o_scale_group_stride +
				(int64_t)(p->s.packed ? r->part / 4 : r->part) *
					p->s.o_scale_stride +
				r->tile.first + t,
			r->tile.first + t < p->s.tokens);
	if (t == n->tokens)
		g_local_copy32(to + t,
			       p->w_scales +
				       (int64_t)r->tile.group *
					       p->s.w_scale_group_stride +
				       (int64_t)(r->tile.column / O_PROJ_PART) *
					       p->s.w_scale_row_stride +
				       r->part,
			       1);
}

/* Asks for the next chunk, if there is one. Piece i of 16 bytes of row r lies
 * where i ^ (r % 8) would, of a column i ^ (r % 2 * 4): 8 lanes load a piece of
 * 8 tokens, or 4 pieces of two columns, without bank conflicts. */
FN void
o_wgmma_copy(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
	     PRIVATE o_wgmma_ring *r)
{
	enum {
		PIECES = O_WGMMA_ROW / 16,
		STEP = O_WGMMA_ITEMS / PIECES /* rows copied at once */
	};
	const uint32_t row = g_item() / PIECES, piece = g_item() % PIECES;
	const uint32_t at = r->part * O_WGMMA_ROW + piece * 16;
	LOCAL uint8_t *chunk = o_wgmma_chunk(n, r, r->to);
	LOCAL uint8_t *to =
		chunk + row * O_WGMMA_ROW + (piece ^ (row % 8)) * 16;
	uint32_t i;

	if (r->unit >= r->units) {
		g_local_copies_commit();
		return;
	}
	if (r->part == 0) {
		r->tile = o_wgmma_tile_of(p, n, r->unit);
		r->o = p->o +
		       (int64_t)(r->tile.first + row) * p->s.o_token_stride +
		       (int64_t)r->tile.group * p->s.o_group_stride;
		r->w = p->w + (int64_t)r->tile.group * p->s.w_group_stride +
		       (int64_t)(r->tile.column + row) * p->s.w_row_stride;
	}
	UNROLL
	for (i = 0; i < n->tokens / STEP; i++)
		g_local_copy128(
			to + i * STEP * O_WGMMA_ROW,
			r->o + (int64_t)(i * STEP) * p->s.o_token_stride + at,
			r->tile.first + row + i * STEP < p->s.tokens);
	to = chunk + (n->tokens + row) * O_WGMMA_ROW +
	     (piece ^ (row % 2 * 4)) * 16;
	UNROLL
	for (i = 0; i < O_WGMMA_COLUMNS / STEP; i++)
		g_local_copy128(
			to + i * STEP * O_WGMMA_ROW,
			r->w + (int64_t)(i * STEP) * p->s.w_row_stride + at, 1);
	o_wgmma_copy_scales(p, n, r, o_wgmma_chunk_scales(n, chunk));
	g_local_copies_commit();
	r->to = r->to + 1 == n->chunks ? 0 : r->to + 1;
	if (++r->part == p->s.inner / O_PROJ_PART) {
		r->part = 0;
		r->unit += g_blocks();
	}
}

/* Begins with the block's first tile; the ring is full of copies. */
FN o_wgmma_ring
o_wgmma_ring_of(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
		LOCAL uint8_t *at)
{
	o_wgmma_ring r = {at, p->o, p->w, {0, 0, 0}, g_block(), 0, 0, 0, 0};
	uint32_t i;

	r.units = ((p->s.tokens - 1) / n->tokens + 1) *
		  (p->s.columns / O_WGMMA_COLUMNS) * p->s.groups;
	UNROLL
	for (i = 0; i < n->chunks; i++)
		o_wgmma_copy(p, n, &r);
	return r;
}

/* The scale of a token of a part: its own times the columns'. */
FN float
o_wgmma_scale(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
	      LOCAL const uint32_t *scales, uint32_t token, uint32_t part)
{
	const uint32_t word = scales[token];

	return (p->s.packed ? g_pow2(word >> part % 4 * 8 & 0xffu)
			    : g_float(word)) *
	       g_float(scales[n->tokens]);
}

/* A part of a tile's tokens as two panels, in the order of values that a lane's
 * bytes of a column have: a thread converts 64 bytes of a token, or a half of
 * their values. */
FN void
o_wgmma_tokens(const PRIVATE o_wgmma_shape *n, LOCAL const uint8_t *chunk,
	       LOCAL uint8_t *panels)
{
	const uint32_t row = g_item() % n->tokens;
	const uint32_t share = g_item() / n->tokens;
	const uint32_t of = O_WGMMA_ITEMS / n->tokens / 2; /* of 64 bytes */
	const uint32_t span = share / of;
	LOCAL uint16_t *panel =
		(LOCAL uint16_t *)(panels + span * O_WGMMA_PANEL(n->tokens));
	uint32_t raw[4][4], j, half, t;

	UNROLL
	for (t = 0; t < 4; t++)
		g_local_load128(chunk + row * O_WGMMA_ROW +
					((4 * span + t) ^ (row % 8)) * 16,
				raw[t]);
	UNROLL
	for (j = 0; j < 4; j++) {
		uint32_t x[4][2];

		/* With 64 tokens words 0 and 1 are a thread's, or 2 and 3. */
		if (j >= 4 / of)
			continue;
		UNROLL
		for (t = 0; t < 4; t++)
			g_e4m3x4_to_f16x4(of == 2 && share % 2 ? raw[t][j + 2]
							       : raw[t][j],
					  x[t]);
		UNROLL
		for (half = 0; half < 2; half++) {
			const uint32_t k = of == 2 ? j + share % 2 * 2 : j;
			const uint32_t words[4] = {x[0][half], x[1][half],
						   x[2][half], x[3][half]};

			g_local_store128(
				panel + g_panel_at(row, 16 * k + 8 * half),
				words);
		}
	}
}

/* A lane's fragments of A for each step of a part. */
FN void
o_wgmma_columns(const PRIVATE o_wgmma_shape *n, LOCAL const uint8_t *chunk,
		uint32_t a[O_WGMMA_STEPS][4])
{
	const uint32_t g = g_lane() / 4;
	LOCAL const uint8_t *w =
		chunk + (n->tokens + g_item() / 32 * 16 + g) * O_WGMMA_ROW;
	uint32_t span, j;

	UNROLL
	for (span = 0; span < 2; span++) {
		const uint32_t at =
			((4 * span + g_lane() % 4) ^ (g % 2 * 4)) * 16;
		uint32_t low[4], high[4];

		g_local_load128(w + at, low);
		g_local_load128(w + 8 * O_WGMMA_ROW + at, high);
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

/* Part `part`, of the ring's next chunk, ready for products: A in registers, B
 * and the scales in shared memory. */
FN void
o_wgmma_prepare(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
		PRIVATE o_wgmma_ring *r, uint32_t part, LOCAL uint8_t *panels,
		LOCAL float *scales, uint32_t a[O_WGMMA_STEPS][4])
{
	LOCAL uint8_t *chunk = o_wgmma_chunk(n, r, r->from);

	o_wgmma_tokens(n, chunk, panels);
	if (g_item() < n->tokens)
		scales[g_item()] = o_wgmma_scale(
			p, n, o_wgmma_chunk_scales(n, chunk), g_item(), part);
	o_wgmma_columns(n, chunk, a);
	r->from = r->from + 1 == n->chunks ? 0 : r->from + 1;
	g_fence_async();
}

/* Begins d = A B; d is there after g_wgmma_wait. */
FN void
o_wgmma_begin(const PRIVATE o_wgmma_shape *n, LOCAL const uint8_t *panels,
	      uint32_t a[O_WGMMA_STEPS][4], PRIVATE float *d)
{
	const g_panel b = g_panel_of(panels, G_GROUP_BYTES, 0);
	uint32_t i;

	UNROLL
	for (i = 0; i < n->tokens / 2; i++)
		g_wgmma_hold(d + i);
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
o_wgmma_add(const PRIVATE o_wgmma_shape *n, LOCAL const float *scales,
	    PRIVATE float *d, PRIVATE float *total)
{
	uint32_t i, j;

	g_wgmma_wait();
	UNROLL
	for (i = 0; i < n->tokens / 2; i++)
		g_wgmma_hold(d + i);
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

/* Writes a tile, which passes through shared memory, so that a token's columns
 * are together: piece i of token t lies where i ^ (t % 16) would. */
FN void
o_wgmma_write(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
	      const PRIVATE o_wgmma_tile *tile, const PRIVATE float *total,
	      LOCAL uint8_t *staged)
{
	enum { PIECES = O_WGMMA_COLUMNS / 8 };
	uint32_t i, j;

	BARRIER(); /* no products read the panels there */
	UNROLL
	for (i = 0; i < n->tokens / 2; i++) {
		const uint32_t t = i / 4 * 8 + g_lane() % 4 * 2 + i % 2;
		const uint32_t piece = g_item() / 32 * 2 + i / 2 % 2;

		((LOCAL uint16_t *)(staged + t * 2 * O_WGMMA_COLUMNS +
				    (piece ^ (t % 16)) * 16))[g_lane() / 4] =
			(uint16_t)g_bf16_bits(total[i]);
	}
	BARRIER();
	for (i = g_item(); i < n->tokens * PIECES; i += O_WGMMA_ITEMS) {
		const uint32_t t = i / PIECES, piece = i % PIECES;
		GLOBAL uint16_t *to =
			p->z +
			(int64_t)(tile->first + t) * p->s.z_token_stride +
			(int64_t)tile->group * p->s.z_group_stride +
			tile->column + 8 * piece;
		uint32_t x[4];

		if (tile->first + t >= p->s.tokens)
			break;
		g_local_load128(staged + t * 2 * O_WGMMA_COLUMNS +
					(piece ^ (t % 16)) * 16,
				x);
		if (p->s.z_aligned) {
			g_store4(to, x);
			continue;
		}
		UNROLL
		for (j = 0; j < 8; j++)
			to[j] = (uint16_t)(x[j / 2] >> j % 2 * 16);
	}
}

/* Both kernels; `n` is a constant. Each turn of the loop has an even part and
 * an odd one, whose operands lie apart. */
FN void
o_wgmma_all(const PRIVATE o_wgmma_params *p, const PRIVATE o_wgmma_shape *n,
	    LOCAL uint8_t *local)
{
	const uint32_t parts = p->s.inner / O_PROJ_PART;
	LOCAL uint8_t *panels[2] = {local,
				    local + 2 * O_WGMMA_PANEL(n->tokens)};
	LOCAL float *scales[2] = {
		(LOCAL float *)(local + O_WGMMA_SCALES_AT(n->tokens)),
		(LOCAL float *)(local + O_WGMMA_SCALES_AT(n->tokens)) +
			n->tokens};
	o_wgmma_ring r =
		o_wgmma_ring_of(p, n, local + O_WGMMA_RING_AT(n->tokens));
	uint32_t a[2][O_WGMMA_STEPS][4];
	float d[O_WGMMA_SUMS], total[O_WGMMA_SUMS];
	uint32_t unit, part, i, odd;

	for (unit = g_block(); unit < r.units; unit += g_blocks()) {
		const o_wgmma_tile tile = o_wgmma_tile_of(p, n, unit);

		UNROLL
		for (i = 0; i < n->tokens / 2; i++)
			total[i] = d[i] = 0.0f;
		g_local_copies_wait_but(n->chunks - 1);
		BARRIER(); /* all see the chunk, and have written the tile */
		o_wgmma_prepare(p, n, &r, 0, panels[0], scales[0], a[0]);
		NO_UNROLL
		for (part = 0; part < parts; part += 2) {
			UNROLL
			for (odd = 0; odd < 2; odd++) {
				if (part + odd >= parts)
					break;
				g_local_copies_wait_but(n->chunks - 2);
				/* All see the panels and the next chunk, and
				 * have read this one. */
				BARRIER();
				o_wgmma_begin(n, panels[odd], a[odd], d);
				o_wgmma_copy(p, n, &r);
				if (part + odd + 1 < parts)
					o_wgmma_prepare(
						p, n, &r, part + odd + 1,
						panels[1 - odd],
						scales[1 - odd], a[1 - odd]);
				o_wgmma_add(n, scales[odd], d, total);
			}
		}
		o_wgmma_write(p, n, &tile, total, panels[0]);
	}
}

SPMLA_KERNEL(o_group_proj_wgmma)
void
spmla_k_o_group_proj_wgmma(SPMLA_KERNEL_ARGS(o_group_proj_wgmma))
{
	const o_wgmma_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n = {O_WGMMA_TOKENS, O_WGMMA_CHUNKS};
	LOCAL_DYNAMIC(local, O_WGMMA_BYTES);

	o_wgmma_all(&p, &n, local);
}

SPMLA_KERNEL(o_group_proj_wgmma_64)
void
spmla_k_o_group_proj_wgmma_64(SPMLA_KERNEL_ARGS(o_group_proj_wgmma_64))
{
	const o_wgmma_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	const o_wgmma_shape n = {O_WGMMA_FEW, O_WGMMA_FEW_CHUNKS};
	LOCAL_DYNAMIC(local, O_WGMMA_FEW_BYTES);

	o_wgmma_all(&p, &n, local);
}

#endif
#endif
