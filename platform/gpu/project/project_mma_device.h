/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows times a matrix for each head with matrix instructions, bf16 with sums in
 * f32: what q_absorb and v_up share. A tile is some tokens by 128 columns of a
 * head. The hard idea: a block's tiles are one sequence of chunks, of 64 values
 * of the inner dimension each, which pass through a ring in shared memory.
 * Copies run ahead of the products, also from one tile into the next, so that
 * memory is never idle.
 *
 * A sum is made of parts of 128 values: matrix instructions add a part in
 * order, and parts are added in order. So a row's bits do not depend on the
 * other rows, nor on the tile's size.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_PROJECT_MMA_DEVICE_H
#define SPMLA_PLATFORM_GPU_PROJECT_PROJECT_MMA_DEVICE_H

#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/mma.h"

enum {
	PROJECT_MMA_ITEMS = 256,
	PROJECT_MMA_COLUMNS = 128, /* of a tile */
	PROJECT_MMA_FEW = 16,      /* tokens of the smallest tile */
	PROJECT_MMA_CHUNK = 64,    /* inner values of a chunk */
	/* Bytes of a chunk, for a row and for the matrix. */
	PROJECT_MMA_ROW_BYTES = 2 * PROJECT_MMA_CHUNK,
	PROJECT_MMA_W_BYTES = 2 * PROJECT_MMA_CHUNK * PROJECT_MMA_COLUMNS
};

/* Bytes of a chunk of the ring: the rows, then the matrix. */
#define PROJECT_MMA_CHUNK_BYTES(tokens) \
	(PROJECT_MMA_W_BYTES + PROJECT_MMA_ROW_BYTES * (tokens))

#ifdef SPMLA_GPU_KERNELS

enum {
	PROJECT_MMA_PART = 128, /* values of a part of a sum */
	PROJECT_MMA_LINES = 2,  /* most m16 tiles of a subgroup, */
	PROJECT_MMA_TILES = 8   /* and n8 tiles */
};

/* x[tokens][heads][inner] times w[heads][inner][columns]. The last four fields
 * are compile-time constants. */
typedef struct project_mma {
	GLOBAL const uint16_t *x;
	GLOBAL const uint16_t *w;
	int64_t x_token_stride;
	int64_t x_head_stride;
	int64_t w_head_stride;
	int64_t w_row_stride;
	uint32_t tokens;
	uint32_t units; /* tiles of the call */
	uint32_t inner;
	uint32_t columns;
	uint32_t rows; /* tokens of a tile */
	uint32_t ring;
} project_mma;

typedef struct project_tile {
	uint32_t head, first, column;
} project_tile;

/* How far the copies and the products are. */
typedef struct project_ring {
	LOCAL uint8_t *at;
	GLOBAL const uint16_t *x; /* the thread's first piece of the chunk */
	GLOBAL const uint16_t *w;
	uint32_t unit, chunk, first; /* of the next copy */
	uint32_t to, from;           /* slots of the next copy and product */
} project_ring;

FN project_tile
project_tile_of(const PRIVATE project_mma *p, uint32_t unit)
{
	const uint32_t tiles = p->columns / PROJECT_MMA_COLUMNS;
	const uint32_t groups = (p->tokens - 1) / p->rows + 1;
	const project_tile tile = {unit / tiles / groups,
				   unit / tiles % groups * p->rows,
				   unit % tiles * PROJECT_MMA_COLUMNS};

	return tile;
}

/* Starts the copy of the next chunk, if there is one. A chunk is a row of 8
 * pieces of 16 bytes for each token, then 64 rows of the matrix, of 16 pieces
 * each. Piece i of row r lies at place i ^ (r % 8), so that matrices load
 * without bank conflicts. */
