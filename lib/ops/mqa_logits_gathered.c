/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered: host checks and dispatch. The upper bound of heads is
 * the plan's, because the scratch was planned for it.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_numbers(spmla_ctx *ctx, const spmla_mqa_logits_gathered_args *a)
{
	const uint32_t least = a->form == SPMLA_LOGITS_COMPRESSED ? 1 : a->keys;
	const uint32_t encodings = spmla_i_encodings(
		a->layout ? a->layout : (uint32_t)SPMLA_LAYOUT_INDEX_FP8);
	const spmla_i_check checks[] = {
		{"mqa_logits_gathered.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"mqa_logits_gathered.heads", a->heads, SPMLA_WANT_AT_MOST,
		 ctx->plan.config.index_heads},
		{"mqa_logits_gathered.form", a->form,
		 SPMLA_I_FROM_TO(SPMLA_LOGITS_ABSOLUTE,
				 SPMLA_LOGITS_COMPRESSED)},
		{"mqa_logits_gathered.layout", a->layout, SPMLA_WANT_ONE_OF,
		 1u | 1u << SPMLA_LAYOUT_INDEX_FP8 |
			 1u << SPMLA_LAYOUT_INDEX_MXFP4},
		{"mqa_logits_gathered.k_encoding", a->k_encoding,
		 SPMLA_WANT_AT_MOST, encodings},
		{"mqa_logits_gathered.q_encoding", a->q_encoding,
		 SPMLA_WANT_AT_MOST, encodings},
		{"mqa_logits_gathered.columns", a->columns, SPMLA_WANT_AT_LEAST,
		 least},
		{"mqa_logits_gathered.weights_stride_elems",
		 spmla_i_stride(a->weights_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->heads},
		{"mqa_logits_gathered.logits_stride_elems",
		 spmla_i_stride(a->logits_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->columns},
	};

	return spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_pointers(spmla_diag *diag, const spmla_mqa_logits_gathered_args *a)
{
	const spmla_i_check checks[] = {
		{"mqa_logits_gathered.q", SPMLA_I_PTR(a->q),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.weights", SPMLA_I_PTR(a->weights),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.starts", SPMLA_I_PTR(a->starts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.ends", SPMLA_I_PTR(a->ends),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.logits_dtype", a->logits_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"mqa_logits_gathered.logits", SPMLA_I_PTR(a->logits),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_i_check keys[] = {
		{"mqa_logits_gathered.k", SPMLA_I_PTR(a->k),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.k_scales", SPMLA_I_PTR(a->k_scales),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_i_check mxfp4[] = {
		{"mqa_logits_gathered.q_scales", SPMLA_I_PTR(a->q_scales),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits_gathered.k", SPMLA_I_PTR(a->k),
		 SPMLA_WANT_MULTIPLE_OF, 4},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->keys > 0)
		s = spmla_i_check_all(diag, keys, SPMLA_I_COUNT(keys));
	if (s == SPMLA_OK && a->layout == SPMLA_LAYOUT_INDEX_MXFP4)
		s = spmla_i_check_all(diag, mxfp4, SPMLA_I_COUNT(mxfp4));
	return s;
}

spmla_status
spmla_mqa_logits_gathered(spmla_ctx *ctx,
			  const spmla_mqa_logits_gathered_args *a,
			  spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "mqa_logits_gathered");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_numbers(ctx, a);
	if (s == SPMLA_OK)
		s = check_pointers(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_mqa_logits_gathered, a,
			      sizeof *a, stream);
}
