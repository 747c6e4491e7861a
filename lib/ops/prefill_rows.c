/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_prefill_rows(spmla_ctx *ctx, const spmla_prefill_rows_args *a,
		   spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "prefill_rows");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_want lists =
		a->requests ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING;
	const spmla_i_check checks[] = {
		{"prefill_rows.keys", a->keys, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"prefill_rows.piece_tokens", a->piece_tokens,
		 SPMLA_WANT_AT_LEAST, 1},
		{"prefill_rows.piece_stride_elems", a->piece_stride_elems,
		 SPMLA_WANT_AT_MOST, UINT32_MAX},
		{"prefill_rows.query_start_loc",
		 SPMLA_I_PTR(a->query_start_loc), lists, 0},
		{"prefill_rows.seq_lens", SPMLA_I_PTR(a->seq_lens), lists, 0},
		{"prefill_rows.req_row", SPMLA_I_PTR(a->req_row), lists, 0},
		{"prefill_rows.req_id_per_token",
		 SPMLA_I_PTR(a->req_id_per_token), SPMLA_WANT_NOT_NULL, 0},
		{"prefill_rows.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"prefill_rows.workspace_starts",
		 SPMLA_I_PTR(a->workspace_starts), SPMLA_WANT_NOT_NULL, 0},
		{"prefill_rows.key_starts", SPMLA_I_PTR(a->key_starts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"prefill_rows.key_ends", SPMLA_I_PTR(a->key_ends),
		 SPMLA_WANT_NOT_NULL, 0},
		{"prefill_rows.row_starts", SPMLA_I_PTR(a->row_starts),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_prefill_rows, a, sizeof *a,
			      stream);
}
