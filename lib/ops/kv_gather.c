/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_kv_gather(spmla_ctx *ctx, const spmla_kv_gather_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "kv_gather");

	if (s != SPMLA_OK || a->requests == 0 || a->keys == 0)
		return s;
	const spmla_i_check checks[] = {
		{"kv_gather.keys", a->keys, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"kv_gather.rows", a->rows, SPMLA_WANT_AT_LEAST,
		 a->req_row ? 1 : a->requests},
		{"kv_gather.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"kv_gather.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"kv_gather.workspace_starts", SPMLA_I_PTR(a->workspace_starts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_gather.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_gather.dst", SPMLA_I_PTR(a->dst), SPMLA_WANT_NOT_NULL, 0},
		{"kv_gather.dst_stride_elems",
		 spmla_i_stride(a->dst_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_DIM},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(&ctx->diag, &a->cache,
					1u << SPMLA_LAYOUT_FP8_DS_MLA |
						1u << SPMLA_LAYOUT_MLA_BF16);
	return spmla_i_op_end(ctx, s, SPMLA_OP_kv_gather, a, sizeof *a, stream);
}
