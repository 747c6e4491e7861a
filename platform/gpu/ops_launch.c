/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatches an operation by its number to the function that launches its
 * kernels.
 */
#include "spmla/platform/gpu/launch.h"

static spmla_i_gpu_op *const run_op[SPMLA_OP_COUNT] = {
#define SPMLA_GPU_OP(stem) [SPMLA_OP_##stem] = spmla_i_gpu_##stem,
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP
};

spmla_status
spmla_i_gpu_enqueue(const spmla_i_gpu_queue *queue, spmla_op op,
		    const void *args)
{
	if (!run_op[op])
		return SPMLA_E_UNSUPPORTED;
	return run_op[op](queue, args);
}
