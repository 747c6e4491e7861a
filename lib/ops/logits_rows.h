/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: the start of each token's row of index logits.
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
	const int32_t *token_row; /* [tokens], for reports; NULL: the token */
	int32_t *context_lens;    /* [tokens], in and out */
	int64_t *row_starts;      /* [tokens + 1] */
} spmla_logits_rows_args;

/* row_starts is the exclusive prefix sum of context_lens, each rounded up to
 * SPMLA_LOGITS_ROW_ALIGN. It never exceeds capacity_elems: a row that would end
 * past it gets context_lens 0 and no room (FAULT_LOGITS), and later rows that
 * fit are kept. A negative length counts as 0.
 * No tokens: nothing else is checked, nothing is enqueued, and row_starts[0] is
 * not written.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE. */
spmla_status spmla_logits_rows(spmla_ctx *ctx,
			       const spmla_logits_rows_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
