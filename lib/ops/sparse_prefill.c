/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: host checks and dispatch. The upper bound of heads is the
 * plan's, because the scratch was planned for it.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_numbers(spmla_ctx *ctx, const spmla_sparse_prefill_args *a)
{
	const spmla_i_check checks[] = {
		{"sparse_prefill.dim", a->dim,
		 SPMLA_I_EITHER(SPMLA_MLA_DIM, SPMLA_MLA_LATENT, 0)},
		{"sparse_prefill.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"sparse_prefill.heads", a->heads, SPMLA_WANT_AT_MOST,
		 ctx->plan.config.heads},
		{"sparse_prefill.topk", a->topk, SPMLA_WANT_AT_LEAST, 1},
		{"sparse_prefill.empty_lse", a->empty_lse,
		 SPMLA_I_FROM_TO(SPMLA_EMPTY_LSE_PLUS_INF,
				 SPMLA_EMPTY_LSE_LOWEST)},
		{"sparse_prefill.lse_base", a->lse_base,
		 SPMLA_I_FROM_TO(SPMLA_LSE_NATURAL, SPMLA_LSE_BASE2)},
		{"sparse_prefill.lse_sink", a->lse_sink, SPMLA_WANT_AT_MOST, 1},
	};
	const spmla_status s =
		spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK
		       ? spmla_i_check_positive(&ctx->diag,
						"sparse_prefill.softmax_scale",
						a->softmax_scale)
		       : s;
}

static spmla_status
check_inputs(spmla_diag *diag, const spmla_sparse_prefill_args *a)
{
	const spmla_i_check checks[] = {
		{"sparse_prefill.q", SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{"sparse_prefill.q_token_stride_elems",
		 spmla_i_stride(a->q_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->dim},
		{"sparse_prefill.q_head_stride_elems",
		 spmla_i_stride(a->q_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->dim},
		{"sparse_prefill.indices", SPMLA_I_PTR(a->indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_prefill.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->indptr ? 0 : a->topk},
	};
	const spmla_i_check kv[] = {
		{"sparse_prefill.kv", SPMLA_I_PTR(a->kv), SPMLA_WANT_NOT_NULL,
		 0},
		{"sparse_prefill.kv_stride_elems",
		 spmla_i_stride(a->kv_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->dim},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->kv_rows > 0)
		s = spmla_i_check_all(diag, kv, SPMLA_I_COUNT(kv));
	return s;
}

static spmla_status
check_outputs(spmla_diag *diag, const spmla_sparse_prefill_args *a)
{
	const spmla_i_check checks[] = {
		{"sparse_prefill.out", SPMLA_I_PTR(a->out), SPMLA_WANT_NOT_NULL,
		 0},
		{"sparse_prefill.out_token_stride_elems",
		 spmla_i_stride(a->out_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"sparse_prefill.out_head_stride_elems",
		 spmla_i_stride(a->out_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
	};
	const spmla_i_check lse[] = {
		{"sparse_prefill.lse_token_stride_elems",
		 spmla_i_stride(a->lse_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
		{"sparse_prefill.lse_head_stride_elems",
		 spmla_i_stride(a->lse_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && (a->lse || a->max_logits))
		s = spmla_i_check_all(diag, lse, SPMLA_I_COUNT(lse));
	return s;
}

spmla_status
spmla_sparse_prefill(spmla_ctx *ctx, const spmla_sparse_prefill_args *a,
		     spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "sparse_prefill");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_numbers(ctx, a);
	if (s == SPMLA_OK)
		s = check_inputs(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_outputs(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_sparse_prefill, a, sizeof *a,
			      stream);
}
