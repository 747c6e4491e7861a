/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_filter_prefill_indices(const spmla_i_gpu_queue *queue,
				   const void *args)
{
	const spmla_filter_prefill_indices_args *a = args;
	spmla_k_filter_prefill_indices_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.indices = a->indices;
	p.context_lens = a->context_lens;
	p.context_indices = a->context_indices;
	p.new_indices = a->new_indices;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.context_stride = a->context_indices_stride_elems;
	p.s.new_stride = a->new_indices_stride_elems;
	p.s.tokens = a->tokens;
	p.s.k = a->k;
	p.s.has_context = a->context_indices != NULL;
	p.s.has_new = a->new_indices != NULL;
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_filter_prefill_indices,
		(uint64_t)a->tokens * ((a->k - 1) / FILTER_CHUNK + 1), &p);
}
