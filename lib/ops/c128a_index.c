/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_decode(spmla_diag *diag, const spmla_c128a_index_args *a)
{
	const spmla_i_check checks[] = {
		{"c128a_index.rows", a->rows, SPMLA_WANT_AT_LEAST, 1},
		{"c128a_index.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"c128a_index.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"c128a_index.page_entries", a->page_entries,
		 SPMLA_WANT_AT_LEAST, 1},
		{"c128a_index.page_entries", a->page_entries,
		 SPMLA_WANT_AT_MOST, INT32_MAX},
		{"c128a_index.page_stride_rows",
		 a->page_stride_rows ? a->page_stride_rows : a->page_entries,
		 SPMLA_WANT_AT_LEAST, a->page_entries},
		{"c128a_index.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"c128a_index.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"c128a_index.decode_slots", SPMLA_I_PTR(a->decode_slots),
		 SPMLA_WANT_NOT_NULL, 0},
		{"c128a_index.decode_stride_elems",
		 spmla_i_stride(a->decode_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->width},
		{"c128a_index.decode_lens", SPMLA_I_PTR(a->decode_lens),
		 a->entries ? SPMLA_WANT_NOTHING : SPMLA_WANT_NOT_NULL, 0},
		{"c128a_index.entries_before", a->entries_before,
		 SPMLA_WANT_AT_MOST, INT32_MAX - a->width},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_prefill(spmla_diag *diag, const spmla_c128a_index_args *a)
{
	const spmla_i_check checks[] = {
		{"c128a_index.prefill_indices", SPMLA_I_PTR(a->prefill_indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"c128a_index.prefill_stride_elems",
		 spmla_i_stride(a->prefill_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->width},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_c128a_index(spmla_ctx *ctx, const spmla_c128a_index_args *a,
		  spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "c128a_index");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_want given =
		a->entries ? SPMLA_WANT_NOTHING : SPMLA_WANT_NOT_NULL;
	const spmla_i_check checks[] = {
		{"c128a_index.decode_tokens", a->decode_tokens,
		 SPMLA_WANT_AT_MOST, a->tokens},
		{"c128a_index.ratio", a->ratio, SPMLA_WANT_AT_LEAST, 1},
		{"c128a_index.width", a->width, SPMLA_WANT_AT_LEAST, 1},
		{"c128a_index.width", a->width, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"c128a_index.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"c128a_index.positions", SPMLA_I_PTR(a->positions), given, 0},
		{"c128a_index.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 given, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK && a->decode_tokens > 0)
		s = check_decode(&ctx->diag, a);
	if (s == SPMLA_OK && a->decode_tokens < a->tokens)
		s = check_prefill(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_c128a_index, a, sizeof *a,
			      stream);
}
