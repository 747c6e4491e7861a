/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_kv_gather_params) ==
			    sizeof(spmla_k_kv_gather_v4_params),
		    "one set of parameters for both kernels");

/* Kinds: layouts. Rows: the output rows that a block makes at a time. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_kv_gather,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .rows = KV_GATHER_ROWS},
	{.kernel = SPMLA_KERNEL_kv_gather,
	 .kind = SPMLA_LAYOUT_MLA_BF16,
	 .rows = KV_GATHER_ROWS},
	{.kernel = SPMLA_KERNEL_kv_gather_v4, .rows = KV_GATHER_V4_ROWS},
};

spmla_status
spmla_i_gpu_kv_gather(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_kv_gather_args *a = args;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->cache.layout, a->keys, 0);
	/* Bytes of a store. Only V4's kernel reads whole_words. */
	const uint32_t word = by->kernel == SPMLA_KERNEL_kv_gather_v4 ? 16 : 8;
	spmla_k_kv_gather_params p; /* both kernels take them */

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.workspace_starts = a->workspace_starts;
	p.workspace_ends = a->workspace_ends;
	p.seq_starts = a->seq_starts;
	p.req_row = a->req_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.slots = a->slots;
	p.cache = a->cache.base;
	p.dst = a->dst;
	p.s.dst_stride = a->dst_stride_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	p.s.pool_pages = a->cache.pages;
	p.s.page_tokens = a->cache.entries_per_page;
	p.s.has_cols = a->table_cols != NULL;
	p.s.requests = a->requests;
	p.s.keys = a->keys;
	p.s.has_ends = a->workspace_ends != NULL;
	p.s.has_seq_starts = a->seq_starts != NULL;
	p.s.has_req_row = a->req_row != NULL;
	p.s.has_slots = a->slots != NULL;
	p.s.ring = a->ring;
	p.s.layout = a->cache.layout;
	p.s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p.s.kv_scale = a->kv_scale;
	p.scale_at = a->kv_scale_at;
	p.s.has_scale_at = a->kv_scale_at != NULL;
	p.s.wide =
		SPMLA_I_PTR(a->dst) % 16 == 0 && a->dst_stride_elems % 8 == 0;
	p.s.whole_words = SPMLA_I_PTR(a->dst) % word == 0 &&
			  a->dst_stride_elems % (word / 2) == 0;
	return spmla_i_gpu_launch(queue, by->kernel,
				  (a->keys - 1) / by->rows + 1, &p);
}
