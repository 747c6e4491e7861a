/* SPDX-License-Identifier: Apache-2.0
 *
 * OCP E4M3FN and power-of-two scales by integers: bias 7, largest 448 (0x7e),
 * NaN 0x7f, no infinity, smallest normal 2^-6, subnormals in steps of 2^-9.
 */
#ifndef SPMLA_INTERNAL_FP8_H
#define SPMLA_INTERNAL_FP8_H

#include "spmla/internal/bf16.h"

/* Round to nearest even, saturate (infinity too), keep NaN and every sign. */
static inline uint8_t
spmla_i_f32_to_e4m3(float x)
{
	const uint32_t u = spmla_i_f32_bits(x);
	const uint32_t sign = (u >> 24) & 0x80u;
	const uint32_t a = u & 0x7fffffffu;
	uint32_t code, shift, rest, half;

	if (a > 0x7f800000u)
		return (uint8_t)(sign | 0x7fu);
	if (a >= 0x43e00000u) /* 448 */
		return (uint8_t)(sign | 0x7eu);
	if (a < 0x3a800000u) /* below 2^-10, which is a tie to zero */
		return (uint8_t)sign;
	if (a >= 0x3c800000u) { /* 2^-6: keep 3 bits of mantissa, rebias */
		code = (a >> 20) - (120u << 3);
		rest = a & 0xfffffu;
		half = 0x80000u;
	} else { /* a multiple of 2^-9: shift the 24-bit significand */
		shift = 141u - (a >> 23);
		code = ((a & 0x7fffffu) | 0x800000u) >> shift;
		rest = ((a & 0x7fffffu) | 0x800000u) & ((1u << shift) - 1u);
		half = 1u << (shift - 1u);
	}
	if (rest > half || (rest == half && (code & 1u)))
		code++;
	return (uint8_t)(sign | code);
}

/* Exact. */
static inline float
spmla_i_e4m3_to_f32(uint8_t code)
{
	const uint32_t sign = (uint32_t)(code & 0x80u) << 24;
	const uint32_t exponent = (code >> 3) & 15u;
	const uint32_t mantissa = code & 7u;

	if ((code & 0x7fu) == 0x7fu)
		return spmla_i_f32_from_bits(sign | 0x7fc00000u);
	if (exponent == 0) {
		const float x = (float)mantissa * 0x1p-9f;

		return sign ? -x : x;
	}
	return spmla_i_f32_from_bits(sign | (exponent + 120u) << 23 |
				     mantissa << 20);
}

/* The same in FNUZ: half the value of a code, but that 0x80 is NaN, and 0x7f
 * and 0xff are 240. Saturates there; -0 is 0. */
static inline uint8_t
spmla_i_f32_to_fnuz(float x)
{
	const uint32_t sign = (spmla_i_f32_bits(x) >> 24) & 0x80u;
	const float y = 2.0f * x;
	uint8_t code;

	if (x != x)
		return 0x80u;
	if (y > 464.0f || y < -464.0f) /* 464 is the tie of 448 and 480 */
		return (uint8_t)(sign | 0x7fu);
	code = spmla_i_f32_to_e4m3(y);
	return code == 0x80u ? 0 : code;
}

static inline float
spmla_i_fnuz_to_f32(uint8_t code)
{
	if (code == 0x80u)
		return spmla_i_f32_from_bits(0x7fc00000u);
	if ((code & 0x7fu) == 0x7fu)
		return code & 0x80u ? -240.0f : 240.0f;
	return 0.5f * spmla_i_e4m3_to_f32(code);
}

/* The next power of two; s normal, positive or infinite. */
static inline float
spmla_i_pow2_up(float s)
{
	const uint32_t u = spmla_i_f32_bits(s);

	if ((u & 0x7fffffu) == 0 || u >= 0x7f800000u)
		return s;
	return spmla_i_f32_from_bits((u & 0x7f800000u) + 0x800000u);
}

#endif
