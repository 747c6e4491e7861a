/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum { NOPE = SPMLA_INDEX_DIM };

static spmla_status
check_product(spmla_diag *diag, const spmla_q_absorb_args *a)
{
	const uint64_t dim = a->q_pe ? SPMLA_MLA_DIM : SPMLA_MLA_LATENT;
	const spmla_i_check checks[] = {
		{"q_absorb.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"q_absorb.rope_style", a->rope_style,
		 SPMLA_I_FROM_TO(SPMLA_ROPE_NONE, SPMLA_ROPE_INTERLEAVED)},
		{"q_absorb.q_nope", SPMLA_I_PTR(a->q_nope), SPMLA_WANT_NOT_NULL,
		 0},
		{"q_absorb.q_nope_token_stride_elems",
		 spmla_i_stride(a->q_nope_token_stride_elems),
		 SPMLA_WANT_AT_LEAST, NOPE},
		{"q_absorb.q_nope_head_stride_elems",
		 spmla_i_stride(a->q_nope_head_stride_elems),
		 SPMLA_WANT_AT_LEAST, NOPE},
		{"q_absorb.w_uk_t", SPMLA_I_PTR(a->w_uk_t), SPMLA_WANT_NOT_NULL,
		 0},
		{"q_absorb.w_head_stride_elems",
		 spmla_i_stride(a->w_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"q_absorb.w_row_stride_elems",
		 spmla_i_stride(a->w_row_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"q_absorb.q", SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{"q_absorb.q_token_stride_elems",
		 spmla_i_stride(a->q_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 dim},
		{"q_absorb.q_head_stride_elems",
		 spmla_i_stride(a->q_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 dim},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_rope(spmla_diag *diag, const spmla_q_absorb_args *a)
{
	const spmla_i_check strides[] = {
		{"q_absorb.q_pe_token_stride_elems",
		 spmla_i_stride(a->q_pe_token_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_MLA_ROPE},
		{"q_absorb.q_pe_head_stride_elems",
		 spmla_i_stride(a->q_pe_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_ROPE},
	};
	const spmla_i_check rope[] = {
		{"q_absorb.q_pe", SPMLA_I_PTR(a->q_pe), SPMLA_WANT_NOT_NULL, 0},
		{"q_absorb.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"q_absorb.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"q_absorb.cos_sin_dtype", a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"q_absorb.cos_sin", SPMLA_I_PTR(a->cos_sin),
		 SPMLA_WANT_NOT_NULL, 0},
		{"q_absorb.cos_sin_rows", a->cos_sin_rows, SPMLA_WANT_AT_LEAST,
		 1},
	};
	spmla_status s = SPMLA_OK;

	if (a->rope_style != SPMLA_ROPE_NONE)
		s = spmla_i_check_all(diag, rope, SPMLA_I_COUNT(rope));
	if (s == SPMLA_OK && a->q_pe)
		s = spmla_i_check_all(diag, strides, SPMLA_I_COUNT(strides));
	return s;
}

spmla_status
spmla_q_absorb(spmla_ctx *ctx, const spmla_q_absorb_args *a,
	       spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "q_absorb");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_product(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_rope(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_q_absorb, a, sizeof *a, stream);
}
