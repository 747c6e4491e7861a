/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of DeepSeek V3.2: insert, index, attend. The three calls are separate
 * so that the engine's own kernels (projections, collectives) may go between
 * them.
 *
 * One context serves all layers. All metadata comes from the step's prologue,
 * and the calls take the shape that the prologue took. If an operation of a
 * call fails, the operations before it may have been enqueued; inside a
 * capture, abort the capture.
 */
#ifndef SPMLA_V32_H
#define SPMLA_V32_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One layer's tensors. Rows are in the order of the step's query tokens.
 * Pointers are device pointers that stay the same from step to step, because a
 * capture contains them. A call reads only its own part of the struct. */
typedef struct spmla_v32_layer {
	uint32_t struct_bytes;
	/* ---- insert ---- */
	uint32_t rope_style; /* spmla_rope_style of the indexer */
	/* positions in cos_sin; with a rope_style >= max_context_tokens */
	uint32_t cos_sin_rows;
	/* of index_norm; > 0, <= 2^126; V3.2: 1e-6 */
	float norm_eps;
	const uint16_t *kv_c;      /* bf16 [tokens][512], normed latent */
	const uint16_t *k_pe;      /* bf16 [tokens][64], rotated */
	int64_t kv_c_stride_elems; /* >= 512 */
	int64_t k_pe_stride_elems; /* >= 64 */
	/* bf16 [tokens][128]; NULL: this layer has no indexer of its own */
	const uint16_t *index_k;
	int64_t index_k_stride_elems; /* >= 128 */
	/* f32 or bf16 [128]; NULL: already normed */
	const void *index_norm_weight;
	const void *index_norm_bias; /* the same */
	/* f32 or bf16 [cos_sin_rows][64]: 32 cos, 32 sin */
	const void *cos_sin;
	/* ---- index ---- */
	const uint16_t *index_q; /* bf16 [tokens][index_heads][128] */
	int64_t index_q_token_stride_elems;
	int64_t index_q_head_stride_elems;  /* >= 128 */
	const void *index_weights;          /* [tokens][index_heads] */
	int64_t index_weights_stride_elems; /* >= index_heads */
	uint32_t index_weights_dtype;       /* BF16 or F32 */
	uint32_t index_q_scale_floor;       /* spmla_q_scale_floor */
	/* The selection: index writes it, attend reads it. NULL: TOPK_INDICES
	 * and TOPK_LENS. Entries are positions of the request's keys, each at
	 * most once. Without index_q the selection is the engine's or another
	 * layer's. Layers that share a selection name the same buffers,
	 * preferably the planned ones (see attend).
	 * An index at or past the token's context counts as none: FAULT_INDEX.
	 * A repeated index counts twice. Split-KV may ignore the last entries
	 * without a report if a token has more entries (-1 included) than keys.
	 */
	int32_t *topk_indices;     /* [tokens][topk_stride_elems] */
	int32_t *topk_lens;        /* [tokens] */
	int64_t topk_stride_elems; /* >= config.topk; 0: config.topk */
	/* ---- attend ---- */
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
	uint32_t empty_lse;        /* spmla_empty_lse */
	uint32_t cos_sin_dtype;    /* spmla_real_dtype */
	spmla_cache kv;            /* of config.kv_layout */
	spmla_cache index;         /* of config.index_layout */
	uint32_t index_norm_dtype; /* spmla_real_dtype, of weight and bias */
	uint32_t reserved;
} spmla_v32_layer;

/* Fills `layer` with what follows from the plan: the strides of tensors without
 * gaps, cos_sin_rows max_context_tokens, norm_eps 1e-6, and the pools of layer
 * `index` of [0, cache_layers), if any are planned. Everything else is zero:
 * the caller sets the pointers.
 * Errors: E_RANGE for the index, E_UNSUPPORTED for a plan of V4. */
spmla_status spmla_v32_layer_preset(spmla_ctx *ctx, uint32_t index,
				    spmla_v32_layer *layer);

/* Writes the step's keys to SLOT_MAPPING: kv_insert, with indexer_k_insert
 * (POW2 scales) if index_k is not NULL.
 * Order: enqueues 1 operation; capturable.
 * Exact: bit for bit.
 * Errors: the operations' own; E_RANGE for cos_sin_rows (insert with index_k,
 * and index), for a shape larger than every bucket and prefill, and for a cache
 * that does not match its group; E_STATE for a shape larger than the last
 * prologue's; E_UNSUPPORTED for a plan of V4.
 * The calls below have these errors too. */
