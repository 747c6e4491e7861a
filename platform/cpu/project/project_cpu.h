/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows times a matrix, bf16 with sums in f32 in the order of spmla_i_cpu_dot:
 * what q_absorb and v_up share, a head at a time. The products of two bf16
 * numbers are exact in f32, so a fused multiply-add rounds as a product and a
 * sum do, and all variants give the same bits as long as no product leaves the
 * range of f32.
 */
#ifndef SPMLA_PLATFORM_CPU_PROJECT_PROJECT_CPU_H
#define SPMLA_PLATFORM_CPU_PROJECT_PROJECT_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* out[r][j] = bf16(sum over i < n of x[r][i] * w[i][j]). */
typedef struct spmla_i_cpu_project {
	const uint16_t *x; /* [rows][n] */
	int64_t x_stride_elems;
	const uint16_t *w; /* [n][columns] */
	int64_t w_stride_elems;
	const uint16_t *next; /* the matrix after this one, laid out alike, to
			       * be asked for meanwhile; w: there is none */
	uint16_t *out;        /* [rows][columns] */
	int64_t out_stride_elems;
	uint32_t rows;
	uint32_t n;       /* a multiple of 16 */
	uint32_t columns; /* a multiple of 32 */
} spmla_i_cpu_project;

#endif
