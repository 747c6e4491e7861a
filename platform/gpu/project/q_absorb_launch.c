/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_q_absorb_params) ==
				    sizeof(spmla_k_q_absorb_mma_params) &&
			    sizeof(spmla_k_q_absorb_params) ==
				    sizeof(spmla_k_q_absorb_mma_few_params) &&
			    sizeof(spmla_k_q_absorb_params) ==
				    sizeof(spmla_k_q_absorb_wgmma_params),
		    "one struct binds all kernels");

/* Sizes: tokens. Example: 16 tokens are one tile of 16, which reads the matrix
 * once. On Hopper, 17 tokens and more have a block for each head and range of
 * tokens (spmla_i_gpu_project_range). On others, 17 to 128 tokens are one
 * tile of 128. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_q_absorb_mma_few,
	 .most = PROJECT_MMA_FEW,
	 .aligned = 1},
	{.kernel = SPMLA_KERNEL_q_absorb_wgmma,
	 .most = PROJECT_WGMMA_MOST,
	 .aligned = 1},
	{.kernel = SPMLA_KERNEL_q_absorb_mma, .aligned = 1},
	{.kernel = SPMLA_KERNEL_q_absorb},
};

/* Whether every row that the kernels with matrix instructions touch begins at a
 * multiple of 16 bytes. */
static uint32_t
is_aligned(const spmla_q_absorb_args *a)
{
	return spmla_i_gpu_aligned(a->q_nope, a->q_nope_token_stride_elems,
				   a->q_nope_head_stride_elems, 2, 16) &&
	       spmla_i_gpu_aligned(a->w_uk_t, a->w_row_stride_elems,
				   a->w_head_stride_elems, 2, 16) &&
	       (!a->q_pe ||
		spmla_i_gpu_aligned(a->q_pe, a->q_pe_token_stride_elems,
				    a->q_pe_head_stride_elems, 2, 16)) &&
	       spmla_i_gpu_aligned(a->q, a->q_token_stride_elems,
				   a->q_head_stride_elems, 2, 16);
}

spmla_status
spmla_i_gpu_q_absorb(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_q_absorb_args *a = args;
	const uint32_t groups = (a->tokens - 1) / PROJECT_GROUP + 1;
	const uint32_t tiles = Q_ABSORB_TILES + (a->q_pe != NULL);
	const spmla_i_gpu_variant *by;
	spmla_k_q_absorb_params p;
	uint64_t units;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q_nope = a->q_nope;
	p.w_uk_t = a->w_uk_t;
	p.q_pe = a->q_pe;
	p.positions = a->positions;
	p.s.rope_form = spmla_i_gpu_reals(a->cos_sin, a->cos_sin_dtype);
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.cos_sin = a->cos_sin;
	p.q = a->q;
	p.s.q_nope_token_stride = a->q_nope_token_stride_elems;
	p.s.q_nope_head_stride = a->q_nope_head_stride_elems;
	p.s.w_head_stride = a->w_head_stride_elems;
	p.s.w_row_stride = a->w_row_stride_elems;
	p.s.q_pe_token_stride = a->q_pe_token_stride_elems;
	p.s.q_pe_head_stride = a->q_pe_head_stride_elems;
	p.s.q_token_stride = a->q_token_stride_elems;
	p.s.q_head_stride = a->q_head_stride_elems;
	p.s.tokens = a->tokens;
	p.s.heads = a->heads;
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.has_pe = a->q_pe != NULL;
	p.s.has_rope = a->rope_style != SPMLA_ROPE_NONE;
	p.s.neox = a->rope_style == SPMLA_ROPE_NEOX;
	p.s.w_aligned = SPMLA_I_PTR(a->w_uk_t) % 4 == 0 &&
			a->w_head_stride_elems % 2 == 0 &&
			a->w_row_stride_elems % 2 == 0;
	p.s.units =
		spmla_i_gpu_project_tiles(a->tokens, a->heads, SPMLA_MLA_LATENT,
					  Q_ABSORB_MANY, is_aligned(a));
	by = spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants), 0,
				a->tokens, p.s.units > 0);
	units = by->aligned ? p.s.units : (uint64_t)a->heads * tiles * groups;
	if (by->kernel == SPMLA_KERNEL_q_absorb_wgmma)
		units = p.s.units = spmla_i_gpu_project_units(
			queue, by->kernel, a->tokens, a->heads, &p.s.range);
	return spmla_i_gpu_launch(queue, by->kernel, units, &p);
}
