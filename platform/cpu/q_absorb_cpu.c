/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb on the CPU: a product a head, then its rope part.
 */
#include "spmla/platform/cpu/project_cpu.h"
#include "spmla/platform/cpu/rope_cpu.h"

#include <string.h>

enum { NOPE = 128, LATENT = SPMLA_MLA_LATENT, ROPE = SPMLA_MLA_ROPE };

/* `cos_sin` is the position's; NULL: a copy. */
static void
append_rope(const uint16_t *q_pe, const float *cos_sin, uint32_t style,
	    uint16_t *out)
{
	float x[ROPE];
	uint32_t i;

	if (!cos_sin) {
		memcpy(out, q_pe, ROPE * sizeof *out);
		return;
	}
	for (i = 0; i < ROPE; i++)
		x[i] = spmla_i_bf16_to_f32(q_pe[i]);
	spmla_i_cpu_rope(x, cos_sin, style);
	for (i = 0; i < ROPE; i++)
		out[i] = spmla_i_f32_to_bf16(x[i]);
}

static void
absorb_token(const spmla_q_absorb_args *a, uint32_t t, const float *cos_sin)
{
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		uint16_t *q = a->q + t * a->q_token_stride_elems +
			      h * a->q_head_stride_elems;

		spmla_i_cpu_project(a->q_nope +
					    t * a->q_nope_token_stride_elems +
					    h * a->q_nope_head_stride_elems,
				    a->w_uk_t + h * a->w_head_stride_elems,
				    a->w_row_stride_elems, NOPE, LATENT, q);
		if (a->q_pe)
			append_rope(a->q_pe + t * a->q_pe_token_stride_elems +
					    h * a->q_pe_head_stride_elems,
				    cos_sin, a->rope_style, q + LATENT);
	}
}

void
spmla_i_cpu_q_absorb(spmla_ctx *ctx, const void *args)
{
	const spmla_q_absorb_args *a = args;
	uint32_t t, h;

	for (t = 0; t < a->tokens; t++) {
		const float *cos_sin = NULL;

		if (a->rope_style == SPMLA_ROPE_NONE) {
			absorb_token(a, t, NULL);
			continue;
		}
		cos_sin = spmla_i_cpu_rope_row(a->cos_sin, a->cos_sin_rows,
					       a->positions[t]);
		if (cos_sin) {
			absorb_token(a, t, cos_sin);
			continue;
		}
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
		for (h = 0; h < a->heads; h++)
			memset(a->q + t * a->q_token_stride_elems +
				       h * a->q_head_stride_elems,
			       0, SPMLA_MLA_DIM * sizeof *a->q);
	}
}
