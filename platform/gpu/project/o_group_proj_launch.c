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

/* Kind 1: the values are bf16. Rows: the tokens of a block. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16_mma,
	 .kind = 1,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16,
	 .kind = 1,
	 .rows = O_PROJ_TOKENS,
	 .columns = O_PROJ_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_mma,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj,
	 .rows = O_PROJ_TOKENS,
	 .columns = O_PROJ_COLUMNS},
};

spmla_status
spmla_i_gpu_o_group_proj(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_o_group_proj_args *a = args;
	const uint32_t bf16 = a->quant == SPMLA_O_BF16;
	const uint32_t bytes = bf16 ? 2 : 1;
	const spmla_i_gpu_variant *by;
	spmla_k_o_group_proj_params p;
	uint32_t o_aligned;

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
	o_aligned = spmla_i_gpu_aligned(a->o, a->o_token_stride_elems,
					a->o_group_stride_elems, bytes, 16);
	by = spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants), bf16,
				a->tokens, p.s.w_aligned && o_aligned);
	return spmla_i_gpu_launch(queue, by->kernel,
				  ((uint64_t)(a->tokens - 1) / by->rows + 1) *
					  a->groups *
					  (a->columns / by->columns),
				  &p);
}
