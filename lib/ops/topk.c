/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

static spmla_status
check_map(spmla_diag *diag, const spmla_topk_args *a)
{
	const spmla_index_map_args *map = &a->map;
	const spmla_i_check checks[] = {
		{"topk.map.tokens", map->tokens, SPMLA_WANT_EQUAL, a->rows},
		{"topk.map.k", map->k, SPMLA_WANT_EQUAL, a->k},
		{"topk.map.indices (topk.indices)", map->indices == a->indices,
		 SPMLA_WANT_EQUAL, 1},
		{"topk.map.indices_stride_elems",
		 spmla_i_stride(map->indices_stride_elems), SPMLA_WANT_EQUAL,
		 spmla_i_stride(a->indices_stride_elems)},
	};
	spmla_status s = spmla_i_check_size(diag, "topk.map.struct_bytes",
					    map->struct_bytes, sizeof *map);

	if (s == SPMLA_OK)
		s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	return s == SPMLA_OK ? spmla_i_index_map_check(diag, map) : s;
}

spmla_status
spmla_topk(spmla_ctx *ctx, const spmla_topk_args *a, spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "topk");

	if (s != SPMLA_OK || a->rows == 0)
		return s;
	const spmla_i_check checks[] = {
		{"topk.k", a->k, SPMLA_WANT_AT_LEAST, 1},
		{"topk.logits_dtype", a->logits_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"topk.logits", SPMLA_I_PTR(a->logits), SPMLA_WANT_NOT_NULL, 0},
		{"topk.ties", a->ties,
		 SPMLA_I_FROM_TO(SPMLA_TIES_LOWER, SPMLA_TIES_HIGHER)},
		{"topk.row_stride_elems", spmla_i_stride(a->row_stride_elems),
		 SPMLA_WANT_AT_LEAST, a->row_starts ? 0 : 1},
		{"topk.row_stride_elems", spmla_i_stride(a->row_stride_elems),
		 a->row_starts ? SPMLA_WANT_NOTHING : SPMLA_WANT_AT_MOST,
		 INT64_MAX / a->rows},
		{"topk.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"topk.indices", SPMLA_I_PTR(a->indices), SPMLA_WANT_NOT_NULL,
		 0},
		{"topk.indices_stride_elems",
		 spmla_i_stride(a->indices_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->k},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK && a->map.struct_bytes)
		s = check_map(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_topk, a, sizeof *a, stream);
}
