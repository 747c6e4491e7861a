/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: norms, rotates, quantises and inserts the index keys.
 */
#ifndef SPMLA_OPS_INDEXER_K_INSERT_H
#define SPMLA_OPS_INDEXER_K_INSERT_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_indexer_k_insert_args {
	uint32_t struct_bytes;
	uint32_t tokens; /* entries of slot_mapping; k may have more */
	uint32_t dtype;  /* of k: BF16; FP16 without norm and rope */
	/* POW2 (ue8m0, what serving stacks use) or RAW; INDEX_FP8 only */
	uint32_t scale_mode;
	uint32_t rope_style; /* spmla_rope_style */
	uint32_t cos_sin_rows;
	/* of the LayerNorm; read with norm_weight; > 0, <= 2^126; V3.2: 1e-6 */
	float norm_eps;
	uint32_t positions_dtype;    /* spmla_int_dtype */
	const void *k;               /* 16-bit [tokens][128] */
	int64_t k_stride_elems;      /* >= 128 */
	const int64_t *slot_mapping; /* [tokens]; < 0: skip the token */
	const void *norm_weight;     /* f32 or bf16 [128]; NULL: no LayerNorm */
	const void *norm_bias;       /* f32 or bf16 [128]; with norm_weight */
	const void *positions;       /* int32 or int64 [tokens]; rope only */
	/* f32 or bf16 [cos_sin_rows][32 cos, 32 sin]; rope only */
	const void *cos_sin;
	spmla_cache cache;      /* INDEX_FP8, INDEX_FP8_TILED or INDEX_MXFP4 */
	uint32_t cos_sin_dtype; /* spmla_real_dtype */
	uint32_t norm_dtype;    /* spmla_real_dtype, of weight and bias */
} spmla_indexer_k_insert_args;

/* 1. With norm_weight: y = ((x - mean) * rstd) * weight + bias in f32, unfused,
 *    then rounded to bf16. rstd = 1 / sqrt(var + eps), var = mean of (x -
 *    mean)^2. A mean is a sum / 128. Every sum runs in 16 lanes (lane l adds l,
 *    l + 16, ... to 0), then in the tree 8, 4, 2, 1.
 * 2. With a rope style: the first 64 values are rotated in f32, unfused, and
 *    rounded to bf16.
 * 3. s = max(amax, 1e-4) / 448, amax over the 128 values (NaN ignored); POW2:
 *    the next power of two. byte = e4m3(x / s), a true division. s is stored as
 *    f32 behind the page's values. See spmla_e4m3 for NaN and infinities. With
 *    cache.encoding FNUZ the divisor is 224 and the codes are FNUZ.
 *    INDEX_MXFP4: each 32 values as in indexer_q_prep, and the four scale
 *    bytes behind the page's values. scale_mode is checked all the same.
 * A slot past the cache skips the token (FAULT_SLOT), else a position outside
 * the rope table does (FAULT_POSITION). The position of a token with a negative
 * slot may be anything. If a slot occurs twice in one call, each value and the
 * scale come from one of the two keys; which one is unspecified, and on a GPU
 * it may differ within the row.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE, E_UNSUPPORTED (FP16 with norm or
 * rope).
 * Source: vLLM indexer_k_quant_and_cache and the V3.2 Indexer module. */
spmla_status spmla_indexer_k_insert(spmla_ctx *ctx,
				    const spmla_indexer_k_insert_args *args,
				    spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
