/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight f32 at a time: the vocabulary of vector_kernels.h, in AVX2 with FMA. No
 * build flag says that the machine has it, so each function carries its target.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_VEC_AVX2_H
#define SPMLA_PLATFORM_CPU_CORE_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum {
	LANES = 8,
	SCORE_VECS = 2,  /* vectors of heads in a tile of scores */
	DOT_HEADS = 2,   /* heads of a tile of q . k */
	VALUE_HEADS = 4, /* heads and vectors of a tile of p * v */
	VALUE_VECS = 2,
	PROJECT_ROWS = 6, /* of a tile of a projection, */
	PROJECT_SUMS = 12 /* and vectors of sums in registers */
};

/* The numbers of rows that a projection's tile may have. */
#define PROJECT_TILES(X) X(1) X(2) X(3) X(4) X(5) X(6)

typedef __m256 vec;
typedef __m256i ivec; /* 32-bit words */

INLINE vec
vec_set(float x)
{
	return _mm256_set1_ps(x);
}

INLINE vec
vec_load(const float *x)
{
	return _mm256_loadu_ps(x);
}

INLINE void
vec_store(float *to, vec x)
{
	_mm256_storeu_ps(to, x);
}

INLINE vec
vec_add(vec a, vec b)
{
	return _mm256_add_ps(a, b);
}

INLINE vec
vec_sub(vec a, vec b)
{
	return _mm256_sub_ps(a, b);
}

INLINE vec
vec_mul(vec a, vec b)
{
	return _mm256_mul_ps(a, b);
}

INLINE vec
vec_div(vec a, vec b)
{
	return _mm256_div_ps(a, b);
}

/* a * b + c, rounded once. */
INLINE vec
vec_fma(vec a, vec b, vec c)
{
	return _mm256_fmadd_ps(a, b, c);
}

/* The larger; b where either is NaN. */
INLINE vec
vec_max(vec a, vec b)
{
	return _mm256_max_ps(a, b);
}

/* `then` where a lane of mask is set, else x. */
INLINE __m256i
vec_choose(__m256i x, __m256i then, __m256i mask)
{
	return _mm256_blendv_epi8(x, then, mask);
}

/* e4m3 to f32, exact, by the steps of spmla_i_e4m3_to_f32: where the exponent
 * is 0, compute 2^-6 * (1 + m / 8) and subtract 2^-6. One code per word. */
INLINE vec
vec_e4m3(ivec code)
{
	const __m256i rest = _mm256_and_si256(code, _mm256_set1_epi32(0x7f));
	const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), rest);
	const __m256i nan = _mm256_cmpeq_epi32(rest, _mm256_set1_epi32(0x7f));
	const __m256i bits = _mm256_add_epi32(_mm256_slli_epi32(rest, 20),
					      _mm256_set1_epi32(120 << 23));
	const vec x = _mm256_castsi256_ps(bits);
	const vec low =
		_mm256_sub_ps(_mm256_add_ps(x, x), _mm256_set1_ps(0x1p-6f));
	const __m256i value =
		vec_choose(vec_choose(bits, _mm256_castps_si256(low), small),
			   _mm256_set1_epi32(0x7fc00000), nan);
	const __m256i sign =
		_mm256_and_si256(_mm256_slli_epi32(code, 24),
				 _mm256_set1_epi32((int32_t)0x80000000u));

	return _mm256_castsi256_ps(_mm256_or_si256(value, sign));
}

INLINE vec
vec_load_e4m3(const uint8_t *codes)
{
	return vec_e4m3(_mm256_cvtepu8_epi32(
		_mm_loadl_epi64((const __m128i *)(const void *)codes)));
}

/* bf16 to f32, exact. */
INLINE vec
vec_load_bf16(const uint8_t *bytes)
{
	return _mm256_castsi256_ps(_mm256_slli_epi32(
		_mm256_cvtepu16_epi32(
			_mm_loadu_si128((const __m128i *)(const void *)bytes)),
		16));
}

