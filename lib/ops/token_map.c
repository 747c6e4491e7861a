/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_token_map(spmla_ctx *ctx, const spmla_token_map_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "token_map");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_want lists =
		a->requests ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING;
	const spmla_i_check checks[] = {
		{"token_map.query_start_loc", SPMLA_I_PTR(a->query_start_loc),
		 lists, 0},
		{"token_map.seq_lens", SPMLA_I_PTR(a->seq_lens), lists, 0},
		{"token_map.req_row", SPMLA_I_PTR(a->req_row), lists, 0},
		{"token_map.req_id_per_token", SPMLA_I_PTR(a->req_id_per_token),
		 SPMLA_WANT_NOT_NULL, 0},
		{"token_map.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"token_map.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"token_map.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_token_map, a, sizeof *a, stream);
}
