/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb on the CPU: the products of all heads, then the rope parts. A token
 * without a row of the rope table is cleared last, over its products.
 */
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/core/kernels_cpu.h"

#include <string.h>

enum { NOPE = 128, LATENT = SPMLA_MLA_LATENT, ROPE = SPMLA_MLA_ROPE };

/* `cos_sin` is the position's row; NULL: a copy. */
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

/* The product of a head for all tokens, so that its matrix is read once. */
static void
absorb_head(const spmla_q_absorb_args *a, const spmla_i_cpu_kernels *kernels,
	    uint32_t h)
{
	const uint32_t next = h + 1 < a->heads ? h + 1 : h;
	const spmla_i_cpu_project p = {
		.x = a->q_nope + h * a->q_nope_head_stride_elems,
		.x_stride_elems = a->q_nope_token_stride_elems,
		.w = a->w_uk_t + h * a->w_head_stride_elems,
		.w_stride_elems = a->w_row_stride_elems,
		.next = a->w_uk_t + next * a->w_head_stride_elems,
		.out = a->q + h * a->q_head_stride_elems,
		.out_stride_elems = a->q_token_stride_elems,
		.rows = a->tokens,
		.n = NOPE,
		.columns = LATENT,
	};

	kernels->project(&p);
}

/* Clears a token whose position is outside the table. */
static void
clear_token(const spmla_q_absorb_args *a, uint32_t t)
{
	uint32_t h;

	for (h = 0; h < a->heads; h++)
		memset(a->q + t * a->q_token_stride_elems +
			       h * a->q_head_stride_elems,
		       0, SPMLA_MLA_DIM * sizeof *a->q);
}

void
spmla_i_cpu_q_absorb(spmla_ctx *ctx, const void *args)
{
	const spmla_q_absorb_args *a = args;
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	const float *cos_sin = NULL;
	uint32_t t, h;
	float own[SPMLA_INDEX_ROPE];

	for (h = 0; h < a->heads; h++)
		absorb_head(a, kernels, h);
	for (t = 0; t < a->tokens; t++) {
		if (a->rope_style != SPMLA_ROPE_NONE) {
			cos_sin = spmla_i_cpu_rope_row(
				a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
				spmla_i_cpu_position(a->positions,
						     a->positions_dtype, t),
				own);
			if (!cos_sin) {
				spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_POSITION);
				clear_token(a, t);
				continue;
			}
		}
		for (h = 0; a->q_pe && h < a->heads; h++)
			append_rope(a->q_pe + t * a->q_pe_token_stride_elems +
					    h * a->q_pe_head_stride_elems,
				    cos_sin, a->rope_style,
				    a->q + t * a->q_token_stride_elems +
					    h * a->q_head_stride_elems +
					    LATENT);
	}
}
