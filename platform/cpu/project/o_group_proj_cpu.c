/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj on the CPU: some columns of a group at a time, so that their
 * rows of the matrix stay in cache while all tokens pass. Rows of w are as long
 * as rows of o, so a sum is the product of two rows, unlike in
 * spmla_i_cpu_project.
 */
#include "spmla/internal/mxfp4.h"
#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

enum { PART = SPMLA_I_CPU_PART, COLUMNS = SPMLA_I_CPU_PART_COLUMNS };

/* The scale of part b of a token. */
static float
o_scale_of(const spmla_o_group_proj_args *a, uint64_t t, uint64_t g, uint32_t b)
{
	const uint64_t group = g * (uint64_t)a->o_scale_group_stride_elems;
	const uint64_t stride = (uint64_t)a->o_scale_stride_elems;

	if (a->quant == SPMLA_O_FP8)
		return ((const float *)a->o_scales)[group + b * stride + t];
	return spmla_i_mxfp4_scale_value(
		(uint8_t)(((const uint32_t *)
				   a->o_scales)[group + b / 4 * stride + t] >>
			  b % 4 * 8));
}

/* Computes 16 columns of a token. */
static void
project_token(const spmla_o_group_proj_args *a,
	      const spmla_i_cpu_kernels *kernels, uint64_t t, uint64_t g,
	      uint32_t column)
{
	const uint32_t fp8 = a->quant != SPMLA_O_BF16;
	const uint64_t bytes = fp8 ? 1 : 2;
	const uint8_t *o = (const uint8_t *)a->o +
			   bytes * (t * (uint64_t)a->o_token_stride_elems +
				    g * (uint64_t)a->o_group_stride_elems);
	const uint8_t *w = (const uint8_t *)a->w +
			   bytes * (g * (uint64_t)a->w_group_stride_elems +
				    column * (uint64_t)a->w_row_stride_elems);
	const float *w_scales =
		fp8 ? a->w_scales +
				g * (uint64_t)a->w_scale_group_stride_elems +
				column / PART *
					(uint64_t)a->w_scale_row_stride_elems
		    : NULL;
	uint16_t *z = a->z + t * (uint64_t)a->z_token_stride_elems +
		      g * (uint64_t)a->z_group_stride_elems + column;
	float part[COLUMNS], sum[COLUMNS] = {0};
	uint32_t b, d;

	for (b = 0; b < a->inner / PART; b++) {
		const float scale =
			fp8 ? o_scale_of(a, t, g, b) * w_scales[b] : 1.0f;

		(fp8 ? kernels->part_e4m3 : kernels->part_bf16)(
			o + b * PART * bytes, w + b * PART * bytes,
			bytes * (uint64_t)a->w_row_stride_elems, part);
		for (d = 0; d < COLUMNS; d++)
			sum[d] += part[d] * scale;
	}
	for (d = 0; d < COLUMNS; d++)
		z[d] = spmla_i_cpu_bf16_bits(sum[d]);
}

static void
project_columns(spmla_ctx *ctx, const void *args, uint32_t worker,
		uint32_t item)
{
	const spmla_o_group_proj_args *a = args;
	const spmla_i_cpu_kernels *kernels = spmla_i_cpu_kernels_of(ctx);
	const uint32_t tiles = a->columns / COLUMNS;
	uint32_t t;

	(void)worker;
	for (t = 0; t < a->tokens; t++)
		project_token(a, kernels, t, item / tiles,
			      item % tiles * COLUMNS);
}

void
spmla_i_cpu_o_group_proj(spmla_ctx *ctx, const void *args)
{
	const spmla_o_group_proj_args *a = args;

	spmla_i_cpu_for(ctx, a, a->groups * (a->columns / COLUMNS),
			project_columns);
}
