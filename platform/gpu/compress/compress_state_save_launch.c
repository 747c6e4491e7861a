/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: from its args to its kernel.
 */
#include "spmla/internal/compress.h"
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_compress_state_save(const spmla_i_gpu_queue *queue,
				const void *args)
{
	const spmla_compress_state_save_args *a = args;
	const uint32_t width = spmla_i_state_width(a->state.layout);
	const uint32_t share = SPMLA_ITEMS_compress_state_save / (width / 4);
	spmla_k_compress_state_save_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.kv = a->kv;
	p.score = a->score;
	p.ape = a->ape;
	p.positions = a->positions;
	p.s.kv_bf16 = a->kv_dtype == SPMLA_REAL_BF16;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.slot_mapping = a->slot_mapping;
	p.context_lens = a->context_lens;
	p.token_row = a->token_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.state = a->state.base;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.score_stride = a->score_stride_elems;
	p.s.capacity = (uint64_t)a->columns * a->state.entries_per_page;
	p.s.state_page_bytes = a->state.page_stride_bytes;
	p.s.state_entries = spmla_i_gpu_divisor(a->state.entries_per_page);
	p.s.state_pages = a->state.pages;
	p.s.width = width;
	p.s.ratio = a->ratio;
	p.s.ring = a->form == SPMLA_STATE_RING;
	p.s.rows = a->rows;
	p.s.columns = spmla_i_gpu_divisor(a->columns);
	p.s.table_stride = a->table_stride_elems;
	p.s.has_cols = a->table_cols != NULL;
	p.s.tokens = a->tokens;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_compress_state_save,
				  ((uint64_t)a->tokens + share - 1) / share,
				  &p);
}
