/* SPDX-License-Identifier: Apache-2.0
 *
 * What the writers of e4m3 rows share. The hard idea: 16 lanes hold 128 values
 * in registers, eight each. So the largest value or a sum takes four shuffles
 * on a subgroup of any width, a block of 128 threads does eight rows at a time,
 * and nothing waits at a barrier.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_ROW_DEVICE_H
#define SPMLA_PLATFORM_GPU_CACHE_ROW_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

/* Where in a cache a slot is, if it is inside. */
typedef struct g_place {
	uint64_t page;
	uint64_t entry; /* of the page */
	uint32_t inside;
} g_place;

enum {
	G_ROW = 128,
	G_ROW_ROPE = 64,
	G_ROW_LANES = 16,
	G_ROW_EACH = G_ROW / G_ROW_LANES, /* values of a lane */
	G_ROW_GROUPS = 8 /* of 16 lanes in a block of 128 threads */
};

#ifdef SPMLA_GPU_KERNELS

/* The place of a slot; a slot below 0 is not inside. */
FN g_place
g_place_of(int64_t slot, uint32_t page_entries, uint32_t pages)
{
	g_place p;

	p.page = (uint64_t)slot / page_entries;
	p.entry = (uint64_t)slot - p.page * page_entries;
	p.inside = slot >= 0 && p.page < pages;
	return p;
}

/* Loads four 16-bit values as two words; `wide`: p is a multiple of 8 bytes. */
FN void
g_row_load4(GLOBAL const uint16_t *p, uint32_t wide, PRIVATE uint32_t *w)
{
	if (wide) {
		const uint64_t x = *(GLOBAL const uint64_t *)p;

		w[0] = (uint32_t)x;
		w[1] = (uint32_t)(x >> 32);
		return;
	}
	w[0] = (uint32_t)p[1] << 16 | p[0];
	w[1] = (uint32_t)p[3] << 16 | p[2];
}

/* Loads eight of them as four words; `wide`: p is a multiple of 16 bytes. */
FN void
g_row_load8(GLOBAL const uint16_t *p, uint32_t wide, PRIVATE uint32_t *w)
{
	if (wide) {
		g_load4((GLOBAL const float *)p, w);
		return;
	}
	g_row_load4(p, 0, w);
	g_row_load4(p + 4, 0, w + 2);
}

FN void
g_row_store8(GLOBAL uint16_t *p, uint32_t wide, const PRIVATE uint32_t *w)
{
	uint32_t i;

	if (wide) {
		g_store4(p, w);
		return;
	}
	UNROLL
	for (i = 0; i < 4; i++) {
		p[2 * i] = (uint16_t)w[i];
		p[2 * i + 1] = (uint16_t)(w[i] >> 16);
	}
}

/* The two values of a word of bf16, or of fp16. */
FN void
g_row_values(uint32_t word, uint32_t dtype, PRIVATE float *x)
{
	if (dtype == SPMLA_DTYPE_FP16) {
		x[0] = g_fp16_to_f32(word & 0xffffu);
		x[1] = g_fp16_to_f32(word >> 16);
		return;
	}
	x[0] = g_bf16x2_low(word);
	x[1] = g_bf16x2_high(word);
}

/* The largest of `least` and the |x| of 16 lanes; a NaN is ignored. All threads
 * of the subgroup call it. */
FN float
g_row_amax(const PRIVATE float *x, float least)
{
	float a = least;
	uint32_t i, mask;

	UNROLL
	for (i = 0; i < G_ROW_EACH; i++)
		a = g_larger(a, g_abs(x[i]));
	UNROLL
	for (mask = G_ROW_LANES / 2; mask; mask >>= 1)
		a = g_larger(a, g_shuffle_xor_f(a, mask));
	return a;
}

