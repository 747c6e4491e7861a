/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of DeepSeek V4: insert, compress, index, attend, output. The calls
 * are separate so that the engine's own kernels (projections, collectives) may
 * go between them.
 *
 * There are three kinds of layers. Ratio 1 attends over the sliding window.
 * Ratio 4 (C4A) attends over the window and the top-k of the keys compressed
 * 4:1. Ratio 128 (C128A) attends over the window and all keys compressed 128:1.
 *
 * One context serves all layers. All metadata comes from the step's prologue,
 * and the calls take the shape that the prologue took. A step of prompts
 * (info.bucket is SPMLA_BUCKET_PREFILL) takes the same calls, eagerly. Its keys
 * are read where they are. Its bits do not depend on how a prompt is cut,
 * except as spmla_v4_output says. Its shape must fit no bucket (E_STATE).
 *
 * If an operation of a call fails, the operations before it may have been
 * enqueued. Branches that the call forked are joined again, unless the device
 * refused that too. Inside a capture, abort the capture.
 */
#ifndef SPMLA_V4_H
#define SPMLA_V4_H

#include "spmla/ops/inv_rope_quant.h"
#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One layer's tensors. Rows are in the order of the step's query tokens.
 * Pointers are device pointers that stay the same from step to step, because a
 * capture contains them. A call reads only its own part of the struct. Rope is
 * INTERLEAVED. */
typedef struct spmla_v4_layer {
	uint32_t struct_bytes;
	uint32_t ratio; /* 1, 4 or 128 */
	/* Positions in cos_sin, at least max_context_tokens: keys at later
	 * positions would count without having been written. */
	uint32_t cos_sin_rows;
	/* of queries and compressed keys; > 0, <= 2^126; V4: 1e-6 */
	float norm_eps;
	/* f32 or bf16 [cos_sin_rows][32 cos, 32 sin], of this layer */
	const void *cos_sin;
	/* ---- insert ---- */
	/* bf16 [tokens][heads][512]; insert norms and rotates it in place,
	 * attend reads it */
	uint16_t *q;
	int64_t q_token_stride_elems;
	int64_t q_head_stride_elems; /* >= 512 */
	const uint16_t *kv;      /* bf16 [tokens][512], normed, not rotated */
	int64_t kv_stride_elems; /* >= 512 */
	/* ---- compress; ratio 4 (W = 1024) and ratio 128 (W = 512) ---- */
	const void *compress_kv;    /* f32 or bf16 [tokens][W] */
	const void *compress_score; /* the same, without ape */
	int64_t compress_kv_stride_elems;
	int64_t compress_score_stride_elems;
	const float *ape;        /* [ratio][W] */
	const void *norm_weight; /* f32 or bf16 [512] */
	/* ---- compress of the index keys (W = 256); ratio 4 ---- */
	/* f32 or bf16 [tokens][256]; NULL: this layer has no indexer of its
	 * own */
	const void *index_kv;
	const void *index_score; /* the same */
	int64_t index_kv_stride_elems;
	int64_t index_score_stride_elems;
	const float *index_ape;        /* [4][256] */
	const void *index_norm_weight; /* f32 or bf16 [128] */
	/* ---- index; ratio 4 ---- */
	const uint16_t *index_q; /* bf16 [tokens][index_heads][128] */
	int64_t index_q_token_stride_elems;
	int64_t index_q_head_stride_elems;  /* >= 128 */
	const void *index_weights;          /* [tokens][index_heads] */
	int64_t index_weights_stride_elems; /* >= index_heads */
	uint32_t index_weights_dtype;       /* BF16 or F32 */
	uint32_t empty_lse;                 /* spmla_empty_lse, of attend */
	/* The selection, ratio 4: index writes it, attend reads it. NULL:
	 * TOPK_INDICES and TOPK_LENS. Entries are numbers of the request's
	 * compressed keys, each at most once. Without index_q the selection is
	 * the engine's or another layer's. Layers that share a selection name
	 * the same buffers, preferably the planned ones (see attend).
	 * An entry at or past the keys that the token sees counts as none:
	 * FAULT_INDEX. A repeated entry counts twice. Split-KV may ignore the
	 * last entries of a token without a report if an entry is repeated. */
	int32_t *topk_indices;     /* [tokens][topk_stride_elems] */
	int32_t *topk_lens;        /* [tokens] */
	int64_t topk_stride_elems; /* >= config.topk; 0: config.topk */
	/* ---- attend ---- */
	const float *attn_sink; /* [heads]; NULL: none */
	uint16_t *out;          /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems;
	int64_t out_head_stride_elems; /* >= 512 */
	float *lse;                    /* natural log; NULL: not wanted */
	int64_t lse_token_stride_elems;
	int64_t lse_head_stride_elems;
	/* ---- output; see spmla_o_group_proj for the names ---- */
	uint32_t output_quant;   /* spmla_o_quant, also of wo */
	uint32_t output_groups;  /* a divisor of heads */
	uint32_t output_columns; /* per group; a multiple of 128 */
	/* spmla_real_dtype, like norm_dtype and compress_dtype below */
	uint32_t cos_sin_dtype;
	const void *wo; /* [groups][columns][heads / groups * 512] */
	int64_t wo_group_stride_elems;
	int64_t wo_row_stride_elems;
	const float *wo_scales; /* [groups][columns / 128][..]; e4m3 only */
	int64_t wo_scale_group_stride_elems;
	int64_t wo_scale_row_stride_elems;
	uint16_t *z; /* bf16 [tokens][groups][columns] */
	int64_t z_token_stride_elems;
	int64_t z_group_stride_elems;
	/* ---- caches ---- */
	spmla_cache swa;         /* config.kv_layout */
	spmla_cache compressed;  /* config.kv_layout; ratio 4 and 128 */
	spmla_cache state;       /* ratio 4: STATE_1024, 128: STATE_512 */
	spmla_cache index;       /* config.index_layout; ratio 4 */
	spmla_cache index_state; /* STATE_256 */
	uint32_t norm_dtype;     /* of both norms' weights */
	/* of compress_kv, compress_score, index_kv and index_score */
	uint32_t compress_dtype;
} spmla_v4_layer;

