/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: separates selected positions into positions of the
 * context and positions of the tokens that are new in this step.
 */
#ifndef SPMLA_OPS_FILTER_PREFILL_INDICES_H
#define SPMLA_OPS_FILTER_PREFILL_INDICES_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_filter_prefill_indices_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t k; /* indices of a token, 1 or more */
	uint32_t reserved;
	const int32_t *indices;       /* [tokens][k], -1 for none */
	int64_t indices_stride_elems; /* >= k */
	const int32_t *context_lens;  /* [tokens]: positions before the step */
	int32_t *context_indices;     /* [tokens][k]; NULL: not wanted */
	int64_t context_indices_stride_elems; /* >= k */
	int32_t *new_indices;             /* [tokens][k]; NULL: not wanted */
	int64_t new_indices_stride_elems; /* >= k */
} spmla_filter_prefill_indices_args;

/* With c = context_lens[t]:
 *   context_indices = index if 0 <= index < c, else -1
 *   new_indices     = index - c if index >= c, else -1
 * A negative index is -1 in both. Columns keep their place. A negative c gives
 * -1 in all columns of the token, and FAULT_LENGTH.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: one of the outputs may be indices, with its stride. The outputs must
 * not be the same buffer (E_RANGE). Order: enqueues; capturable. Exact:
 * integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM filter_prefill_indices. */
spmla_status
spmla_filter_prefill_indices(spmla_ctx *ctx,
			     const spmla_filter_prefill_indices_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
