/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_topk(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_topk_args *a = args;
	spmla_k_topk_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.logits = a->logits;
	p.row_starts = a->row_starts;
	p.context_lens = a->context_lens;
	p.indices = a->indices;
	p.lens = a->lens;
	p.s.logits_elems = a->logits_elems;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.rows = a->rows;
	p.s.k = a->k;
	p.s.has_lens = a->lens != NULL;
	p.s.has_starts = a->row_starts != NULL;
	p.s.row_stride = a->row_stride_elems;
	p.s.last_ties = a->ties == SPMLA_TIES_HIGHER;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_topk, a->rows, &p);
}
