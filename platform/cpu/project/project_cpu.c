/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar projection. A few columns at a time, so that the sums of all lanes
 * fit a small stack and a row of the matrix is read in pieces of one direction.
 */
#include "spmla/platform/cpu/core/scalar_cpu.h"

enum { COLUMNS = 8 };

/* out[0..7] = bf16(sum over i < n of x[i] * w[i][0..7]) */
static void
project_columns(const uint16_t *x, const uint16_t *w, int64_t w_stride_elems,
		uint32_t n, uint16_t *out)
{
	float sums[SPMLA_I_LANES][COLUMNS] = {{0}};
	uint32_t i, j, step;

	for (i = 0; i < n; i++) {
		const float factor = spmla_i_bf16_to_f32(x[i]);
		const uint16_t *row = w + i * w_stride_elems;
		float *sum = sums[i % SPMLA_I_LANES];

		for (j = 0; j < COLUMNS; j++)
			sum[j] += factor * spmla_i_bf16_to_f32(row[j]);
	}
	for (step = SPMLA_I_LANES / 2; step > 0; step /= 2)
		for (i = 0; i < step; i++)
			for (j = 0; j < COLUMNS; j++)
				sums[i][j] += sums[i + step][j];
	for (j = 0; j < COLUMNS; j++)
		out[j] = spmla_i_f32_to_bf16(sums[0][j]);
}

void
spmla_i_cpu_scalar_project(const spmla_i_cpu_project *p)
{
	uint32_t r, j;

	for (r = 0; r < p->rows; r++)
		for (j = 0; j < p->columns; j += COLUMNS)
			project_columns(p->x + r * p->x_stride_elems, p->w + j,
					p->w_stride_elems, p->n,
					p->out + r * p->out_stride_elems + j);
}
