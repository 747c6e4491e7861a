/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of the kernels of o_group_proj with matrix instructions, and the ring
 * of those by mma.sync. A tile is some tokens by some columns of a group. A
 * block's tiles are one sequence of chunks, which pass through a ring in shared
 * memory. Copies run ahead of the products, also from one tile into the next. A
 * chunk is some bytes of each row, tokens first, then columns. With e4m3 the
 * scales of its parts of 128 values follow: for each part one for each token,
 * then one for the columns. By wgmma only bf16 has a ring, which
 * o_bf16_copy fills.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_PROJ_RING_DEVICE_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_PROJ_RING_DEVICE_H

#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/project/o_group_proj_kernel.h"

enum { O_RING_ITEMS = 256 };

#define O_RING_SCALES(tokens) ((tokens) + 4) /* words for a part */
/* Bytes, a multiple of 128: where a row lies across two lines of shared memory,
 * a copy to it takes three times as long. */
#define O_RING_CHUNK(tokens, columns, bytes, parts)  \
	((((tokens) + (columns)) * (bytes) +         \
	  4 * (parts)*O_RING_SCALES(tokens) + 127) / \
	 128 * 128)

#ifdef SPMLA_GPU_KERNELS

typedef struct o_proj_params {
	SPMLA_KERNEL_FIELDS(o_group_proj)
} o_proj_params;

/* Compile-time constants of a kernel. */
typedef struct o_ring_shape {
	uint32_t fp8;
	uint32_t tokens; /* of a tile */
	uint32_t columns;
	uint32_t bytes; /* of a row in a chunk */
	uint32_t parts; /* of e4m3 in a chunk */
	uint32_t chunks;
	/* Piece i, of 16 bytes, of row r lies at place i ^ swizzle(r). With
	 * by_8 this is r % 8: 8 lanes that load one piece of 8 rows then meet
	 * different banks. Otherwise it is r % 2 * 4, for 8 lanes that load 4
	 * pieces of two rows. */
	uint32_t tokens_by_8;
	uint32_t columns_by_8;
} o_ring_shape;

typedef struct o_tile {
	uint32_t first, column, group;
} o_tile;

typedef struct o_ring {
	LOCAL uint8_t *at;
	GLOBAL const uint8_t *o; /* the thread's first row of the tile */
	GLOBAL const uint8_t *w;
	GLOBAL const uint32_t *scale; /* the thread's, of the first part */
	o_tile tile;                  /* of the next copy */
	uint32_t unit, units, chunk;  /* numbers of tile and chunk */
	uint32_t to, from;            /* slots of the next copy and product */
} o_ring;

FN uint32_t
o_ring_swizzle(uint32_t row, uint32_t by_8)
{
	return by_8 ? row % 8 : row % 2 * 4;
}

/* A tile has `tokens` tokens and `columns` columns. Tiles are counted along the
 * tokens first, then along a group's columns. */
FN o_tile
o_tile_of(const PRIVATE o_proj_params *p, uint32_t tokens, uint32_t columns,
	  uint32_t unit)
{
	/* A line is the tiles of all tokens with the same columns. */
	const uint32_t line = g_divide(unit, p->s.token_tiles);
	const uint32_t group = g_divide(line, p->s.column_tiles);
	const o_tile tile = {(unit - line * p->s.token_tiles.by) * tokens,
			     (line - group * p->s.column_tiles.by) * columns,
			     group};

	return tile;
}

/* Where the chunk in a slot of the ring, and its scales, lie. */
FN LOCAL uint8_t *
o_ring_chunk(const PRIVATE o_ring_shape *n, LOCAL uint8_t *ring, uint32_t slot)
{
	return ring +
	       slot * O_RING_CHUNK(n->tokens, n->columns, n->bytes, n->parts);
}

FN LOCAL uint32_t *
o_ring_scales(const PRIVATE o_ring_shape *n, LOCAL uint8_t *chunk)
{
	return (LOCAL uint32_t *)(chunk + (n->tokens + n->columns) * n->bytes);
}

/* A thread copies at most one scale of a chunk, as parts * (tokens + 1) is at
 * most O_RING_ITEMS. Returns whose: a token, or `tokens`, the columns. */
FN uint32_t
o_ring_scale_token(const PRIVATE o_ring_shape *n)
{
	return g_item() % (n->tokens + 1);
}

/* The thread's scale of the tile's first part. */
FN GLOBAL const uint32_t *
o_ring_first_scale(const PRIVATE o_proj_params *p,
		   const PRIVATE o_ring_shape *n, const PRIVATE o_tile *tile)
{
	const uint32_t t = o_ring_scale_token(n);

	if (t < n->tokens)
		return p->o_scales +
		       (int64_t)tile->group * p->s.o_scale_group_stride +
		       tile->first + t;
	return (GLOBAL const uint32_t *)p->w_scales +
	       (int64_t)tile->group * p->s.w_scale_group_stride +
	       (int64_t)(tile->column / O_PROJ_PART) * p->s.w_scale_row_stride;
}

