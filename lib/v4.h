/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of DeepSeek V4 in calls that the engine's own kernels (projections,
 * collectives) may go between. One context serves all layers, of the three
 * kinds: ratio 1 attends over the sliding window, ratio 4 (C4A) over the top-k
 * of the keys compressed 4:1 too, ratio 128 (C128A) over all keys compressed
 * 128:1 too. All metadata comes from the step's prologue; the calls take the
 * same shape as the prologue did. A step of prompts (its info.bucket is
 * SPMLA_BUCKET_PREFILL) takes the same calls, eagerly: keys are read where they
 * are, and a prompt's are the same bits however it is cut up. Its shape is one
 * that fits no bucket (E_STATE).
 * A call that one of its ops refuses may have enqueued the ops before it, and
 * has joined the branches that it forked, unless the device refused that too:
 * inside a capture, abort it.
 */
#ifndef SPMLA_V4_H
#define SPMLA_V4_H

#include "spmla/ops/inv_rope_quant.h"
#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One layer's tensors, rows in the order of the step's query tokens. Pointers
 * are device pointers that stay the same from step to step (they are baked
 * into a capture). A call looks at its own part only. Rope is INTERLEAVED. */
typedef struct spmla_v4_layer {
	uint32_t struct_bytes;
	uint32_t ratio;        /* 1, 4 or 128 */
	uint32_t cos_sin_rows; /* positions in cos_sin, >= max_context_tokens:
	                        * a key past them would not be written, but
	                        * would count */
	float norm_eps;        /* of queries and compressed keys; > 0,
	                        * <= 2^126; 1e-6 in V4 */
	const float *cos_sin; /* [cos_sin_rows][32 cos, 32 sin], this layer's */
	/* insert */
	uint16_t *q; /* bf16 [tokens][heads][512], normed and rotated in place:
	              * attend reads it */
	int64_t q_token_stride_elems;
	int64_t q_head_stride_elems; /* >= 512 */
	const uint16_t *kv;      /* bf16 [tokens][512], normed, not rotated */
	int64_t kv_stride_elems; /* >= 512 */
	/* compress, of ratio 4 (W = 1024) and 128 (W = 512) */
	const float *compress_kv;    /* [tokens][W] */
	const float *compress_score; /* [tokens][W], without ape */
	int64_t compress_kv_stride_elems;
	int64_t compress_score_stride_elems;
	const float *ape;         /* [ratio][W] */
	const float *norm_weight; /* [512] */
	/* compress, of the index keys (W = 256); ratio 4 */
	const float *index_kv;    /* [tokens][256]; NULL: this layer has no
	                        * indexer of its own */
	const float *index_score; /* [tokens][256] */
	int64_t index_kv_stride_elems;
	int64_t index_score_stride_elems;
	const float *index_ape;         /* [4][256] */
	const float *index_norm_weight; /* [128] */
	/* index; ratio 4 */
	const uint16_t *index_q; /* bf16 [tokens][index_heads][128] */
	int64_t index_q_token_stride_elems;
	int64_t index_q_head_stride_elems;  /* >= 128 */
	const void *index_weights;          /* [tokens][index_heads] */
	int64_t index_weights_stride_elems; /* >= index_heads */
	uint32_t index_weights_dtype;       /* BF16 or F32 */
	uint32_t empty_lse;                 /* spmla_empty_lse, of attend */
	/* top-k, out of index and into attend; NULL: TOPK_INDICES, TOPK_LENS.
	 * Numbers of compressed keys of the request, none twice; without
	 * index_q they are the engine's, or another layer's. Layers that share
	 * a selection name the same buffers, best the planned ones: see attend.
	 * One at or past the keys that the token sees is none: FAULT_INDEX. One
	 * that is named twice counts twice, but parts of attend may leave out
	 * the last entries of such a token, and nothing is reported. */
	int32_t *topk_indices;     /* [tokens][topk_stride_elems] */
	int32_t *topk_lens;        /* [tokens] */
	int64_t topk_stride_elems; /* >= config.topk; 0: config.topk */
	/* attend */
	const float *attn_sink; /* [heads]; NULL: none */
	uint16_t *out;          /* bf16 [tokens][heads][512] */
	int64_t out_token_stride_elems;
	int64_t out_head_stride_elems; /* >= 512 */
	float *lse;                    /* natural log; NULL: not wanted */
	int64_t lse_token_stride_elems;
	int64_t lse_head_stride_elems;
	/* output, of out; as spmla_o_group_proj names them */
	uint32_t output_quant;   /* spmla_o_quant; of wo too */
	uint32_t output_groups;  /* a divisor of heads */
	uint32_t output_columns; /* of a group; a multiple of 128 */
	uint32_t reserved;
	const void *wo; /* [groups][columns][heads / groups * 512] */
	int64_t wo_group_stride_elems;
	int64_t wo_row_stride_elems;
	const float *wo_scales; /* [groups][columns / 128][..]; of e4m3 */
	int64_t wo_scale_group_stride_elems;
	int64_t wo_scale_row_stride_elems;
	uint16_t *z; /* bf16 [tokens][groups][columns] */
	int64_t z_token_stride_elems;
	int64_t z_group_stride_elems;
	/* caches */
	spmla_cache swa;         /* config.kv_layout */
	spmla_cache compressed;  /* config.kv_layout, of ratio 4 and 128 */
	spmla_cache state;       /* STATE_1024, STATE_512 */
	spmla_cache index;       /* config.index_layout; ratio 4 */
	spmla_cache index_state; /* STATE_256 */
} spmla_v4_layer;

