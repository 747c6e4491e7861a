/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows: places each request's gathered context in the workspace; gives
 * each token its range of rows and the start of its index logits.
 */
#ifndef SPMLA_OPS_PREFILL_ROWS_H
#define SPMLA_OPS_PREFILL_ROWS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_prefill_rows_args {
	uint32_t struct_bytes;
	uint32_t requests;
	uint32_t tokens;
	uint32_t keys; /* rows of the workspace, < 2^31 */
	/* tokens of a piece, whose logits exist together; >= 1 */
	uint32_t piece_tokens;
	uint32_t reserved;
	uint64_t piece_stride_elems;     /* from row to row of logits, < 2^32 */
	const int32_t *query_start_loc;  /* [requests + 1] */
	const int32_t *seq_lens;         /* [requests], 0: none */
	const int32_t *req_row;          /* [requests], for reports */
	const int32_t *req_id_per_token; /* [tokens] */
	int32_t *context_lens;     /* [tokens]: keys that it sees, in and out */
	int32_t *workspace_starts; /* [requests + 1] */
	int32_t *key_starts;       /* [tokens] */
	int32_t *key_ends;         /* [tokens] */
	int64_t *row_starts;       /* [tokens] */
} spmla_prefill_rows_args;

/* A prefill gathers the contexts of its requests into one workspace, one behind
 * the other. A token then sees a range of workspace rows.
 *
 * workspace_starts is the exclusive prefix sum of seq_lens over the requests
 * that have query tokens. Its last element is the sum. A token t of request b
 * with n = context_lens[t] > 0 sees the rows [key_starts, key_ends):
 *   key_starts = workspace_starts[b]
 *   key_ends   = key_starts + n
 * A token without keys has 0 and 0. Its logits are row t % piece_tokens of a
 * piece:
 *   row_starts = t % piece_tokens * piece_stride_elems
 * A request whose context would end past `keys`, or whose length is negative,
 * gets no rows: FAULT_LENGTH. Later requests that fit are kept.
 * A token's context_lens becomes 0 if: it is negative; the request does not
 * exist or has no rows; the request has fewer rows than that (FAULT_LENGTH).
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM indexer prefill metadata (cu_seq_lens, ks, ke) and
 * FlashMLASparseMetadataBuilder (workspace_starts). */
spmla_status spmla_prefill_rows(spmla_ctx *ctx,
				const spmla_prefill_rows_args *args,
				spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
