/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants, and conversions by integers of 16-bit floats, e4m3 and
 * power-of-two scales. They give the bits of lib/internal/bf16.h and fp8.h.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_NUMBER_H
#define SPMLA_PLATFORM_GPU_DIALECT_NUMBER_H

/* Floats for which the dialect has no literal. */
#define G_INF       g_float(G_INF_BITS)
#define G_MINUS_INF g_float(0xff800000u)
#define G_NAN       g_float(G_NAN_BITS)
#define G_LOWEST    g_float(0xff7fffffu) /* -FLT_MAX */

#define G_LOG2_E 1.44269504088896341f
#define G_LN_2   0.693147180559945309f

FN float
g_bf16_to_f32(uint32_t h)
{
	return g_float(h << 16);
}

/* Round to nearest even; a NaN stays one (quieted, sign kept). */
FN uint32_t
g_f32_to_bf16(float x)
{
	const uint32_t u = g_bits(x);
#if defined(__HIP__) /* clang does not branch if both results are there */
	const uint32_t near = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;

	return (u & 0x7fffffffu) > G_INF_BITS ? (u >> 16) | 0x40u : near;
#else
	if ((u & 0x7fffffffu) > G_INF_BITS)
		return (u >> 16) | 0x40u;
	return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
#endif
}

/* The same, with one NaN: 0x7fc0. */
FN uint32_t
g_bf16_bits(float x)
{
	return x != x ? 0x7fc0u : g_f32_to_bf16(x);
}

FN float
g_round_bf16(float x)
{
	return g_bf16_to_f32(g_f32_to_bf16(x));
}

/* Two values, each rounded to nearest even. A NaN becomes some NaN. */
FN uint32_t
g_f32_to_bf16x2(float low, float high)
{
#if defined(__CUDACC__)
	uint32_t x;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
	return x;
#else
	return g_f32_to_bf16(low) | g_f32_to_bf16(high) << 16;
#endif
}

/* `pair` is what g_f32_to_bf16x2 made of `low` and `high`: makes each NaN in it
 * 0x7fc0. On CUDA a NaN in it is 0x7fff. As signed halves all other values are
 * below 0x7fc0, so the smaller of the two is right. From Hopper on that is one
 * instruction. */
FN uint32_t
g_bf16x2_one_nan(uint32_t pair, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	(void)low;
	(void)high;
	return __vmins2(pair, 0x7fc07fc0u);
#else
	pair = low != low ? (pair & 0xffff0000u) | 0x7fc0u : pair;
	return high != high ? (pair & 0xffffu) | G_NAN_BITS : pair;
#endif
}

/* g_f32_to_bf16x2 with one NaN. */
FN uint32_t
g_bf16x2_bits(float low, float high)
{
	return g_bf16x2_one_nan(g_f32_to_bf16x2(low, high), low, high);
}

/* The two values of a word. */
FN float
g_bf16x2_low(uint32_t pair)
{
	return g_float(pair << 16);
}

FN float
g_bf16x2_high(uint32_t pair)
{
	return g_float(pair & 0xffff0000u);
}

/* Exact; a NaN stays one. */
FN float
g_fp16_to_f32(uint32_t h)
{
#if defined(__CUDACC__)
	float x;

	asm("{.reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h;}"
	    : "=f"(x)
	    : "h"((uint16_t)h));
	return x;
#else
	const uint32_t sign = (h & 0x8000u) << 16;
	const uint32_t exponent = (h >> 10) & 31u;
	const uint32_t mantissa = h & 0x3ffu;

	if (exponent == 31)
		return g_float(sign | G_INF_BITS | mantissa << 13);
	if (exponent == 0) {
		const float x = (float)mantissa * 0x1p-24f;

		return g_float(sign | g_bits(x));
	}
	return g_float(sign | (exponent + 112u) << 23 | mantissa << 13);
#endif
}

/* Round to nearest even. A magnitude of 65520 or more, half a step above 65504,
 * becomes infinity; a NaN becomes 0x7fff. */
FN uint32_t
g_f32_to_f16(float x)
{
#if defined(__CUDACC__)
	uint16_t h;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
	return h;
#else
	const uint32_t u = g_bits(x);
	const uint32_t sign = (u >> 16) & 0x8000u;
	const uint32_t a = u & 0x7fffffffu;
	uint32_t code, shift, rest, half_way;

	if (a > G_INF_BITS)
		return 0x7fffu;
	if (a >= 0x477ff000u) /* 65520 */
		return sign | 0x7c00u;
	if (a < 0x33000000u) /* below 2^-25, the tie to zero */
		return sign;
	if (a >= 0x38800000u) { /* 2^-14: 10 bits of mantissa, another bias */
		code = (a >> 13) - (112u << 10);
		rest = a & 0x1fffu;
		half_way = 0x1000u;
	} else { /* a multiple of 2^-24 */
		shift = 126u - (a >> 23);
		code = ((a & 0x7fffffu) | 0x800000u) >> shift;
		rest = ((a & 0x7fffffu) | 0x800000u) & ((1u << shift) - 1u);
		half_way = 1u << (shift - 1u);
	}
	if (rest > half_way || (rest == half_way && (code & 1u)))
		code++; /* a carry into the exponent is right */
	return sign | code;
#endif
}

/* Two values, each rounded as by g_f32_to_f16. */
FN uint32_t
g_f32_to_f16x2(float low, float high)
{
#if defined(__CUDACC__)
	uint32_t x;

	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
	return x;
#else
	return g_f32_to_f16(low) | g_f32_to_f16(high) << 16;
#endif
}

FN float
g_abs(float x)
{
	return g_float(g_bits(x) & 0x7fffffffu);
}

