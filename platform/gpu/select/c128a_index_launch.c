/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: from its args to its kernel.
 */
#include "spmla/internal/checked_math.h"
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_c128a_index(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_c128a_index_args *a = args;
	const uint32_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_entries;
	spmla_k_c128a_index_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.slot_mapping = a->slot_mapping;
	p.token_row = a->token_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.decode_slots = a->decode_slots;
	p.decode_lens = a->decode_lens;
	p.prefill_indices = a->prefill_indices;
	p.prefill_lens = a->prefill_lens;
	p.entries = a->entries;
	p.s.decode_stride = a->decode_stride_elems;
	p.s.prefill_stride = a->prefill_stride_elems;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	if (a->decode_tokens > 0)
		p.s.pool_pages = spmla_i_slot_pages(a->pool_pages,
						    a->page_entries, stride);
	p.s.page_tokens = a->page_entries;
	p.s.has_cols = a->table_cols != NULL;
	p.s.page_stride_rows = stride;
	p.s.tokens = a->tokens;
	p.s.decode_tokens = a->decode_tokens;
	p.s.ratio = a->ratio;
	p.s.width = a->width;
	p.s.entries_before = a->entries_before;
	p.s.has_decode_lens = a->decode_lens != NULL;
	p.s.has_entries = a->entries != NULL;
	p.s.has_prefill_lens = a->prefill_lens != NULL;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_c128a_index, a->tokens,
				  &p);
}
