/* SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit floats by integers: the same bits on every compiler and platform.
 */
#ifndef SPMLA_INTERNAL_BF16_H
#define SPMLA_INTERNAL_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "SpMLA needs IEEE arithmetic: compile it with -fno-fast-math"
#endif

static inline uint32_t
spmla_i_f32_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float
spmla_i_f32_from_bits(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline float
spmla_i_bf16_to_f32(uint16_t h)
{
	return spmla_i_f32_from_bits((uint32_t)h << 16);
}

/* Round to nearest even; a NaN stays one (quieted, sign kept). */
static inline uint16_t
spmla_i_f32_to_bf16(float x)
{
	const uint32_t u = spmla_i_f32_bits(x);

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((u >> 16) | 0x40u);
	return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static inline float
spmla_i_round_bf16(float x)
{
	return spmla_i_bf16_to_f32(spmla_i_f32_to_bf16(x));
}

/* Exact. */
static inline float
spmla_i_fp16_to_f32(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	const uint32_t exponent = (h >> 10) & 31u;
	const uint32_t mantissa = h & 0x3ffu;

	if (exponent == 31)
		return spmla_i_f32_from_bits(sign | 0x7f800000u |
					     mantissa << 13);
	if (exponent == 0) {
		const float x = (float)mantissa * 0x1p-24f;

		return sign ? -x : x;
	}
	return spmla_i_f32_from_bits(sign | (exponent + 112u) << 23 |
				     mantissa << 13);
}

#endif
