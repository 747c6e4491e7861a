/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_numbers(spmla_diag *diag, const spmla_combine_index_args *a)
{
	const spmla_i_check checks[] = {
		{"combine_index.requests", a->requests, SPMLA_WANT_AT_LEAST, 1},
		{"combine_index.window", a->window, SPMLA_WANT_AT_LEAST, 1},
		{"combine_index.ratio", a->ratio, SPMLA_WANT_AT_LEAST, 1},
		{"combine_index.max_image", a->max_image, SPMLA_WANT_AT_LEAST,
		 a->image_spans != NULL},
		{"combine_index.width", a->width, SPMLA_WANT_AT_LEAST,
		 (uint64_t)a->topk + a->window +
			 (a->image_spans ? a->max_image : 0)},
		{"combine_index.width", a->width, SPMLA_WANT_AT_MOST,
		 INT32_MAX},
		{"combine_index.request_rows", a->request_rows,
		 SPMLA_WANT_AT_LEAST, 1},
		{"combine_index.request_rows", a->request_rows,
		 SPMLA_WANT_AT_MOST, a->requests ? INT32_MAX / a->requests : 0},
		{"combine_index.window_row", a->window_row, SPMLA_WANT_AT_MOST,
		 a->request_rows},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_combine_index(spmla_ctx *ctx, const spmla_combine_index_args *a,
		    spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "combine_index");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check checks[] = {
		{"combine_index.req_id_per_token",
		 SPMLA_I_PTR(a->req_id_per_token), SPMLA_WANT_NOT_NULL, 0},
		{"combine_index.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"combine_index.seq_lens", SPMLA_I_PTR(a->seq_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"combine_index.gather_lens", SPMLA_I_PTR(a->gather_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"combine_index.topk_indices", SPMLA_I_PTR(a->topk_indices),
		 a->topk ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING, 0},
		{"combine_index.topk_stride_elems",
		 a->topk ? spmla_i_stride(a->topk_stride_elems) : 0,
		 SPMLA_WANT_AT_LEAST, a->topk},
		{"combine_index.indices", SPMLA_I_PTR(a->indices),
		 SPMLA_WANT_NOT_NULL, 0},
		{"combine_index.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->width},
		{"combine_index.lens", SPMLA_I_PTR(a->lens),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = check_numbers(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, checks,
				      SPMLA_I_COUNT(checks));
	return spmla_i_op_end(ctx, s, SPMLA_OP_combine_index, a, sizeof *a,
			      stream);
}
