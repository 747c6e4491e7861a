/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: host checks and dispatch. The upper bound of heads is the plan's,
 * because the scratch was planned for it.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_mqa_logits(spmla_ctx *ctx, const spmla_mqa_logits_args *a,
		 spmla_stream stream)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("mqa_logits.cache");
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "mqa_logits");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_check format[] = {
		{"mqa_logits.q_encoding", a->q_encoding, SPMLA_WANT_AT_MOST,
		 spmla_i_encodings(a->cache.layout)},
		{"mqa_logits.q_scales", SPMLA_I_PTR(a->q_scales),
		 a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4
			 ? SPMLA_WANT_NOT_NULL
			 : SPMLA_WANT_NOTHING,
		 0},
	};
	const spmla_i_check checks[] = {
		{"mqa_logits.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"mqa_logits.heads", a->heads, SPMLA_WANT_AT_MOST,
		 ctx->plan.config.index_heads},
		{"mqa_logits.rows", a->rows, SPMLA_WANT_AT_LEAST, 1},
		{"mqa_logits.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"mqa_logits.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"mqa_logits.q", SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits.weights", SPMLA_I_PTR(a->weights),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits.token_row", SPMLA_I_PTR(a->token_row),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits.context_lens", SPMLA_I_PTR(a->context_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits.row_stride_elems",
		 spmla_i_stride(a->row_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->row_starts ? 0 : 1},
		{"mqa_logits.row_stride_elems",
		 spmla_i_stride(a->row_stride_elems),
		 a->row_starts ? SPMLA_WANT_NOTHING : SPMLA_WANT_AT_MOST,
		 INT64_MAX / a->tokens},
		{"mqa_logits.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"mqa_logits.logits_dtype", a->logits_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"mqa_logits.logits", SPMLA_I_PTR(a->logits),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(&ctx->diag, &cache, &a->cache,
					SPMLA_I_INDEX_PAGES);
	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, format,
				      SPMLA_I_COUNT(format));
	return spmla_i_op_end(ctx, s, SPMLA_OP_mqa_logits, a, sizeof *a,
			      stream);
}
