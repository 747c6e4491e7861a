/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: in one launch, norms and rotates the V4 queries of a
 * step, and rotates its V4 keys and writes them into the paged KV cache.
 */
#ifndef SPMLA_OPS_QNORM_ROPE_KV_INSERT_H
#define SPMLA_OPS_QNORM_ROPE_KV_INSERT_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_qnorm_rope_kv_insert_args {
	uint32_t struct_bytes;
	uint32_t tokens;       /* of q, q_out and positions */
	uint32_t kv_tokens;    /* of kv and slot_mapping; <= tokens */
	uint32_t heads;        /* >= 1 */
	uint32_t padded_heads; /* of q_out; >= heads */
	uint32_t cos_sin_rows;
	float norm_eps; /* of the queries' norm, > 0, <= 2^126; V4: 1e-6 */
	/* V4_E4M3: the scale of the whole cache, > 0, <= 2^126; 1 / scale must
	 * be finite, or zeros become NaN. Other layouts do not read it. */
	float kv_scale;
	const uint16_t *q;                /* bf16 [tokens][heads][512] */
	int64_t q_token_stride_elems;     /* >= 512: heads may be outermost */
	int64_t q_head_stride_elems;      /* >= 512 */
	uint16_t *q_out;                  /* bf16 [tokens][padded_heads][512] */
	int64_t q_out_token_stride_elems; /* >= 512 */
	int64_t q_out_head_stride_elems;  /* >= 512 */
	const uint16_t *kv; /* bf16 [kv_tokens][512], normed, not rotated */
	int64_t kv_stride_elems;     /* >= 512 */
	const int64_t *slot_mapping; /* [kv_tokens]; < 0: skip the key */
	const void *positions;       /* int32 or int64 [tokens] */
	const void *cos_sin; /* f32 or bf16 [cos_sin_rows][32 cos, 32 sin] */
	spmla_cache cache;   /* V4_FP8, V4_BF16 or V4_E4M3 */
	/* V4_E4M3: the address of kv_scale on the device. It is read when the
	 * operation runs, and not checked. NULL: kv_scale is used. */
	const float *kv_scale_at;
	uint32_t positions_dtype; /* spmla_int_dtype */
	uint32_t cos_sin_dtype;   /* spmla_real_dtype */
} spmla_qnorm_rope_kv_insert_args;

/* Queries. For each (token, head), over its 512 values, in f32:
 *   r = 1 / sqrt(sum of x * x / 512 + norm_eps), root and quotient exact
 *   y = x * r, not rounded; the last 64 are rotated, INTERLEAVED, unfused
 *   q_out = bf16(y); a NaN is 0x7fc0
 * The sum runs in 16 lanes: lane l adds the values v with v / 8 % 16 = l, in
 * their order. The lanes are then added in the tree 8, 4, 2, 1. Heads from
 * `heads` up to padded_heads are zeros.
 *
 * Keys of the first kv_tokens tokens. The last 64 values are rotated in the
 * same way and rounded to bf16. Then the row is written to its slot:
 * V4_FP8: for each 64 of the first 448 values the scale is 2^e =
 * pow2up(max(amax, 1e-4) / 448), amax over |x| (NaN ignored), its byte e + 127,
 * each value e4m3(x / 2^e). The eighth scale byte is 0; the rotated values are
 * bf16. See spmla_e4m3 for NaN and infinities.
 * V4_BF16: bf16; the first 448 values bit for bit.
 * V4_E4M3: e4m3(x * (1 / kv_scale)), quotient and product rounded to f32; a NaN
 * becomes 0x7f (FNUZ: 0x80).
 * With cache.encoding FNUZ (V4_FP8, V4_E4M3) the codes are FNUZ. In scales that
 * follow from amax 224 takes the place of 448.
 * e4m3 rounds to nearest even and saturates. A NaN of the rotation is 0x7fc0.
 *
 * A position outside the rope table: q_out is zeros for all heads of the token,
 * and no key is written: FAULT_POSITION, once per token. A slot past the cache
 * skips the key: FAULT_SLOT. If a slot occurs twice in one call, each value and
 * each scale comes from one of the two rows.
 * No tokens: nothing else is checked, nothing is enqueued. No kv_tokens: kv,
 * slot_mapping and cache are not read.
 * Alias: q_out may be q with the same strides (else E_RANGE); otherwise none.
 * Order: enqueues; capturable.
 * Exact: bit for bit on every backend. The source may use an approximate
 * reciprocal root; q_out then differs by one step of bf16.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM fused_deepseek_v4_qnorm_rope_kv_insert and its full-row forms,
 * whose positions are int64. */
spmla_status
spmla_qnorm_rope_kv_insert(spmla_ctx *ctx,
			   const spmla_qnorm_rope_kv_insert_args *args,
			   spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
