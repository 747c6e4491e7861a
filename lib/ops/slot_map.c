/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_slot_map(spmla_ctx *ctx, const spmla_slot_map_args *a,
	       spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "slot_map");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"slot_map.rows", a->rows, SPMLA_WANT_AT_LEAST, 1},
		{"slot_map.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"slot_map.page_tokens", a->page_tokens, SPMLA_WANT_AT_LEAST,
		 1},
		{"slot_map.page_tokens", a->page_tokens, SPMLA_WANT_MULTIPLE_OF,
		 a->compress_ratio ? a->compress_ratio : 1},
		{"slot_map.ring", a->ring, SPMLA_WANT_AT_MOST, 1},
		{"slot_map.dcp_ranks", a->dcp_ranks, SPMLA_WANT_AT_MOST,
		 a->compress_ratio > 1 ? 1 : 65536},
		{"slot_map.dcp_rank", a->dcp_rank, SPMLA_WANT_AT_MOST,
		 a->dcp_ranks ? a->dcp_ranks - 1 : 0},
		{"slot_map.dcp_interleave", a->dcp_interleave,
		 SPMLA_WANT_AT_LEAST, a->dcp_ranks > 1},
		{"slot_map.dcp_interleave", a->dcp_interleave,
		 SPMLA_WANT_AT_MOST, a->dcp_ranks > 1 ? 4096 : UINT32_MAX},
		{"slot_map.pool_pages", a->pool_pages, SPMLA_WANT_AT_LEAST, 1},
		{"slot_map.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"slot_map.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"slot_map.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"slot_map.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"slot_map.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"slot_map.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"slot_map.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_slot_map, a, sizeof *a, stream);
}
