/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj with matrix instructions: a tile is 64 columns of a group for up
 * to 16 tokens. A subgroup has 16 columns and half of each chunk (with e4m3 one
 * part of 128 values), so that four subgroups, not eight, convert the same
 * values of tokens. The hard idea, as in mqa_logits_mma: the order of k is free
 * if both operands have the same, so a lane's 16 bytes of a row are its values
 * for four steps (e4m3, exact in f16) or two (bf16).
 *
 * Matrix instructions add up half a chunk. All first halves, times their
 * scales, are added in order, and so are all second halves; then these two sums
 * are added. So a token's bits do not depend on other tokens, nor on its place
 * among them.
 */
#ifndef SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_PROJECT_O_GROUP_PROJ_MMA_KERNEL_H

#include "spmla/platform/gpu/dialect/mma.h"
#include "spmla/platform/gpu/project/o_proj_ring_device.h"

#define SPMLA_K_o_group_proj_mma(P, S)      SPMLA_K_o_group_proj(P, S)
#define SPMLA_K_o_group_proj_bf16_mma(P, S) SPMLA_K_o_group_proj(P, S)
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_mma_scalars;
typedef spmla_k_o_group_proj_scalars spmla_k_o_group_proj_bf16_mma_scalars;

enum {
	O_MMA_ITEMS = O_RING_ITEMS,
	O_MMA_TOKENS = 16,
	O_MMA_COLUMNS = 64, /* of a tile */
	O_MMA_ROW = 256,    /* bytes of a row in a chunk */
	O_MMA_PARTS = 2,    /* of e4m3 in a chunk */
	O_MMA_CHUNKS = 4,
	/* Shared memory in bytes: the ring, then the sums of both halves. */
	O_MMA_SUMS_AT = O_MMA_CHUNKS * O_RING_CHUNK(O_MMA_TOKENS, O_MMA_COLUMNS,
						    O_MMA_ROW, O_MMA_PARTS),
	O_MMA_BYTES = O_MMA_SUMS_AT + 2 * 4 * O_MMA_TOKENS * O_MMA_COLUMNS
};

#ifdef SPMLA_GPU_KERNELS

enum { O_MMA_TILES = 2 /* n8 tiles of a subgroup */ };

/* A lane's operands for four steps of e4m3, or two of bf16, from 16 bytes of a
 * row: two words for each step. */
FN void
o_mma_words(LOCAL const uint8_t *from, uint32_t fp8, PRIVATE uint32_t *x)
{
	uint32_t raw[4], i;

	g_local_load128(from, raw);
	UNROLL
	for (i = 0; i < 4; i++) {
		if (fp8)
			g_e4m3x4_to_f16x4(raw[i], x + 2 * i);
		else
			x[i] = raw[i];
	}
}

/* total += the products of half a chunk, which is 128 bytes of each row. A lane
 * has tokens g and g + 8, and two columns of each n8 tile. */
FN void
o_mma_chunk(const PRIVATE o_proj_params *p, const PRIVATE o_ring_shape *n,
	    LOCAL uint8_t *chunk, uint32_t part, float total[O_MMA_TILES][4])
{
	const uint32_t g = g_lane() / 4, half = g_item() / 128;
	const uint32_t steps = n->fp8 ? 4 : 2;
	LOCAL const uint8_t *o = chunk + g * O_MMA_ROW;
	LOCAL const uint8_t *w =
		o + (O_MMA_TOKENS + g_item() / 32 % 4 * 16) * O_MMA_ROW;
	float c[O_MMA_TILES][4], scale[2] = {1.0f, 1.0f};
	uint32_t span, tile, i;

	if (n->fp8) {
		LOCAL const uint32_t *scales =
			o_ring_scales(n, chunk) +
			half * O_RING_SCALES(O_MMA_TOKENS);

		part += half;
		if (part * O_PROJ_PART >= p->s.inner)
			return;
		scale[0] = o_ring_scale(p, scales, O_MMA_TOKENS, g, part);
		scale[1] = o_ring_scale(p, scales, O_MMA_TOKENS, g + 8, part);
	}
	UNROLL
	for (tile = 0; tile < O_MMA_TILES; tile++) {
		UNROLL
		for (i = 0; i < 4; i++)
			c[tile][i] = 0.0f;
	}
	UNROLL
	for (span = 0; span < 2; span++) {
		const uint32_t at = ((8 * half + 4 * span + g_lane() % 4) ^
				     o_ring_swizzle(g, 0)) *
				    16;
		uint32_t low[8], high[8];

		o_mma_words(o + at, n->fp8, low);
		o_mma_words(o + 8 * O_MMA_ROW + at, n->fp8, high);
		UNROLL
		for (tile = 0; tile < O_MMA_TILES; tile++) {
			uint32_t b[8];

			o_mma_words(w + tile * 8 * O_MMA_ROW + at, n->fp8, b);
			UNROLL
			for (i = 0; i < steps; i++) {
				const uint32_t a[4] = {low[2 * i], high[2 * i],
						       low[2 * i + 1],
						       high[2 * i + 1]};

				if (n->fp8)
					g_mma_f16(c[tile], a, b + 2 * i);
				else
					g_mma_bf16(c[tile], a, b + 2 * i);
			}
		}
	}
	UNROLL
	for (tile = 0; tile < O_MMA_TILES; tile++) {
		UNROLL
		for (i = 0; i < 4; i++)
			total[tile][i] += c[tile][i] * scale[i / 2];
	}
}

