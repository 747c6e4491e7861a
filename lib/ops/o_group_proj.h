/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: V4's first output projection, one matrix for each group of
 * heads.
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
	/* Values of a group, heads_per_group * 512: a multiple of 128, with
	 * O_FP8_PACKED of 512; at most 2^17. */
	uint32_t inner;
	uint32_t columns; /* a multiple of 128, at most 2^16 */
	uint32_t quant;   /* spmla_o_quant; w is e4m3, or bf16 with O_BF16 */
	const void *o;    /* e4m3 or bf16 [tokens][groups][inner] */
	int64_t o_token_stride_elems; /* >= inner: groups may be outermost */
	int64_t o_group_stride_elems; /* >= inner */
	/* f32 [groups][inner / 128][tokens], or int32 [groups][inner /
	 * 512][tokens] of four ue8m0 each; quantised forms only. Both strides
	 * >= tokens. */
	const void *o_scales;
	int64_t o_scale_stride_elems;
	int64_t o_scale_group_stride_elems;
	const void *w; /* e4m3 or bf16 [groups][columns][inner] */
	int64_t w_group_stride_elems; /* >= inner */
	int64_t w_row_stride_elems;   /* >= inner */
	/* [groups][columns / 128][inner / 128]; quantised forms only. Both
	 * strides >= inner / 128. */
	const float *w_scales;
	int64_t w_scale_group_stride_elems;
	int64_t w_scale_row_stride_elems;
	uint16_t *z;                  /* bf16 [tokens][groups][columns] */
	int64_t z_token_stride_elems; /* >= columns */
	int64_t z_group_stride_elems; /* >= columns */
} spmla_o_group_proj_args;

/* z[t][g][d] = bf16(sum over r of o[t][g][r] * w[g][d][r]), in f32.
 *
 * Order of the sum. Part b is 128 values. Lane j of 8 adds the (exact) products
 * of r = 128 b + 16 j .. 128 b + 16 j + 15 in order, then the lanes are added
 * in a tree (j + 4, + 2, + 1). Parts are added in order. In the quantised forms
 * each part is first multiplied by o_scale[t][g][b] * w_scale[g][d / 128][b],
 * two f32 products; a ue8m0 is 2^(byte - 127), 2^128 is +inf. A NaN is 0x7fc0.
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend on that row and, on Hopper without
 * SPMLA_CONFIG_BATCH_INVARIANT, on whether there are more than 16 tokens.
 * Exact: the bits of this order as long as no product leaves the range of f32;
 * before the rounding to bf16 within (inner / 128 + 24) * 2^-24 of the sum of
 * |terms|.
 * CUDA uses matrix instructions if rows of o and w are aligned to 16 bytes. The
 * order inside a part is then the hardware's, and the bound is (inner / 128 +
 * 184) * 2^-24. Parts are added in one of two ways: all in order, or in two
 * sums that are added at the end. The two sums have the even parts and the odd
 * ones (bf16: the first halves of all parts and the second ones). The hardware
 * adds at least 8 products to the sum at a time, and truncates each to one bit
 * below the last bit of the largest.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM fp8_einsum "bhr,hdr->bhd" with recipe (1, 128, 128), and the
 * bf16 einsum of its other platforms. */
spmla_status spmla_o_group_proj(spmla_ctx *ctx,
				const spmla_o_group_proj_args *args,
				spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
