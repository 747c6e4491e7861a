/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4 by integers and comparisons: e2m1 (0, .5, 1, 1.5, 2, 3, 4, 6 and a sign
 * bit) in groups of 32 with one power-of-two scale, a byte that is its exponent
 * + 127. The hard idea is the ends of the range: e2m1 has no NaN and no
 * infinity, and the scale's byte stays below 255, which would be NaN.
 */
#ifndef SPMLA_INTERNAL_MXFP4_H
#define SPMLA_INTERNAL_MXFP4_H

#include "spmla/internal/bf16.h"

enum { SPMLA_I_MXFP4_VALUES = 32 }; /* of a group: one scale */

/* Rounds to nearest, a tie to the even code, saturates at 6 (infinity too) and
 * keeps every sign. NaN is 7 whatever its sign, as in the hardware's
 * conversion. */
static inline uint8_t
spmla_i_f32_to_e2m1(float x)
{
	const uint32_t u = spmla_i_f32_bits(x);
	const float a = spmla_i_f32_from_bits(u & 0x7fffffffu);
	uint32_t code;

	if (x != x)
		return 7;
	code = (uint32_t)(a > 0.25f) + (uint32_t)(a >= 0.75f) +
	       (uint32_t)(a > 1.25f) + (uint32_t)(a >= 1.75f) +
	       (uint32_t)(a > 2.5f) + (uint32_t)(a >= 3.5f) +
	       (uint32_t)(a > 5.0f);
	return (uint8_t)(code | (u >> 31) << 3);
}

/* Exact. */
static inline float
spmla_i_e2m1_to_f32(uint8_t code)
{
	const uint32_t exponent = (code >> 1) & 3u;
	const uint32_t half = code & 1u;
	const uint32_t sign = (uint32_t)(code & 8u) << 28;

	if (exponent == 0)
		return spmla_i_f32_from_bits(sign | (half ? 0x3f000000u : 0u));
	return spmla_i_f32_from_bits(sign | (exponent + 126u) << 23 |
				     half << 22);
}

/* The byte of the scale of a group whose largest |x| is amax (>= 0, no NaN):
 * the exponent of max(amax, 6 * 2^-126) / 6, rounded up, at most 127, + 127. */
static inline uint8_t
spmla_i_mxfp4_scale(float amax)
{
	const float least = 6.0f * 0x1p-126f;
	const uint32_t u =
		spmla_i_f32_bits((amax > least ? amax : least) / 6.0f);
	const uint32_t up = (u >> 23) + ((u & 0x7fffffu) != 0);

	return (uint8_t)(up < 254 ? up : 254);
}

/* 2^(byte - 127), exact; bytes 0 and 255 are those exponents too. */
static inline float
spmla_i_mxfp4_scale_value(uint8_t byte)
{
	if (byte == 0)
		return 0x1p-127f;
	return spmla_i_f32_from_bits((uint32_t)byte << 23);
}

/* 2^(127 - byte), the factor that divides a value by its scale; byte < 255. */
static inline float
spmla_i_mxfp4_inverse(uint8_t byte)
{
	if (byte == 254)
		return 0x1p-127f;
	return spmla_i_f32_from_bits((254u - byte) << 23);
}

/* Writes the 32 values of a group as 16 bytes, the even one of a pair in the
 * low half. Returns the scale's byte, which ignores NaN. */
static inline uint8_t
spmla_i_mxfp4_encode(uint8_t *packed, const float *x)
{
	float amax = 0.0f, inverse;
	uint8_t byte;
	uint32_t i;

	for (i = 0; i < SPMLA_I_MXFP4_VALUES; i++) {
		const float a = x[i] < 0.0f ? -x[i] : x[i];

		if (a > amax)
			amax = a;
	}
	byte = spmla_i_mxfp4_scale(amax);
	inverse = spmla_i_mxfp4_inverse(byte);
	for (i = 0; i < SPMLA_I_MXFP4_VALUES / 2; i++) {
		const uint8_t low = spmla_i_f32_to_e2m1(x[2 * i] * inverse);
		const uint8_t high =
			spmla_i_f32_to_e2m1(x[2 * i + 1] * inverse);

		packed[i] = (uint8_t)(low | high << 4);
	}
	return byte;
}

#endif
