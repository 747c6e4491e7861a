/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the CPU's writers of narrow values: 16-bit rows as f32 and back,
 * amax, e4m3 bytes. The hard idea is NaN. It never counts for amax. It is 0x7f
 * as e4m3 and 0x7fc0 as bf16, whatever its sign, because the sign of a NaN made
 * by arithmetic differs between machines (inf / inf is negative on x86,
 * positive elsewhere).
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_QUANT_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_QUANT_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* x = n values of a BF16 or FP16 row, exact. */
static inline void
spmla_i_cpu_load16(float *x, const uint16_t *h, uint32_t n, uint32_t dtype)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = dtype == SPMLA_DTYPE_FP16 ? spmla_i_fp16_to_f32(h[i])
						 : spmla_i_bf16_to_f32(h[i]);
}

/* The bits of x rounded to bf16. Every NaN has the same bits. */
static inline uint16_t
spmla_i_cpu_bf16_bits(float x)
{
	return x != x ? 0x7fc0 : spmla_i_f32_to_bf16(x);
}

/* The larger of amax and every |x|. */
static inline float
spmla_i_cpu_amax(const float *x, uint32_t n, float amax)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const float a = x[i] < 0.0f ? -x[i] : x[i];

		if (a > amax)
			amax = a;
	}
	return amax;
}

/* codes = e4m3(x / scale), a true division; scale is above 0. */
static inline void
spmla_i_cpu_quantise(uint8_t *codes, const float *x, uint32_t n, float scale)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const float q = x[i] / scale;

		codes[i] = q != q ? 0x7f : spmla_i_f32_to_e4m3(q);
	}
}

/* The same in FNUZ, whose one NaN is 0x80. */
static inline void
spmla_i_cpu_quantise_fnuz(uint8_t *codes, const float *x, uint32_t n,
			  float scale)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		codes[i] = spmla_i_f32_to_fnuz(x[i] / scale);
}

#endif