/* Adds half of bf16's last place to x, so that the upper halves are x rounded
 * to bf16, a tie to even. x must be no NaN with a bit set in its lower half. */
INLINE __m256i
vec_round_up(vec x)
{
	const __m256i bits = _mm256_castps_si256(x);
	const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16),
					     _mm256_set1_epi32(1));

	return _mm256_add_epi32(
		bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

/* As spmla_i_round_bf16. NaN must come from bf16, e4m3 or arithmetic on them.
 */
INLINE vec
vec_round_bf16(vec x)
{
	return _mm256_castsi256_ps(_mm256_and_si256(
		vec_round_up(x), _mm256_set1_epi32((int32_t)0xffff0000u)));
}

/* The upper halves are spmla_i_f32_to_bf16(x), for any x. */
INLINE __m256i
vec_bf16_bits(vec x)
{
	const __m256i nan =
		_mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
	const __m256i quiet = _mm256_or_si256(_mm256_castps_si256(x),
					      _mm256_set1_epi32(0x400000));

	return vec_choose(vec_round_up(x), quiet, nan);
}

INLINE void
vec_store_bf16(uint16_t *to, vec x)
{
	const __m256i half = _mm256_srli_epi32(vec_bf16_bits(x), 16);

	_mm_storeu_si128((__m128i *)(void *)to,
			 _mm_packus_epi32(_mm256_castsi256_si128(half),
					  _mm256_extracti128_si256(half, 1)));
}

/* Elements 0, 2, .. and 1, 3, .. of 16 bf16 as f32. */
INLINE vec
vec_load_even(const uint16_t *x)
{
	return _mm256_castsi256_ps(_mm256_slli_epi32(
		_mm256_loadu_si256((const __m256i *)(const void *)x), 16));
}

INLINE vec
vec_load_odd(const uint16_t *x)
{
	return _mm256_castsi256_ps(_mm256_and_si256(
		_mm256_loadu_si256((const __m256i *)(const void *)x),
		_mm256_set1_epi32((int32_t)0xffff0000u)));
}

/* A bf16 in all lanes. */
INLINE vec
vec_set_bf16(const uint16_t *x)
{
	return _mm256_castsi256_ps(
		_mm256_and_si256(_mm256_set1_epi16((int16_t)*x),
				 _mm256_set1_epi32((int32_t)0xffff0000u)));
}

/* The inverse of the two loads. */
INLINE void
vec_store_bf16_pairs(uint16_t *to, vec even, vec odd)
{
	_mm256_storeu_si256(
		(__m256i *)(void *)to,
		_mm256_blend_epi16(_mm256_srli_epi32(vec_bf16_bits(even), 16),
				   vec_bf16_bits(odd), 0xaa));
}

/* The nearest whole number; a tie gives the even one. */
INLINE vec
vec_whole(vec x)
{
	return _mm256_round_ps(x,
			       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x * 2^whole, 0 where whole is below -125; x is near 1, whole at most 0. */
INLINE vec
vec_scale(vec x, vec whole)
{
	const __m256i tiny = _mm256_castps_si256(
		_mm256_cmp_ps(whole, _mm256_set1_ps(-125.0f), _CMP_LT_OQ));
	const __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
	const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(x), power);

	return _mm256_castsi256_ps(_mm256_andnot_si256(tiny, bits));
}

/* The sums of four vectors, by one tree. */
INLINE __m128
vec_sum4(vec a, vec b, vec c, vec d)
{
	const vec ab =
		vec_add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
	const vec cd =
		vec_add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
	const vec s = vec_add(_mm256_shuffle_ps(ab, cd, 0x44),
			      _mm256_shuffle_ps(ab, cd, 0xee));

	return _mm_add_ps(_mm256_castps256_ps128(s),
			  _mm256_extractf128_ps(s, 1));
}

/* The larger of lanes that lie four apart. x holds no NaN. */
INLINE __m128
vec_fold_max(vec x)
{
	return _mm_max_ps(_mm256_castps256_ps128(x),
			  _mm256_extractf128_ps(x, 1));
}

/* ---- Words in lanes of 8 ------------------------------------------------ */

/* Words 0 to 3 from 16 bytes at p, 4 to 7 from those at p + half_bytes. */
INLINE ivec
ivec_load_lanes(const uint8_t *p, uint64_t half_bytes, uint64_t row_bytes)
{
	(void)row_bytes; /* of the second row of a wider vector */
	return _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_loadu_si128((const __m128i *)(const void *)p)),
		_mm_loadu_si128(
			(const __m128i *)(const void *)(p + half_bytes)),
		1);
}

