/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch_gpu.h"

spmla_status
spmla_i_gpu_mqa_logits(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_mqa_logits_args *a = args;
	spmla_k_mqa_logits_mma_params p;

	if (a->heads > MQA_MMA_HEADS || a->tokens > MQA_MMA_TOKENS ||
	    !queue->resident_blocks[SPMLA_KERNEL_mqa_logits_mma])
		return SPMLA_E_UNSUPPORTED;
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q = a->q;
	p.weights = a->weights;
	p.token_row = a->token_row;
	p.context_lens = a->context_lens;
	p.row_starts = a->row_starts;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.cache = a->cache.base;
	p.logits = a->logits;
	p.s.logits_elems = a->logits_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.rows = a->rows;
	p.s.columns = a->columns;
	p.s.stride = a->table_stride_elems;
	p.s.pool_pages = a->cache.pages;
	p.s.page_tokens = a->cache.entries_per_page;
	p.s.has_cols = a->table_cols != NULL;
	p.s.tokens = a->tokens;
	p.s.heads = a->heads;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_mqa_logits_mma,
				  UINT32_MAX, &p);
}
