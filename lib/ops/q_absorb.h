/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: multiplies queries by the key up-projection, so that attention
 * works on latents, and appends their rotated rope part.
 */
#ifndef SPMLA_OPS_Q_ABSORB_H
#define SPMLA_OPS_Q_ABSORB_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_q_absorb_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;
	uint32_t rope_style; /* spmla_rope_style; NONE: q_pe stays as it is */
	uint32_t cos_sin_rows;
	uint32_t positions_dtype;          /* spmla_int_dtype */
	const uint16_t *q_nope;            /* bf16 [tokens][heads][128] */
	int64_t q_nope_token_stride_elems; /* >= 128: heads may be outermost */
	int64_t q_nope_head_stride_elems;  /* >= 128 */
	const uint16_t *w_uk_t;            /* bf16 [heads][128][512] */
	int64_t w_head_stride_elems;       /* >= 512 */
	int64_t w_row_stride_elems;        /* >= 512 */
	const uint16_t *q_pe; /* bf16 [tokens][heads][64]; NULL: not appended */
	int64_t q_pe_token_stride_elems; /* >= 64 */
	int64_t q_pe_head_stride_elems;  /* >= 64 */
	const void *positions; /* int32 or int64 [tokens]; rope only */
	/* f32 or bf16 [cos_sin_rows][32 cos, 32 sin]; rope only */
	const void *cos_sin;
	uint16_t *q; /* bf16 [tokens][heads][512, or 576 with q_pe] */
	int64_t q_token_stride_elems; /* >= 512 or 576 */
	int64_t q_head_stride_elems;  /* >= 512 or 576 */
	uint32_t cos_sin_dtype;       /* spmla_real_dtype */
	uint32_t reserved;
} spmla_q_absorb_args;

/* For j < 512:
 *   q[t][h][j] = bf16(sum over i of q_nope[t][h][i] * w_uk_t[h][i][j])
 * The sum is in f32. Matrix instructions add parts of 128 products, and parts
 * are added in order; CUDA takes them (sm_80 and later) if all rows are aligned
 * to 16 bytes. Otherwise lane l of 16 adds the (exact) products of i = l, l +
 * 16, .. in order, then the lanes are added in a tree (l + 8, + 4, + 2, + 1).
 * q[t][h][512 ..] is q_pe[t][h]: bit for bit with ROPE_NONE, otherwise rotated
 * in f32, unfused, and rounded to bf16. A position outside the rope table:
 * zeros in all of the token's q, FAULT_POSITION.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row.
 * Exact: the sums within 2^-16 of the sum of |terms| before the rounding to
 * bf16, without matrix instructions within 2^-20; the rope part bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM W_UK_T bmm and concat_mla_q. */
spmla_status spmla_q_absorb(spmla_ctx *ctx, const spmla_q_absorb_args *args,
			    spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
