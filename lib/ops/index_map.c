/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

/* Checks of fields that only some calls use. */
static spmla_status
check_optional(spmla_diag *diag, const spmla_index_map_args *a)
{
	const spmla_i_check stride[] = {
		{"index_map.page_stride_rows", a->page_stride_rows,
		 SPMLA_WANT_AT_LEAST, a->page_tokens},
	};
	const spmla_i_check in_place[] = {
		{"index_map.slots_stride_elems",
		 spmla_i_stride(a->slots_stride_elems), SPMLA_WANT_EQUAL,
		 spmla_i_stride(a->indices_stride_elems)},
	};
	const spmla_i_check ragged[] = {
		{"index_map.slots (with indptr)", a->slots == a->indices,
		 SPMLA_WANT_EQUAL, 0},
		{"index_map.capacity_elems", a->capacity_elems,
		 SPMLA_WANT_AT_MOST, INT32_MAX},
	};
	const spmla_i_check other[] = {
		{"index_map.other_lens", SPMLA_I_PTR(a->other_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"index_map.kept_lens", SPMLA_I_PTR(a->kept_lens),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_i_check workspace[] = {
		{"index_map.workspaces", a->workspaces, SPMLA_WANT_AT_LEAST, 1},
		{"index_map.workspace_starts", SPMLA_I_PTR(a->workspace_starts),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = SPMLA_OK;

	if (a->page_stride_rows)
		s = spmla_i_check_all(diag, stride, SPMLA_I_COUNT(stride));
	if (s == SPMLA_OK && a->indptr)
		s = spmla_i_check_all(diag, ragged, SPMLA_I_COUNT(ragged));
	if (s == SPMLA_OK && a->slots == a->indices)
		s = spmla_i_check_all(diag, in_place, SPMLA_I_COUNT(in_place));
	if (s == SPMLA_OK && (a->other_lens || a->kept_lens))
		s = spmla_i_check_all(diag, other, SPMLA_I_COUNT(other));
	if (s == SPMLA_OK && a->workspace_ids)
		s = spmla_i_check_all(diag, workspace,
				      SPMLA_I_COUNT(workspace));
	return s;
}

spmla_status
spmla_i_index_map_check(spmla_diag *diag, const spmla_index_map_args *a)
{
	const spmla_i_check checks[] = {
		{"index_map.k", a->k, SPMLA_WANT_AT_LEAST, 1},
		{"index_map.rows", a->rows, SPMLA_WANT_AT_LEAST, 1},
		{"index_map.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"index_map.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"index_map.page_tokens", a->page_tokens, SPMLA_WANT_AT_LEAST,
		 1},
		{"index_map.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"index_map.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"index_map.indices", SPMLA_I_PTR(a->indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"index_map.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->k},
		{"index_map.slots", SPMLA_I_PTR(a->slots), SPMLA_WANT_NOT_NULL,
		 0},
		{"index_map.slots_stride_elems",
		 spmla_i_stride(a->slots_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->indptr ? 0 : a->k},
		{"index_map.compact", a->compact, SPMLA_WANT_AT_MOST, 1},
		{"index_map.whole", a->whole, SPMLA_WANT_AT_MOST, 1},
		{"index_map.entries_before", a->entries_before,
		 SPMLA_WANT_AT_MOST, a->k <= INT32_MAX ? INT32_MAX - a->k : 0},
	};

	const spmla_status s =
		spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK ? check_optional(diag, a) : s;
}

spmla_status
spmla_index_map(spmla_ctx *ctx, const spmla_index_map_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "index_map");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = spmla_i_index_map_check(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_index_map, a, sizeof *a, stream);
}
