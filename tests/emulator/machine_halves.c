/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions for two f16 in a word, by the processor's own conversions. Each
 * result is rounded once; a NaN becomes 0x7fff, as g_f32_to_f16 makes it.
 */
#define SPMLA_GPU_KERNELS 1
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/mma.h"

#include <immintrin.h>

static __m128
values_of(uint32_t pair)
{
	return _mm_cvtph_ps(_mm_cvtsi32_si128((int)pair));
}

static uint32_t
pair_of(__m128 x)
{
	const __m128i is_nan = _mm_castps_si128(_mm_cmpunord_ps(x, x));
	const __m128i halves = _mm_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
	const __m128i words = _mm_blendv_epi8(halves, _mm_set1_epi16(0x7fff),
					      _mm_packs_epi32(is_nan, is_nan));

	return (uint32_t)_mm_cvtsi128_si32(words);
}

/* Products are exact in f32. */
uint32_t
spmla_i_emu_mul_f16x2(uint32_t a, uint32_t b)
{
	return pair_of(_mm_mul_ps(values_of(a), values_of(b)));
}

/* Products are exact in f64, and so is the sum, or what it lacks is too little
 * to matter: f64 has 53 bits, a product 22. Where the sum is inexact in f32, its
 * last bit there becomes 1 (it is rounded to odd). So the rounding to f16 is the
 * only one that counts. */
uint32_t
spmla_i_emu_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
	const __m128i lost = _mm_set1_epi64x((1 << 29) - 1);
	const __m128d product = _mm_mul_pd(_mm_cvtps_pd(values_of(a)),
					   _mm_cvtps_pd(values_of(b)));
	const __m128i sum = _mm_castpd_si128(
		_mm_add_pd(product, _mm_cvtps_pd(values_of(c))));
	const __m128i exact =
		_mm_cmpeq_epi64(_mm_and_si128(sum, lost), _mm_setzero_si128());
	const __m128i odd =
		_mm_andnot_si128(exact, _mm_set1_epi64x((int64_t)1 << 29));

	return pair_of(_mm_cvtpd_ps(_mm_castsi128_pd(
		_mm_or_si128(_mm_andnot_si128(lost, sum), odd))));
}
