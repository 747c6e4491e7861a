/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar inner loops, for the table in scalar_cpu.c: plain C, the oracle of
 * the vector ones. What they do is in kernels_cpu.h.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_SCALAR_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_SCALAR_CPU_H

#include "spmla/platform/cpu/core/kernels_cpu.h"

void spmla_i_cpu_scalar_score_open(const spmla_i_cpu_score *s, const uint8_t *q,
				   const float *weights);
void spmla_i_cpu_scalar_score_keys(const spmla_i_cpu_score *s,
				   const uint8_t *codes, const uint8_t *scales,
				   uint32_t n, float *out);
void spmla_i_cpu_scalar_score_query(const spmla_i_cpu_score *s, uint32_t h,
				    const float *q, float weight);
void spmla_i_cpu_scalar_score_values(const spmla_i_cpu_score *s,
				     const uint8_t *scales, uint32_t n,
				     float *out);
void spmla_i_cpu_scalar_attend_block(const spmla_i_cpu_attend *w,
				     uint32_t count);
void spmla_i_cpu_scalar_project(const spmla_i_cpu_project *p);

#endif
