/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: V4's first output projection, a matrix for each group of heads.
 */
#ifndef SPMLA_OPS_O_GROUP_PROJ_H
#define SPMLA_OPS_O_GROUP_PROJ_H

#include "spmla/ops/inv_rope_quant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* o and its scales are as spmla_inv_rope_quant writes them. */
typedef struct spmla_o_group_proj_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t groups; /* 1..256 */
	/* Values of a group, heads_per_group * 512: a multiple of 128, of 512
	 * with O_FP8_PACKED; at most 2^17. */
	uint32_t inner;
	uint32_t columns; /* a multiple of 128, at most 2^16 */
	uint32_t quant;   /* spmla_o_quant; of w: e4m3, or bf16 with O_BF16 */
	const void *o;    /* e4m3 or bf16 [tokens][groups][inner] */
	int64_t o_token_stride_elems; /* >= inner: groups may be outermost */
	int64_t o_group_stride_elems; /* >= inner */
	/* f32 [groups][inner / 128][tokens], or int32 [groups][inner / 512]
	 * [tokens] of four ue8m0 each; quantised only. Both >= tokens. */
	const void *o_scales;
	int64_t o_scale_stride_elems;
	int64_t o_scale_group_stride_elems;
	const void *w; /* e4m3 or bf16 [groups][columns][inner] */
	int64_t w_group_stride_elems; /* >= inner */
	int64_t w_row_stride_elems;   /* >= inner */
	/* [groups][columns / 128][inner / 128]; quantised only. Both >= inner /
	 * 128. */
	const float *w_scales;
	int64_t w_scale_group_stride_elems;
	int64_t w_scale_row_stride_elems;
	uint16_t *z;                  /* bf16 [tokens][groups][columns] */
	int64_t z_token_stride_elems; /* >= columns */
	int64_t z_group_stride_elems; /* >= columns */
} spmla_o_group_proj_args;

/* z[t][g][d] = bf16(sum over r of o[t][g][r] * w[g][d][r]), in f32:
 * part b of 128 values: lane j of 8 adds the (exact) products of r = 128 b +
 * 16 j .. + 15 in order, then the lanes are added as a tree (j + 4, + 2, + 1);
 * O_BF16: the parts are added in order. Else each is multiplied by
 * o_scale[t][g][b] * w_scale[g][d / 128][b] before, two f32 products; a ue8m0
 * is 2^(byte - 127), 2^128 is +inf. A NaN is 0x7fc0.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Deterministic: a row's bits depend
 * on that row only. Exact: the bits of this order as long as no product leaves
 * the range of f32; within (inner / 128 + 24) * 2^-24 of the sum of |terms|
 * before the rounding to bf16. On a GPU with matrix instructions, where every
 * row of o and w begins at a multiple of 16 bytes, sums are in their order,
 * those of four quarters of inner added as a tree: within (inner / 2 + 160) *
 * 2^-24. Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM fp8_einsum "bhr,hdr->bhd" with recipe (1, 128, 128), and the
 * einsum in bf16 of its other platforms. */
spmla_status spmla_o_group_proj(spmla_ctx *ctx,
				const spmla_o_group_proj_args *args,
				spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
