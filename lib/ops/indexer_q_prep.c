/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum { MAX_HEADS = 128 };

static spmla_status
check_numbers(spmla_diag *diag, const spmla_indexer_q_prep_args *a)
{
	const spmla_i_check checks[] = {
		{"indexer_q_prep.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"indexer_q_prep.heads", a->heads, SPMLA_WANT_AT_MOST,
		 MAX_HEADS},
		{"indexer_q_prep.rope_style", a->rope_style,
		 SPMLA_I_FROM_TO(SPMLA_ROPE_NONE, SPMLA_ROPE_INTERLEAVED)},
		{"indexer_q_prep.scale_floor", a->scale_floor,
		 SPMLA_I_FROM_TO(SPMLA_Q_SCALE_FUSED, SPMLA_Q_SCALE_V4)},
		{"indexer_q_prep.weights_dtype", a->weights_dtype,
		 SPMLA_WANT_ONE_OF,
		 1u << SPMLA_DTYPE_BF16 | 1u << SPMLA_DTYPE_F32},
		{"indexer_q_prep.q_token_stride_elems",
		 spmla_i_stride(a->q_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_INDEX_DIM},
		{"indexer_q_prep.q_head_stride_elems",
		 spmla_i_stride(a->q_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_INDEX_DIM},
		{"indexer_q_prep.weights_stride_elems",
		 spmla_i_stride(a->weights_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->heads},
		{"indexer_q_prep.rope_part", a->rope_part,
		 SPMLA_I_FROM_TO(SPMLA_ROPE_FIRST, SPMLA_ROPE_LAST)},
		{"indexer_q_prep.q_format", a->q_format,
		 SPMLA_I_FROM_TO(SPMLA_INDEX_Q_FP8, SPMLA_INDEX_Q_MXFP4)},
		{"indexer_q_prep.q_encoding", a->q_encoding, SPMLA_WANT_AT_MOST,
		 a->q_format == SPMLA_INDEX_Q_FP8 ? SPMLA_E4M3_FNUZ
						  : SPMLA_E4M3_FN},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_pointers(spmla_diag *diag, const spmla_indexer_q_prep_args *a)
{
	const spmla_i_check checks[] = {
		{"indexer_q_prep.q", SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{"indexer_q_prep.weights", SPMLA_I_PTR(a->weights),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_q_prep.q_out", SPMLA_I_PTR(a->q_out),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_q_prep.weights_out", SPMLA_I_PTR(a->weights_out),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_i_check rope[] = {
		{"indexer_q_prep.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"indexer_q_prep.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_q_prep.cos_sin_dtype", a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"indexer_q_prep.cos_sin", SPMLA_I_PTR(a->cos_sin),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_q_prep.cos_sin_rows", a->cos_sin_rows,
		 SPMLA_WANT_AT_LEAST, 1},
	};
	const spmla_i_check scales[] = {
		{"indexer_q_prep.q_scales", SPMLA_I_PTR(a->q_scales),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->rope_style != SPMLA_ROPE_NONE)
		s = spmla_i_check_all(diag, rope, SPMLA_I_COUNT(rope));
	if (s == SPMLA_OK && a->q_format == SPMLA_INDEX_Q_MXFP4)
		s = spmla_i_check_all(diag, scales, SPMLA_I_COUNT(scales));
	return s;
}

spmla_status
spmla_indexer_q_prep(spmla_ctx *ctx, const spmla_indexer_q_prep_args *a,
		     spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "indexer_q_prep");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_numbers(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(&ctx->diag,
					   "indexer_q_prep.softmax_scale",
					   a->softmax_scale);
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(
			&ctx->diag, "indexer_q_prep.head_scale", a->head_scale);
	if (s == SPMLA_OK)
		s = check_pointers(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_indexer_q_prep, a, sizeof *a,
			      stream);
}
