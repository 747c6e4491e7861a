/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

/* Kinds: layouts, with INDEX for calls that insert index keys, too. Rows: tokens
 * that a block inserts at a time. Rows of V4 have no kernel for both. */
enum { INDEX = 0x100 };

static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_kv_insert_index,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA | INDEX,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert_index,
	 .kind = SPMLA_LAYOUT_MLA_BF16 | INDEX,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert,
	 .kind = SPMLA_LAYOUT_MLA_BF16,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert_v4, .rows = V4_ROWS},
};

/* Both inserts in one launch: a tile is of one or of the other. */
static spmla_status
insert_both(const spmla_i_gpu_queue *queue, const spmla_i_gpu_variant *by,
	    const spmla_kv_insert_args *a, const spmla_k_kv_insert_params *kv)
{
	const uint64_t tiles = (a->tokens - 1) / by->rows + 1;
	spmla_k_indexer_k_insert_params index;
	spmla_k_kv_insert_index_params p;

	spmla_i_gpu_index_params(queue, &a->index, &index);
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.kv_c = kv->kv_c;
	p.k_pe = kv->k_pe;
	p.slot_mapping = kv->slot_mapping;
	p.cache = kv->cache;
	p.scale_at = kv->scale_at;
	p.index_k = index.k;
	p.index_slots = index.slot_mapping;
	p.norm_weight = index.norm_weight;
	p.norm_bias = index.norm_bias;
	p.positions = index.positions;
	p.cos_sin = index.cos_sin;
	p.index_cache = index.cache;
	p.s.kv = kv->s;
	p.s.index = index.s;
	return spmla_i_gpu_launch(queue, by->kernel, 2 * tiles, &p);
}

spmla_status
spmla_i_gpu_kv_insert(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_kv_insert_args *a = args;
	const uint32_t index = a->index.struct_bytes ? INDEX : 0;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->cache.layout | index, a->tokens, 0);
	spmla_k_kv_insert_params p;
	spmla_status s;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.kv_c = a->kv_c;
	p.k_pe = a->k_pe;
	p.slot_mapping = a->slot_mapping;
	p.cache = a->cache.base;
	p.scale_at = a->kv_scale_at;
	p.s.kv_c_stride = a->kv_c_stride_elems;
	p.s.k_pe_stride = a->k_pe_stride_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.tokens = a->tokens;
	p.s.dtype = a->dtype;
	p.s.raw_scale = a->scale_mode == SPMLA_SCALE_RAW;
	p.s.layout = a->cache.layout;
	p.s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p.s.page_entries = a->cache.entries_per_page;
	p.s.pages = a->cache.pages;
	p.s.wide_kv_c =
		spmla_i_gpu_aligned(a->kv_c, a->kv_c_stride_elems, 0, 2, 16);
	p.s.wide_k_pe =
		spmla_i_gpu_aligned(a->k_pe, a->k_pe_stride_elems, 0, 2, 8);
	p.s.has_scale_at = a->kv_scale_at != NULL;
	if (a->cache.layout == SPMLA_LAYOUT_V4_E4M3 && !a->kv_scale_at)
		p.s.inverse = 1.0f / a->kv_scale;
	if (by->kind & INDEX)
		return insert_both(queue, by, a, &p);
	s = spmla_i_gpu_launch(queue, by->kernel,
			       (a->tokens - 1) / by->rows + 1, &p);
	if (s == SPMLA_OK && index)
		s = spmla_i_gpu_indexer_k_insert(queue, &a->index);
	return s;
}
