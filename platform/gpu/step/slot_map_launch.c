/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_slot_map(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_slot_map_args *a = args;
	spmla_k_slot_map_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.token_row = a->token_row;
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.context_lens = a->context_lens;
	p.slot_mapping = a->slot_mapping;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	p.s.pool_pages = a->pool_pages;
	p.s.page_tokens = a->page_tokens;
	p.s.has_cols = a->table_cols != NULL;
	p.s.tokens = a->tokens;
	p.s.ring = a->ring;
	p.s.dcp_cycle = spmla_i_gpu_divisor(1);
	if (a->dcp_ranks > 1) {
		p.s.dcp_run = a->dcp_interleave;
		p.s.dcp_first = a->dcp_rank * a->dcp_interleave;
		p.s.dcp_cycle =
			spmla_i_gpu_divisor(a->dcp_ranks * a->dcp_interleave);
	}
	p.s.ratio = a->compress_ratio ? a->compress_ratio : 1;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_slot_map,
				  ((uint64_t)a->tokens + SPMLA_ITEMS_slot_map -
				   1) / SPMLA_ITEMS_slot_map,
				  &p);
}
