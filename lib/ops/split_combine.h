/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine: merges the splits of tokens that sparse_decode did in parts.
 */
#ifndef SPMLA_OPS_SPLIT_COMBINE_H
#define SPMLA_OPS_SPLIT_COMBINE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_split_combine_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;
	uint32_t split_rows; /* rows of split_out and split_lse */
	uint32_t empty_lse;  /* spmla_empty_lse */
	uint32_t next_n;     /* as in sparse_decode */
	/* [tokens - whole_tokens + 1]: the splits of token whole_tokens + r are
	 * the rows [num_splits[r], num_splits[r + 1]) */
	const int32_t *num_splits;
	const float *split_out; /* [split_rows][heads][512], dense */
	const float *split_lse; /* [split_rows][heads], dense, base 2 */
	const float *attn_sink; /* [heads], natural log units; NULL: none */
	uint16_t *out;          /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems; /* >= 512 */
	int64_t out_head_stride_elems;  /* >= 512 */
	float *lse;                     /* NULL: not wanted, nor its strides */
	int64_t lse_token_stride_elems; /* >= 1 */
	int64_t lse_head_stride_elems;  /* >= 1 */
	/* Read if next_n > 0. */
	int64_t out_request_stride_elems; /* >= 512 */
	int64_t lse_request_stride_elems; /* >= 1, with lse */
	uint32_t lse_base;                /* spmla_lse_base */
	uint32_t lse_sink;                /* 1: lse counts the sink */
	uint32_t whole_tokens;            /* as in sparse_decode; ..tokens */
	uint32_t reserved;                /* 0 */
} spmla_split_combine_args;

/* Nothing is written for the first whole_tokens tokens, and for a token with
 * exactly one split: sparse_decode wrote them. For the others, in f32, with
 * lse_i and o_i of the splits:
 *   m = the largest lse_i, 0 if all are -inf
 *   S = sum of exp2(lse_i - m)
 *   g = log2 S + m, +inf if S = 0
 *   with a sink: g += log2(1 + exp2(sink * log2 e - g))
 *   out = bf16(sum of exp2(lse_i - g) * o_i), in the order of the splits
 * lse: g * ln 2, or g with SPMLA_LSE_BASE2. It counts the sink only with
 * lse_sink. If S = 0 it is as empty_lse says.
 * A split with lse -inf adds nothing and is not read. So a token without a key
 * in any split has out = +0, like a token without splits. A token whose rows
 * are not in [0, split_rows], or end before they begin, counts as one without
 * splits: FAULT_INDEX.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row's splits.
 * Exact: out within 1.01 * 2^-8 of the sum of |terms|, lse 1e-6 + 1e-6 |x|.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: FlashMLA combine. */
spmla_status spmla_split_combine(spmla_ctx *ctx,
				 const spmla_split_combine_args *args,
				 spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
