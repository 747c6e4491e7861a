/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up with matrix instructions: a tile is all columns of a head for up to 16
 * tokens, or up to 64.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_V_UP_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_V_UP_MMA_KERNEL_H

#include "spmla/platform/gpu/project/project_mma_device.h"
#include "spmla/platform/gpu/project/v_up_kernel.h"

#define SPMLA_K_v_up_mma(P, S)     SPMLA_K_v_up(P, S)
#define SPMLA_K_v_up_mma_few(P, S) SPMLA_K_v_up(P, S)
typedef spmla_k_v_up_scalars spmla_k_v_up_mma_scalars;
typedef spmla_k_v_up_scalars spmla_k_v_up_mma_few_scalars;

enum {
	V_UP_MANY = 64, /* tokens of the larger tile */
	/* Chunks of the rings. With so many, an SM has shared memory for two
	 * blocks. */
	V_UP_FEW_RING = 5,
	V_UP_MANY_RING = 4,
	V_UP_FEW_BYTES =
		V_UP_FEW_RING * PROJECT_MMA_CHUNK_BYTES(PROJECT_MMA_FEW),
	V_UP_MANY_BYTES = V_UP_MANY_RING * PROJECT_MMA_CHUNK_BYTES(V_UP_MANY)
};

#ifdef SPMLA_GPU_KERNELS

/* Both kernels; `rows` and `ring` are constants. */
FN void
v_up_mma_all(GLOBAL const uint16_t *latent, GLOBAL const uint16_t *w_uv,
	     GLOBAL uint16_t *out, const PRIVATE spmla_k_v_up_scalars *s,
	     uint32_t rows, uint32_t ring, LOCAL uint8_t *local)
{
	const project_mma p = {latent,
			       w_uv,
			       s->latent_token_stride,
			       s->latent_head_stride,
			       s->w_head_stride,
			       s->w_row_stride,
			       s->tokens,
			       s->units,
			       SPMLA_MLA_LATENT,
			       V_UP_VALUES,
			       rows,
			       ring};
	project_ring r = project_begin(&p, local);
	uint32_t unit, line, half;

	for (unit = g_block(); unit < p.units; unit += g_blocks()) {
		const project_tile tile = project_tile_of(&p, unit);
		float sums[PROJECT_MMA_LINES][PROJECT_MMA_TILES][4];

		project_product(&p, &r, sums);
		UNROLL
		for (line = 0; line < PROJECT_MMA_LINES_OF(&p); line++) {
			UNROLL
			for (half = 0; half < 2; half++) {
				const uint32_t t = tile.first +
						   project_row(&p) + 16 * line +
						   8 * half + g_lane() / 4;

				project_write(
					&p, sums[line], half, t < s->tokens,
					out + (int64_t)t * s->out_token_stride +
						(int64_t)tile.head *
							V_UP_VALUES +
						project_column(&p));
			}
		}
	}
}

SPMLA_KERNEL_BLOCKS(v_up_mma, 2)
void
spmla_k_v_up_mma(SPMLA_KERNEL_ARGS(v_up_mma))
{
	LOCAL_DYNAMIC(local, V_UP_MANY_BYTES);

	v_up_mma_all(latent, w_uv, out, &s, V_UP_MANY, V_UP_MANY_RING, local);
}

SPMLA_KERNEL_BLOCKS(v_up_mma_few, 2)
void
spmla_k_v_up_mma_few(SPMLA_KERNEL_ARGS(v_up_mma_few))
{
	LOCAL_DYNAMIC(local, V_UP_FEW_BYTES);

	v_up_mma_all(latent, w_uv, out, &s, PROJECT_MMA_FEW, V_UP_FEW_RING,
		     local);
}

#endif
#endif
