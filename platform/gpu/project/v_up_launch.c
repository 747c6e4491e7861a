/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_v_up_params) ==
				    sizeof(spmla_k_v_up_mma_params) &&
			    sizeof(spmla_k_v_up_params) ==
				    sizeof(spmla_k_v_up_mma_few_params) &&
			    sizeof(spmla_k_v_up_params) ==
				    sizeof(spmla_k_v_up_wgmma_params),
		    "one struct binds all kernels");

enum { V_UP_SOME = 128 }; /* tokens; for up to so many mma.sync is as fast */

/* Sizes: tokens. Example: 16 tokens are one tile of 16, which reads the matrix
 * once; 17 to 64 are one tile of 64. On Hopper, 129 tokens and more have a
 * block for each head and range of tokens (spmla_i_gpu_project_range). */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_v_up_mma_few,
	 .most = PROJECT_MMA_FEW,
	 .aligned = 1},
	{.kernel = SPMLA_KERNEL_v_up_mma, .most = V_UP_SOME, .aligned = 1},
	{.kernel = SPMLA_KERNEL_v_up_wgmma,
	 .most = PROJECT_WGMMA_MOST,
	 .aligned = 1},
	{.kernel = SPMLA_KERNEL_v_up_mma, .aligned = 1},
	{.kernel = SPMLA_KERNEL_v_up},
};

/* Whether every row begins at a multiple of 16 bytes. */
static uint32_t
is_aligned(const spmla_v_up_args *a)
{
	return spmla_i_gpu_aligned(a->latent, a->latent_token_stride_elems,
				   a->latent_head_stride_elems, 2, 16) &&
	       spmla_i_gpu_aligned(a->w_uv, a->w_row_stride_elems,
				   a->w_head_stride_elems, 2, 16) &&
	       spmla_i_gpu_aligned(a->out, a->out_token_stride_elems, 0, 2, 16);
}

spmla_status
spmla_i_gpu_v_up(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_v_up_args *a = args;
	const uint32_t groups = (a->tokens - 1) / PROJECT_GROUP + 1;
	const spmla_i_gpu_variant *by;
	spmla_k_v_up_params p;
	uint64_t units;

	memset(&p, 0, sizeof p);
	p.latent = a->latent;
	p.w_uv = a->w_uv;
	p.out = a->out;
	p.s.latent_token_stride = a->latent_token_stride_elems;
	p.s.latent_head_stride = a->latent_head_stride_elems;
	p.s.w_head_stride = a->w_head_stride_elems;
	p.s.w_row_stride = a->w_row_stride_elems;
	p.s.out_token_stride = a->out_token_stride_elems;
	p.s.tokens = a->tokens;
	p.s.heads = a->heads;
	p.s.w_aligned = SPMLA_I_PTR(a->w_uv) % 4 == 0 &&
			a->w_head_stride_elems % 2 == 0 &&
			a->w_row_stride_elems % 2 == 0;
	p.s.units = spmla_i_gpu_project_tiles(a->tokens, a->heads, V_UP_VALUES,
					      V_UP_MANY, is_aligned(a));
	by = spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants), 0,
				a->tokens, p.s.units > 0);
	units = by->aligned ? p.s.units
			    : (uint64_t)a->heads * V_UP_TILES * groups;
	if (by->kernel == SPMLA_KERNEL_v_up_wgmma)
		units = p.s.units = spmla_i_gpu_project_units(
			queue, by->kernel, a->tokens, a->heads, &p.s.range);
	return spmla_i_gpu_launch(queue, by->kernel, units, &p);
}
