/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj by matrix instructions: columns of the matrix are the rows of A,
 * tokens the columns of B. A block has 16 columns of a group for up to 16
 * tokens, its four subgroups a quarter of the parts each, so that few tokens
 * keep many loads on their way; their sums meet once, at the end. The hard
 * idea, as in mqa_logits_mma: the order of k is free as long as both sides keep
 * it, so a lane's 16 bytes of a row are its values of four steps (e4m3, exact
 * in f16) or of two (bf16), and nothing passes through shared memory.
 *
 * A token's bits do not depend on the others, nor on where it stands.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_MMA_KERNEL_H

#include "spmla/platform/gpu/dialect/mma.h"
#include "spmla/platform/gpu/project/o_group_proj_kernel.h"

#define SPMLA_K_o_group_proj_mma(P, S)      SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_bf16_mma(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_mma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_mma_scalars;

enum {
	O_MMA_ITEMS = 128,
	O_MMA_SUBGROUPS = 4,
	O_MMA_COLUMNS = 16,
	O_MMA_TILE = 8,   /* tokens of an instruction */
	O_MMA_TOKENS = 16 /* of a block */
};

#ifdef SPMLA_GPU_KERNELS

enum {
	O_MMA_TILES = O_MMA_TOKENS / O_MMA_TILE,
	/* Bytes of a row that are loaded at once, 16 of each 64 by a lane: a
	 * part of e4m3, half one of bf16. */
	O_MMA_BYTES = 128,
	O_MMA_SUMS = O_MMA_SUBGROUPS * O_MMA_TOKENS * O_MMA_COLUMNS
};

/* What a lane has of a row's 128 bytes; zeros if `is` is 0. */
FN void
o_mma_load(GLOBAL const uint8_t *row, uint32_t is, PRIVATE uint32_t *x)
{
	g_load128_if(is, row, x);
	g_load128_if(is, row + 64, x + 4);
}

/* c += 128 bytes of two rows times 128 bytes of a token. A lane gives four
 * values to a step: one word of e4m3, or two words of bf16. */
FN void
o_mma_step(PRIVATE float *c, const PRIVATE uint32_t *low,
	   const PRIVATE uint32_t *high, const PRIVATE uint32_t *o,
	   uint32_t fp8)
{
	uint32_t i;

	if (fp8) {
		UNROLL
		for (i = 0; i < 8; i++) {
			const uint32_t a[4] = {
				g_e4m3x2_to_f16x2(low[i]),
				g_e4m3x2_to_f16x2(high[i]),
				g_e4m3x2_to_f16x2(low[i] >> 16),
				g_e4m3x2_to_f16x2(high[i] >> 16)};
			const uint32_t b[2] = {g_e4m3x2_to_f16x2(o[i]),
					       g_e4m3x2_to_f16x2(o[i] >> 16)};

			g_mma_f16(c, a, b);
		}
	} else {
		UNROLL
		for (i = 0; i < 8; i += 2) {
			const uint32_t a[4] = {low[i], high[i], low[i + 1],
					       high[i + 1]};

			g_mma_bf16(c, a, o + i);
		}
	}
}

/* The scales of part b of the lane's two tokens, times the matrix's. */
FN void
o_mma_scales(GLOBAL const uint32_t *o_scales, float w_scale,
	     const PRIVATE spmla_k_o_group_proj_scalars *s, uint32_t b,
	     uint32_t first, PRIVATE float *scale)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++)
		scale[i] = first + i < s->tokens
				   ? o_proj_o_scale(o_scales + first + i,
						    s->o_scale_stride, b,
						    s->packed) *
					     w_scale
				   : 0.0f;
}

/* The subgroup's parts of a unit: total[tiles][row g and g + 8][two tokens]. */
FN void
o_mma_parts(GLOBAL const uint8_t *o, GLOBAL const uint32_t *o_scales,
	    GLOBAL const uint8_t *w, GLOBAL const float *w_scales,
	    const PRIVATE spmla_k_o_group_proj_scalars *s, uint32_t first,
	    uint32_t fp8, float total[O_MMA_TILES][4])
{
	const uint32_t bytes = fp8 ? 1 : 2;
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const uint32_t steps = s->inner * bytes / O_MMA_BYTES;
	const uint32_t subgroup = g_item() / g_width();
	const uint32_t end = steps * (subgroup + 1) / O_MMA_SUBGROUPS;
	const int64_t down = 8 * s->w_row_stride * bytes;
	const int64_t tile_stride = O_MMA_TILE * s->o_token_stride * bytes;
	uint32_t step = steps * subgroup / O_MMA_SUBGROUPS, tile, i;
	uint32_t low[8], high[8], x[8];

	w += (int64_t)g * s->w_row_stride * bytes +
	     (int64_t)step * O_MMA_BYTES + 16 * t;
	o += (int64_t)(first + g) * s->o_token_stride * bytes +
	     (int64_t)step * O_MMA_BYTES + 16 * t;
	o_mma_load(w, step < end, low);
	o_mma_load(w + down, step < end, high);
	o_mma_load(o, step < end && first + g < s->tokens, x);
	NO_UNROLL
	for (; step < end; step++) {
		const float w_scale = fp8 ? w_scales[step] : 1.0f;
		const uint32_t more = step + 1 < end;
		uint32_t next[16];

		w += O_MMA_BYTES;
		o_mma_load(w, more, next);
		o_mma_load(w + down, more, next + 8);
		UNROLL
		for (tile = 0; tile < O_MMA_TILES; tile++) {
			const uint32_t at = first + tile * O_MMA_TILE;
			const uint32_t last = tile + 1 == O_MMA_TILES ||
					      at + O_MMA_TILE >= s->tokens;
			float c[4] = {0.0f, 0.0f, 0.0f, 0.0f}, scale[2];
			uint32_t ahead[8];

			if (at >= s->tokens)
				break;
			/* The tile behind it, or the first of the next step. */
			o_mma_load(last ? o + O_MMA_BYTES
					: o + (tile + 1) * tile_stride,
				   last ? more && first + g < s->tokens
					: at + O_MMA_TILE + g < s->tokens,
				   ahead);
			if (fp8) {
				o_mma_scales(o_scales, w_scale, s, step,
					     at + 2 * t, scale);
				o_mma_step(c, low, high, x, fp8);
				UNROLL
				for (i = 0; i < 4; i++)
					total[tile][i] += c[i] * scale[i % 2];
			} else {
				o_mma_step(total[tile], low, high, x, fp8);
			}
			UNROLL
			for (i = 0; i < 8; i++)
				x[i] = ahead[i];
		}
		o += O_MMA_BYTES;
		UNROLL
		for (i = 0; i < 8; i++) {
			low[i] = next[i];
			high[i] = next[8 + i];
		}
	}
}

