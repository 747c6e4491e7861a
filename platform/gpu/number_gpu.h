/* SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit floats, e4m3 and power-of-two scales by integers, as kernels need
 * them. Their bits are those of lib/internal/bf16.h and fp8.h.
 */
#ifndef SPMLA_PLATFORM_GPU_NUMBER_H
#define SPMLA_PLATFORM_GPU_NUMBER_H

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

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (u >> 16) | 0x40u;
	return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

FN float
g_round_bf16(float x)
{
	return g_bf16_to_f32(g_f32_to_bf16(x));
}

/* Exact. */
FN float
g_fp16_to_f32(uint32_t h)
{
	const uint32_t sign = (h & 0x8000u) << 16;
	const uint32_t exponent = (h >> 10) & 31u;
	const uint32_t mantissa = h & 0x3ffu;

	if (exponent == 31)
		return g_float(sign | 0x7f800000u | mantissa << 13);
	if (exponent == 0) {
		const float x = (float)mantissa * 0x1p-24f;

		return g_float(sign | g_bits(x));
	}
	return g_float(sign | (exponent + 112u) << 23 | mantissa << 13);
}

/* A value of spmla_dtype BF16 or FP16. */
FN float
g_load16(uint32_t h, uint32_t dtype)
{
	return dtype == SPMLA_DTYPE_FP16 ? g_fp16_to_f32(h) : g_bf16_to_f32(h);
}

FN float
g_abs(float x)
{
	return g_float(g_bits(x) & 0x7fffffffu);
}

/* Round to nearest even, saturate (infinity too), keep every sign; NaN is 0x7f
 * whatever its sign. */
FN uint32_t
g_f32_to_e4m3(float x)
{
	const uint32_t u = g_bits(x);
	const uint32_t sign = (u >> 24) & 0x80u;
	const uint32_t a = u & 0x7fffffffu;
	uint32_t code, shift, rest, half_way;

	if (a > 0x7f800000u)
		return 0x7fu;
	if (a >= 0x43e00000u) /* 448 */
		return sign | 0x7eu;
	if (a < 0x3a800000u) /* below 2^-10, the tie to zero */
		return sign;
	if (a >= 0x3c800000u) { /* 2^-6: 3 bits of mantissa, another bias */
		code = (a >> 20) - (120u << 3);
		rest = a & 0xfffffu;
		half_way = 0x80000u;
	} else { /* a multiple of 2^-9 */
		shift = 141u - (a >> 23);
		code = ((a & 0x7fffffu) | 0x800000u) >> shift;
		rest = ((a & 0x7fffffu) | 0x800000u) & ((1u << shift) - 1u);
		half_way = 1u << (shift - 1u);
	}
	if (rest > half_way || (rest == half_way && (code & 1u)))
		code++;
	return sign | code;
}

/* Exact. */
FN float
g_e4m3_to_f32(uint32_t code)
{
	const uint32_t sign = (code & 0x80u) << 24;
	const uint32_t exponent = (code >> 3) & 15u;
	const uint32_t mantissa = code & 7u;

	if ((code & 0x7fu) == 0x7fu)
		return g_float(sign | 0x7fc00000u);
	if (exponent == 0) {
		const float x = (float)mantissa * 0x1p-9f;

		return g_float(sign | g_bits(x));
	}
	return g_float(sign | (exponent + 120u) << 23 | mantissa << 20);
}

/* The next power of two; s normal, positive or infinite. */
FN float
g_pow2_up(float s)
{
	const uint32_t u = g_bits(s);

	if ((u & 0x7fffffu) == 0 || u >= 0x7f800000u)
		return s;
	return g_float((u & 0x7f800000u) + 0x800000u);
}

#endif
