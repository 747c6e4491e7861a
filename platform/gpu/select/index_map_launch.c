/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

/* Kind 1: entries without a slot are left out. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_index_map_compact, .kind = 1},
	{.kernel = SPMLA_KERNEL_index_map},
};

spmla_k_index_map_scalars
spmla_i_gpu_index_map_scalars(const spmla_index_map_args *a)
{
	spmla_k_index_map_scalars s;

	memset(&s, 0, sizeof s);
	s.indices_stride = a->indices_stride_elems;
	s.slots_stride = a->slots_stride_elems;
	s.rows = a->rows;
	s.columns = a->columns;
	s.stride = a->table_stride_elems;
	s.pool_pages = a->pool_pages ? a->pool_pages : UINT32_C(1) << 31;
	s.page_tokens = a->page_tokens;
	s.has_cols = a->table_cols != NULL;
	s.tokens = a->tokens;
	s.k = a->k;
	s.page_stride_rows =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	s.workspaces = a->workspaces;
	s.has_lens = a->lens != NULL;
	s.has_counts = a->valid_counts != NULL;
	s.has_ids = a->workspace_ids != NULL;
	s.has_context = a->context_lens != NULL;
	s.has_slots = a->slot_mapping != NULL;
	s.entries_before = a->entries_before;
	s.is_ragged = a->indptr != NULL;
	s.has_first_cols = a->first_cols != NULL;
	s.capacity = a->capacity_elems;
	s.whole = a->whole;
	s.has_other = a->kept_lens != NULL;
	return s;
}

spmla_status
spmla_i_gpu_index_map(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_index_map_args *a = args;
	const spmla_i_gpu_variant *by = spmla_i_gpu_choose(
		queue, variants, SPMLA_I_COUNT(variants), a->compact, a->k, 0);
	spmla_k_index_map_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.token_row = a->token_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.indices = a->indices;
	p.lens = a->lens;
	p.slots = a->slots;
	p.valid_counts = a->valid_counts;
	p.workspace_ids = a->workspace_ids;
	p.workspace_starts = a->workspace_starts;
	p.context_lens = a->context_lens;
	p.slot_mapping = a->slot_mapping;
	p.indptr = a->indptr;
	p.first_cols = a->first_cols;
	p.other_lens = a->other_lens;
	p.kept_lens = a->kept_lens;
	p.s = spmla_i_gpu_index_map_scalars(a);
	return spmla_i_gpu_launch(queue, by->kernel, a->tokens, &p);
}
