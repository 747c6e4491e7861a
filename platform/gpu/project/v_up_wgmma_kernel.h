/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up of many tokens by wgmma. A piece of the matrix is 128 of its 512 rows,
 * so a tile is four chunks, one for each piece. Each of two warpgroups has 64
 * of the 128 columns.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_V_UP_WGMMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_V_UP_WGMMA_KERNEL_H

#include "spmla/platform/gpu/project/project_wgmma_device.h"
#include "spmla/platform/gpu/project/v_up_kernel.h"

#define SPMLA_K_v_up_wgmma(P, S) SPMLA_K_v_up(P, S)
typedef spmla_k_v_up_scalars spmla_k_v_up_wgmma_scalars;

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Multiplies the unit's tokens by the warpgroup's columns. */
FN void
v_up_wgmma_front(const PRIVATE project_walk *p, GLOBAL uint16_t *out,
		 int64_t stride)
{
	const uint32_t tiles = project_walk_tiles(p);
	const uint32_t group = g_item() / 128;
	/* The first of the warp's tokens. */
	uint32_t first = p->first + g_item() % 128 / 32 * 16;
	uint32_t tile, part, i, at = 0;

	out += (int64_t)p->head * V_UP_VALUES + group * V_UP_VALUES / 2;
	NO_UNROLL
	for (tile = 0; tile < tiles; tile++, first += PROJECT_WGMMA_TOKENS) {
		float d[PROJECT_WGMMA_SUMS], total[PROJECT_WGMMA_SUMS];

		UNROLL
		for (i = 0; i < PROJECT_WGMMA_SUMS; i++)
			total[i] = 0.0f;
		NO_UNROLL
		for (part = 0; part < PROJECT_WGMMA_PIECES; part++, at++) {
			project_walk_wait_chunk(p, at);
			if (tile == 0)
				project_walk_wait_piece(p, part);
			project_walk_product(p, at, part, group, d);
			g_wgmma_wait();
			project_walk_free(p, at);
			g_wgmma_hold_all(d, PROJECT_WGMMA_SUMS);
			UNROLL
			for (i = 0; i < PROJECT_WGMMA_SUMS; i++)
				total[i] += d[i];
		}
		project_walk_write(p, total,
				   first < p->end ? p->end - first : 0, 0,
				   out + (int64_t)first * stride, stride);
	}
}

/* Copies the unit's matrix and chunks. */
FN void
v_up_wgmma_back(const PRIVATE project_walk *p)
{
	enum { PARTS = PROJECT_WGMMA_PIECES };
	const uint32_t chunks = project_walk_tiles(p) * PARTS;
	uint32_t i;

	NO_UNROLL
	for (i = 0; i < chunks; i++) {
		project_walk_copy_chunk(p, i, i / PARTS, i % PARTS);
		if (i < PARTS)
			project_walk_copy_piece(p, i);
	}
}

SPMLA_KERNEL_BLOCKS(v_up_wgmma, 1)
void
spmla_k_v_up_wgmma(SPMLA_KERNEL_ARGS(v_up_wgmma))
{
	LOCAL_DYNAMIC(local, PROJECT_WGMMA_BYTES);
	project_walk p;
	uint32_t unit;

	p.x = latent;
	p.w = w_uv;
	p.x_token_stride = s.latent_token_stride;
	p.x_head_stride = s.latent_head_stride;
	p.w_head_stride = s.w_head_stride;
	p.w_row_stride = s.w_row_stride;
	p.piece_step = PROJECT_WGMMA_SIDE * s.w_row_stride;
	p.tokens = s.tokens;
	p.range = s.range;
	p.parts = PROJECT_WGMMA_PIECES;
	p.copiers = PROJECT_WGMMA_BACK;
	project_walk_begin(&p, local);
	for (unit = g_block(); unit < s.units; unit += g_blocks()) {
		project_walk_to(&p, unit);
		if (g_item() < PROJECT_WGMMA_FRONT) {
			v_up_wgmma_front(&p, out, s.out_token_stride);
			project_walk_leave(&p);
		} else {
			v_up_wgmma_back(&p);
		}
		project_walk_on(&p);
	}
}

#endif
#endif
