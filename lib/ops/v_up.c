/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum { VALUES = 128 }; /* values of a head after the projection */

spmla_status
spmla_v_up(spmla_ctx *ctx, const spmla_v_up_args *a, spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "v_up");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"v_up.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"v_up.latent", SPMLA_I_PTR(a->latent), SPMLA_WANT_NOT_NULL, 0},
		{"v_up.latent_token_stride_elems",
		 spmla_i_stride(a->latent_token_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_MLA_LATENT},
		{"v_up.latent_head_stride_elems",
		 spmla_i_stride(a->latent_head_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_MLA_LATENT},
		{"v_up.w_uv", SPMLA_I_PTR(a->w_uv), SPMLA_WANT_NOT_NULL, 0},
		{"v_up.w_head_stride_elems",
		 spmla_i_stride(a->w_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 VALUES},
		{"v_up.w_row_stride_elems",
		 spmla_i_stride(a->w_row_stride_elems), SPMLA_WANT_AT_LEAST,
		 VALUES},
		{"v_up.out", SPMLA_I_PTR(a->out), SPMLA_WANT_NOT_NULL, 0},
		{"v_up.out_token_stride_elems",
		 spmla_i_stride(a->out_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 (uint64_t)a->heads * VALUES},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_v_up, a, sizeof *a, stream);
}
