/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_ragged_index(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_ragged_index_args *a = args;
	const uint32_t most = queue->resident_blocks[SPMLA_KERNEL_ragged_index];
	spmla_k_ragged_index_params p;
	uint64_t share = 1;

	/* Use fewer blocks with several tokens each: every block reads the
	 * lengths before its own. With 600 tokens on 528 resident blocks a
	 * block has 4 tokens, and 150 blocks are launched. */
	if (a->tokens > most)
		share = ((uint64_t)a->tokens + (uint64_t)most * RAGGED_SHARE -
			 1) /
			((uint64_t)most * RAGGED_SHARE) * RAGGED_SHARE;
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
	p.s.share = (uint32_t)share;
	p.s.wide = share % 4 == 0 && SPMLA_I_PTR(a->lens) % 16 == 0;
	p.s.has_lens = a->lens != NULL;
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_ragged_index,
		a->tokens ? (a->tokens + share - 1) / share : 1, &p);
}