/* Both kernels; `fp8` is a constant. */
FN void
o_mma_all(GLOBAL const uint8_t *o, GLOBAL const uint32_t *o_scales,
	  GLOBAL const uint8_t *w, GLOBAL const float *w_scales,
	  GLOBAL uint16_t *z, const PRIVATE spmla_k_o_group_proj_scalars *s,
	  uint32_t fp8, LOCAL float *sums)
{
	const uint32_t bytes = fp8 ? 1 : 2;
	const uint32_t groups_of_tokens = (s->tokens - 1) / O_MMA_TOKENS + 1;
	const uint32_t tiles = s->columns / O_MMA_COLUMNS;
	const uint64_t units = (uint64_t)groups_of_tokens * tiles * s->groups;
	const uint32_t lane_g = g_lane() / 4, lane_t = g_lane() % 4;
	LOCAL float *own =
		sums + g_item() / g_width() * O_MMA_TOKENS * O_MMA_COLUMNS;
	uint64_t unit;

	for (unit = g_block(); unit < units; unit += g_blocks()) {
		const uint32_t first =
			(uint32_t)(unit % groups_of_tokens) * O_MMA_TOKENS;
		const uint32_t column =
			(uint32_t)(unit / groups_of_tokens % tiles) *
			O_MMA_COLUMNS;
		const uint32_t g = (uint32_t)(unit / groups_of_tokens / tiles);
		float total[O_MMA_TILES][4];
		uint32_t tile, i;

		UNROLL
		for (tile = 0; tile < O_MMA_TILES; tile++) {
			UNROLL
			for (i = 0; i < 4; i++)
				total[tile][i] = 0.0f;
		}
		o_mma_parts(o + (int64_t)g * s->o_group_stride * bytes,
			    o_scales + (int64_t)g * s->o_scale_group_stride,
			    w + ((int64_t)g * s->w_group_stride +
				 (int64_t)column * s->w_row_stride) *
					    bytes,
			    w_scales + (int64_t)g * s->w_scale_group_stride +
				    (int64_t)(column / O_PROJ_PART) *
					    s->w_scale_row_stride,
			    s, first, fp8, total);
		BARRIER(); /* the sums before are read */
		UNROLL
		for (tile = 0; tile < O_MMA_TILES; tile++) {
			UNROLL
			for (i = 0; i < 4; i++)
				own[(tile * O_MMA_TILE + 2 * lane_t + i % 2) *
					    O_MMA_COLUMNS +
				    lane_g + i / 2 * 8] = total[tile][i];
		}
		BARRIER();
		for (i = g_item(); i < O_MMA_TOKENS * O_MMA_COLUMNS;
		     i += O_MMA_ITEMS) {
			const uint32_t t = first + i / O_MMA_COLUMNS;
			const uint32_t n = O_MMA_TOKENS * O_MMA_COLUMNS;

			if (t < s->tokens)
				z[(int64_t)t * s->z_token_stride +
				  (int64_t)g * s->z_group_stride + column +
				  i % O_MMA_COLUMNS] =
					(uint16_t)g_bf16_bits(
						(sums[i] + sums[n + i]) +
						(sums[2 * n + i] +
						 sums[3 * n + i]));
		}
	}
}

SPMLA_KERNEL(o_group_proj_mma)
void
spmla_k_o_group_proj_mma(SPMLA_KERNEL_ARGS(o_group_proj_mma))
{
	LOCAL_ARRAY(float, sums, O_MMA_SUMS);

	o_mma_all(o, o_scales, w, w_scales, z, &s, 1, sums);
}

SPMLA_KERNEL(o_group_proj_bf16_mma)
void
spmla_k_o_group_proj_bf16_mma(SPMLA_KERNEL_ARGS(o_group_proj_bf16_mma))
{
	LOCAL_ARRAY(float, sums, O_MMA_SUMS);

	o_mma_all(o, o_scales, w, w_scales, z, &s, 0, sums);
}

#endif
#endif
