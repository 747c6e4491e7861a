/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: the request and the position of each query token of a step.
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
	uint32_t tokens; /* rows of the outputs, with padding */
	uint32_t reserved;
	const int32_t *query_start_loc; /* [requests + 1], ascending from 0 */
	const int32_t
		*seq_lens;      /* [requests], query tokens included; 0: none */
	const int32_t *req_row; /* [requests]: stable row of each request */
	int32_t *req_id_per_token; /* [tokens] */
	int32_t *token_row;        /* [tokens] */
	int32_t *positions;        /* [tokens] */
	int32_t *context_lens;     /* [tokens] */
} spmla_token_map_args;

/* Token t belongs to the last request b with tokens and query_start_loc[b] <=
 * t. With j = t - query_start_loc[b]:
 *   positions        = seq_lens[b] - query tokens of b + j
 *   context_lens     = positions + 1
 *   req_id_per_token = b
 *   token_row        = req_row[b]
 * Padding tokens (t >= query_start_loc[requests]) get 0 in all four. The tokens
 * of a request with seq_lens 0 get position and length 0. So do the tokens of a
 * request with 0 < seq_lens < its query tokens, or seq_lens < 0: FAULT_LENGTH.
 * Start locations are clamped to [previous, tokens].
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
