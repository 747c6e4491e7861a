/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum { MOST = 256 }; /* groups, and heads of one */

#define FIELD(name) "inv_rope_quant." #name

static spmla_status
check_input(spmla_diag *diag, const spmla_inv_rope_quant_args *a)
{
	const spmla_i_check checks[] = {
		{FIELD(groups), a->groups, SPMLA_WANT_AT_LEAST, 1},
		{FIELD(groups), a->groups, SPMLA_WANT_AT_MOST, MOST},
		{FIELD(heads_per_group), a->heads_per_group,
		 SPMLA_WANT_AT_LEAST, 1},
		{FIELD(heads_per_group), a->heads_per_group, SPMLA_WANT_AT_MOST,
		 MOST},
		{FIELD(quant), a->quant,
		 SPMLA_I_FROM_TO(SPMLA_O_BF16, SPMLA_O_FP8_PACKED)},
		{FIELD(rope_style), a->rope_style,
		 SPMLA_I_FROM_TO(SPMLA_ROPE_NONE, SPMLA_ROPE_INTERLEAVED)},
		{FIELD(o), SPMLA_I_PTR(a->o), SPMLA_WANT_NOT_NULL, 0},
		{FIELD(o_token_stride_elems),
		 spmla_i_stride(a->o_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_V4_DIM},
		{FIELD(o_head_stride_elems),
		 spmla_i_stride(a->o_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_V4_DIM},
	};
	const spmla_i_check rope[] = {
		{FIELD(positions_dtype), a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{FIELD(positions), SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{FIELD(cos_sin_dtype), a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{FIELD(cos_sin), SPMLA_I_PTR(a->cos_sin), SPMLA_WANT_NOT_NULL,
		 0},
		{FIELD(cos_sin_rows), a->cos_sin_rows, SPMLA_WANT_AT_LEAST, 1},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->rope_style != SPMLA_ROPE_NONE)
		s = spmla_i_check_all(diag, rope, SPMLA_I_COUNT(rope));
	return s;
}

static spmla_status
check_output(spmla_diag *diag, const spmla_inv_rope_quant_args *a)
{
	const uint64_t row = (uint64_t)a->heads_per_group * SPMLA_V4_DIM;
	const uint64_t padded = ((uint64_t)a->tokens + 3) / 4 * 4;
	const spmla_i_check checks[] = {
		{FIELD(out), SPMLA_I_PTR(a->out), SPMLA_WANT_NOT_NULL, 0},
		{FIELD(out_token_stride_elems),
		 spmla_i_stride(a->out_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 row},
		{FIELD(out_group_stride_elems),
		 spmla_i_stride(a->out_group_stride_elems), SPMLA_WANT_AT_LEAST,
		 row},
	};
	const spmla_i_check scales[] = {
		{FIELD(scales), SPMLA_I_PTR(a->scales), SPMLA_WANT_NOT_NULL, 0},
		{FIELD(scale_stride_elems),
		 spmla_i_stride(a->scale_stride_elems), SPMLA_WANT_AT_LEAST,
		 padded},
		{FIELD(scale_group_stride_elems),
		 spmla_i_stride(a->scale_group_stride_elems),
		 SPMLA_WANT_AT_LEAST, padded},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->quant != SPMLA_O_BF16)
		s = spmla_i_check_all(diag, scales, SPMLA_I_COUNT(scales));
	return s;
}

spmla_status
spmla_inv_rope_quant(spmla_ctx *ctx, const spmla_inv_rope_quant_args *a,
		     spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "inv_rope_quant");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_input(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_output(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_inv_rope_quant, a, sizeof *a,
			      stream);
}
