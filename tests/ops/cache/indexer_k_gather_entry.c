/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of indexer_k_gather: keys of e4m3, and of INDEX_MXFP4.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_indexer_k_gather_args *a = args;
	const uint32_t mxfp4 = draw_variant(d, 2);
	draw_table t;

	a->cache = draw_cache(d, mxfp4 ? SPMLA_LAYOUT_INDEX_MXFP4
				       : draw_index_layout(d));
	draw_encoding(d, &a->cache, DRAW_IN);
	a->keys = draw_many(d, 12, 700);
	a->requests = draw_many(d, 4, 6);
	a->cu_seq_lens =
		draw_starts(d, a->requests, a->keys - draw_choice(d, a->keys));
	t = draw_pages(d, a->requests, a->keys / a->cache.entries_per_page + 1,
		       a->cache.pages);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	if (d->kind != DRAW_EXAMPLE && draw_there(d))
		a->req_row = draw_i32(d, a->requests, 0, t.rows);
	a->dst_k = draw_out(d, a->keys * UINT64_C(128) / (1 + mxfp4), 1);
	a->dst_scale = draw_out(d, a->keys, 4);
}

static const arg_error errors[] = {
	BAD_MOST(indexer_k_gather, keys, 2147483648, 2147483647),
	BAD_LEAST(indexer_k_gather, rows, 3, 4),
	BAD_ARGS(indexer_k_gather, rows, 0, req_row, 4, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: indexer_k_gather.rows: got 0, want at least "
		 "1"),
	BAD_LEAST(indexer_k_gather, columns, 0, 1),
	BAD_LEAST(indexer_k_gather, table_stride_elems, 2, 3),
	BAD_NULL(indexer_k_gather, cu_seq_lens),
	BAD_NULL(indexer_k_gather, block_table),
	BAD_NULL(indexer_k_gather, dst_k),
	BAD_NULL(indexer_k_gather, dst_scale),
	BAD_RANGE(indexer_k_gather, cache.layout, SPMLA_LAYOUT_FP8_DS_MLA,
		  "got 1, want 3, 7 or 11"),
	BAD_CACHE(indexer_k_gather, cache, "3, 7 or 11", 656, 660, 4),
	BAD_MOST(indexer_k_gather, cache.encoding, 2, 1),
};

OP_ENTRY(indexer_k_gather, .errors = {ERRORS(errors)},
	 .none = {ARG(indexer_k_gather, keys, 0)}, .is_spread = 1);