FN void
project_copy(const PRIVATE project_mma *p, PRIVATE project_ring *r)
{
	enum {
		XS = PROJECT_MMA_ROW_BYTES / 16, /* pieces of a row */
		WS = PROJECT_MMA_COLUMNS / 8,
		X_STEP = PROJECT_MMA_ITEMS / XS, /* rows copied at once */
		W_STEP = PROJECT_MMA_ITEMS / WS
	};
	const uint32_t x_row = g_item() / XS, x_piece = g_item() % XS;
	const uint32_t w_row = g_item() / WS, w_piece = g_item() % WS;
	LOCAL uint8_t *to = r->at + r->to * PROJECT_MMA_CHUNK_BYTES(p->rows);
	uint32_t i;

	if (r->unit >= p->units) {
		g_local_copies_commit();
		return;
	}
	if (r->chunk == 0) {
		const project_tile tile = project_tile_of(p, r->unit);

		r->first = tile.first;
		r->x = p->x +
		       (int64_t)(tile.first + x_row) * p->x_token_stride +
		       (int64_t)tile.head * p->x_head_stride + 8 * x_piece;
		r->w = p->w + (int64_t)tile.head * p->w_head_stride +
		       (int64_t)w_row * p->w_row_stride + tile.column +
		       8 * w_piece;
	}
	UNROLL
	for (i = 0; i < (p->rows + X_STEP - 1) / X_STEP; i++) {
		const uint32_t row = x_row + i * X_STEP;

		if (row < p->rows)
			g_local_copy128(to + row * PROJECT_MMA_ROW_BYTES +
						(x_piece ^ (row & 7u)) * 16,
					r->x + (int64_t)(i * X_STEP) *
							p->x_token_stride,
					r->first + row < p->tokens);
	}
	to += p->rows * PROJECT_MMA_ROW_BYTES;
	UNROLL
	for (i = 0; i < PROJECT_MMA_CHUNK / W_STEP; i++) {
		const uint32_t row = w_row + i * W_STEP;

		g_local_copy128(to + row * 2 * PROJECT_MMA_COLUMNS +
					(w_piece ^ (row & 7u)) * 16,
				r->w + (int64_t)(i * W_STEP) * p->w_row_stride,
				1);
	}
	g_local_copies_commit();
	r->x += PROJECT_MMA_CHUNK;
	r->w += PROJECT_MMA_CHUNK * p->w_row_stride;
	r->to = r->to + 1 == p->ring ? 0 : r->to + 1;
	if (++r->chunk == p->inner / PROJECT_MMA_CHUNK) {
		r->chunk = 0;
		r->unit += g_blocks();
	}
}

/* Begins with the block's first tile: starts copies for all of the ring but one
 * chunk. */
FN project_ring
project_begin(const PRIVATE project_mma *p, LOCAL uint8_t *at)
{
	project_ring r = {at, p->x, p->w, g_block(), 0, 0, 0, 0};
	uint32_t i;

	UNROLL
	for (i = 0; i + 1 < p->ring; i++)
		project_copy(p, &r);
	return r;
}

/* The subgroup's share of a tile: m16 tiles, n8 tiles, first row and first
 * column. In tiles of 16, 64 and 128 tokens it is 16 tokens by 16 columns, 32
 * by 32 and 32 by 64. */
#define PROJECT_MMA_LINES_OF(p) ((p)->rows == PROJECT_MMA_FEW ? 1u : 2u)
#define PROJECT_MMA_TILES_OF(p) \
	((p)->rows == PROJECT_MMA_FEW ? 2u : (p)->rows / 16)

FN uint32_t
project_row(const PRIVATE project_mma *p)
{
	return g_item() / 32 * PROJECT_MMA_TILES_OF(p) / 16 * 16 *
	       PROJECT_MMA_LINES_OF(p);
}

FN uint32_t
project_column(const PRIVATE project_mma *p)
{
	return g_item() / 32 * PROJECT_MMA_TILES_OF(p) % 16 * 8;
}

/* sums += the chunk's rows times its matrix. */
FN void
project_chunk(const PRIVATE project_mma *p, LOCAL const uint8_t *chunk,
	      float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4])
{
	const uint32_t lane = g_lane();
	/* What the lane points at: a row of one of four matrices. */
	const uint32_t row = lane % 16, piece = lane / 16;
	LOCAL const uint8_t *x =
		chunk + (project_row(p) + row) * PROJECT_MMA_ROW_BYTES;
	LOCAL const uint8_t *w = chunk + p->rows * PROJECT_MMA_ROW_BYTES +
				 row * 2 * PROJECT_MMA_COLUMNS;
	const uint32_t column = project_column(p) / 8 + piece;
	uint32_t k, line, tile;

	UNROLL
	for (k = 0; k < PROJECT_MMA_CHUNK / 16; k++) {
		uint32_t a[PROJECT_MMA_LINES][4];

		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES_OF(p); line++)
			g_load_matrices(
				(LOCAL const uint16_t
					 *)(x +
					    line * 16 * PROJECT_MMA_ROW_BYTES +
					    ((2 * k + piece) ^ (row & 7u)) *
						    16),
				a[line]);
		UNROLL
		for (tile = 0; tile < PROJECT_MMA_TILES_OF(p); tile += 2) {
			uint32_t b[4];

			g_load_transposed(
				(LOCAL const uint16_t
					 *)(w +
					    k * 16 * 2 * PROJECT_MMA_COLUMNS +
					    ((column + tile) ^ (row & 7u)) *
						    16),
				b);
			UNROLL
			for (line = 0; line < PROJECT_MMA_LINES_OF(p); line++) {
				g_mma_bf16(sums[line][tile], a[line], b);
				g_mma_bf16(sums[line][tile + 1], a[line],
					   b + 2);
			}
		}
	}
}

