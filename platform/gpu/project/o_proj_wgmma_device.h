/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of o_group_proj by wgmma share. A tile is 128 tokens, 64 for
 * each of two warpgroups, by 64 or 128 columns of a group. The tokens are the
 * rows of A, the columns are B. Eight warps multiply, eight others fetch for
 * them. Barriers say when data are there, and when products have read them.
 *
 * A sum is made of parts of 128 values: matrix instructions add up a part, and
 * parts, times their scales, are added in order. So a token's bits do not
 * depend on other tokens, nor on its place among them.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_PROJ_WGMMA_DEVICE_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_PROJ_WGMMA_DEVICE_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/project/o_proj_ring_device.h"

enum {
	O_WGMMA_ITEMS = 512,
	/* Threads that multiply; then those that fetch. */
	O_WGMMA_FRONT = 256,
	O_WGMMA_BACK = O_WGMMA_ITEMS - O_WGMMA_FRONT,
	O_WGMMA_TOKENS = 128, /* of a tile */
	O_WGMMA_COLUMNS = 128,
	O_WGMMA_FEW = 64,  /* columns, for few tokens */
	O_WGMMA_ROW = 128, /* bytes of a row: e4m3 a part, bf16 half of it */
	O_WGMMA_BARRIERS = 1024 /* bytes */
};

/* Shared memory of a block, for tiles of that many columns: O_WGMMA_BARRIERS,
 * then results, bf16 [O_WGMMA_TOKENS][columns], then data. */
#define O_WGMMA_DATA_AT(columns) \
	(O_WGMMA_BARRIERS + 2 * O_WGMMA_TOKENS * (columns))

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	/* Registers of a thread. Together they are the 512 x 128 that the
	 * block has from its launch on. With a larger sum, threads in front
	 * would wait for ever. */
	O_WGMMA_FRONT_REGISTERS = 184,
	O_WGMMA_BACK_REGISTERS = 72,
	O_WGMMA_SUMS = O_WGMMA_COLUMNS / 2 /* the most that a thread has */
};
SPMLA_STATIC_ASSERT(O_WGMMA_FRONT *O_WGMMA_FRONT_REGISTERS +
				    O_WGMMA_BACK * O_WGMMA_BACK_REGISTERS ==
			    O_WGMMA_ITEMS * 128,
		    "a block has 128 registers a thread");

/* Waits for the barrier of chunk or part `at`, counted from the block's first
 * one. A round is as many of them as there are places. The phase that ends is
 * this round's; with _last, the one of the round before, and in the first round
 * there is no wait. */
FN void
o_wgmma_wait(LOCAL g_mbarrier *b, uint32_t at, uint32_t places)
{
	g_mbarrier_wait(b + at % places, at / places % 2);
}

FN void
o_wgmma_wait_last(LOCAL g_mbarrier *b, uint32_t at, uint32_t places)
{
	g_mbarrier_wait(b + at % places, at / places % 2 ^ 1);
}

/* A warp arrives, once all its lanes have come here. */
FN void
o_wgmma_arrive(LOCAL g_mbarrier *b)
{
	g_subgroup_barrier();
	if (g_lane() == 0)
		g_mbarrier_arrive(b);
}

/* Where piece `piece`, of 16 bytes, of a warp's token `t` is staged. Pieces
 * change places with t % 8, so that those of 8 tokens lie in different banks. */
FN LOCAL uint8_t *
o_wgmma_staged(LOCAL uint8_t *own, uint32_t columns, uint32_t t, uint32_t piece)
{
	return own + t * 2 * columns + (piece ^ t % 8) * 16;
}

/* Writes a warp's 16 tokens of a tile, through shared memory, so that a token's
 * columns are stored together. */
FN void
o_wgmma_write(const PRIVATE o_proj_params *p, uint32_t columns, uint32_t unit,
	      const PRIVATE float *total, LOCAL uint8_t *local)
{
	const uint32_t item = g_item_again(), lane = item % 32;
	const uint32_t pieces = columns / 8; /* of a token */
	const uint32_t step = 32 / pieces;   /* tokens stored at once */
	const uint32_t t = lane / pieces, piece = lane % pieces;
	const o_tile tile = o_tile_of(p, O_WGMMA_TOKENS, columns, unit);
	const uint32_t first = tile.first + item / 32 * 16 + t;
	LOCAL uint8_t *own =
		local + O_WGMMA_BARRIERS + item / 32 * 16 * 2 * columns;
	GLOBAL uint16_t *to = p->z + (int64_t)first * p->s.z_token_stride +
			      (int64_t)tile.group * p->s.z_group_stride +
			      tile.column + piece * 8;
	uint32_t i, j, x[4];

	UNROLL
	for (i = 0; i < pieces / 2; i++) {
		UNROLL
		for (j = 0; j < 4; j++)
			x[j] = g_bf16x2_bits(total[8 * i + 2 * j],
					     total[8 * i + 2 * j + 1]);
		g_store_matrices(
			(LOCAL uint16_t *)o_wgmma_staged(
				own, columns, lane % 16, 2 * i + lane / 16),
			x);
	}
	g_subgroup_barrier();
	if (p->s.z_aligned) {
		UNROLL
		for (i = 0; i < 16 / step; i++) {
			g_local_load128(o_wgmma_staged(own, columns,
						       t + i * step, piece),
					x);
			if (first + i * step < p->s.tokens)
				g_store128(to, x);
			to += step * p->s.z_token_stride;
		}
	} else {
		NO_UNROLL
		for (i = 0; i < 16 / step; i++) {
			g_local_load128(o_wgmma_staged(own, columns,
						       t + i * step, piece),
					x);
			UNROLL
			for (j = 0; j < 8; j++)
				if (first + i * step < p->s.tokens)
					to[j] = (uint16_t)(x[j / 2] >>
							   j % 2 * 16);
			to += step * p->s.z_token_stride;
		}
	}
	g_subgroup_barrier(); /* the next tile's are staged here */
}

#endif
#endif
