/* SPDX-License-Identifier: Apache-2.0
 *
 * A row times a matrix, bf16 with sums in f32 in the order of spmla_i_cpu_dot:
 * what q_absorb and v_up share. The products of two bf16 numbers are exact in
 * f32. A few columns at a time, so that the sums of all lanes fit a small
 * stack and a row of the matrix is read in pieces of one direction.
 */
#ifndef SPMLA_PLATFORM_CPU_PROJECT_H
#define SPMLA_PLATFORM_CPU_PROJECT_H

#include "spmla/platform/cpu/cpu.h"

enum { SPMLA_I_CPU_PROJECT_COLUMNS = 8 };

/* out[0..7] = bf16(sum over i < n of x[i] * w[i][0..7]); n is a multiple of
 * 16. */
static inline void
spmla_i_cpu_project_columns(const uint16_t *x, const uint16_t *w,
			    int64_t w_row_stride_elems, uint32_t n,
			    uint16_t *out)
{
	enum { COLUMNS = SPMLA_I_CPU_PROJECT_COLUMNS };
	float sums[SPMLA_I_LANES][COLUMNS] = {{0}};
	uint32_t i, j, step;

	for (i = 0; i < n; i++) {
		const float factor = spmla_i_bf16_to_f32(x[i]);
		const uint16_t *row = w + i * w_row_stride_elems;
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

/* The same for `columns` columns, a multiple of 8. */
static inline void
spmla_i_cpu_project(const uint16_t *x, const uint16_t *w,
		    int64_t w_row_stride_elems, uint32_t n, uint32_t columns,
		    uint16_t *out)
{
	uint32_t j;

	for (j = 0; j < columns; j += SPMLA_I_CPU_PROJECT_COLUMNS)
		spmla_i_cpu_project_columns(x, w + j, w_row_stride_elems, n,
					    out + j);
}

#endif
