/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: the index score of every key that a token sees, over paged keys.
 */
#ifndef SPMLA_OPS_MQA_LOGITS_H
#define SPMLA_OPS_MQA_LOGITS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_mqa_logits_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;              /* 1..config.index_heads */
	uint32_t rows;               /* rows of block_table */
	uint32_t columns;            /* columns of a row */
	uint32_t table_stride_elems; /* >= columns */
	/* e4m3 [tokens][heads][128]; for INDEX_MXFP4 e2m1 [tokens][heads][64]
	 * with the even one of a pair in the low half of the byte; dense */
	const uint8_t *q;
	const float *weights;        /* [tokens][heads], dense */
	const int32_t *token_row;    /* [tokens]: row of block_table */
	const int32_t *context_lens; /* [tokens]: keys 0 .. len-1 */
	/* [tokens]: first element of each row; NULL: row t begins at element
	 * row_stride_elems * t and ends before row t + 1 */
	const int64_t *row_starts;
	const int32_t *block_table; /* [rows][table_stride_elems] */
	const int32_t *table_cols;  /* [rows] written columns; NULL: all */
	void *logits;               /* f32 or bf16 */
	uint64_t logits_elems;      /* capacity of logits */
	spmla_cache cache; /* INDEX_FP8, INDEX_FP8_TILED or INDEX_MXFP4 */
	/* [tokens][heads], dense; INDEX_MXFP4 only. Byte g of a word, from the
	 * lowest, is the ue8m0 scale of values 32 g .. 32 g + 31. */
	const int32_t *q_scales;
	int64_t row_stride_elems; /* >= 1; not read with row_starts */
	uint32_t logits_dtype;    /* spmla_real_dtype */
	uint32_t q_encoding;      /* spmla_e4m3, of q; INDEX_MXFP4: 0 */
} spmla_mqa_logits_args;

/* The score of a key is a weighted sum over the index heads of how well each
 * head's query matches it. topk selects by these scores.
 *
 * For 0 <= n < context_lens[t], with the row's start:
 *   logits[row_start + n] = kscale[n] * sum over h of
 *     (relu(sum over d of q[t][h][d] * k[n][d]) * weights[t][h])
 * Nothing else is written. relu(x) = x if x > 0, else 0 (also for a NaN, like
 * fmaxf, as in the source). Other NaNs propagate.
 * Scores of bf16 are rounded once, to nearest even. q and the cache each have
 * their own encoding. A GPU computes scores without matrix instructions if
 * pages do not begin at multiples of 16 bytes, and, without
 * SPMLA_CONFIG_ALLOW_UNPROVEN, if scores are bf16, if queries or keys are FNUZ,
 * or if keys are INDEX_FP8_TILED.
 * INDEX_MXFP4: q and k are e2m1 * 2^(byte - 127) in f32 (2^128 is +inf), and
 * kscale is 1. The sums have the same order.
 * A key whose page is not written or outside the pool gets -inf: FAULT_PAGE. A
 * row is not written if it is outside the table (FAULT_ROW) or does not fit
 * logits (FAULT_LOGITS). Without row_starts a length past the row's end is
 * clamped to it: FAULT_LOGITS.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row.
 * Exact: within 2^-18 of the sum of |terms|, for any number of heads, as long
 * as no product leaves the range of f32. Matrix instructions truncate sums, so
 * their bound is 2^-16. Hopper multiplies e4m3 for INDEX_FP8, up to 64 heads
 * and scores in f32. It truncates each product relative to the largest one, so
 * a score may be off by kscale[n] * sum over h of |weights[t][h]| * 0.82 * the
 * largest |q[t][h][d] * k[n][d]| more. If all 128 products are that large, this
 * is less than 2^-7 of their sum. Random data are off by 2^-16 of the sum of
 * |terms|.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: DeepGEMM fp8_paged_mqa_logits and its fp4 form, one row per query
 * token. */
spmla_status spmla_mqa_logits(spmla_ctx *ctx, const spmla_mqa_logits_args *args,
			      spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
