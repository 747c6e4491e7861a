/* SPDX-License-Identifier: Apache-2.0
 *
 * Sixteen f32 at a time: the vocabulary of vector_kernels.h, in AVX-512. No
 * build flag says that the machine has it, so each function carries its target.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_VEC_AVX512_H
#define SPMLA_PLATFORM_CPU_CORE_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define INLINE static inline __attribute__((always_inline)) TARGET

enum {
	LANES = 16,
	SCORE_VECS = 4,  /* vectors of heads in a tile of scores */
	DOT_HEADS = 4,   /* heads of a tile of q . k */
	VALUE_HEADS = 4, /* heads and vectors of a tile of p * v */
	VALUE_VECS = 4,
	PROJECT_ROWS = 6, /* of a tile of a projection, */
	PROJECT_SUMS = 24 /* and vectors of sums in registers */
};

/* The numbers of rows that a projection's tile may have. */
#define PROJECT_TILES(X) X(1) X(2) X(3) X(4) X(5) X(6)

typedef __m512 vec;
typedef __m512i ivec; /* 32-bit words */

INLINE vec
vec_set(float x)
{
	return _mm512_set1_ps(x);
}

INLINE vec
vec_load(const float *x)
{
	return _mm512_loadu_ps(x);
}

INLINE void
vec_store(float *to, vec x)
{
	_mm512_storeu_ps(to, x);
}

INLINE vec
vec_add(vec a, vec b)
{
	return _mm512_add_ps(a, b);
}

INLINE vec
vec_sub(vec a, vec b)
{
	return _mm512_sub_ps(a, b);
}

INLINE vec
vec_mul(vec a, vec b)
{
	return _mm512_mul_ps(a, b);
}

INLINE vec
vec_div(vec a, vec b)
{
	return _mm512_div_ps(a, b);
}

/* a * b + c, rounded once. */
INLINE vec
vec_fma(vec a, vec b, vec c)
{
	return _mm512_fmadd_ps(a, b, c);
}

/* The larger; b where either is NaN. */
INLINE vec
vec_max(vec a, vec b)
{
	return _mm512_max_ps(a, b);
}

/* e4m3 to f32, exact, by the steps of spmla_i_e4m3_to_f32: where the exponent
 * is 0, compute 2^-6 * (1 + m / 8) and subtract 2^-6. One code per word. */
INLINE vec
vec_e4m3(ivec code)
{
	const __m512i rest = _mm512_and_si512(code, _mm512_set1_epi32(0x7f));
	const __mmask16 small =
		_mm512_cmplt_epi32_mask(rest, _mm512_set1_epi32(8));
	const __mmask16 nan =
		_mm512_cmpeq_epi32_mask(rest, _mm512_set1_epi32(0x7f));
	const vec least = _mm512_set1_ps(-0x1p-6f);
	vec x = _mm512_castsi512_ps(_mm512_add_epi32(
		_mm512_slli_epi32(rest, 20), _mm512_set1_epi32(120 << 23)));
	__m512i bits;

	x = _mm512_mask_fmadd_ps(x, small, _mm512_set1_ps(2.0f), least);
	bits = _mm512_mask_mov_epi32(_mm512_castps_si512(x), nan,
				     _mm512_set1_epi32(0x7fc00000));
	/* bits | (code << 24 & sign) */
	return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
		bits, _mm512_slli_epi32(code, 24),
		_mm512_set1_epi32((int32_t)0x80000000u), 0xf8));
}

INLINE vec
vec_load_e4m3(const uint8_t *codes)
{
	return vec_e4m3(_mm512_cvtepu8_epi32(
		_mm_loadu_si128((const __m128i *)(const void *)codes)));
}

/* bf16 to f32, exact. */
INLINE vec
vec_load_bf16(const uint8_t *bytes)
{
	return _mm512_castsi512_ps(
		_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((
					  const __m256i *)(const void *)bytes)),
				  16));
}

/* Adds half of bf16's last place to x, so that the upper halves are x rounded
 * to bf16, a tie to even. x must be no NaN with a bit set in its lower half. */
INLINE __m512i
vec_round_up(vec x)
{
	const __m512i bits = _mm512_castps_si512(x);
	const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16),
					     _mm512_set1_epi32(1));

	return _mm512_add_epi32(
		bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
}

