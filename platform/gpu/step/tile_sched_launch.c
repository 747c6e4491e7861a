/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_tile_sched(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_tile_sched_args *a = args;
	spmla_k_tile_sched_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.topk_lens = a->topk_lens;
	p.extra_topk_lens = a->extra_topk_lens;
	p.tile_scheduler_metadata = a->tile_scheduler_metadata;
	p.num_splits = a->num_splits;
	p.s.batch = a->batch;
	p.s.parts = a->parts;
	p.s.overhead = a->overhead_blocks;
	p.s.topk = a->topk;
	p.s.extra_topk = a->extra_topk;
	p.s.has_lens = a->topk_lens != NULL;
	p.s.has_extra_lens = a->extra_topk_lens != NULL;
	p.s.old_rows = a->row_format == SPMLA_TILE_ROW_OLD;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_tile_sched, 1, &p);
}
