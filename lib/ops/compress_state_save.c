/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: host checks and dispatch.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/compress.h"

static spmla_status
check_args(spmla_diag *diag, const spmla_compress_state_save_args *a)
{
	const uint32_t width = spmla_i_state_width(a->state.layout);
	const uint32_t ring = a->form == SPMLA_STATE_RING;
	const spmla_i_check checks[] = {
		{"compress_state_save.kv_dtype", a->kv_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"compress_state_save.kv", SPMLA_I_PTR(a->kv),
		 SPMLA_WANT_NOT_NULL, 0},
		{"compress_state_save.score", SPMLA_I_PTR(a->score),
		 SPMLA_WANT_NOT_NULL, 0},
		{"compress_state_save.kv_stride_elems",
		 spmla_i_stride(a->kv_stride_elems), SPMLA_WANT_AT_LEAST,
		 width},
		{"compress_state_save.score_stride_elems",
		 spmla_i_stride(a->score_stride_elems), SPMLA_WANT_AT_LEAST,
		 width},
		{"compress_state_save.ape", SPMLA_I_PTR(a->ape),
		 SPMLA_WANT_NOT_NULL, 0},
		{"compress_state_save.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"compress_state_save.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{ring ? "compress_state_save.context_lens"
		      : "compress_state_save.slot_mapping",
		 ring ? SPMLA_I_PTR(a->context_lens)
		      : SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_compress_state_save(spmla_ctx *ctx,
			  const spmla_compress_state_save_args *a,
			  spmla_stream stream)
{
	static const spmla_i_state_fields fields =
		SPMLA_I_STATE_FIELDS("compress_state_save");
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "compress_state_save");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_state_check state = {a->ratio,
					   a->form,
					   a->rows,
					   a->columns,
					   a->table_stride_elems,
					   0,
					   a->token_row,
					   a->block_table,
					   &a->state};

	s = spmla_i_check_state(&ctx->diag, &fields, &state);
	if (s == SPMLA_OK)
		s = check_args(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_compress_state_save, a,
			      sizeof *a, stream);
}