/* Round to nearest even, saturate (infinity too), keep every sign; NaN is 0x7f
 * whatever its sign. Without branches. From 2^-6 on the code is the upper bits
 * of the float, with another bias. Below, it counts multiples of 2^-9: the last
 * bits of the sum with 2^14. */
FN uint32_t
g_f32_to_e4m3(float x)
{
	const uint32_t u = g_bits(x), sign = u >> 24 & 0x80u;
	const uint32_t all = u & 0x7fffffffu;
	const uint32_t a = all < 0x43e00000u ? all : 0x43e00000u; /* 448 */
	const uint32_t small = g_bits(g_float(a) + 0x1p14f) - 0x46800000u;
	const uint32_t large = ((a + 0x7ffffu + (a >> 20 & 1u)) >> 20) - 960u;

	return all > G_INF_BITS ? 0x7fu
				: sign | (a < 0x3c800000u ? small : large);
}

/* The codes of two values, as g_f32_to_e4m3 gives them. The instruction gives
 * the same for every float, NaN included. */
FN uint32_t
g_f32_to_e4m3x2(float low, float high)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
	uint16_t codes;

	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
	    : "=h"(codes)
	    : "f"(high), "f"(low));
	return codes;
#else
	return g_f32_to_e4m3(high) << 8 | g_f32_to_e4m3(low);
#endif
}

/* The same for four values, the first in the lowest bits. */
FN uint32_t
g_f32_to_e4m3x4(float a, float b, float c, float d)
{
	return g_f32_to_e4m3x2(a, b) | g_f32_to_e4m3x2(c, d) << 16;
}

/* Exact, and without branches: the bits of a code, taken as f32, are a value
 * 2^120 too small. That holds for subnormals, too. */
FN float
g_e4m3_to_f32(uint32_t code)
{
	const uint32_t a = code & 0x7fu;
	const uint32_t x = g_bits(g_float(a << 20) * 0x1p120f);

	return g_float((code & 0x80u) << 24 | (a == 0x7fu ? G_NAN_BITS : x));
}

/* The value of an FNUZ code, as spmla_e4m3 defines it: half of what the bits
 * are in e4m3fn. 0x7f is a number, too, and -0 is the only NaN. */
FN float
g_fnuz_to_f32(uint32_t code)
{
	const float x = g_float((code & 0x7fu) << 20) * 0x1p119f;

	return code == 0x80u ? G_NAN
			     : g_float((code & 0x80u) << 24 | g_bits(x));
}

/* Four e4m3fn codes, of values up to 448, as FNUZ codes of half the values. -0
 * becomes 0, and NaN becomes 0x80. */
FN uint32_t
g_e4m3x4_to_fnuz(uint32_t codes)
{
	const uint32_t a = codes & 0x7f7f7f7fu, top = 0x80808080u;
	const uint32_t nan = (a + 0x01010101u) & top;

	codes &= (a + 0x7f7f7f7fu) | ~top;
	return (codes & ~(nan | (nan - (nan >> 7)))) | nan;
}

/* The FNUZ codes of four values of any size, saturating at 240: e4m3fn's codes
 * of twice the values saturate at 224, so those that round to 240 get the last
 * bit. 232 is the tie. */
FN uint32_t
g_f32_to_fnuzx4(float a, float b, float c, float d)
{
	const uint32_t codes = g_e4m3x4_to_fnuz(
		g_f32_to_e4m3x4(2.0f * a, 2.0f * b, 2.0f * c, 2.0f * d));

	return codes | (g_abs(a) > 232.0f) |
	       (uint32_t)(g_abs(b) > 232.0f) << 8 |
	       (uint32_t)(g_abs(c) > 232.0f) << 16 |
	       (uint32_t)(g_abs(d) > 232.0f) << 24;
}

/* Whether one of four codes is NaN. */
FN uint32_t
g_e4m3_any_nan(uint32_t codes)
{
	return ((codes & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
}

/* Two codes, in the low 16 bits, as floats. Exact; a NaN has no sign. */
FN void
g_e4m3x2_to_f32(uint32_t codes, PRIVATE float *low, PRIVATE float *high)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
	asm("{.reg .b32 x; .reg .f16 l, h; cvt.rn.f16x2.e4m3x2 x, %2; "
	    "mov.b32 {l, h}, x; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
	    : "=f"(*low), "=f"(*high)
	    : "h"((uint16_t)codes));
#else
	const uint32_t l = codes & 0x7fu, h = codes >> 8 & 0x7fu;
	const float x = g_float(l << 20) * 0x1p120f;
	const float y = g_float(h << 20) * 0x1p120f;

	*low = g_float(l == 0x7fu ? G_NAN_BITS
				  : (codes & 0x80u) << 24 | g_bits(x));
	*high = g_float(h == 0x7fu ? G_NAN_BITS
				   : (codes & 0x8000u) << 16 | g_bits(y));
#endif
}

/* 2^(byte - 127), exact. Byte 0 gives a subnormal, 255 infinity. */
FN float
g_pow2(uint32_t byte)
{
	return g_float(byte ? byte << 23 : 0x400000u);
}

/* A ue8m0 scale, an exponent alone: 2^(byte - 127), but 255 is NaN. It does not
 * call g_pow2: if it did, nvcc would spill in sparse_decode's kernels for V4.
 */
FN float
g_ue8m0(uint32_t byte)
{
	if (byte == 255)
		return G_NAN;
	return g_float(byte ? byte << 23 : 0x400000u);
}

/* The smallest power of two that is at least s. s is normal and positive, or
 * infinite. */
FN float
g_pow2_up(float s)
{
	const uint32_t u = g_bits(s);

	if ((u & 0x7fffffu) == 0 || u >= G_INF_BITS)
		return s;
	return g_float((u & G_INF_BITS) + 0x800000u);
}

#endif