/* Writes a tile: the sums of both halves added. */
FN void
o_mma_write(const PRIVATE o_proj_params *p, const PRIVATE o_tile *tile,
	    float total[O_MMA_TILES][4], LOCAL float *sums)
{
	enum { SUMS = O_MMA_TOKENS * O_MMA_COLUMNS };
	LOCAL float *own = sums + g_item() / 128 * SUMS +
			   g_lane() / 4 * O_MMA_COLUMNS +
			   g_item() / 32 % 4 * 16 + g_lane() % 4 * 2;
	uint32_t i, j;

	BARRIER(); /* all have read the previous sums */
	UNROLL
	for (i = 0; i < O_MMA_TILES; i++) {
		UNROLL
		for (j = 0; j < 4; j++)
			own[8 * i + j / 2 * 8 * O_MMA_COLUMNS + j % 2] =
				total[i][j];
	}
	BARRIER();
	for (i = g_item(); i < SUMS; i += O_MMA_ITEMS) {
		const uint32_t t = tile->first + i / O_MMA_COLUMNS;

		if (t < p->s.tokens)
			p->z[(int64_t)t * p->s.z_token_stride +
			     (int64_t)tile->group * p->s.z_group_stride +
			     tile->column + i % O_MMA_COLUMNS] =
				(uint16_t)g_bf16_bits(sums[i] + sums[SUMS + i]);
	}
}

FN o_ring_shape
o_mma_shape(uint32_t fp8)
{
	o_ring_shape n;

	n.fp8 = fp8;
	n.tokens = O_MMA_TOKENS;
	n.columns = O_MMA_COLUMNS;
	n.bytes = O_MMA_ROW;
	n.parts = O_MMA_PARTS;
	n.chunks = O_MMA_CHUNKS;
	n.tokens_by_8 = n.columns_by_8 = 0;
	return n;
}

/* Both kernels; `fp8` is a constant. */
FN void
o_mma_all(const PRIVATE o_proj_params *p, uint32_t fp8, LOCAL uint8_t *local)
{
	const o_ring_shape n = o_mma_shape(fp8);
	const uint32_t parts = fp8 ? O_MMA_PARTS : 1; /* of a chunk */
	o_ring r = o_ring_begin(p, &n, O_MMA_CHUNKS - 1, local);
	uint32_t unit, part, i, j;

	for (unit = g_block(); unit < r.units; unit += g_blocks()) {
		const o_tile tile = o_tile_of(p, n.tokens, n.columns, unit);
		float total[O_MMA_TILES][4];

		UNROLL
		for (i = 0; i < O_MMA_TILES; i++) {
			UNROLL
			for (j = 0; j < 4; j++)
				total[i][j] = 0.0f;
		}
		NO_UNROLL
		for (part = 0; part < p->s.inner / O_PROJ_PART; part += parts) {
			g_local_copies_wait_but(O_MMA_CHUNKS - 2);
			/* All see the chunk, and have read the one before. */
			BARRIER();
			o_ring_copy(p, &n, &r);
			o_mma_chunk(p, &n, o_ring_chunk(&n, r.at, r.from), part,
				    total);
			r.from = r.from + 1 == O_MMA_CHUNKS ? 0 : r.from + 1;
		}
		o_mma_write(p, &tile, total,
			    (LOCAL float *)(local + O_MMA_SUMS_AT));
	}
}

SPMLA_KERNEL_BLOCKS(o_group_proj_mma, 2)
void
spmla_k_o_group_proj_mma(SPMLA_KERNEL_ARGS(o_group_proj_mma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	LOCAL_DYNAMIC(local, O_MMA_BYTES);

	o_mma_all(&p, 1, local);
}

SPMLA_KERNEL_BLOCKS(o_group_proj_bf16_mma, 2)
void
spmla_k_o_group_proj_bf16_mma(SPMLA_KERNEL_ARGS(o_group_proj_bf16_mma))
{
	const o_proj_params p = {SPMLA_KERNEL_VALUES(o_group_proj)};
	LOCAL_DYNAMIC(local, O_MMA_BYTES);

	o_mma_all(&p, 0, local);
}

#endif
#endif
