/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms on the CPU: row by row, both sets in one loop. The sum has 128
 * lanes in eight parts of 16, as a block on a GPU adds it.
 */
#include "spmla/platform/cpu/cache/v4_row_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

#include <math.h>

enum { OCTET = 8, LANES = 16, PARTS = 8 };

/* The sum over lanes part * 16 .. part * 16 + 15. */
static float
part_of_sum(const uint16_t *row, uint32_t width, uint32_t part)
{
	float lane[LANES] = {0};
	uint32_t first, l, i;

	for (first = part * LANES; first * OCTET < width;
	     first += LANES * PARTS)
		for (l = 0; l < LANES && (first + l) * OCTET < width; l++)
			for (i = 0; i < OCTET; i++) {
				const float x = spmla_i_bf16_to_f32(
					row[(first + l) * OCTET + i]);

				lane[l] += x * x;
			}
	return spmla_i_cpu_tree(lane);
}

static float
sum_of_squares(const uint16_t *row, uint32_t width)
{
	float part[PARTS];
	uint32_t step, p;

	for (p = 0; p < PARTS; p++)
		part[p] = part_of_sum(row, width, p);
	for (step = PARTS / 2; step > 0; step /= 2)
		for (p = 0; p < step; p++)
			part[p] += part[p + step];
	return part[0];
}

static void
norm_row(const uint16_t *x, const uint16_t *weight, uint32_t width, float eps,
	 uint16_t *out)
{
	const float mean = sum_of_squares(x, width) / (float)width;
	const float r = 1.0f / sqrtf(mean + eps);
	uint32_t v;

	for (v = 0; v < width; v++)
		out[v] = spmla_i_cpu_bf16_bits(spmla_i_bf16_to_f32(x[v]) * r *
					       spmla_i_bf16_to_f32(weight[v]));
}

/* Rows of q, then rows of kv. */
static void
norm_item(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_rms_norms_args *a = args;
	const uint32_t n = item - a->q_rows;

	(void)ctx;
	(void)worker;
	if (item < a->q_rows)
		norm_row(a->q + item * a->q_stride_elems, a->q_weight,
			 a->q_width, a->norm_eps,
			 a->q_out + item * a->q_out_stride_elems);
	else
		norm_row(a->kv + n * a->kv_stride_elems, a->kv_weight,
			 a->kv_width, a->norm_eps,
			 a->kv_out + n * a->kv_out_stride_elems);
}

void
spmla_i_cpu_rms_norms(spmla_ctx *ctx, const void *args)
{
	const spmla_rms_norms_args *a = args;

	spmla_i_cpu_for(ctx, a, a->q_rows + a->kv_rows, norm_item);
}
