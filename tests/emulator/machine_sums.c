/* SPDX-License-Identifier: Apache-2.0
 *
 * See machine_sums.h.
 */
#include "tests/emulator/machine_sums.h"

#include <immintrin.h>
#include <string.h>

enum { CUT_STEPS = 32 };

/* Columns that are computed at once. */
typedef float four __attribute__((vector_size(16)));
typedef int32_t four_bits __attribute__((vector_size(16)));

static const int32_t infinity_bits = 0x7f800000, nan_bits = 0x7fc00000;

static four
load(const float *from)
{
	four x;

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

void
machine_add(float *sums, const float *a, const float *b, uint32_t stride,
	    uint32_t columns, uint32_t steps)
{
	uint32_t j, k;

	for (j = 0; j < columns; j += 4) {
		four sum = {0.0f};

		for (k = 0; k < steps; k++)
			sum += a[k] * load(b + k * stride + j);
		memcpy(sums + j, &sum, sizeof sum);
	}
}

/* The powers of two of exponents; of 0: 0. */
static four
powers_of(four x)
{
	return (four)((four_bits)x & infinity_bits);
}

static four_bits
choose(four_bits where, four_bits this, four_bits other)
{
	return (where & this) | (~where & other);
}

/* Products, and the sum so far, are cut, toward zero, 13 bits below the largest
 * exponent (a product's exponent is the sum of its factors'). They are added
 * exactly, and the result is cut to 14 bits. Found by trial, not documented. */
static four
add_cut(four sum, const float *a, const float *b, uint32_t stride)
{
	four most, per;
	four_bits is_nan, is_zero, total;
	uint32_t k;

	sum += 0.0f; /* no -0 */
	is_nan = sum != sum;
	most = powers_of(sum);
	for (k = 0; k < CUT_STEPS; k++) {
		const four x = load(b + k * stride), y = a[k] - (four){0.0f};
		const four power = powers_of(y) * powers_of(x);

		is_nan |= (x != x) | (y != y);
		most = (four)choose(power > most, (four_bits)power,
				    (four_bits)most);
	}
	is_zero = most == 0.0f;
	per = 0x1p13f / most;
	total = __builtin_convertvector(sum * per, four_bits);
	for (k = 0; k < CUT_STEPS; k++)
		total += __builtin_convertvector(
			a[k] * load(b + k * stride) * per, four_bits);
	total = (four_bits)(__builtin_convertvector(total, four) / per) &
		~0x3ff;
	total = choose(is_zero, (four_bits)sum, total);
	return (four)choose(is_nan, nan_bits - (four_bits){0}, total);
}

void
machine_add_cut(float *sums, const float *a, const float *b, uint32_t stride,
		uint32_t columns)
{
	uint32_t j;

	for (j = 0; j < columns; j += 4) {
		const four sum = add_cut(load(sums + j), a, b + j, stride);

		memcpy(sums + j, &sum, sizeof sum);
	}
}
