/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_logits_rows(spmla_ctx *ctx, const spmla_logits_rows_args *a,
		  spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "logits_rows");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"logits_rows.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"logits_rows.row_starts", SPMLA_I_PTR(a->row_starts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"logits_rows.capacity_elems", a->capacity_elems,
		 SPMLA_WANT_AT_MOST, INT64_MAX},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_logits_rows, a, sizeof *a,
			      stream);
}
