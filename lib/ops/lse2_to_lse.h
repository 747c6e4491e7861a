/* SPDX-License-Identifier: Apache-2.0
 *
 * lse2_to_lse: converts logarithms to base 2 into natural ones.
 */
#ifndef SPMLA_OPS_LSE2_TO_LSE_H
#define SPMLA_OPS_LSE2_TO_LSE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_lse2_to_lse_args {
	uint32_t struct_bytes;
	uint32_t reserved;
	uint64_t count;
	const float *lse2; /* [count] */
	float *lse;        /* [count] */
} spmla_lse2_to_lse_args;

/* lse[i] = lse2[i] * f32(ln 2), one f32 product. Infinities (rows without keys)
 * and NaN stay what they are.
 * Count 0: nothing else is checked, nothing is enqueued.
 * Alias: lse may be lse2. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE.
 * Source: vLLM, for FlashMLA before 2025-10. */
spmla_status spmla_lse2_to_lse(spmla_ctx *ctx,
			       const spmla_lse2_to_lse_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
