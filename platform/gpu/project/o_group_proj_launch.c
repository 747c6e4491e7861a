/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: from its args to its kernels.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_o_group_proj_params) ==
				    sizeof(spmla_k_o_group_proj_bf16_params) &&
			    sizeof(spmla_k_o_group_proj_params) ==
				    sizeof(spmla_k_o_group_proj_mma_params),
		    "one struct binds all kernels");

/* Pieces of work of so many tokens and columns. */
static uint64_t
units(const spmla_o_group_proj_args *a, uint32_t tokens, uint32_t columns)
{
	return ((uint64_t)(a->tokens - 1) / tokens + 1) * a->groups *
	       (a->columns / columns);
}

spmla_status
spmla_i_gpu_o_group_proj(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_o_group_proj_args *a = args;
	const uint32_t bf16 = a->quant == SPMLA_O_BF16;
	const uint32_t bytes = bf16 ? 2 : 1;
	const spmla_i_kernel portable = bf16 ? SPMLA_KERNEL_o_group_proj_bf16
					     : SPMLA_KERNEL_o_group_proj;
	const spmla_i_kernel mma = bf16 ? SPMLA_KERNEL_o_group_proj_bf16_mma
					: SPMLA_KERNEL_o_group_proj_mma;
	spmla_k_o_group_proj_params p;

	memset(&p, 0, sizeof p);
	p.o = a->o;
	p.o_scales = a->o_scales;
	p.w = a->w;
	p.w_scales = a->w_scales;
	p.z = a->z;
	p.s.o_token_stride = a->o_token_stride_elems;
	p.s.o_group_stride = a->o_group_stride_elems;
	p.s.o_scale_stride = a->o_scale_stride_elems;
	p.s.o_scale_group_stride = a->o_scale_group_stride_elems;
	p.s.w_group_stride = a->w_group_stride_elems;
	p.s.w_row_stride = a->w_row_stride_elems;
	p.s.w_scale_group_stride = a->w_scale_group_stride_elems;
	p.s.w_scale_row_stride = a->w_scale_row_stride_elems;
	p.s.z_token_stride = a->z_token_stride_elems;
	p.s.z_group_stride = a->z_group_stride_elems;
	p.s.tokens = a->tokens;
	p.s.groups = a->groups;
	p.s.inner = a->inner;
	p.s.columns = a->columns;
	p.s.packed = a->quant == SPMLA_O_FP8_PACKED;
	p.s.w_aligned = spmla_i_gpu_aligned(a->w, a->w_row_stride_elems,
					    a->w_group_stride_elems, bytes, 16);
	if (p.s.w_aligned &&
	    spmla_i_gpu_aligned(a->o, a->o_token_stride_elems,
				a->o_group_stride_elems, bytes, 16) &&
	    queue->resident_blocks[mma])
		return spmla_i_gpu_launch(
			queue, mma, units(a, O_MMA_TOKENS, O_MMA_COLUMNS), &p);
	return spmla_i_gpu_launch(queue, portable,
				  units(a, O_PROJ_TOKENS, O_PROJ_COLUMNS), &p);
}
