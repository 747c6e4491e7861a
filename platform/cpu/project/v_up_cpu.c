/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up on the CPU: all tokens of a head, so that its matrix is read once.
 */
#include "spmla/platform/cpu/core/kernels_cpu.h"

enum { VALUES = 128 };

void
spmla_i_cpu_v_up(spmla_ctx *ctx, const void *args)
{
	const spmla_v_up_args *a = args;
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		const uint32_t next = h + 1 < a->heads ? h + 1 : h;
		const spmla_i_cpu_project p = {
			.x = a->latent + h * a->latent_head_stride_elems,
			.x_stride_elems = a->latent_token_stride_elems,
			.w = a->w_uv + h * a->w_head_stride_elems,
			.w_stride_elems = a->w_row_stride_elems,
			.next = a->w_uv + next * a->w_head_stride_elems,
			.out = a->out + (uint64_t)h * VALUES,
			.out_stride_elems = a->out_token_stride_elems,
			.rows = a->tokens,
			.n = SPMLA_MLA_LATENT,
			.columns = VALUES,
		};

		kernels->project(&p);
	}
}
