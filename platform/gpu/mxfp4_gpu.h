/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4 in the dialect, bit for bit as internal/mxfp4.h: e2m1 values in groups
 * of 32 with one power-of-two scale, whose byte is its exponent + 127.
 */
#ifndef SPMLA_PLATFORM_GPU_MXFP4_H
#define SPMLA_PLATFORM_GPU_MXFP4_H

#include "spmla/platform/gpu/dialect_gpu.h"

#ifdef SPMLA_GPU_KERNELS

/* Round to nearest, of two equally near the even code, saturate at 6, keep
 * every sign; NaN is 7 whatever its sign. */
FN uint32_t
g_f32_to_e2m1(float x)
{
	const uint32_t u = g_bits(x);
	const float a = g_float(u & 0x7fffffffu);
	uint32_t code;

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return 7;
	code = (a > 0.25f ? 1u : 0u) + (a >= 0.75f ? 1u : 0u) +
	       (a > 1.25f ? 1u : 0u) + (a >= 1.75f ? 1u : 0u) +
	       (a > 2.5f ? 1u : 0u) + (a >= 3.5f ? 1u : 0u) +
	       (a > 5.0f ? 1u : 0u);
	return code | (u >> 31) << 3;
}

/* The byte of the scale of a group whose largest |x| is amax (>= 0, no NaN):
 * the exponent of max(amax, 6 * 2^-126) / 6, rounded up, at most 127, + 127. By
 * the exponent of amax, as 6 is 1.5 * 2^2, and 254 for infinity. */
FN uint32_t
g_mxfp4_scale(float amax)
{
	const float least = 6.0f * 0x1p-126f;
	const uint32_t u = g_bits(amax > least ? amax : least);

	return u >= 0x7f800000u ? 254u : ((u + 0x3fffffu) >> 23) - 2;
}

/* Exact. */
FN float
g_e2m1_to_f32(uint32_t code)
{
	const uint32_t exponent = (code >> 1) & 3u;
	const uint32_t half_step = code & 1u;
	const uint32_t sign = (code & 8u) << 28;

	if (exponent == 0)
		return g_float(sign | (half_step ? 0x3f000000u : 0u));
	return g_float(sign | (exponent + 126u) << 23 | half_step << 22);
}

/* 2^(byte - 127): exact, byte 0 and 255 as those exponents say. */
FN float
g_mxfp4_scale_value(uint32_t byte)
{
	return g_float(byte ? byte << 23 : 0x400000u);
}

/* 2^(127 - byte), by which a value is divided by its scale; byte < 255. */
FN float
g_mxfp4_inverse(uint32_t byte)
{
	return g_float(byte == 254 ? 0x400000u : (254u - byte) << 23);
}

#endif
#endif
