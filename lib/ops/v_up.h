/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: multiplies attention results by the value up-projection.
 */
#ifndef SPMLA_OPS_V_UP_H
#define SPMLA_OPS_V_UP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_v_up_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;
	uint32_t reserved;
	const uint16_t *latent;            /* bf16 [tokens][heads][512] */
	int64_t latent_token_stride_elems; /* >= 512: heads may be outermost */
	int64_t latent_head_stride_elems;  /* >= 512 */
	const uint16_t *w_uv;              /* bf16 [heads][512][128] */
	int64_t w_head_stride_elems;       /* >= 128 */
	int64_t w_row_stride_elems;        /* >= 128 */
	uint16_t *out;                     /* bf16 [tokens][heads * 128] */
	int64_t out_token_stride_elems;    /* >= heads * 128 */
} spmla_v_up_args;

/* out[t][h * 128 + j] = bf16(sum over i of latent[t][h][i] * w_uv[h][i][j]),
 * summed as in spmla_q_absorb.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Deterministic: a row's bits depend only on that row.
 * Exact: within 2^-16 of the sum of |terms| before the rounding to bf16,
 * without matrix instructions within 2^-18.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM W_UV bmm. */
spmla_status spmla_v_up(spmla_ctx *ctx, const spmla_v_up_args *args,
			spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