/* Word j of vector i goes to word i of vector j, in each 128 bits. */
INLINE void
ivec_transpose(ivec x[4])
{
	const ivec a = _mm256_unpacklo_epi32(x[0], x[1]);
	const ivec b = _mm256_unpackhi_epi32(x[0], x[1]);
	const ivec c = _mm256_unpacklo_epi32(x[2], x[3]);
	const ivec d = _mm256_unpackhi_epi32(x[2], x[3]);

	x[0] = _mm256_unpacklo_epi64(a, c);
	x[1] = _mm256_unpackhi_epi64(a, c);
	x[2] = _mm256_unpacklo_epi64(b, d);
	x[3] = _mm256_unpackhi_epi64(b, d);
}

/* The lower or the upper bf16 of every word. */
INLINE vec
vec_bf16_half(ivec word, uint32_t upper)
{
	return _mm256_castsi256_ps(
		upper ? _mm256_and_si256(
				word, _mm256_set1_epi32((int32_t)0xffff0000u))
		      : _mm256_slli_epi32(word, 16));
}

/* An e4m3 of every word, byte 0 to 3. */
INLINE vec
vec_e4m3_byte(ivec word, uint32_t byte)
{
	return vec_e4m3(
		_mm256_and_si256(_mm256_srli_epi32(word, (int)(8 * byte)),
				 _mm256_set1_epi32(0xff)));
}

/* Eight values, in every eight lanes. */
INLINE vec
vec_load_eight(const float *x)
{
	return _mm256_loadu_ps(x);
}

INLINE void
vec_store_eight(float *to, vec x)
{
	_mm256_storeu_ps(to, x);
}

/* Lane j + lane j + 4 of every eight. */
INLINE void
vec_fold_lanes(vec x, __m128 *sum)
{
	sum[0] = _mm_add_ps(_mm256_castps256_ps128(x),
			    _mm256_extractf128_ps(x, 1));
}

/* ---- To e4m3 ------------------------------------------------------------- */

INLINE vec
vec_abs(vec x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* As spmla_i_f32_to_e4m3, but 0x7f for every NaN. Below 2^-6 the codes are 2^-9
 * apart, as f32 is at 2^14: adding 2^14 rounds x to a code. */
INLINE void
vec_store_e4m3(uint8_t *to, vec x)
{
	const ivec bits = _mm256_castps_si256(vec_abs(x));
	const ivec odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20),
					  _mm256_set1_epi32(1));
	const ivec normal = _mm256_sub_epi32(
		_mm256_srli_epi32(
			_mm256_add_epi32(
				bits, _mm256_add_epi32(
					      odd, _mm256_set1_epi32(0x7ffff))),
			20),
		_mm256_set1_epi32(120 << 3));
	const ivec low =
		_mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(
					 vec_abs(x), _mm256_set1_ps(0x1p14f))),
				 _mm256_set1_epi32(15));
	const ivec small =
		_mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), bits);
	const ivec sign =
		_mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(x), 24),
				 _mm256_set1_epi32(0x80));
	const ivec nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
	ivec code = _mm256_min_epi32(vec_choose(normal, low, small),
				     _mm256_set1_epi32(0x7e));
	__m128i half;

	code = vec_choose(_mm256_or_si256(code, sign), _mm256_set1_epi32(0x7f),
			  nan);
	half = _mm_packus_epi32(_mm256_castsi256_si128(code),
				_mm256_extracti128_si256(code, 1));
	_mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(half, half));
}

#endif
