/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch_gpu.h"

spmla_status
spmla_i_gpu_ragged_index(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_ragged_index_args *a = args;
	spmla_k_ragged_index_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.indices = a->indices;
	p.lens = a->lens;
	p.ragged_indptr = a->ragged_indptr;
	p.ragged_indices = a->ragged_indices;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.tokens = a->tokens;
	p.s.width = a->width;
	p.s.num_slots = a->num_slots;
	p.s.capacity = a->capacity_elems;
	p.s.has_lens = a->lens != NULL;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_ragged_index,
				  a->tokens ? a->tokens : 1, &p);
}
