/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_v_up(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_v_up_args *a = args;
	const uint32_t groups = (a->tokens - 1) / PROJECT_GROUP + 1;
	spmla_k_v_up_params p;

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
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_v_up,
				  (uint64_t)a->heads * V_UP_TILES * groups, &p);
}
