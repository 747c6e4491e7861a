/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_tokens(spmla_diag *diag, const spmla_swa_index_args *a)
{
	const uint64_t most = (uint64_t)a->window +
			      (a->image_spans ? a->max_image : UINT32_C(0));
	const uint64_t ring_columns =
		(most + a->page_tokens - 2) / a->page_tokens + 1;
	const spmla_i_check checks[] = {
		{"swa_index.max_image", a->max_image, SPMLA_WANT_AT_LEAST,
		 a->image_spans != NULL},
		{"swa_index.width", a->width, SPMLA_WANT_AT_LEAST, most},
		{"swa_index.width", a->width, SPMLA_WANT_AT_MOST, INT32_MAX},
		{"swa_index.columns", a->columns, SPMLA_WANT_AT_LEAST,
		 a->ring ? ring_columns : 1},
		{"swa_index.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"swa_index.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"swa_index.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.indices", SPMLA_I_PTR(a->indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->width},
		{"swa_index.lens", SPMLA_I_PTR(a->lens), SPMLA_WANT_NOT_NULL,
		 0},
		{"swa_index.padded_lens", a->padded_lens, SPMLA_WANT_AT_MOST,
		 1},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_requests(spmla_diag *diag, const spmla_swa_index_args *a)
{
	const spmla_i_check checks[] = {
		{"swa_index.query_start_loc", SPMLA_I_PTR(a->query_start_loc),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.seq_lens", SPMLA_I_PTR(a->seq_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"swa_index.gather_lens", SPMLA_I_PTR(a->gather_lens),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_swa_index(spmla_ctx *ctx, const spmla_swa_index_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "swa_index");

	if (s != SPMLA_OK || (a->tokens == 0 && a->requests == 0))
		return s;
	const spmla_i_check checks[] = {
		{"swa_index.window", a->window, SPMLA_WANT_AT_LEAST, 1},
		{"swa_index.rows", a->rows, SPMLA_WANT_AT_LEAST, 1},
		{"swa_index.page_tokens", a->page_tokens, SPMLA_WANT_AT_LEAST,
		 1},
		{"swa_index.page_tokens", a->page_tokens, SPMLA_WANT_AT_MOST,
		 INT32_MAX},
		{"swa_index.page_stride_rows",
		 a->page_stride_rows ? a->page_stride_rows : a->page_tokens,
		 SPMLA_WANT_AT_LEAST, a->page_tokens},
		{"swa_index.ring", a->ring, SPMLA_WANT_AT_MOST, 1},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK && a->tokens > 0)
		s = check_tokens(&ctx->diag, a);
	if (s == SPMLA_OK && a->requests > 0)
		s = check_requests(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_swa_index, a, sizeof *a, stream);
}
