/* SPDX-License-Identifier: Apache-2.0
 *
 * See machine_sums.h.
 */
#include "tests/emulator/machine_sums.h"

#include <immintrin.h>
#include <string.h>

enum { CUT_STEPS = 32 };

/* Columns that are computed at once. */
typedef float eight __attribute__((vector_size(32)));
typedef int32_t eight_bits __attribute__((vector_size(32)));

static const int32_t infinity_bits = 0x7f800000, nan_bits = 0x7fc00000;

static eight
load(const float *from)
{
	eight x;

	memcpy(&x, from, sizeof x);
	return x;
}

void
machine_values(float *to, const void *from, uint32_t is_bf16)
{
	const __m128i halves = _mm_loadu_si128(from);
	const __m128i zero = _mm_setzero_si128();
	const __m128i low = _mm_unpacklo_epi16(zero, halves);
	const __m128i high = _mm_unpackhi_epi16(zero, halves);

	if (is_bf16) {
		_mm_storeu_ps(to, _mm_castsi128_ps(low));
		_mm_storeu_ps(to + 4, _mm_castsi128_ps(high));
	} else {
		_mm256_storeu_ps(to, _mm256_cvtph_ps(halves));
	}
}

/* Eight columns of four rows: one sum alone would wait for each addition. */
static void
add_four(float *sums, const float *a, uint32_t a_stride, const float *b,
	 uint32_t stride, uint32_t steps)
{
	eight sum[4] = {{0.0f}, {0.0f}, {0.0f}, {0.0f}};
	uint32_t i, k;

	for (k = 0; k < steps; k++) {
		const eight x = load(b + k * stride);

		sum[0] += a[k] * x;
		sum[1] += a[a_stride + k] * x;
		sum[2] += a[2 * a_stride + k] * x;
		sum[3] += a[3 * a_stride + k] * x;
	}
	for (i = 0; i < 4; i++)
		memcpy(sums + i * stride, &sum[i], sizeof sum[i]);
}

void
machine_add(float *sums, const float *a, uint32_t a_stride, uint32_t rows,
	    const float *b, uint32_t stride, uint32_t columns, uint32_t steps)
{
	uint32_t j, r;

	for (r = 0; r < rows; r += 4)
		for (j = 0; j < columns; j += 8)
			add_four(sums + r * stride + j, a + r * a_stride,
				 a_stride, b + j, stride, steps);
}

/* The powers of two of exponents; of 0: 0. */
static eight
powers_of(eight x)
{
	return (eight)((eight_bits)x & infinity_bits);
}

static eight_bits
choose(eight_bits where, eight_bits this, eight_bits other)
{
	return (where & this) | (~where & other);
}

/* Products, and the sum so far, are cut, toward zero, 13 bits below the largest
 * exponent (a product's exponent is the sum of its factors'). They are added
 * exactly, and the result is cut to 14 bits. Found by trial, not documented. */
static eight
add_cut(eight sum, const float *a, const float *b, uint32_t stride)
{
	eight most, per;
	eight_bits is_nan, is_zero, total;
	uint32_t k;

	sum += 0.0f; /* no -0 */
	is_nan = sum != sum;
	most = powers_of(sum);
	for (k = 0; k < CUT_STEPS; k++) {
		const eight x = load(b + k * stride), y = a[k] - (eight){0.0f};
		const eight power = powers_of(y) * powers_of(x);

		is_nan |= (x != x) | (y != y);
		most = (eight)choose(power > most, (eight_bits)power,
				     (eight_bits)most);
	}
	is_zero = most == 0.0f;
	per = 0x1p13f / most;
	total = __builtin_convertvector(sum * per, eight_bits);
	for (k = 0; k < CUT_STEPS; k++)
		total += __builtin_convertvector(
			a[k] * load(b + k * stride) * per, eight_bits);
	total = (eight_bits)(__builtin_convertvector(total, eight) / per) &
		~0x3ff;
	total = choose(is_zero, (eight_bits)sum, total);
	return (eight)choose(is_nan, nan_bits - (eight_bits){0}, total);
}

void
machine_add_cut(float *sums, const float *a, const float *b, uint32_t stride,
		uint32_t columns)
{
	uint32_t j;

	for (j = 0; j < columns; j += 8) {
		const eight sum = add_cut(load(sums + j), a, b + j, stride);

		memcpy(sums + j, &sum, sizeof sum);
	}
}
