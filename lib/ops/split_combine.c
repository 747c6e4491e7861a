/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_lse(spmla_diag *diag, const spmla_split_combine_args *a)
{
	const spmla_i_check checks[] = {
		{"split_combine.lse_token_stride_elems",
		 spmla_i_stride(a->lse_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
		{"split_combine.lse_head_stride_elems",
		 spmla_i_stride(a->lse_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
	};

	if (!a->lse)
		return SPMLA_OK;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_requests(spmla_diag *diag, const spmla_split_combine_args *a)
{
	const spmla_i_check checks[] = {
		{"split_combine.out_request_stride_elems",
		 spmla_i_stride(a->out_request_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_MLA_LATENT},
		{"split_combine.lse_request_stride_elems",
		 spmla_i_stride(a->lse_request_stride_elems),
		 SPMLA_WANT_AT_LEAST, a->lse ? 1 : 0},
	};

	if (!a->next_n)
		return SPMLA_OK;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_split_combine(spmla_ctx *ctx, const spmla_split_combine_args *a,
		    spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "split_combine");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"split_combine.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"split_combine.split_rows", a->split_rows, SPMLA_WANT_AT_LEAST,
		 1},
		{"split_combine.empty_lse", a->empty_lse,
		 SPMLA_I_FROM_TO(SPMLA_EMPTY_LSE_PLUS_INF,
				 SPMLA_EMPTY_LSE_LOWEST)},
		{"split_combine.lse_base", a->lse_base,
		 SPMLA_I_FROM_TO(SPMLA_LSE_NATURAL, SPMLA_LSE_BASE2)},
		{"split_combine.lse_sink", a->lse_sink, SPMLA_WANT_AT_MOST, 1},
		{"split_combine.whole_tokens", a->whole_tokens,
		 SPMLA_WANT_AT_MOST, a->tokens},
		{"split_combine.reserved", a->reserved, SPMLA_WANT_EQUAL, 0},
		{"split_combine.num_splits", SPMLA_I_PTR(a->num_splits),
		 SPMLA_WANT_NOT_NULL, 0},
		{"split_combine.split_out", SPMLA_I_PTR(a->split_out),
		 SPMLA_WANT_NOT_NULL, 0},
		{"split_combine.split_lse", SPMLA_I_PTR(a->split_lse),
		 SPMLA_WANT_NOT_NULL, 0},
		{"split_combine.out", SPMLA_I_PTR(a->out), SPMLA_WANT_NOT_NULL,
		 0},
		{"split_combine.out_token_stride_elems",
		 spmla_i_stride(a->out_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"split_combine.out_head_stride_elems",
		 spmla_i_stride(a->out_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = check_lse(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_requests(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_split_combine, a, sizeof *a,
			      stream);
}
