/* SPDX-License-Identifier: Apache-2.0
 *
 * f32 to e4m3 and what it needs, written once for all widths: included behind
 * vec_*.h and vector_kernels.h. All of it is exact, so it gives the bits of
 * quant_cpu.h.
 */
#include "spmla/platform/cpu/core/kernels_cpu.h"

/* vec_max gives its second argument for a NaN, so none ever counts. */
TARGET static float
amax(const float *x, uint32_t n, float least_amax)
{
	vec most = vec_set(least_amax);
	float four[4];
	uint32_t i;

	for (i = 0; i < n; i += LANES)
		most = vec_max(vec_abs(vec_load(x + i)), most);
	_mm_storeu_ps(four, vec_fold_max(most));
	for (i = 1; i < 4; i++)
		four[0] = four[i] > four[0] ? four[i] : four[0];
	return four[0];
}

TARGET static void
quantise(uint8_t *codes, const float *x, uint32_t n, float scale)
{
	const vec by = vec_set(scale);
	uint32_t i;

	for (i = 0; i < n; i += LANES)
		vec_store_e4m3(codes + i, vec_div(vec_load(x + i), by));
}
