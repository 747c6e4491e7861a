/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: a block takes 32 columns of a head for 64 tokens, 8 at a time.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_V_UP_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_V_UP_KERNEL_H

#include "spmla/platform/gpu/project/project_device.h"

#define SPMLA_K_v_up(P, S)              \
	P(const uint16_t, latent)       \
	P(const uint16_t, w_uv)         \
	P(uint16_t, out)                \
	S(int64_t, latent_token_stride) \
	S(int64_t, latent_head_stride)  \
	S(int64_t, w_head_stride)       \
	S(int64_t, w_row_stride)        \
	S(int64_t, out_token_stride)    \
	S(uint32_t, tokens)             \
	S(uint32_t, heads)              \
	S(uint32_t, w_aligned)          \
	S(uint32_t, units)              \
	S(uint32_t, range)
SPMLA_KERNEL_SCALARS(v_up)

enum {
	V_UP_VALUES = 128, /* of a head */
	V_UP_TILES = V_UP_VALUES / PROJECT_COLUMNS,
	V_UP_SLABS = SPMLA_MLA_LATENT / 128 /* 128 rows of a matrix each */
};

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(v_up)
void
spmla_k_v_up(SPMLA_KERNEL_ARGS(v_up))
{
	LOCAL_ARRAY(uint64_t, rows, SPMLA_MLA_LATENT * 2);
	LOCAL_ARRAY(float, all, PROJECT_SUMS);
	const uint32_t groups = (s.tokens - 1) / PROJECT_GROUP + 1;
	const uint64_t pieces = (uint64_t)s.heads * V_UP_TILES * groups;
	uint64_t piece;

	for (piece = g_block(); piece < pieces; piece += g_blocks()) {
		const uint32_t tile = (uint32_t)(piece % V_UP_TILES);
		const uint32_t h = (uint32_t)(piece / V_UP_TILES % s.heads);
		const uint32_t group = (uint32_t)(piece / V_UP_TILES / s.heads);
		const uint32_t end =
			s.tokens - group * PROJECT_GROUP > PROJECT_GROUP
				? (group + 1) * PROJECT_GROUP
				: s.tokens;
		GLOBAL const uint16_t *w = w_uv + (int64_t)h * s.w_head_stride +
					   tile * PROJECT_COLUMNS;
		uint32_t pairs[V_UP_SLABS][PROJECT_EACH];
		uint32_t first, slab, i;

		UNROLL
		for (slab = 0; slab < V_UP_SLABS; slab++)
			project_matrix(
				w + (int64_t)(slab * 128) * s.w_row_stride,
				s.w_row_stride, s.w_aligned, pairs[slab]);
		for (first = group * PROJECT_GROUP; first < end;
		     first += PROJECT_TOKENS) {
			const uint32_t t = first + g_item() / PROJECT_COLUMNS;
			float sums[2 * PROJECT_TOKENS];
			uint16_t value;

			project_rows(latent +
					     (int64_t)first *
						     s.latent_token_stride +
					     (int64_t)h * s.latent_head_stride,
				     s.latent_token_stride, end - first,
				     SPMLA_MLA_LATENT, rows);
			UNROLL
			for (i = 0; i < 2 * PROJECT_TOKENS; i++)
				sums[i] = 0.0f;
			BARRIER();
			UNROLL
			for (slab = 0; slab < V_UP_SLABS; slab++)
				project_add(rows + slab * 128, SPMLA_MLA_LATENT,
					    pairs[slab], sums);
			value = project_total(sums, all);
			if (t < end)
				out[(int64_t)t * s.out_token_stride +
				    (int64_t)h * V_UP_VALUES +
				    tile * PROJECT_COLUMNS +
				    g_item() % PROJECT_COLUMNS] = value;
		}
	}
}

#endif
#endif