/* As spmla_i_round_bf16. NaN must come from bf16, e4m3 or arithmetic on them.
 */
INLINE vec
vec_round_bf16(vec x)
{
	return _mm512_castsi512_ps(_mm512_and_si512(
		vec_round_up(x), _mm512_set1_epi32((int32_t)0xffff0000u)));
}

/* The upper halves are spmla_i_f32_to_bf16(x), for any x. */
INLINE __m512i
vec_bf16_bits(vec x)
{
	const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
	const __m512i quiet = _mm512_or_si512(_mm512_castps_si512(x),
					      _mm512_set1_epi32(0x400000));

	return _mm512_mask_mov_epi32(vec_round_up(x), nan, quiet);
}

INLINE void
vec_store_bf16(uint16_t *to, vec x)
{
	_mm256_storeu_si256(
		(__m256i *)(void *)to,
		_mm512_cvtepi32_epi16(_mm512_srli_epi32(vec_bf16_bits(x), 16)));
}

/* Elements 0, 2, .. and 1, 3, .. of 32 bf16 as f32. */
INLINE vec
vec_load_even(const uint16_t *x)
{
	return _mm512_castsi512_ps(
		_mm512_slli_epi32(_mm512_loadu_si512(x), 16));
}

INLINE vec
vec_load_odd(const uint16_t *x)
{
	return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xaaaaaaaau, x));
}

/* A bf16 in all lanes. */
INLINE vec
vec_set_bf16(const uint16_t *x)
{
	return _mm512_castsi512_ps(_mm512_maskz_mov_epi16(
		0xaaaaaaaau, _mm512_set1_epi16((int16_t)*x)));
}

/* The inverse of the two loads. */
INLINE void
vec_store_bf16_pairs(uint16_t *to, vec even, vec odd)
{
	_mm512_storeu_si512(to,
			    _mm512_mask_mov_epi16(
				    _mm512_srli_epi32(vec_bf16_bits(even), 16),
				    0xaaaaaaaau, vec_bf16_bits(odd)));
}

/* The nearest whole number; a tie gives the even one. */
INLINE vec
vec_whole(vec x)
{
	return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT |
					       _MM_FROUND_NO_EXC);
}

/* x * 2^whole, 0 where whole is below -125; x is near 1, whole at most 0. */
INLINE vec
vec_scale(vec x, vec whole)
{
	const __mmask16 tiny =
		_mm512_cmp_ps_mask(whole, _mm512_set1_ps(-125.0f), _CMP_LT_OQ);
	const __m512i power = _mm512_slli_epi32(_mm512_cvtps_epi32(whole), 23);
	const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), power);

	return _mm512_castsi512_ps(
		_mm512_mask_mov_epi32(bits, tiny, _mm512_setzero_si512()));
}

/* The sums of four vectors, by one tree. */
INLINE __m128
vec_sum4(vec a, vec b, vec c, vec d)
{
	const vec ab =
		vec_add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
	const vec cd =
		vec_add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
	const vec s = vec_add(_mm512_shuffle_ps(ab, cd, 0x44),
			      _mm512_shuffle_ps(ab, cd, 0xee));
	const __m256 t = _mm256_add_ps(_mm512_castps512_ps256(s),
				       _mm512_extractf32x8_ps(s, 1));

	return _mm_add_ps(_mm256_castps256_ps128(t),
			  _mm256_extractf128_ps(t, 1));
}

/* The larger of lanes that lie four apart. x holds no NaN. */
INLINE __m128
vec_fold_max(vec x)
{
	const __m256 t = _mm256_max_ps(_mm512_castps512_ps256(x),
				       _mm512_extractf32x8_ps(x, 1));

	return _mm_max_ps(_mm256_castps256_ps128(t),
			  _mm256_extractf128_ps(t, 1));
}

/* ---- Words in lanes of 8 ------------------------------------------------ */

INLINE __m256i
load_halves(const uint8_t *p, uint64_t half_bytes)
{
	return _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_loadu_si128((const __m128i *)(const void *)p)),
		_mm_loadu_si128(
			(const __m128i *)(const void *)(p + half_bytes)),
		1);
}

