/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_indexer_k_gather(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_indexer_k_gather_args *a = args;
	spmla_k_indexer_k_gather_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.cu_seq_lens = a->cu_seq_lens;
	p.req_row = a->req_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.cache = a->cache.base;
	p.dst_k = a->dst_k;
	p.dst_scale = a->dst_scale;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	p.s.pool_pages = a->cache.pages;
	p.s.page_tokens = a->cache.entries_per_page;
	p.s.has_cols = a->table_cols != NULL;
	p.s.requests = a->requests;
	p.s.keys = a->keys;
	p.s.has_req_row = a->req_row != NULL;
	p.s.tiled = a->cache.layout == SPMLA_LAYOUT_INDEX_FP8_TILED;
	p.s.words = (a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4
			     ? SPMLA_INDEX_MXFP4_VALUE_BYTES
			     : SPMLA_INDEX_DIM) /
		    4;
	p.s.whole_words = SPMLA_I_PTR(a->dst_k) % 4 == 0;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_indexer_k_gather,
				  (a->keys - 1) / INDEXER_K_GATHER_ROWS + 1,
				  &p);
}
