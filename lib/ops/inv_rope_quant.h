/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: rotates attention results back and quantises them, for the
 * output projection of V4.
 */
#ifndef SPMLA_OPS_INV_ROPE_QUANT_H
#define SPMLA_OPS_INV_ROPE_QUANT_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The form of a result. There is one scale for each 128 values. */
typedef enum spmla_o_quant {
	SPMLA_O_BF16 = 0,
	SPMLA_O_FP8 = 1,        /* e4m3, scales f32 */
	SPMLA_O_FP8_PACKED = 2, /* e4m3, scales ue8m0, four in an int32 */
	SPMLA_O_FORCE_32 = 0x7fffffff
} spmla_o_quant;

/* groups * heads_per_group heads; head g * heads_per_group + j is values
 * 512 j .. 512 j + 511 of group g. */
typedef struct spmla_inv_rope_quant_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t groups;          /* 1..256 */
	uint32_t heads_per_group; /* 1..256 */
	uint32_t quant;           /* spmla_o_quant */
	uint32_t rope_style;      /* spmla_rope_style */
	uint32_t cos_sin_rows;
	uint32_t positions_dtype;     /* spmla_int_dtype */
	const uint16_t *o;            /* bf16 [tokens][heads][512] */
	int64_t o_token_stride_elems; /* >= 512: heads may be outermost */
	int64_t o_head_stride_elems;  /* >= 512 */
	const void *positions;        /* int32 or int64 [tokens]; rope only */
	/* f32 or bf16 [cos_sin_rows][32 cos, 32 sin]; rope only */
	const void *cos_sin;
	/* e4m3 or bf16 [tokens][groups][heads_per_group * 512] */
	void *out;
	/* Both strides >= heads_per_group * 512: groups may be outermost. */
	int64_t out_token_stride_elems;
	int64_t out_group_stride_elems;
	/* f32 [groups][4 * heads_per_group][tokens], or int32
	 * [groups][heads_per_group][tokens]; quantised forms only */
	void *scales;
	/* scale_stride_elems: from one row of tokens to the next.
	 * scale_group_stride_elems: from a group's first row to the next
	 * group's. Both >= tokens, rounded up to a multiple of 4. */
	int64_t scale_stride_elems;
	int64_t scale_group_stride_elems;
	uint32_t cos_sin_dtype; /* spmla_real_dtype */
	uint32_t reserved;
} spmla_inv_rope_quant_args;

/* Attention over rotated keys gives results that are rotated, too. This call
 * undoes that and, for an e4m3 projection, quantises the result.
 *
 * The last 64 values of each head are rotated back by the token's position, in
 * f32, unfused:
 *   first' = first * cos + second * sin, second' = second * cos - first * sin
 *
 * O_BF16: the rotated values are rounded to bf16, a NaN to 0x7fc0. The others
 * are copied bit for bit.
 * O_FP8, O_FP8_PACKED: nothing is rounded before this. For each 128 values
 *   s = pow2up(max(amax, 1e-10) * f32(1/448)), amax over |x|, NaN ignored
 *   byte = e4m3(x / s), a true division, saturating
 * See spmla_e4m3 for NaN and infinities.
 * O_FP8 stores s. O_FP8_PACKED stores one word per head, whose byte i is the
 * biased exponent of s for the values 128 i .. 128 i + 127. (For +inf it is
 * 255; the codes are then 0 or 0x7f, so any reading of 255 gives NaN.)
 * Scales of padding tokens (up to a multiple of 4) are zeros.
 *
 * A position outside the rope table: zeros in both outputs of the token,
 * FAULT_POSITION.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM fused_inv_rope_fp8_quant, whose compiler fuses the rotation. */
spmla_status spmla_inv_rope_quant(spmla_ctx *ctx,
				  const spmla_inv_rope_quant_args *args,
				  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
