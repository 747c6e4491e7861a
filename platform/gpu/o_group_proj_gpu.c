/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: from its args to its kernels.
 */
#include "spmla/platform/gpu/launch_gpu.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_o_group_proj_params) ==
			    sizeof(spmla_k_o_group_proj_bf16_params),
		    "one struct binds both kernels");

spmla_status
spmla_i_gpu_o_group_proj(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_o_group_proj_args *a = args;
	const uint32_t bytes = a->quant == SPMLA_O_BF16 ? 2 : 1;
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
	p.s.w_aligned = SPMLA_I_PTR(a->w) % 16 == 0 &&
			(uint64_t)a->w_group_stride_elems * bytes % 16 == 0 &&
			(uint64_t)a->w_row_stride_elems * bytes % 16 == 0;
	return spmla_i_gpu_launch(
		queue,
		a->quant == SPMLA_O_BF16 ? SPMLA_KERNEL_o_group_proj_bf16
					 : SPMLA_KERNEL_o_group_proj,
		((uint64_t)(a->tokens - 1) / O_PROJ_TOKENS + 1) * a->groups *
			(a->columns / O_PROJ_COLUMNS),
		&p);
}