FN void
project_clear(float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4])
{
	uint32_t line, tile, i;

	UNROLL
	for (line = 0; line < PROJECT_MMA_LINES; line++) {
		UNROLL
		for (tile = 0; tile < PROJECT_MMA_TILES; tile++) {
			UNROLL
			for (i = 0; i < 4; i++)
				sums[line][tile][i] = 0.0f;
		}
	}
}

/* Makes the product of the block's next tile. */
FN void
project_product(const PRIVATE project_mma *p, PRIVATE project_ring *r,
		float total[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4])
{
	enum { CHUNKS = PROJECT_MMA_PART / PROJECT_MMA_CHUNK };
	float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4];
	uint32_t part, chunk, line, tile, i;

	project_clear(total);
	NO_UNROLL
	for (part = 0; part < p->inner / PROJECT_MMA_PART; part++) {
		project_clear(sums);
		UNROLL
		for (chunk = 0; chunk < CHUNKS; chunk++) {
			g_local_copies_wait_but(p->ring - 2);
			/* All see the chunk, and have read the one before. */
			BARRIER();
			project_copy(p, r);
			project_chunk(p,
				      r->at + r->from * PROJECT_MMA_CHUNK_BYTES(
								p->rows),
				      sums);
			r->from = r->from + 1 == p->ring ? 0 : r->from + 1;
		}
		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES_OF(p); line++) {
			UNROLL
			for (tile = 0; tile < PROJECT_MMA_TILES_OF(p); tile++) {
				UNROLL
				for (i = 0; i < 4; i++)
					total[line][tile][i] +=
						sums[line][tile][i];
			}
		}
	}
}

/* Transposes the four words of four lanes: word i of lane j becomes word j of
 * lane i. */
FN void
project_turn(PRIVATE uint32_t *x)
{
	const uint32_t lane = g_lane();
	uint32_t step, i;

	UNROLL
	for (step = 1; step <= 2; step *= 2) {
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t j = i | step;
			uint32_t got;

			if (i & step)
				continue;
			got = g_shuffle_xor(lane & step ? x[i] : x[j], step);
			if (lane & step)
				x[i] = got;
			else
				x[j] = got;
		}
	}
}

/* Writes the subgroup's columns of one row of an m16 tile as bf16, from `to`
 * on, if the row `is_there`: row g_lane() / 4, with `half` 8 rows further on.
 * All lanes call it. */
FN void
project_write(const PRIVATE project_mma *p, float sums[PROJECT_MMA_TILES][4],
	      uint32_t half, uint32_t is_there, GLOBAL uint16_t *to)
{
	const uint32_t t = g_lane() % 4;
	uint32_t words[PROJECT_MMA_TILES];
	uint32_t i;

	UNROLL
	for (i = 0; i < PROJECT_MMA_TILES_OF(p); i++)
		words[i] = g_f32_to_bf16x2(sums[i][2 * half],
					   sums[i][2 * half + 1]);
	if (PROJECT_MMA_TILES_OF(p) % 4) {
		UNROLL
		for (i = 0; i < PROJECT_MMA_TILES_OF(p); i++)
			if (is_there)
				((GLOBAL uint32_t *)to)[4 * i + t] = words[i];
		return;
	}
	UNROLL
	for (i = 0; i < PROJECT_MMA_TILES_OF(p); i += 4) {
		project_turn(words + i);
		if (is_there)
			g_store128(to + 8 * (i + t), words + i);
	}
}

#endif
#endif
