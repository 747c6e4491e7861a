/* SPDX-License-Identifier: Apache-2.0
 *
 * lse2_to_lse: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_lse2_to_lse(spmla_ctx *ctx, const spmla_lse2_to_lse_args *a,
		  spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "lse2_to_lse");

	if (s != SPMLA_OK || a->count == 0)
		return s;
	const spmla_i_check checks[] = {
		{"lse2_to_lse.lse2", SPMLA_I_PTR(a->lse2), SPMLA_WANT_NOT_NULL,
		 0},
		{"lse2_to_lse.lse", SPMLA_I_PTR(a->lse), SPMLA_WANT_NOT_NULL,
		 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_lse2_to_lse, a, sizeof *a,
			      stream);
}