/* Fills `layer` with what follows from the plan: the ratio, the strides of
 * tensors without gaps, cos_sin_rows max_context_tokens, norm_eps 1e-6, and the
 * planned pools. The window's pool is layer `index`'s, of [0, cache_layers).
 * The other pools are layer `ratio_index`'s, which counts the layers of this
 * ratio: [0, c4a_layers) or [0, c128a_layers). Pointers, pools that are not
 * planned and all fields of the output are zero: the caller sets them.
 * Errors: E_RANGE for the ratio and the indices, E_UNSUPPORTED for a plan of
 * V3.2. */
spmla_status spmla_v4_layer_preset(spmla_ctx *ctx, uint32_t ratio,
				   uint32_t index, uint32_t ratio_index,
				   spmla_v4_layer *layer);

/* The platform's event. */
typedef void *spmla_event;

/* The caller's streams and events for the branches of a layer. */
typedef struct spmla_v4_branches {
	uint32_t struct_bytes;
	uint32_t reserved;
	spmla_stream streams[2];
	spmla_event events[3]; /* where they fork; end of each branch */
} spmla_v4_branches;

#define SPMLA_V4_BRANCHES_INIT                                  \
	{                                                       \
		(uint32_t)sizeof(spmla_v4_branches), 0, {0, 0}, \
		{                                               \
			0, 0, 0                                 \
		}                                               \
	}

/* Norms and rotates the step's queries, and writes its keys to SLOT_MAPPING:
 * qnorm_rope_kv_insert.
 * Order: enqueues 1 operation; capturable.
 * Exact: bit for bit.
 * Errors: the operation's own; E_RANGE for cos_sin_rows, also in compress.
 * All calls of a layer: E_RANGE for a shape larger than every bucket and
 * prefill, and for a cache that does not match its group; E_STATE for a shape
 * larger than the last prologue's; E_UNSUPPORTED for a plan of V3.2. */
