/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of e4m3 four at a time, for GPUs without instructions that convert them.
 * The hard idea: a code, shifted into a bf16, is its value but for a power of
 * two. So two codes of a word take one shift, and a scale brings the power of
 * two along. It does not hold for NaN.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_CODES_H
#define SPMLA_PLATFORM_GPU_DIALECT_CODES_H

#include "spmla/platform/gpu/dialect/dialect.h"

#ifdef SPMLA_GPU_KERNELS

/* The power of two by which shifted codes are too small. */
FN float
g_codes_power(uint32_t fnuz)
{
	return fnuz ? 0x1p119f : 0x1p120f;
}

/* The upper halves of two words: two floats, cut to bf16. */
FN uint32_t
g_upper_halves(uint32_t low, uint32_t high)
{
#if defined(__HIP__)
	return __builtin_amdgcn_perm(high, low, 0x07060302u);
#else
	return low >> 16 | (high & 0xffff0000u);
#endif
}

/* Two shifted codes times `scale`, as floats. Unless they are `exact`, their
 * upper halves are the products rounded to bf16; the lower halves are not 0. */
FN void
g_codes_two(uint32_t codes, float scale, const uint32_t exact,
	    PRIVATE uint32_t *low, PRIVATE uint32_t *high)
{
	*low = g_bits(g_bf16x2_low(codes) * scale);
	*high = g_bits(g_bf16x2_high(codes) * scale);
	if (!exact) {
		*low += 0x7fffu + (*low >> 16 & 1u);
		*high += 0x7fffu + (*high >> 16 & 1u);
	}
}

/* Four codes times `scale`, which has their power of two, as two words of bf16.
 * `exact`: a constant; the products are bf16 numbers. */
FN void
g_codes_to_bf16x4(uint32_t codes, float scale, const uint32_t exact,
		  PRIVATE uint32_t *x)
{
	const uint32_t even =
		(codes << 8 & 0x80008000u) | (codes << 4 & 0x07f007f0u);
	const uint32_t odd = (codes & 0x80008000u) | (codes >> 4 & 0x07f007f0u);
	uint32_t a, b, c, d;

	g_codes_two(even, scale, exact, &a, &c);
	g_codes_two(odd, scale, exact, &b, &d);
	x[0] = g_upper_halves(a, b);
	x[1] = g_upper_halves(c, d);
}

/* Not 0 if one of the codes in n words is NaN. */
FN uint32_t
g_codes_any_nan(const PRIVATE uint32_t *codes, uint32_t n, uint32_t fnuz)
{
	uint32_t any = 0, i;

	if (fnuz) { /* -0: the lower bits are 0, the sign is not */
		UNROLL
		for (i = 0; i < n; i++)
			any |= codes[i] &
			       ~((codes[i] & 0x7f7f7f7fu) + 0x7f7f7f7fu);
	} else {
		UNROLL
		for (i = 0; i < n; i++)
			any |= (codes[i] & 0x7f7f7f7fu) + 0x01010101u;
	}
	return any & 0x80808080u;
}

#endif
#endif
