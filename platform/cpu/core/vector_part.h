/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of o_group_proj, written once for all widths: included behind
 * vec_*.h and vector_kernels.h. The hard idea: the header fixes the order of a
 * part's sum (8 lanes of 16 values, then a tree), and values of one lane are
 * neighbours in memory. So 32-bit words are transposed, 4 x 4 at a time, until
 * a vector holds the same value of all lanes. A wide vector holds it for two
 * columns. No sum leaves its lane before the tree.
 */
#include "spmla/platform/cpu/core/kernels_cpu.h"

enum {
	PART_LANES = 8,
	PART_WIDE = LANES / PART_LANES, /* columns in a vector */
	TREE_COLUMNS = 4                /* columns whose trees run together */
};

/* Value `v` of every word, exact. */
INLINE vec
word_value(ivec word, uint32_t v, const uint32_t e4m3)
{
	return e4m3 ? vec_e4m3_byte(word, v) : vec_bf16_half(word, v);
}

/* The values of PART_WIDE rows, row_bytes apart, times the values of x. */
INLINE vec
part_lanes(const float *x, const uint8_t *w, uint64_t row_bytes,
	   const uint32_t e4m3)
{
	const uint32_t lane_bytes = e4m3 ? 16 : 32, values = e4m3 ? 4 : 2;
	vec sum = vec_set(0.0f);
	uint32_t first, i, v;

	UNROLL for (first = 0; first < lane_bytes; first += 16)
	{
		ivec word[4];

		UNROLL for (i = 0; i < 4; i++) word[i] = ivec_load_lanes(
			w + first + i * lane_bytes, 4 * lane_bytes, row_bytes);
		ivec_transpose(word);
		UNROLL for (i = 0; i < 4; i++)
			UNROLL for (v = 0; v < values; v++)
		{
			sum = vec_fma(vec_load_eight(x),
				      word_value(word[i], v, e4m3), sum);
			x += PART_LANES;
		}
	}
	return sum;
}

/* x as part_lanes takes it: [16][8], the lanes innermost. */
INLINE void
part_open(const uint8_t *from, float *x, const uint32_t e4m3)
{
	const uint32_t lane_bytes = e4m3 ? 16 : 32, values = e4m3 ? 4 : 2;
	uint32_t first, i, v;

	UNROLL for (first = 0; first < lane_bytes; first += 16)
	{
		ivec word[4];

		UNROLL for (i = 0; i < 4; i++) word[i] = ivec_load_lanes(
			from + first + i * lane_bytes, 4 * lane_bytes, 0);
		ivec_transpose(word);
		UNROLL for (i = 0; i < 4; i++)
			UNROLL for (v = 0; v < values; v++)
		{
			vec_store_eight(x, word_value(word[i], v, e4m3));
			x += PART_LANES;
		}
	}
}

/* The trees of four columns: vec_fold_lanes has added lane j + 4, and lanes j +
 * 2 and j + 1 are added here. */
INLINE __m128
part_trees(const __m128 s[TREE_COLUMNS])
{
	const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(s[0], s[1]),
				     _mm_unpackhi_ps(s[0], s[1]));
	const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(s[2], s[3]),
				     _mm_unpackhi_ps(s[2], s[3]));

	return _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
}

INLINE void
part_sums(const uint8_t *from, const uint8_t *w, uint64_t row_bytes,
	  float *sums, const uint32_t e4m3)
{
	float x[SPMLA_I_CPU_PART];
	uint32_t d, i;

	part_open(from, x, e4m3);
	for (d = 0; d < SPMLA_I_CPU_PART_COLUMNS; d += TREE_COLUMNS) {
		__m128 s[TREE_COLUMNS];

		UNROLL for (i = 0; i < TREE_COLUMNS; i += PART_WIDE)
		{
			vec_fold_lanes(part_lanes(x, w, row_bytes, e4m3),
				       s + i);
			w += PART_WIDE * row_bytes;
		}
		_mm_storeu_ps(sums + d, part_trees(s));
	}
}

TARGET static void
part_bf16(const uint8_t *x, const uint8_t *w, uint64_t row_bytes, float *sums)
{
	part_sums(x, w, row_bytes, sums, 0);
}

TARGET static void
part_e4m3(const uint8_t *x, const uint8_t *w, uint64_t row_bytes, float *sums)
{
	part_sums(x, w, row_bytes, sums, 1);
}