spmla_status spmla_v4_insert(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Makes the compressed keys of the groups that end in this step, and keeps the
 * states that later groups need: kv_compress and compress_state_save, and if
 * index_kv is not NULL the same two for the index keys. Does nothing for ratio
 * 1.
 * The operations treat the states as rings. A table without ring_columns works
 * too: it is a ring that is long enough never to wrap.
 * Order: enqueues 0, 2 or 4 operations; capturable. Call it before index and
 * attend. Calls of one context must not overlap.
 * Exact: as spmla_kv_compress. */
spmla_status spmla_v4_compress(spmla_ctx *ctx, const spmla_v4_layer *layer,
			       const spmla_shape *shape, spmla_stream stream);

/* Selects each token's compressed keys: indexer_q_prep, mqa_logits, topk. For
 * layers of ratio 4 only (E_RANGE). The logits of a prefill are made and used
 * up in pieces that fit logits_budget_bytes.
 * Order: enqueues 3 operations; for a prefill 1, and 2 per piece; capturable.
 * Deterministic: a token's selection depends only on its own queries and keys.
 * Exact: the top-k of scores as spmla_mqa_logits gives. */
spmla_status spmla_v4_index(spmla_ctx *ctx, const spmla_v4_layer *layer,
			    const spmla_shape *shape, spmla_stream stream);

/* Attends over the window and, depending on the ratio, over the selection or
 * all compressed keys: index_map (ratio 4), sparse_decode.
 *
 * On a GPU, decode steps whose tokens would leave it idle use split-KV:
 * sparse_decode in parts, then split_combine. The prologue plans the parts for
 * all of its tokens, each with all keys that it sees (ratio 4: as many as topk
 * selects).
 * With SPMLA_CONFIG_BATCH_INVARIANT no step is split.
 * A call runs whole instead if:
 * - the layer has ratio 1;
 * - its shape has fewer tokens than the prologue's;
 * - the layer has ratio 4 and no index_q, and topk_lens is neither NULL nor
 *   TOPK_LENS;
 * - on Hopper, without SPMLA_CONFIG_BATCH_INVARIANT, the tokens are few enough
 *   for one launch with DECODE_WORKSPACE.
 * Also on Hopper, parts add up their splits in the same launch, with
 * DECODE_WORKSPACE.
 *
 * A step of more than max(1024, the largest bucket's) tokens runs in pieces. In
 * a layer of ratio 128 each of these pieces first runs c128a_index. With
 * SPMLA_CONFIG_RAGGED such pieces, and any step of a layer of ratio 4, run
 * ragged_index too.
 *
 * A token that selects a key without a page in the pool has an empty result in
 * this layer (FAULT_PAGE). Such a page of index keys is reported by the
 * selection, which ranks its keys last.
 *
 * Order: enqueues 1 to 4 operations, or 1 to 4 per piece; capturable.
 * Deterministic: on the CPU and with BATCH_INVARIANT a token's bits depend only
 * on that token. On a GPU without BATCH_INVARIANT they depend on the shape, too,
 * and in parts on the lengths of all tokens of the step.
 * Exact: out and lse as spmla_sparse_decode. */
spmla_status spmla_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Rotates `out` back and multiplies it by wo: inv_rope_quant, o_group_proj. A
 * step of more than max(1024, the largest bucket's) tokens runs in pieces. If
 * the layer's output is BF16 and the plan's is e4m3, pieces have half as many
 * tokens, so a shorter step may take two.
 * Order: enqueues 2 operations, or 2 per piece; capturable.
 * Deterministic: a token's bits depend on that token and, on Hopper without
 * BATCH_INVARIANT, on whether its piece has more than 16 tokens.
 * Exact: spmla_inv_rope_quant bit for bit, then as spmla_o_group_proj. */
spmla_status spmla_v4_output(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* The five calls in order. In a decode step topk also does what index_map
 * would: that is one launch less on Hopper, unless lists are ragged. Without
 * index_q, a layer of ratio 4 takes the selection as it is. Without wo there is
 * no output.
 *
 * With branches, compress runs on streams[0] and the index queries on
 * streams[1], beside the insert on `stream`. They fork from `stream` and join
 * it again, so inside a capture they are branches of the graph. NULL: all in
 * order. The CPU has no branches.
 * Errors: also E_NULL for a stream or event of branches. */
spmla_status spmla_v4_attn(spmla_ctx *ctx, const spmla_v4_layer *layer,
			   const spmla_shape *shape,
			   const spmla_v4_branches *branches,
			   spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
