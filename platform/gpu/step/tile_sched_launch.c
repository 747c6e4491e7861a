/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

static spmla_status
launch_fixed(const spmla_i_gpu_queue *queue, const spmla_tile_sched_args *a)
{
	spmla_k_fixed_splits_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.topk_lens = a->indptr ? a->indptr : a->topk_lens;
	p.extra_topk_lens =
		a->extra_indptr ? a->extra_indptr : a->extra_topk_lens;
	p.tile_scheduler_metadata = a->tile_scheduler_metadata;
	p.num_splits = a->num_splits;
	p.s.batch = a->batch;
	p.s.parts = a->parts;
	p.s.split_blocks = a->split_blocks;
	p.s.most_splits = a->batch ? a->parts / a->batch : 0;
	p.s.topk = a->topk;
	p.s.extra_topk = a->extra_topk;
	p.s.lens_tokens =
		spmla_i_gpu_divisor(a->lens_tokens ? a->lens_tokens : 1);
	p.s.list_form = spmla_i_gpu_list_form(a->topk_lens, a->indptr);
	if (a->extra_topk)
		p.s.extra_list_form = spmla_i_gpu_list_form(a->extra_topk_lens,
							    a->extra_indptr);
	p.s.old_rows = a->row_format == SPMLA_TILE_ROW_OLD;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_fixed_splits, 1, &p);
}

spmla_status
spmla_i_gpu_tile_sched(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_tile_sched_args *a = args;
	spmla_k_tile_sched_params p;

	if (a->split_blocks)
		return launch_fixed(queue, a);
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.topk_lens = a->indptr ? a->indptr : a->topk_lens;
	p.extra_topk_lens =
		a->extra_indptr ? a->extra_indptr : a->extra_topk_lens;
	p.tile_scheduler_metadata = a->tile_scheduler_metadata;
	p.num_splits = a->num_splits;
	p.s.batch = a->batch;
	p.s.parts = a->parts;
	p.s.overhead = a->overhead_blocks;
	p.s.topk = a->topk;
	p.s.extra_topk = a->extra_topk;
	p.s.lens_tokens =
		spmla_i_gpu_divisor(a->lens_tokens ? a->lens_tokens : 1);
	p.s.list_form = spmla_i_gpu_list_form(a->topk_lens, a->indptr);
	if (a->extra_topk)
		p.s.extra_list_form = spmla_i_gpu_list_form(a->extra_topk_lens,
							    a->extra_indptr);
	p.s.old_rows = a->row_format == SPMLA_TILE_ROW_OLD;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_tile_sched, 1, &p);
}
