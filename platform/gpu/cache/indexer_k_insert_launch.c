/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

void
spmla_i_gpu_index_params(const spmla_i_gpu_queue *queue,
			 const spmla_indexer_k_insert_args *a,
			 spmla_k_indexer_k_insert_params *p)
{
	memset(p, 0, sizeof *p);
	SPMLA_I_GPU_FAULT(p, queue);
	p->k = a->k;
	p->slot_mapping = a->slot_mapping;
	p->norm_weight = a->norm_weight;
	p->norm_bias = a->norm_bias;
	p->positions = a->positions;
	p->s.rope_bf16 = a->cos_sin_dtype == SPMLA_REAL_BF16;
	p->s.norm_bf16 = a->norm_dtype == SPMLA_REAL_BF16;
	p->s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p->cos_sin = a->cos_sin;
	p->cache = a->cache.base;
	p->s.k_stride = a->k_stride_elems;
	p->s.page_stride_bytes = a->cache.page_stride_bytes;
	p->s.tokens = a->tokens;
	p->s.dtype = a->dtype;
	p->s.raw_scale = a->scale_mode == SPMLA_SCALE_RAW;
	p->s.has_norm = a->norm_weight != NULL;
	p->s.has_rope = a->rope_style != SPMLA_ROPE_NONE;
	p->s.neox = a->rope_style == SPMLA_ROPE_NEOX;
	p->s.cos_sin_rows = a->cos_sin_rows;
	p->s.page_entries = a->cache.entries_per_page;
	p->s.pages = a->cache.pages;
	p->s.norm_eps = a->norm_eps;
	p->s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p->s.tiled = a->cache.layout == SPMLA_LAYOUT_INDEX_FP8_TILED;
	p->s.mxfp4 = a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4;
}

spmla_status
spmla_i_gpu_indexer_k_insert(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_indexer_k_insert_args *a = args;
	spmla_k_indexer_k_insert_params p;

	spmla_i_gpu_index_params(queue, a, &p);
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_indexer_k_insert,
				  (a->tokens - 1) / G_ROW_GROUPS + 1, &p);
}
