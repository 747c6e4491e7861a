/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

/* An output in place of the input must have the input's stride. The two outputs
 * must not be the same buffer. */
static spmla_status
check_aliases(spmla_diag *diag, const spmla_filter_prefill_indices_args *a)
{
	const uint64_t in = spmla_i_stride(a->indices_stride_elems);
	const spmla_i_check context = {
		"filter_prefill_indices.context_indices_stride_elems",
		spmla_i_stride(a->context_indices_stride_elems),
		SPMLA_WANT_EQUAL, in};
	const spmla_i_check fresh = {
		"filter_prefill_indices.new_indices_stride_elems",
		spmla_i_stride(a->new_indices_stride_elems), SPMLA_WANT_EQUAL,
		in};
	spmla_status s = SPMLA_OK;

	if (a->context_indices == a->new_indices)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    "filter_prefill_indices.new_indices "
				    "(context_indices too)",
				    1, SPMLA_WANT_EQUAL, 0);
	if (a->context_indices == a->indices)
		s = spmla_i_check_all(diag, &context, 1);
	else if (a->new_indices == a->indices)
		s = spmla_i_check_all(diag, &fresh, 1);
	return s;
}

static spmla_status
check_outputs(spmla_diag *diag, const spmla_filter_prefill_indices_args *a)
{
	spmla_status s = SPMLA_OK;
	const spmla_i_check context = {
		"filter_prefill_indices.context_indices_stride_elems",
		spmla_i_stride(a->context_indices_stride_elems),
		SPMLA_WANT_AT_LEAST, a->k};
	const spmla_i_check fresh = {
		"filter_prefill_indices.new_indices_stride_elems",
		spmla_i_stride(a->new_indices_stride_elems),
		SPMLA_WANT_AT_LEAST, a->k};

	if (!a->context_indices && !a->new_indices)
		return spmla_i_fail(diag, SPMLA_E_NULL,
				    "filter_prefill_indices.context_indices", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	if (a->context_indices)
		s = spmla_i_check_all(diag, &context, 1);
	if (s == SPMLA_OK && a->new_indices)
		s = spmla_i_check_all(diag, &fresh, 1);
	return s;
}

spmla_status
spmla_filter_prefill_indices(spmla_ctx *ctx,
			     const spmla_filter_prefill_indices_args *a,
			     spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "filter_prefill_indices");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"filter_prefill_indices.k", a->k, SPMLA_WANT_AT_LEAST, 1},
		{"filter_prefill_indices.indices", SPMLA_I_PTR(a->indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"filter_prefill_indices.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->k},
		{"filter_prefill_indices.context_lens",
		 SPMLA_I_PTR(a->context_lens), SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = check_outputs(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_aliases(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_filter_prefill_indices, a,
			      sizeof *a, stream);
}
