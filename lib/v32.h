/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of DeepSeek V3.2 in three calls, so that the engine's own kernels
 * (projections, collectives) may go between them. One context serves all
 * layers. All metadata comes from the step's prologue; the calls take the same
 * shape as the prologue did. A call that one of its ops refuses may have
 * enqueued the ops before it; inside a capture, abort the capture.
 */
#ifndef SPMLA_V32_H
#define SPMLA_V32_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One layer's tensors, rows in the order of the step's query tokens. Pointers
 * are device pointers that stay the same from step to step (they are baked
 * into a capture). A call looks at its own part only. */
typedef struct spmla_v32_layer {
	uint32_t struct_bytes;
	/* insert */
	uint32_t rope_style;       /* spmla_rope_style of the indexer */
	uint32_t cos_sin_rows;     /* positions in cos_sin */
	float norm_eps;            /* of index_norm; > 0, <= 2^126; 1e-6 in
	                            * V3.2 */
	const uint16_t *kv_c;      /* bf16 [tokens][512], normed latent */
	const uint16_t *k_pe;      /* bf16 [tokens][64], rotated */
	int64_t kv_c_stride_elems; /* >= 512 */
	int64_t k_pe_stride_elems; /* >= 64 */
	const uint16_t *index_k;   /* bf16 [tokens][128]; NULL: this layer has
	                            * no indexer of its own */
	int64_t index_k_stride_elems;   /* >= 128 */
	const float *index_norm_weight; /* [128]; NULL: already normed */
	const float *index_norm_bias;   /* [128] */
	const float *cos_sin;           /* [cos_sin_rows][64]: 32 cos, 32 sin */
	/* index */
	const uint16_t *index_q; /* bf16 [tokens][index_heads][128] */
	int64_t index_q_token_stride_elems;
	int64_t index_q_head_stride_elems;  /* >= 128 */
	const void *index_weights;          /* [tokens][index_heads] */
	int64_t index_weights_stride_elems; /* >= index_heads */
	uint32_t index_weights_dtype;       /* BF16 or F32 */
	uint32_t index_q_scale_floor;       /* spmla_q_scale_floor */
	/* top-k, out of index and into attend; NULL: TOPK_INDICES, TOPK_LENS.
	 * Positions of the request's keys, none twice; without index_q they are
	 * the engine's, or another layer's. Layers that share a selection name
	 * the same buffers, best the planned ones: see attend. An index at or
	 * past the token's context is none: FAULT_INDEX. One that is named
	 * twice counts twice, but of more entries than the token's context has
	 * keys, -1 among them, parts of attend may leave out the last, and
	 * nothing is reported. */
	int32_t *topk_indices;     /* [tokens][topk_stride_elems] */
	int32_t *topk_lens;        /* [tokens] */
	int64_t topk_stride_elems; /* >= config.topk; 0: config.topk */
	/* attend */
	const uint16_t *q; /* bf16 [tokens][heads][576], absorbed and rotated */
	int64_t q_token_stride_elems;
	int64_t q_head_stride_elems; /* >= 576 */
	const float *attn_sink;      /* [heads]; NULL: none */
	uint16_t *out;               /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems;
	int64_t out_head_stride_elems; /* >= 512 */
	float *lse;                    /* natural log; NULL: not wanted */
	int64_t lse_token_stride_elems;
	int64_t lse_head_stride_elems;
	uint32_t empty_lse; /* spmla_empty_lse */
	uint32_t reserved;
	spmla_cache kv;    /* of config.kv_layout */
	spmla_cache index; /* INDEX_FP8 */
} spmla_v32_layer;

/* Writes the step's keys: kv_insert, and indexer_k_insert (POW2 scales) if
 * index_k is not NULL, to SLOT_MAPPING.
 * Order: enqueues 1 or 2 ops; capturable. Exact: bit for bit.
 * Errors: those of the ops; E_RANGE for a shape larger than every bucket and
 * prefill, and for a cache that does not match its group; E_STATE for a shape
 * larger than that of the last prologue; E_UNSUPPORTED for a plan of V4. The
 * calls below give these too. */
spmla_status spmla_v32_insert(spmla_ctx *ctx, const spmla_v32_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* Selects each token's keys: indexer_q_prep, mqa_logits, topk. After the
 * insert of the same layer. index_k is not looked at; index_q is required.
 * Order: enqueues 3 ops; capturable.
 * Deterministic: a token's selection depends on its own queries and keys only.
 * Exact: the top-k of scores that are as spmla_mqa_logits.
 * Errors: E_STATE, also of attend, after the prologue of a prefill. */
spmla_status spmla_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Attends over the selected keys: index_map, sparse_decode; on a GPU, where the
 * step's tokens alone would leave it idle and the flag BATCH_INVARIANT is not
 * set, in parts, with split_combine behind them. The prologue cuts the parts,
 * for all of its tokens and a selection as topk makes it: so not for a shape of
 * fewer tokens, nor without index_q unless the lengths are in TOPK_LENS, left
 * out or named.
 * Order: enqueues 2 or 3 ops; capturable.
 * Deterministic: a token's bits depend on that token only; in parts also on the
 * shape and the lengths of all of the step's. Exact: out and lse as
 * spmla_sparse_decode. */
spmla_status spmla_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* The three in order; without index_q the selection is taken as it is. */
spmla_status spmla_v32_attn(spmla_ctx *ctx, const spmla_v32_layer *layer,
			    const spmla_shape *shape, spmla_stream stream);

/* The same for a step of prompts, one whose info.bucket is
 * SPMLA_BUCKET_PREFILL: insert; then, if index_q is not NULL, the selection
 * over gathered index keys, the logits in pieces that fit logits_budget_bytes;
 * then attention over the gathered KV as bf16. Prompts are cut into such steps
 * by spmla_prefill_plan. `shape` is that of the prologue before it, and its
 * cost that of the shape, so an eager engine takes the numbers of the step's
 * info.
 * A key whose page was not written is a row of zeros here (FAULT_PAGE).
 * Order: enqueues 4 ops, with index_k one more, with index_q 2 and 2 a piece.
 * Deterministic: a token's bits do not depend on how its prompt is cut up.
 * Exact: the caches as by decode, bit for bit; the selection too; out and lse
 * as spmla_sparse_prefill.
 * Errors: those of the ops; E_STATE for another shape than the prologue's, or
 * if that shape fits a bucket: then it is a decode step. */
spmla_status spmla_v32_prefill(spmla_ctx *ctx, const spmla_v32_layer *layer,
			       const spmla_shape *shape, spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