/* The caller's streams and events for the side chains of a layer. */
typedef void *spmla_event;

typedef struct spmla_v4_branches {
	uint32_t struct_bytes;
	uint32_t reserved;
	spmla_stream streams[2];
	spmla_event events[3]; /* where they fork; the ends of the two */
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
 * Order: enqueues 1 op; capturable. Exact: bit for bit.
 * Errors: those of the op; E_RANGE for cos_sin_rows, as by compress. As by all
 * calls below: E_RANGE for a shape larger than every bucket and prefill, and
 * for a cache that does not match its group; E_STATE for a shape larger than
 * that of the last prologue; E_UNSUPPORTED for a plan of V3.2. */
spmla_status spmla_v4_insert(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Makes the compressed keys of the groups that end in this step, and keeps what
 * later groups need: kv_compress and compress_state_save, and if index_kv is
 * not NULL the two for the index keys. States are rings for it, whatever their
 * tables: a table that does not come round is one that is long enough. Of ratio
 * 1 nothing is done.
 * Order: enqueues 0, 2 or 4 ops; capturable. Before index and attend; calls of
 * a context do not overlap. Exact: as spmla_kv_compress. */
spmla_status spmla_v4_compress(spmla_ctx *ctx, const spmla_v4_layer *layer,
			       const spmla_shape *shape, spmla_stream stream);

/* Selects each token's compressed keys: indexer_q_prep, mqa_logits, topk. For
 * layers of ratio 4 (E_RANGE). A prefill's logits are made and used up in
 * pieces that fit logits_budget_bytes.
 * Order: enqueues 3 ops, of a prefill 1 and 2 a piece; capturable.
 * Deterministic: a token's selection depends on its own queries and keys only.
 * Exact: the top-k of scores that are as spmla_mqa_logits. */
spmla_status spmla_v4_index(spmla_ctx *ctx, const spmla_v4_layer *layer,
			    const spmla_shape *shape, spmla_stream stream);

/* Attends over the window and, by ratio, the selection or all of the compressed
 * keys: index_map (ratio 4), sparse_decode; on a GPU a decode step of so few
 * tokens that it pays is done in parts, with split_combine behind them, unless
 * the flag BATCH_INVARIANT is set. The prologue cuts the parts, for all of its
 * tokens and a selection as topk makes it: so not for a shape of fewer tokens,
 * nor, of ratio 4, without index_q unless the lengths are in TOPK_LENS, left
 * out or named; of ratio 1 never.
 * Order: enqueues 1 to 3 ops; capturable.
 * Deterministic: a token's bits depend on that token only; in parts also on the
 * shape and the lengths of all of the step's. Exact: out and lse as
 * spmla_sparse_decode. */
spmla_status spmla_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* Takes the rotation out of `out` and multiplies it by wo: inv_rope_quant,
 * o_group_proj; a step that is longer than the longest of decode, and than
 * 1024 tokens, in pieces.
 * Order: enqueues 2 ops, or 2 a piece; capturable.
 * Deterministic: a token's bits depend on that token only. Exact: as
 * spmla_o_group_proj, of what spmla_inv_rope_quant gives bit for bit. */
spmla_status spmla_v4_output(spmla_ctx *ctx, const spmla_v4_layer *layer,
			     const spmla_shape *shape, spmla_stream stream);

/* The five in order; without index_q the selection of a layer of ratio 4 is
 * taken as it is, without wo there is no output. With branches, compress runs
 * on the first of their streams and the index queries on the second, beside
 * insert on `stream`; they fork from `stream` and join it again, so inside a
 * capture they are branches of the graph. NULL: in order. The CPU has no
 * branches.
 * Errors: also E_NULL for a stream or event of branches. */
spmla_status spmla_v4_attn(spmla_ctx *ctx, const spmla_v4_layer *layer,
			   const spmla_shape *shape,
			   const spmla_v4_branches *branches,
			   spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