/* The same for bf16 values: each of `lanes` lanes has `words` words of them. */
FN float
g_row_amax_bf16(const PRIVATE uint32_t *w, const uint32_t words,
		const uint32_t lanes, float least)
{
	float a = least;
	uint32_t i, mask;

	UNROLL
	for (i = 0; i < words; i++) {
		a = g_larger(a, g_abs(g_bf16x2_low(w[i])));
		a = g_larger(a, g_abs(g_bf16x2_high(w[i])));
	}
	UNROLL
	for (mask = lanes / 2; mask; mask >>= 1)
		a = g_larger(a, g_shuffle_xor_f(a, mask));
	return a;
}

/* pow2up(amax / 448). 448 is 1.75 * 2^8, so for amax = m * 2^e it is 2^(e - 8),
 * or 2^(e - 7) if m > 1.75. amax is at least 2^-100; it may be infinite. */
FN float
g_row_pow2(float amax)
{
	const uint32_t u = g_bits(amax);

	if (u >= G_INF_BITS)
		return amax;
	return g_float(((u + 0x1fffffu) & G_INF_BITS) - (8u << 23));
}

/* What a lane's eight values are divided by. */
typedef struct g_row_divisor {
	float inverse;
	float scale; /* RAW: times `shift`; 0 if it is infinite */
	float shift; /* keeps remainders from being subnormal */
} g_row_divisor;

FN g_row_divisor
g_row_divisor_of(float scale, uint32_t raw)
{
	const uint32_t u = g_bits(scale);
	g_row_divisor d;

	d.shift = scale < 0x1p-60f ? 0x1p64f : 1.0f;
	d.scale = u >= G_INF_BITS ? 0.0f : scale * d.shift;
	if (u >= G_INF_BITS)
		d.inverse = 0.0f;
	else if (raw)
		d.inverse = g_div_rn(1.0f, d.scale);
	else
		d.inverse = g_float((254u << 23) - u);
	return d;
}

/* The divisor for half of the scale. Half of the scale by itself may be
 * subnormal, and lose a bit; here it has the shift. */
FN g_row_divisor
g_row_half(g_row_divisor d)
{
	d.scale *= 0.5f;
	d.inverse *= 2.0f;
	return d;
}

/* x / scale of a RAW scale, for |x| up to about 448 * scale, correctly rounded.
 * If the e4m3 code of the result is 0, only its sign need be right. The product
 * with the inverse is up to two ulp off; one remainder step leaves one ulp and
 * the next none, as the inverse is correctly rounded (Markstein). Divided by
 * infinity, finite values are zeros and others NaN. */
FN float
g_row_quotient(float x, const PRIVATE g_row_divisor *d)
{
	const float y = x * d->shift;
	float q = y * d->inverse;

	q = g_fma(g_fma(-q, d->scale, y), d->inverse, q);
	q = g_fma(g_fma(-q, d->scale, y), d->inverse, q);
	return g_float((g_bits(q) & 0x7fffffffu) | (g_bits(x) & 0x80000000u));
}

/* Divides each of `groups` groups of the lane's values by its scale. For a
 * power of two the product with the inverse is exact. All divisors are RAW, or
 * none: one branch, so that the code is there once, and the groups are side by
 * side in it. */
FN void
g_row_divide(PRIVATE float *x, const PRIVATE g_row_divisor *d,
	     const uint32_t groups, uint32_t raw)
{
	uint32_t g, i;

	if (raw) {
		UNROLL
		for (g = 0; g < groups; g++) {
			UNROLL
			for (i = 0; i < G_ROW_EACH; i++)
				x[G_ROW_EACH * g + i] = g_row_quotient(
					x[G_ROW_EACH * g + i], &d[g]);
		}
		return;
	}
	UNROLL
	for (g = 0; g < groups; g++) {
		UNROLL
		for (i = 0; i < G_ROW_EACH; i++)
			x[G_ROW_EACH * g + i] *= d[g].inverse;
	}
}

/* The e4m3 codes of four values. */
FN uint32_t
g_row_codes4(const PRIVATE float *x)
{
	return g_f32_to_e4m3x4(x[0], x[1], x[2], x[3]);
}

#endif
#endif
