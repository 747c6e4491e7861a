/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: attention of each token over its selected cache rows.
 */
#ifndef SPMLA_OPS_SPARSE_DECODE_H
#define SPMLA_OPS_SPARSE_DECODE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_sparse_decode_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;     /* 1..config.heads */
	uint32_t topk;      /* entries of a row of slots, any number */
	uint32_t empty_lse; /* spmla_empty_lse */
	float softmax_scale;
	const uint16_t *q;            /* bf16 [tokens][heads][576] */
	int64_t q_token_stride_elems; /* >= 576 */
	int64_t q_head_stride_elems;  /* >= 576 */
	const int32_t *slots;         /* [tokens][slots_stride_elems] */
	int64_t slots_stride_elems;   /* >= topk */
	const int32_t *topk_lens; /* [tokens]: entries that count; NULL: topk */
	const float *attn_sink;   /* [heads], natural log units; NULL: none */
	uint16_t *out;            /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems; /* >= 512 */
	int64_t out_head_stride_elems;  /* >= 512 */
	float *lse; /* natural log; NULL: not wanted, nor its strides */
	int64_t lse_token_stride_elems; /* >= 1 */
	int64_t lse_head_stride_elems;  /* >= 1 */
	spmla_cache cache;              /* FP8_DS_MLA or MLA_BF16 */
} spmla_sparse_decode_args;

/* Key p of a token counts if slots[p] != -1 and p < topk_lens[t], which is
 * clamped to [0, topk]; entries past it are not read. A slot outside the cache
 * does not count: FAULT_INDEX. A slot that occurs twice counts twice. K = the
 * row's 576 values, V = its first 512. FP8_DS_MLA rows are dequantised to
 * bf16(e4m3 * bf16(scale)); values of rows that do not count are never touched;
 * NaN in those that do goes through the arithmetic.
 * Blocks are 64 entries, whether they count or not, in order. In f32:
 *   s = q . k, m = the largest s of the block,
 *   p = exp2((s - m) * softmax_scale * log2 e),
 *   L = sum of p, O = sum of bf16(p) * v,
 * the L and O of the blocks brought to the largest m so far (max) and summed;
 * out = bf16(O / (L + exp(sink - max * softmax_scale))); a sink of +inf gives 0
 * of either sign, of -inf nothing. lse = ln(sum of exp(softmax_scale * s)),
 * without the sink. A token with no key, or whose every s is -inf: out = +0,
 * lse as empty_lse says.
 * Alias: none. Order: enqueues; capturable. Deterministic: a row's bits depend
 * on that row only. Exact: out 1e-3 + 2.01/128 |x|, lse 1e-6 + 8.01/65536 |x|
 * of the exact result over the dequantised rows; where values cancel, out is
 * off by 2^-8 of the mean of |v| so weighted, and lse by 2^-18 of the largest
 * sum of |terms| of a score times softmax_scale.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: FlashMLA sparse decode, sm_90, each block a split. */
spmla_status spmla_sparse_decode(spmla_ctx *ctx,
				 const spmla_sparse_decode_args *args,
				 spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
