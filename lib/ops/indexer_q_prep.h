/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: rotates and quantises the index queries, and folds their
 * scales into the head weights.
 */
#ifndef SPMLA_OPS_INDEXER_Q_PREP_H
#define SPMLA_OPS_INDEXER_Q_PREP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The 64 of the 128 values that are rotated: V3.2 the first, V4 the last. */
typedef enum spmla_rope_part {
	SPMLA_ROPE_FIRST = 0,
	SPMLA_ROPE_LAST = 1,
	SPMLA_ROPE_PART_FORCE_32 = 0x7fffffff
} spmla_rope_part;

/* The keys that the queries are for. */
typedef enum spmla_index_q_format {
	SPMLA_INDEX_Q_FP8 = 0,   /* e4m3, for INDEX_FP8 */
	SPMLA_INDEX_Q_MXFP4 = 1, /* e2m1 and ue8m0, for INDEX_MXFP4 */
	SPMLA_INDEX_Q_FORMAT_FORCE_32 = 0x7fffffff
} spmla_index_q_format;

typedef struct spmla_indexer_q_prep_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;         /* 1..128 */
	uint32_t rope_style;    /* spmla_rope_style */
	uint32_t scale_floor;   /* spmla_q_scale_floor; FP8 only */
	uint32_t weights_dtype; /* BF16 or F32 */
	uint32_t cos_sin_rows;
	float softmax_scale; /* > 0, <= 2^126; V3.2: 128^-0.5 */
	/* the same range; V3.2: heads^-0.5, rounded once */
	float head_scale;
	uint32_t positions_dtype;     /* spmla_int_dtype */
	const uint16_t *q;            /* bf16 [tokens][heads][128] */
	int64_t q_token_stride_elems; /* >= 128: heads may be outermost */
	int64_t q_head_stride_elems;  /* >= 128 */
	const void *weights;          /* [tokens][heads] */
	int64_t weights_stride_elems; /* >= heads */
	const void *positions;        /* int32 or int64 [tokens]; rope only */
	/* f32 or bf16 [cos_sin_rows][32 cos, 32 sin]; rope only */
	const void *cos_sin;
	/* e4m3 [tokens][heads][128], or e2m1 [tokens][heads][64] with the even
	 * one of a pair in the low half of the byte; dense */
	uint8_t *q_out;
	float *weights_out; /* [tokens][heads], dense */
	uint32_t rope_part; /* spmla_rope_part; used with rope */
	uint32_t q_format;  /* spmla_index_q_format */
	/* [tokens][heads], dense; MXFP4 only. Byte g of a word, from the
	 * lowest, is the ue8m0 scale of values 32 g .. 32 g + 31. */
	int32_t *q_scales;
	uint32_t cos_sin_dtype; /* spmla_real_dtype */
	uint32_t q_encoding;    /* spmla_e4m3, of q_out; MXFP4: 0 */
} spmla_indexer_q_prep_args;

/* Index queries are quantised, each head with its own scales. The scale of an
 * e4m3 head goes into its weight, so that mqa_logits multiplies codes only.
 *
 * The first or last 64 values of each head (rope_part) are rotated in f32,
 * unfused, and rounded to bf16. Then, for each (token, head):
 *
 * FP8, over all 128 values:
 *   s = pow2up(raw); scale_floor defines raw (amax over |x|, NaN ignored)
 *   byte = e4m3(x / s), a true division; FNUZ if q_encoding says so
 *   weights_out = ((weight * s) * softmax_scale) * head_scale, in f32
 * See spmla_e4m3 for NaN and infinities. Sign and payload of a NaN in
 * weights_out are unspecified.
 *
 * MXFP4, over each 32 values:
 *   e = ceil(log2(max(amax, 6 * 2^-126) / 6)), at most 127
 *   scale byte = e + 127
 *   code = e2m1(x * 2^-e)
 *   weights_out = (weight * softmax_scale) * head_scale, in f32
 * amax is over |x|, NaN ignored. e2m1 rounds to nearest, a tie to the even
 * code, and saturates at 6. A zero keeps its sign; a NaN is 7, whatever its
 * sign.
 *
 * A position outside the rope table: zeros in all outputs of the token,
 * FAULT_POSITION.
 * scale_floor and rope_part are checked even where they are not used.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM V3.2 Indexer, per_token_group_quant_fp8 and its fused form; V4
 * fused_indexer_q_rope_quant, both forms. */
spmla_status spmla_indexer_q_prep(spmla_ctx *ctx,
				  const spmla_indexer_q_prep_args *args,
				  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
