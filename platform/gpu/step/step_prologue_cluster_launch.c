/* SPDX-License-Identifier: Apache-2.0
 *
 * V4's prologue as one launch: the arguments of both launches that it replaces.
 */
#include "spmla/internal/config.h"
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_step_prologue_cluster(const spmla_i_gpu_queue *queue,
				  const spmla_k_step_prologue_params *first,
				  spmla_i_cut cut)
{
	spmla_k_step_prologue_cluster_params p;

	memset(&p, 0, sizeof p);
#define COPY(type, name) p.name = first->name;
	SPMLA_K_step_prologue(COPY, SPMLA_I_K_NONE);
#undef COPY
#define COPY(type, name) p.s.name = first->s.name;
	SPMLA_K_step_prologue(SPMLA_I_K_NONE, COPY);
#undef COPY
	spmla_i_gpu_cluster_windows(queue, first->s.tokens, cut, &p);
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_step_prologue_cluster, 1,
				  &p);
}
