/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

/* Kinds: layouts. Rows: tokens that a block inserts at a time. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_kv_insert,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert,
	 .kind = SPMLA_LAYOUT_MLA_BF16,
	 .rows = G_ROW_GROUPS},
	{.kernel = SPMLA_KERNEL_kv_insert_v4, .rows = V4_ROWS},
};

spmla_status
spmla_i_gpu_kv_insert(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_kv_insert_args *a = args;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->cache.layout, a->tokens, 0);
	spmla_k_kv_insert_params p;

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
	return spmla_i_gpu_launch(queue, by->kernel,
				  (a->tokens - 1) / by->rows + 1, &p);
}