spmla_status spmla_v32_insert(spmla_ctx *ctx, const spmla_v32_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* Selects each token's keys: indexer_q_prep, mqa_logits, topk. Call it after
 * the insert of the same layer. It ignores index_k and requires index_q.
 * Order: enqueues 3 operations; capturable.
 * Deterministic: a token's selection depends only on its own queries and keys.
 * Exact: the top-k of scores as spmla_mqa_logits gives.
 * Errors: E_STATE, also of attend, after the prologue of a prefill. */
spmla_status spmla_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Attends over the selected keys: index_map, sparse_decode. A token that
 * selects a key without a page in the pool has an empty result (FAULT_PAGE),
 * here as in a prefill. A missing page of keys that are not selected is
 * reported by spmla_v32_index alone.
 *
 * On a GPU, steps of few tokens use split-KV: sparse_decode in parts, then
 * split_combine. The prologue plans the parts for all of its tokens, each with
 * as many keys as topk selects. SPMLA_CONFIG_BATCH_INVARIANT changes that. On
 * CUDA every step then has fixed splits, if the plan allows a token more than 4
 * key blocks. But on Hopper, with FP8_DS_MLA, up to 16 heads and topk up to
 * 2048, every step is one launch with DECODE_WORKSPACE. On other GPUs no step
 * is split.
 * A call runs whole instead if:
 * - its shape has fewer tokens than the prologue's, unless splits are fixed;
 * - it has no index_q, and topk_lens is neither NULL nor TOPK_LENS;
 * - on Hopper, without SPMLA_CONFIG_BATCH_INVARIANT, the tokens are few enough
 *   for one launch with DECODE_WORKSPACE;
 * - on Hopper, where every step would be one launch, q or out is not aligned to
 *   16 bytes or the cache is FNUZ.
 * Also on Hopper, parts of FP8_DS_MLA rows add up their splits in the same
 * launch, with DECODE_WORKSPACE.
 *
 * Order: enqueues 2 or 3 operations; capturable.
 * Deterministic: on the CPU a token's bits depend only on that token. So they do
 * with BATCH_INVARIANT, but on CUDA calls that run whole have other bits than
 * calls in parts or in one launch. On a GPU without BATCH_INVARIANT bits depend on the shape,
 * too, and in parts on the lengths of all tokens of the step.
 * Exact: out and lse as spmla_sparse_decode. */
spmla_status spmla_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* The three calls in order. topk also does what index_map would: that is one
 * launch less on Hopper, unless lists are ragged. Without index_q the selection
 * is taken as it is. */
spmla_status spmla_v32_attn(spmla_ctx *ctx, const spmla_v32_layer *layer,
			    const spmla_shape *shape, spmla_stream stream);

/* A layer in a step of prompts: info.bucket of the step is
 * SPMLA_BUCKET_PREFILL. spmla_prefill_plan cuts prompts into such steps.
 * The call first inserts. If index_q is not NULL, it then selects over gathered
 * index keys, with logits in pieces that fit logits_budget_bytes. It then
 * attends over the gathered KV as bf16; a step of more than max(1024, the
 * largest bucket's) tokens attends in pieces, too.
 * `shape` is the prologue's. Time depends on the shape, so an eager engine
 * should pass the numbers of the step's info.
 * Order: enqueues 2 operations and 2 per piece of attention, and with index_q 2
 * more and 2 per piece of logits.
 * Deterministic: a token's bits do not depend on how its prompt is cut.
 * Exact: the caches equal decode's, bit for bit. The selection equals decode's
 * where both round scores alike (spmla_mqa_logits_gathered). They do not:
 * - on Hopper;
 * - on any GPU, if index keys are MXFP4 or their page stride is no multiple of
 *   16;
 * - on CUDA, if index keys are in tiles.
 * out and lse as spmla_sparse_prefill.
 * Errors: the operations' own; E_STATE for another shape than the
 * prologue's, or if that shape fits a bucket, because it is then a decode step.
 */
spmla_status spmla_v32_prefill(spmla_ctx *ctx, const spmla_v32_layer *layer,
			       const spmla_shape *shape, spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
