/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

#define CHECKS(rows, width, x, x_stride, weight, out, out_stride)             \
	{                                                                     \
		{"rms_norms." #rows, a->rows, SPMLA_WANT_AT_MOST, INT32_MAX}, \
			{"rms_norms." #width, a->width, SPMLA_WANT_AT_LEAST,  \
			 SPMLA_RMS_NORMS_WIDTH_UNIT},                         \
			{"rms_norms." #width, a->width, SPMLA_WANT_AT_MOST,   \
			 SPMLA_RMS_NORMS_MAX_WIDTH},                          \
			{"rms_norms." #width, a->width,                       \
			 SPMLA_WANT_MULTIPLE_OF, SPMLA_RMS_NORMS_WIDTH_UNIT}, \
			{"rms_norms." #x, SPMLA_I_PTR(a->x),                  \
			 SPMLA_WANT_NOT_NULL, 0},                             \
			{"rms_norms." #x_stride, spmla_i_stride(a->x_stride), \
			 SPMLA_WANT_AT_LEAST, a->width},                      \
			{"rms_norms." #weight, SPMLA_I_PTR(a->weight),        \
			 SPMLA_WANT_NOT_NULL, 0},                             \
			{"rms_norms." #out, SPMLA_I_PTR(a->out),              \
			 SPMLA_WANT_NOT_NULL, 0},                             \
			{"rms_norms." #out_stride,                            \
			 spmla_i_stride(a->out_stride), SPMLA_WANT_AT_LEAST,  \
			 a->width},                                           \
			{"rms_norms." #out_stride,                            \
			 spmla_i_stride(a->out_stride),                       \
			 a->out == a->x ? SPMLA_WANT_EQUAL                    \
					: SPMLA_WANT_NOTHING,                 \
			 spmla_i_stride(a->x_stride)},                        \
	}

static spmla_status
check_args(spmla_diag *diag, const spmla_rms_norms_args *a)
{
	const spmla_i_check q[] = CHECKS(q_rows, q_width, q, q_stride_elems,
					 q_weight, q_out, q_out_stride_elems);
	const spmla_i_check kv[] =
		CHECKS(kv_rows, kv_width, kv, kv_stride_elems, kv_weight,
		       kv_out, kv_out_stride_elems);
	spmla_status s =
		spmla_i_check_positive(diag, "rms_norms.norm_eps", a->norm_eps);

	if (s == SPMLA_OK && a->q_rows > 0)
		s = spmla_i_check_all(diag, q, SPMLA_I_COUNT(q));
	if (s == SPMLA_OK && a->kv_rows > 0)
		s = spmla_i_check_all(diag, kv, SPMLA_I_COUNT(kv));
	return s;
}

spmla_status
spmla_rms_norms(spmla_ctx *ctx, const spmla_rms_norms_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "rms_norms");

	if (s != SPMLA_OK || (a->q_rows == 0 && a->kv_rows == 0))
		return s;
	s = check_args(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_rms_norms, a, sizeof *a, stream);
}
