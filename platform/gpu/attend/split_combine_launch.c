/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches split_combine.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_split_combine(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_split_combine_args *a = args;
	spmla_k_split_combine_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.num_splits = a->num_splits;
	p.split_out = a->split_out;
	p.split_lse = a->split_lse;
	p.attn_sink = a->attn_sink;
	p.out = a->out;
	p.lse = a->lse;
	p.s.out_request_stride = a->next_n ? a->out_request_stride_elems
					   : a->out_token_stride_elems;
	p.s.out_token_stride = a->out_token_stride_elems;
	p.s.out_head_stride = a->out_head_stride_elems;
	p.s.lse_request_stride = a->next_n ? a->lse_request_stride_elems
					   : a->lse_token_stride_elems;
	p.s.lse_token_stride = a->lse_token_stride_elems;
	p.s.lse_head_stride = a->lse_head_stride_elems;
	p.s.tokens = a->tokens;
	p.s.whole_tokens = a->whole_tokens;
	p.s.heads = a->heads;
	p.s.split_rows = a->split_rows;
	p.s.has_sink = a->attn_sink != NULL;
	p.s.has_lse = a->lse != NULL;
	p.s.empty_lse = spmla_i_gpu_empty_lse(a->empty_lse);
	p.s.lse_sink = a->lse_sink && a->attn_sink;
	p.s.base2 = a->lse_base == SPMLA_LSE_BASE2;
	p.s.next_n = spmla_i_gpu_divisor(a->next_n ? a->next_n : 1);
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_split_combine,
		(uint64_t)(a->tokens - a->whole_tokens) * a->heads, &p);
}
