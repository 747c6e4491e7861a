/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum {
	PART = 128, /* values of a scale */
	MOST_GROUPS = 256,
	MOST_INNER = 1 << 17,
	MOST_COLUMNS = 1 << 16
};

#define FIELD(name)      "o_group_proj." #name
#define STRIDE(name)     FIELD(name), spmla_i_stride(a->name)
#define POINTER(name)    FIELD(name), SPMLA_I_PTR(a->name), SPMLA_WANT_NOT_NULL, 0
#define AT_LEAST(number) SPMLA_WANT_AT_LEAST, number
#define AT_MOST(number)  SPMLA_WANT_AT_MOST, number

static spmla_status
check_shape(spmla_diag *diag, const spmla_o_group_proj_args *a)
{
	const uint32_t whole = a->quant == SPMLA_O_FP8_PACKED ? 4 * PART : PART;
	const spmla_i_check checks[] = {
		{FIELD(groups), a->groups, AT_LEAST(1)},
		{FIELD(groups), a->groups, AT_MOST(MOST_GROUPS)},
		{FIELD(quant), a->quant,
		 SPMLA_I_FROM_TO(SPMLA_O_BF16, SPMLA_O_FP8_PACKED)},
		{FIELD(inner), a->inner, AT_LEAST(whole)},
		{FIELD(inner), a->inner, AT_MOST(MOST_INNER)},
		{FIELD(inner), a->inner, SPMLA_WANT_MULTIPLE_OF, whole},
		{FIELD(columns), a->columns, AT_LEAST(PART)},
		{FIELD(columns), a->columns, AT_MOST(MOST_COLUMNS)},
		{FIELD(columns), a->columns, SPMLA_WANT_MULTIPLE_OF, PART},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_buffers(spmla_diag *diag, const spmla_o_group_proj_args *a)
{
	const spmla_i_check checks[] = {
		{POINTER(o)},
		{STRIDE(o_token_stride_elems), AT_LEAST(a->inner)},
		{STRIDE(o_group_stride_elems), AT_LEAST(a->inner)},
		{POINTER(w)},
		{STRIDE(w_group_stride_elems), AT_LEAST(a->inner)},
		{STRIDE(w_row_stride_elems), AT_LEAST(a->inner)},
		{POINTER(z)},
		{STRIDE(z_token_stride_elems), AT_LEAST(a->columns)},
		{STRIDE(z_group_stride_elems), AT_LEAST(a->columns)},
	};
	const spmla_i_check scales[] = {
		{POINTER(o_scales)},
		{STRIDE(o_scale_stride_elems), AT_LEAST(a->tokens)},
		{STRIDE(o_scale_group_stride_elems), AT_LEAST(a->tokens)},
		{POINTER(w_scales)},
		{STRIDE(w_scale_group_stride_elems), AT_LEAST(a->inner / PART)},
		{STRIDE(w_scale_row_stride_elems), AT_LEAST(a->inner / PART)},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->quant != SPMLA_O_BF16)
		s = spmla_i_check_all(diag, scales, SPMLA_I_COUNT(scales));
	return s;
}

spmla_status
spmla_o_group_proj(spmla_ctx *ctx, const spmla_o_group_proj_args *a,
		   spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "o_group_proj");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_shape(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_buffers(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_o_group_proj, a, sizeof *a,
			      stream);
}