/* Starts the copy of the scales, which stay as they are in memory. */
FN void
o_ring_copy_scales(const PRIVATE o_proj_params *p,
		   const PRIVATE o_ring_shape *n, const PRIVATE o_ring *r,
		   LOCAL uint32_t *scales)
{
	const uint32_t i = g_item() / (n->tokens + 1);
	const uint32_t t = o_ring_scale_token(n), is_token = t < n->tokens;
	const uint32_t part = r->chunk * n->parts + i;
	const int64_t at = is_token ? (int64_t)(p->s.packed ? part / 4 : part) *
					      p->s.o_scale_stride
				    : part;

	if (i < n->parts && part < p->s.inner / O_PROJ_PART)
		g_local_copy32(scales + i * O_RING_SCALES(n->tokens) + t,
			       r->scale + at,
			       !is_token || r->tile.first + t < p->s.tokens);
}

/* Starts the copy of the next chunk, if there is one; zeros beyond a row's
 * end. */
FN void
o_ring_copy(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	    PRIVATE o_ring *r)
{
	const uint32_t pieces = n->bytes / 16;
	const uint32_t step = O_RING_ITEMS / pieces; /* rows copied at once */
	const uint32_t bytes = n->fp8 ? 1 : 2;
	const uint32_t row = g_item() / pieces;
	const uint32_t piece = g_item() % pieces;
	const uint32_t row_bytes = p->s.inner * bytes;
	const uint32_t at = r->chunk * n->bytes + piece * 16;
	LOCAL uint8_t *chunk = o_ring_chunk(n, r->at, r->to);
	LOCAL uint8_t *to = chunk + row * n->bytes +
			    (piece ^ o_ring_swizzle(row, n->tokens_by_8)) * 16;
	GLOBAL const uint8_t *from;
	uint32_t i;

	if (r->unit >= r->units) {
		g_local_copies_commit();
		return;
	}
	if (r->chunk == 0) {
		r->tile = o_tile_of(p, n->tokens, n->columns, r->unit);
		r->o = p->o +
		       ((int64_t)(r->tile.first + row) * p->s.o_token_stride +
			(int64_t)r->tile.group * p->s.o_group_stride) *
			       bytes;
		r->w = p->w +
		       ((int64_t)r->tile.group * p->s.w_group_stride +
			(int64_t)(r->tile.column + row) * p->s.w_row_stride) *
			       bytes;
		if (n->fp8)
			r->scale = o_ring_first_scale(p, n, &r->tile);
	}
	from = r->o + at;
	UNROLL
	for (i = 0; i < n->tokens / step; i++) {
		g_local_copy128(to + i * step * n->bytes, from,
				r->tile.first + row + i * step < p->s.tokens &&
					at < row_bytes);
		from += (int64_t)step * p->s.o_token_stride * bytes;
	}
	to = chunk + (n->tokens + row) * n->bytes +
	     (piece ^ o_ring_swizzle(row, n->columns_by_8)) * 16;
	from = r->w + at;
	UNROLL
	for (i = 0; i < n->columns / step; i++) {
		g_local_copy128(to + i * step * n->bytes, from, at < row_bytes);
		from += (int64_t)step * p->s.w_row_stride * bytes;
	}
	if (n->fp8)
		o_ring_copy_scales(p, n, r, o_ring_scales(n, chunk));
	g_local_copies_commit();
	r->to = r->to + 1 == n->chunks ? 0 : r->to + 1;
	if (++r->chunk * n->bytes >= row_bytes) {
		r->chunk = 0;
		r->unit += g_blocks();
	}
}

/* Begins with the block's first tile: starts the copies of `ahead` chunks. */
FN o_ring
o_ring_begin(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	     uint32_t ahead, LOCAL uint8_t *at)
{
	o_ring r = {at, p->o, p->w, 0, {0, 0, 0}, g_block(), 0, 0, 0, 0};
	uint32_t i;

	r.units = (uint32_t)p->s.tiles;
	/* A loop, because code that runs once comes slowly. */
	NO_UNROLL
	for (i = 0; i < ahead; i++)
		o_ring_copy(p, n, &r);
	return r;
}

/* What a token's sum of a part is multiplied by: the scale in token_word times
 * the one in columns_word. */
FN float
o_ring_scale_of(const PRIVATE o_proj_params *p, uint32_t token_word,
		uint32_t columns_word, uint32_t part)
{
	return (p->s.packed ? g_pow2(token_word >> part % 4 * 8 & 0xffu)
			    : g_float(token_word)) *
	       g_float(columns_word);
}

/* The same of a token of a chunk. */
FN float
o_ring_scale(const PRIVATE o_proj_params *p, LOCAL const uint32_t *scales,
	     uint32_t tokens, uint32_t token, uint32_t part)
{
	return o_ring_scale_of(p, scales[token], scales[tokens], part);
}

#endif
#endif
