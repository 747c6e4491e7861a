/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: where each token's row of index logits starts.
 */
#ifndef SPMLA_OPS_LOGITS_ROWS_H
#define SPMLA_OPS_LOGITS_ROWS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_logits_rows_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint64_t capacity_elems;  /* of the logits buffer, < 2^63 */
	const int32_t *token_row; /* [tokens], named in a report; NULL: token */
	int32_t *context_lens;    /* [tokens], in and out */
	int64_t *row_starts;      /* [tokens + 1] */
} spmla_logits_rows_args;

/* row_starts is the exclusive prefix sum of context_lens rounded up to
 * SPMLA_LOGITS_ROW_ALIGN, and no more than capacity_elems. A row that would end
 * past that gets context_lens 0 and no room, and FAULT_LOGITS; later rows that
 * fit are kept. Negative lengths count as 0.
 * No tokens: nothing else is checked, nothing is enqueued, nor is row_starts[0]
 * written.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE. */
spmla_status spmla_logits_rows(spmla_ctx *ctx,
			       const spmla_logits_rows_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
