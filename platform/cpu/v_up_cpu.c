/* SPDX-License-Identifier: Apache-2.0
 *
 * v_up on the CPU.
 */
#include "spmla/platform/cpu/project_cpu.h"

enum { VALUES = 128 };

void
spmla_i_cpu_v_up(spmla_ctx *ctx, const void *args)
{
	const spmla_v_up_args *a = args;
	uint32_t t, h;

	(void)ctx;
	for (t = 0; t < a->tokens; t++)
		for (h = 0; h < a->heads; h++)
			spmla_i_cpu_project(
				a->latent + t * a->latent_token_stride_elems +
					h * a->latent_head_stride_elems,
				a->w_uv + h * a->w_head_stride_elems,
				a->w_row_stride_elems, SPMLA_MLA_LATENT, VALUES,
				a->out + t * a->out_token_stride_elems +
					(uint64_t)h * VALUES);
}
