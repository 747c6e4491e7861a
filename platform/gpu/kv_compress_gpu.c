/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: from its args to its kernel.
 */
#include "spmla/internal/compress.h"
#include "spmla/platform/gpu/launch_gpu.h"

spmla_status
spmla_i_gpu_kv_compress(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_kv_compress_args *a = args;
	const spmla_i_kernel kernel = a->state.layout == SPMLA_LAYOUT_STATE_256
					      ? SPMLA_KERNEL_kv_compress_index
					      : SPMLA_KERNEL_kv_compress;
	spmla_k_kv_compress_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.positions = a->positions;
	p.slot_mapping = a->slot_mapping;
	p.token_row = a->token_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.norm_weight = a->norm_weight;
	p.cos_sin = a->cos_sin;
	p.kv = a->kv;
	p.score = a->score;
	p.ape = a->ape;
	p.context_lens = a->context_lens;
	p.state = a->state.base;
	p.cache = a->cache.base;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.score_stride = a->score_stride_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.state_page_bytes = a->state.page_stride_bytes;
	p.s.state_entries = a->state.entries_per_page;
	p.s.state_pages = a->state.pages;
	p.s.width = spmla_i_state_width(a->state.layout);
	p.s.ratio = a->ratio;
	p.s.ring = a->form == SPMLA_STATE_RING;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.table_stride = a->table_stride_elems;
	p.s.has_cols = a->table_cols != NULL;
	p.s.has_lens = a->context_lens != NULL;
	p.s.tokens = a->tokens;
	p.s.group_rows = spmla_i_group_rows(a->ratio);
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.layout = a->cache.layout;
	p.s.page_entries = a->cache.entries_per_page;
	p.s.pages = a->cache.pages;
	p.s.norm_eps = a->norm_eps;
	p.s.e4m3_scale = a->e4m3_scale;
	return spmla_i_gpu_launch(queue, kernel, a->tokens, &p);
}
