/* SPDX-License-Identifier: Apache-2.0
 *
 * See project_rig.h.
 */
#include "tests/ops/project/project_rig.h"

#include "spmla/internal/gpu_sizes.h"

uint32_t
project_has(const fixture *f, spmla_i_kernel kernel)
{
	const spmla_i_gpu_state *state = f->ctx->buf[SPMLA_BUF_BACKEND_STATE];

	return f->plan.device.kind != SPMLA_BACKEND_CPU &&
	       state->resident_blocks[kernel] > 0;
}

uint32_t
project_aligned(const void *base, int64_t stride_elems,
		int64_t other_stride_elems, uint32_t elem_bytes)
{
	const int64_t strides = stride_elems | other_stride_elems;

	return ((uintptr_t)base | (uintptr_t)(strides * elem_bytes)) % 16 == 0;
}
