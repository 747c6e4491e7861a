/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4 in the dialect, bit for bit as in internal/mxfp4.h: e2m1 values in
 * groups of 32 that share a power-of-two scale. The byte of a scale is its
 * exponent + 127.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_MXFP4_H
#define SPMLA_PLATFORM_GPU_DIALECT_MXFP4_H

#include "spmla/platform/gpu/dialect/dialect.h"

#ifdef SPMLA_GPU_KERNELS

/* The bits of 1.5 * 2^23 + the code of v = a * inverse. a >= 0; inverse is 1 or
 * comes from g_mxfp4_inverse, and is at least 2^-127. The code is RN(2 v) up to
 * v = 2, then 2 + RN(v) up to 4, then 4 + RN(v / 2). It is always the smallest
 * of the three. A tie goes to the even code, so each of the three is one fma
 * that rounds to a whole number. As bits, infinity and NaN are above all others
 * and become 7. */
FN uint32_t
g_e2m1_code(float a, float inverse)
{
	const float fine = g_fma(a, 2.0f * inverse, 0x1.8p23f);
	const float middle = g_fma(a, inverse, 0x1.8p23f + 2.0f);
	const float coarse = g_fma(a, 0.5f * inverse, 0x1.8p23f + 4.0f);
	uint32_t code = g_bits(fine);

	code = code < g_bits(middle) ? code : g_bits(middle);
	code = code < g_bits(coarse) ? code : g_bits(coarse);
	return code < 0x4b400007u ? code : 0x4b400007u;
}

/* Round to nearest, ties to the even code, saturate at 6, keep every sign. NaN
 * is 7 whatever its sign. */
FN uint32_t
g_f32_to_e2m1(float x)
{
	const uint32_t u = g_bits(x), a = u & 0x7fffffffu;
	const uint32_t code = g_e2m1_code(g_float(a), 1.0f) & 7u;

	return a > G_INF_BITS ? code : code | (u >> 31) << 3;
}

/* The codes of eight bf16 values, in four words, times `inverse`. The first
 * code is in the lowest four bits. */
FN uint32_t
g_mxfp4_codes8(const PRIVATE uint32_t *w, float inverse)
{
	/* Takes away eight times 1.5 * 2^23, each shifted like its code. */
	uint32_t codes = 0u - 0x3f400000u, signs[4], even, odd, i;

	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t a = w[i] & 0x7fff7fffu;
		const uint32_t nan = a + 0x007f007fu; /* its top bits */

		codes += g_e2m1_code(g_float(a << 16), inverse) << 8 * i;
		codes += g_e2m1_code(g_float(a & 0xffff0000u), inverse)
			 << (8 * i + 4);
		signs[i] = w[i] & ~nan & 0x80008000u;
	}
	signs[0] = signs[0] >> 8 | signs[1];
	signs[2] = signs[2] >> 8 | signs[3];
	even = (signs[0] & 0xffffu) | signs[2] << 16;
	odd = signs[0] >> 16 | (signs[2] & 0xffff0000u);
	return codes | even >> 4 | odd;
}

/* The byte of the scale of a group whose largest |x| is amax (>= 0, no NaN):
 * 127 + the exponent of max(amax, 6 * 2^-126) / 6, rounded up, at most 127. It
 * follows from the exponent of amax, as 6 is 1.5 * 2^2. Infinity gives 254. */
FN uint32_t
g_mxfp4_scale(float amax)
{
	const float least = 6.0f * 0x1p-126f;
	const uint32_t u = g_bits(amax > least ? amax : least);

	return u >= G_INF_BITS ? 254u : ((u + 0x3fffffu) >> 23) - 2;
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

/* 2^(127 - byte), by which a value is divided by its scale; byte < 255. */
FN float
g_mxfp4_inverse(uint32_t byte)
{
	return g_float(byte == 254 ? 0x400000u : (254u - byte) << 23);
}

#endif
#endif
