/* SPDX-License-Identifier: Apache-2.0
 *
 * The index score of one key, the same for paged and gathered keys.
 */
#ifndef SPMLA_PLATFORM_CPU_SCORE_H
#define SPMLA_PLATFORM_CPU_SCORE_H

#include "spmla/platform/cpu/cpu.h"

/* n e4m3 codes as f32, exact. */
static inline void
spmla_i_cpu_decode_e4m3(const uint8_t *codes, uint32_t n, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_e4m3_to_f32(codes[i]);
}

/* scale * sum over h of (relu(q[h] . key) * weights[h]), q [heads][128]. A NaN
 * product counts as 0, as fmaxf(x, 0) gives. */
static inline float
spmla_i_cpu_score_key(const float *q, const float *weights, uint32_t heads,
		      const float *key, float scale)
{
	float sum = 0.0f;
	uint32_t h;

	for (h = 0; h < heads; h++) {
		const float x =
			spmla_i_cpu_dot(q + (uint64_t)h * SPMLA_INDEX_DIM, key,
					SPMLA_INDEX_DIM);

		sum += (x > 0.0f ? x : 0.0f) * weights[h];
	}
	return scale * sum;
}

#endif
