/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

spmla_status
spmla_indexer_k_gather(spmla_ctx *ctx, const spmla_indexer_k_gather_args *a,
		       spmla_stream stream)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("indexer_k_gather.cache");
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "indexer_k_gather");

	if (s != SPMLA_OK || a->requests == 0 || a->keys == 0)
		return s;
	const spmla_i_check checks[] = {
		{"indexer_k_gather.keys", a->keys, SPMLA_WANT_AT_MOST,
		 INT32_MAX},
		{"indexer_k_gather.rows", a->rows, SPMLA_WANT_AT_LEAST,
		 a->req_row ? 1 : a->requests},
		{"indexer_k_gather.columns", a->columns, SPMLA_WANT_AT_LEAST,
		 1},
		{"indexer_k_gather.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"indexer_k_gather.cu_seq_lens", SPMLA_I_PTR(a->cu_seq_lens),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_gather.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_gather.dst_k", SPMLA_I_PTR(a->dst_k),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_gather.dst_scale", SPMLA_I_PTR(a->dst_scale),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(&ctx->diag, &cache, &a->cache,
					SPMLA_I_INDEX_PAGES);
	return spmla_i_op_end(ctx, s, SPMLA_OP_indexer_k_gather, a, sizeof *a,
			      stream);
}
