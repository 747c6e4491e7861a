/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_ragged_index(spmla_ctx *ctx, const spmla_ragged_index_args *a,
		   spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "ragged_index");

	if (s != SPMLA_OK)
		return s;
	const spmla_want there =
		a->tokens ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING;
	const spmla_i_check checks[] = {
		{"ragged_index.width", a->width, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"ragged_index.capacity_elems", a->capacity_elems,
		 SPMLA_WANT_AT_MOST, INT32_MAX},
		{"ragged_index.indices", SPMLA_I_PTR(a->indices), there, 0},
		{"ragged_index.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->tokens ? a->width : 0},
		{"ragged_index.ragged_indptr", SPMLA_I_PTR(a->ragged_indptr),
		 SPMLA_WANT_NOT_NULL, 0},
		{"ragged_index.ragged_indices", SPMLA_I_PTR(a->ragged_indices),
		 there, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_ragged_index, a, sizeof *a,
			      stream);
}
