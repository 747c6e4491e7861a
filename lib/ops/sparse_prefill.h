/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: attention of each token over selected rows of gathered bf16
 * keys.
 */
#ifndef SPMLA_OPS_SPARSE_PREFILL_H
#define SPMLA_OPS_SPARSE_PREFILL_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_sparse_prefill_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;      /* 1..config.heads */
	uint32_t dim;        /* of queries and keys: 576 (V3.2) or 512 (V4) */
	uint32_t topk;       /* entries of a row of indices, 1 or more */
	uint32_t kv_rows;    /* 0: no index is valid */
	uint32_t lse_base;   /* spmla_lse_base, of lse and max_logits */
	uint32_t empty_lse;  /* spmla_empty_lse */
	float softmax_scale; /* > 0, <= 2^126 */
	uint32_t lse_sink;   /* 1: lse counts the sink */
	const uint16_t *q;   /* bf16 [tokens][heads][dim] */
	int64_t q_token_stride_elems; /* >= dim */
	int64_t q_head_stride_elems;  /* >= dim */
	const uint16_t *kv;           /* bf16 [kv_rows][dim] */
	int64_t kv_stride_elems;      /* >= dim */
	/* [tokens][indices_stride_elems]; ragged: [topk] */
	const int32_t *indices;
	int64_t indices_stride_elems; /* >= topk */
	const int32_t *topk_lens; /* [tokens]: entries that count; NULL: topk */
	const float *attn_sink;   /* [heads], natural log units; NULL: none */
	uint16_t *out;            /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems; /* >= 512 */
	int64_t out_head_stride_elems;  /* >= 512 */
	float *max_logits;              /* [tokens][heads]; NULL: not wanted */
	float *lse;                     /* [tokens][heads]; NULL: not wanted */
	int64_t lse_token_stride_elems; /* >= 1; for both, if one is wanted */
	int64_t lse_head_stride_elems;  /* >= 1 */
	/* [tokens + 1], ragged lists: token t has the entries indptr[t] ..
	 * indptr[t + 1] - 1 of indices. topk is then the entries of indices in
	 * all, and neither the stride nor topk_lens is read. NULL: rows. */
	const int32_t *indptr;
} spmla_sparse_prefill_args;

/* Keys. Entry p of a token counts if 0 <= indices[p] < kv_rows and p <
 * topk_lens[t], clamped to [0, topk]. Any other index is masked without a
 * report. Entries past the length are not read. A ragged list is as long as its
 * entries. An indptr that is negative, falls, or leads past topk makes the
 * token empty: FAULT_INDEX. Rows and ragged lists with the same entries give
 * the same bits. A row that occurs twice counts twice.
 * K is the dim values of the row, V its first 512. Rows that do not count are
 * never read; NaN in rows that do goes through the arithmetic.
 *
 * Attention. Blocks, sums and the sink are as in spmla_sparse_decode; the sink
 * changes only out and, with lse_sink, lse.
 *   max_logits = the largest softmax_scale * s
 *   lse        = ln(sum of exp(softmax_scale * s)), plus exp(sink) in the sum
 *                with lse_sink
 * SPMLA_LSE_BASE2 multiplies both by log2 e. A token without keys, or whose
 * every s is -inf, has out = +0, max_logits = -inf, and lse as empty_lse says.
 * FlashMLA returns natural logarithms and +inf (before 2025-10: base 2 and
 * -inf, no sink, no lengths).
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row, and not on entries past
 * its length. On CUDA they also depend on whether q, kv and out are aligned to
 * 16 bytes, by tiles (HIP and Level Zero, with SPMLA_CONFIG_ALLOW_UNPROVEN) on
 * heads.
 * Exact: out is within 8e-4 + 3.01/128 |x|, lse and max_logits within 1e-6 +
 * 2.01/65536 |x| of the exact result x. Where values cancel, the error of out
 * is up to 2^-8 of the weighted mean of |v|; the error of lse and max_logits up
 * to 2^-18 of the largest sum of |terms| of a score, times softmax_scale.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: FlashMLA flash_mla_sparse_fwd. */
spmla_status spmla_sparse_prefill(spmla_ctx *ctx,
				  const spmla_sparse_prefill_args *args,
				  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
