/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: which request and position each query token of a step has.
 */
#ifndef SPMLA_OPS_TOKEN_MAP_H
#define SPMLA_OPS_TOKEN_MAP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_token_map_args {
	uint32_t struct_bytes;
	uint32_t requests;
	uint32_t tokens; /* rows of the outputs, padding included */
	uint32_t reserved;
	const int32_t *query_start_loc; /* [requests + 1], ascending from 0 */
	const int32_t
		*seq_lens;      /* [requests], with the query tokens; 0: none */
	const int32_t *req_row; /* [requests]: stable row of each request */
	int32_t *req_id_per_token; /* [tokens] */
	int32_t *token_row;        /* [tokens] */
	int32_t *positions;        /* [tokens] */
	int32_t *context_lens;     /* [tokens] */
} spmla_token_map_args;

/* For token t of request b (the last b with query_start_loc[b] <= t that has
 * tokens) and j = t - query_start_loc[b]:
 *   positions = seq_lens[b] - query tokens + j, context_lens = positions + 1,
 *   req_id_per_token = b, token_row = req_row[b].
 * Padding tokens (t >= query_start_loc[requests]) get 0 in all four. A request
 * with seq_lens 0 has no valid token: position and length 0. One with
 * 0 < seq_lens < its query tokens, or < 0, the same, and FAULT_LENGTH. Start
 * locations are clamped to [previous, tokens].
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE.
 * Source: vLLM common metadata and the flattened indexer decode layout. */
spmla_status spmla_token_map(spmla_ctx *ctx, const spmla_token_map_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
