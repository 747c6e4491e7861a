/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches lse2_to_lse.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_lse2_to_lse(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_lse2_to_lse_args *a = args;
	spmla_k_lse2_to_lse_params p;

	memset(&p, 0, sizeof p);
	p.lse2 = a->lse2;
	p.lse = a->lse;
	p.s.count = a->count;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_lse2_to_lse,
				  (a->count - 1) / LSE2_CHUNK + 1, &p);
}
