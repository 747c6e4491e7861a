/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_indexer_schedule(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_indexer_schedule_args *a = args;
	spmla_k_indexer_schedule_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.context_lens = a->context_lens;
	p.indices = a->indices;
	p.schedule = a->schedule;
	p.s.context_lens_stride = a->context_lens_stride_elems;
	p.s.sm90 = a->rule == SPMLA_INDEXER_SCHEDULE_SM90;
	p.s.runs = a->rule == SPMLA_INDEXER_SCHEDULE_SM100_VARLEN;
	p.s.batch = a->batch;
	p.s.next_n = a->next_n;
	p.s.num_sms = a->num_sms;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_indexer_schedule, 1, &p);
}