/* Words 0 to 3 from 16 bytes at p, 4 to 7 from those at p + half_bytes; the
 * next eight in the same way from the row behind. */
INLINE ivec
ivec_load_lanes(const uint8_t *p, uint64_t half_bytes, uint64_t row_bytes)
{
	return _mm512_inserti64x4(
		_mm512_castsi256_si512(load_halves(p, half_bytes)),
		load_halves(p + row_bytes, half_bytes), 1);
}

/* Word j of vector i goes to word i of vector j, in each 128 bits. */
INLINE void
ivec_transpose(ivec x[4])
{
	const ivec a = _mm512_unpacklo_epi32(x[0], x[1]);
	const ivec b = _mm512_unpackhi_epi32(x[0], x[1]);
	const ivec c = _mm512_unpacklo_epi32(x[2], x[3]);
	const ivec d = _mm512_unpackhi_epi32(x[2], x[3]);

	x[0] = _mm512_unpacklo_epi64(a, c);
	x[1] = _mm512_unpackhi_epi64(a, c);
	x[2] = _mm512_unpacklo_epi64(b, d);
	x[3] = _mm512_unpackhi_epi64(b, d);
}

/* The lower or the upper bf16 of every word. */
INLINE vec
vec_bf16_half(ivec word, uint32_t upper)
{
	return _mm512_castsi512_ps(
		upper ? _mm512_and_si512(
				word, _mm512_set1_epi32((int32_t)0xffff0000u))
		      : _mm512_slli_epi32(word, 16));
}

/* An e4m3 of every word, byte 0 to 3. */
INLINE vec
vec_e4m3_byte(ivec word, uint32_t byte)
{
	return vec_e4m3(_mm512_and_si512(_mm512_srli_epi32(word, 8 * byte),
					 _mm512_set1_epi32(0xff)));
}

/* Eight values, in every eight lanes. */
INLINE vec
vec_load_eight(const float *x)
{
	return _mm512_broadcast_f32x8(_mm256_loadu_ps(x));
}

INLINE void
vec_store_eight(float *to, vec x)
{
	_mm256_storeu_ps(to, _mm512_castps512_ps256(x));
}

/* Lane j + lane j + 4 of every eight. */
INLINE void
vec_fold_lanes(vec x, __m128 *sum)
{
	sum[0] = _mm_add_ps(_mm512_castps512_ps128(x),
			    _mm512_extractf32x4_ps(x, 1));
	sum[1] = _mm_add_ps(_mm512_extractf32x4_ps(x, 2),
			    _mm512_extractf32x4_ps(x, 3));
}

/* ---- To e4m3 ------------------------------------------------------------- */

INLINE vec
vec_abs(vec x)
{
	return _mm512_abs_ps(x);
}

/* As spmla_i_f32_to_e4m3, but 0x7f for every NaN. Below 2^-6 the codes are 2^-9
 * apart, as f32 is at 2^14: adding 2^14 rounds x to a code. */
INLINE void
vec_store_e4m3(uint8_t *to, vec x)
{
	const ivec bits = _mm512_castps_si512(vec_abs(x));
	const ivec odd = _mm512_and_si512(_mm512_srli_epi32(bits, 20),
					  _mm512_set1_epi32(1));
	const ivec low =
		_mm512_and_si512(_mm512_castps_si512(_mm512_add_ps(
					 vec_abs(x), _mm512_set1_ps(0x1p14f))),
				 _mm512_set1_epi32(15));
	const ivec sign =
		_mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(x), 24),
				 _mm512_set1_epi32(0x80));
	ivec code = _mm512_add_epi32(
		bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7ffff)));

	code = _mm512_sub_epi32(_mm512_srli_epi32(code, 20),
				_mm512_set1_epi32(120 << 3));
	code = _mm512_mask_mov_epi32(
		code,
		_mm512_cmplt_epi32_mask(bits, _mm512_set1_epi32(0x3c800000)),
		low);
	code = _mm512_min_epi32(code, _mm512_set1_epi32(0x7e));
	code = _mm512_mask_mov_epi32(_mm512_or_si512(code, sign),
				     _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
				     _mm512_set1_epi32(0x7f));
	_mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(code));
}

#endif
