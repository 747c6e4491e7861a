/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector inner loops, written once for all widths: one file per instruction
 * set includes it behind its vec_*.h. The hard idea is the tile: enough sums in
 * registers at once that neither the latency of an fma nor the loads of its
 * operands bound the loop. Each sum runs over its terms in an order that no
 * tile, tail or neighbour can change. A tail repeats its last key or head in
 * the tile and does not store the results for it.
 */
#include <float.h>
#include <math.h>

#include "spmla/platform/cpu/core/kernels_cpu.h"

#define UNROLL _Pragma("GCC unroll 16")

enum {
	TILE_KEYS = 4,
	BLOCK_KEYS = SPMLA_I_CPU_BLOCK_KEYS,
	DECODED_KEYS = SPMLA_I_CPU_SCORE_KEYS, /* at once, in L1 */
	NEAR_KEYS = 8, /* keys of 2304 bytes that stay in L1 with q */
	CHAIN = 16     /* products summed before they join the total */
};

static inline uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- Conversions -------------------------------------------------------- */

TARGET static void
dequantise(const uint8_t *codes, uint32_t n, float scale, float *values)
{
	const vec factor = vec_set(scale);
	uint32_t i;

	for (i = 0; i < n; i += LANES)
		vec_store(values + i,
			  vec_mul(vec_load_e4m3(codes + i), factor));
}

TARGET static void
load_bf16(const uint8_t *bytes, uint32_t n, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i += LANES)
		vec_store(values + i,
			  vec_load_bf16(bytes + i * sizeof(uint16_t)));
}

TARGET static void
attend_divide(const float *o, float total, uint16_t *out)
{
	const vec by = vec_set(total);
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d += LANES)
		vec_store_bf16(out + d, vec_div(vec_load(o + d), by));
}

TARGET static void
decode_keys(const uint8_t *codes, uint32_t n, float *keys)
{
	uint32_t i;

	for (i = 0; i < n * SPMLA_INDEX_DIM; i += LANES)
		vec_store(keys + i, vec_load_e4m3(codes + i));
}

/* ---- Index scores ------------------------------------------------------- */

/* q [128][padded]: a vector holds heads, and no sum over d leaves its lane. */
TARGET static void
score_query(const spmla_i_cpu_score *s, uint32_t h, const float *q,
	    float weight)
{
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d++)
		s->q[(uint64_t)d * s->padded + h] = q[d];
	s->weights[h] = weight;
}

/* Padding heads score 0 and have weight 0. */
TARGET static void
score_open(const spmla_i_cpu_score *s, const uint8_t *q, const float *weights)
{
	uint32_t h;

	for (h = 0; h < s->padded; h++) {
		if (h < s->heads)
			decode_keys(q + (uint64_t)h * SPMLA_INDEX_DIM, 1,
				    s->keys);
		else
			memset(s->keys, 0, SPMLA_INDEX_DIM * sizeof *s->keys);
		score_query(s, h, s->keys, h < s->heads ? weights[h] : 0.0f);
	}
}

/* part[k] += relu(q . key k) * weight over `vecs` vectors of heads from h on. A
 * sum over d is 8 sums of 16 products, so it has the error of some 24
 * roundings and not of 128. relu of a NaN is 0: vec_max gives its second
 * argument. */
INLINE void
score_tile(const spmla_i_cpu_score *s, uint32_t h, const uint32_t vecs,
	   const float *const key[TILE_KEYS], vec part[TILE_KEYS])
{
	vec total[SCORE_VECS][TILE_KEYS], sum[SCORE_VECS][TILE_KEYS];
	const float *q = s->q + h;
	uint32_t first, d, v, k;

	UNROLL for (v = 0; v < vecs; v++) UNROLL for (k = 0; k < TILE_KEYS; k++)
		total[v][k] = vec_set(0.0f);
	for (first = 0; first < SPMLA_INDEX_DIM; first += CHAIN) {
		UNROLL for (v = 0; v < vecs; v++)
			UNROLL for (k = 0; k < TILE_KEYS; k++) sum[v][k] =
				vec_set(0.0f);
		for (d = first; d < first + CHAIN; d++, q += s->padded) {
			vec x[TILE_KEYS];

			UNROLL for (k = 0; k < TILE_KEYS; k++) x[k] =
				vec_set(key[k][d]);
			UNROLL for (v = 0; v < vecs; v++)
			{
				const vec heads = vec_load(q + v * LANES);

				UNROLL for (k = 0; k < TILE_KEYS; k++)
					sum[v][k] =
						vec_fma(heads, x[k], sum[v][k]);
			}
		}
		UNROLL for (v = 0; v < vecs; v++)
			UNROLL for (k = 0; k < TILE_KEYS; k++) total[v][k] =
				vec_add(total[v][k], sum[v][k]);
	}
	UNROLL for (v = 0; v < vecs; v++)
	{
		const vec weight = vec_load(s->weights + h + v * LANES);

		UNROLL for (k = 0; k < TILE_KEYS; k++) part[k] = vec_fma(
			vec_max(total[v][k], vec_set(0.0f)), weight, part[k]);
	}
}

/* Four keys; stores `count` scores. */
TARGET static void
score_four(const spmla_i_cpu_score *s, const float *keys, const uint8_t *scales,
	   uint32_t count, float *out)
{
	const float *key[TILE_KEYS];
	vec part[TILE_KEYS];
	float scale[TILE_KEYS], score[TILE_KEYS];
	uint32_t h, k;

	UNROLL for (k = 0; k < TILE_KEYS; k++)
	{
		key[k] = keys + least(k, count - 1) * SPMLA_INDEX_DIM;
		part[k] = vec_set(0.0f);
	}
	for (h = 0; h + SCORE_VECS * LANES <= s->padded;
	     h += SCORE_VECS * LANES)
		score_tile(s, h, SCORE_VECS, key, part);
	for (; h < s->padded; h += LANES)
		score_tile(s, h, 1, key, part);
	memcpy(scale, scales, count * sizeof *scale);
	for (k = count; k < TILE_KEYS; k++)
		scale[k] = 0.0f;
	_mm_storeu_ps(score,
		      _mm_mul_ps(_mm_loadu_ps(scale),
				 vec_sum4(part[0], part[1], part[2], part[3])));
	memcpy(out, score, count * sizeof *score);
}

TARGET static void
score_values(const spmla_i_cpu_score *s, const uint8_t *scales, uint32_t n,
	     float *out)
{
	uint32_t k;

	for (k = 0; k < n; k += TILE_KEYS)
		score_four(s, s->keys + k * SPMLA_INDEX_DIM,
			   scales + (uint64_t)k * sizeof(float),
			   least(n - k, TILE_KEYS), out + k);
}

TARGET static void
score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
	   const uint8_t *scales, uint32_t n, float *out)
{
	uint32_t first, count;

	for (first = 0; first < n; first += count) {
		count = least(n - first, DECODED_KEYS);
		decode_keys(codes + (uint64_t)first * SPMLA_INDEX_DIM, count,
			    s->keys);
		score_values(s, scales + (uint64_t)first * sizeof(float), count,
			     out + first);
	}
}

/* ---- Attention ---------------------------------------------------------- */

/* q . k of DOT_HEADS heads from h on and four keys from k on. Lane l takes l,
 * l + LANES, ..., then one tree. */
INLINE void
dot_tile(const spmla_i_cpu_attend *w, uint32_t h, uint32_t k, uint32_t count)
{
	const float *key[TILE_KEYS], *q[DOT_HEADS];
	vec sum[DOT_HEADS][TILE_KEYS];
	uint32_t d, i, j;

	UNROLL for (j = 0; j < TILE_KEYS; j++) key[j] =
		spmla_i_cpu_attend_key(w, least(k + j, count - 1));
	UNROLL for (i = 0; i < DOT_HEADS; i++)
	{
		q[i] = w->q + (uint64_t)least(h + i, w->heads - 1) * w->dim;
		UNROLL for (j = 0; j < TILE_KEYS; j++) sum[i][j] =
			vec_set(0.0f);
	}
	for (d = 0; d < w->dim; d += LANES) {
		vec x[TILE_KEYS];

		UNROLL for (j = 0; j < TILE_KEYS; j++) x[j] =
			vec_load(key[j] + d);
		UNROLL for (i = 0; i < DOT_HEADS; i++)
		{
			const vec head = vec_load(q[i] + d);

			UNROLL for (j = 0; j < TILE_KEYS; j++) sum[i][j] =
				vec_fma(head, x[j], sum[i][j]);
		}
	}
	UNROLL for (i = 0; i < DOT_HEADS; i++) if (h + i < w->heads)
		_mm_storeu_ps(
			w->p + (uint64_t)(h + i) * BLOCK_KEYS + k,
			vec_sum4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]));
}

/* Computes the scores of all heads; NEAR_KEYS keys stay in L1 while q passes.
 */
TARGET static void
dot_block(const spmla_i_cpu_attend *w, uint32_t count)
{
	uint32_t near, h, k;

	for (near = 0; near < count; near += NEAR_KEYS)
		for (h = 0; h < w->heads; h += DOT_HEADS)
			for (k = near; k < least(near + NEAR_KEYS, count);
			     k += TILE_KEYS)
				dot_tile(w, h, k, count);
}

/* 2^x for x <= 0, -inf or NaN. 2^f on [-1/2, 1/2] is 1 + f * a polynomial that
 * interpolates at the six Chebyshev nodes. Its error is 5.1e-9, or 2^-23 with
 * roundings; 2^0 is exactly 1. Below 2^-125 the result is 0. */
INLINE vec
exp2_below(vec x)
{
	const vec whole = vec_whole(x);
	const vec f = vec_sub(x, whole);
	vec y = vec_set(0x1.441389p-13f);

	y = vec_fma(y, f, vec_set(0x1.5f0890p-10f));
	y = vec_fma(y, f, vec_set(0x1.3b2a54p-7f));
	y = vec_fma(y, f, vec_set(0x1.c6af6cp-5f));
	y = vec_fma(y, f, vec_set(0x1.ebfbe0p-3f));
	y = vec_fma(y, f, vec_set(0x1.62e430p-1f));
	return vec_scale(vec_fma(y, f, vec_set(1.0f)), whole);
}

/* The largest of `count` scores that are not NaN, at least -FLT_MAX. Sets the
 * scores behind them to -inf. */
INLINE float
block_max(float *p, uint32_t count)
{
	vec most = vec_set(-FLT_MAX);
	float four[4];
	uint32_t i;

	for (i = count; i < BLOCK_KEYS; i++)
		p[i] = -INFINITY;
	for (i = 0; i < BLOCK_KEYS; i += LANES)
		most = vec_max(vec_load(p + i), most);
	_mm_storeu_ps(four, vec_fold_max(most));
	for (i = 1; i < 4; i++)
		four[0] = four[i] > four[0] ? four[i] : four[0];
	return four[0];
}

/* Turns scores into weights, as attend_head in scalar_cpu.c. One of the two
 * factors is 1, because one of the two maxima is the larger. */
TARGET static void
weigh_head(const spmla_i_cpu_attend *w, uint32_t head, uint32_t count)
{
	float *p = w->p + (uint64_t)head * BLOCK_KEYS;
	const float before = w->max[head];
	const float block = block_max(p, count);
	const float max = block > before ? block : before;
	const float rescale =
		max == before ? 1.0f : exp2f((before - max) * w->c);
	const float share = max == block ? 1.0f : exp2f((block - max) * w->c);
	const vec shift = vec_set(block), by = vec_set(share);
	const vec c = vec_set(w->c);
	vec sum = vec_set(0.0f);
	uint32_t i;

	for (i = 0; i < BLOCK_KEYS; i += LANES) {
		const vec x =
			exp2_below(vec_mul(vec_sub(vec_load(p + i), shift), c));

		sum = vec_add(sum, x);
		vec_store(p + i, vec_mul(vec_round_bf16(x), by));
	}
	w->sum[head] = w->sum[head] * rescale +
		       share * _mm_cvtss_f32(vec_sum4(sum, sum, sum, sum));
	w->max[head] = max;
	w->rescale[head] = rescale;
}

/* o = o * rescale + p * v for VALUE_HEADS heads from h on and VALUE_VECS
 * vectors of values from d on. */
INLINE void
value_tile(const spmla_i_cpu_attend *w, uint32_t h, uint32_t d, uint32_t count)
{
	const float *p[VALUE_HEADS], *v = w->keys + d;
	float *o[VALUE_HEADS];
	vec sum[VALUE_HEADS][VALUE_VECS];
	uint32_t i, j, k;

	UNROLL for (i = 0; i < VALUE_HEADS; i++)
	{
		const uint64_t head = least(h + i, w->heads - 1);
		const vec rescale = vec_set(w->rescale[head]);

		p[i] = w->p + head * BLOCK_KEYS;
		o[i] = w->o + head * SPMLA_MLA_LATENT + d;
		UNROLL for (j = 0; j < VALUE_VECS; j++) sum[i][j] =
			vec_mul(vec_load(o[i] + j * LANES), rescale);
	}
	for (k = 0; k < count; k++, v += w->dim) {
		vec x[VALUE_VECS];

		UNROLL for (j = 0; j < VALUE_VECS; j++) x[j] =
			vec_load(v + j * LANES);
		UNROLL for (i = 0; i < VALUE_HEADS; i++)
		{
			const vec weight = vec_set(p[i][k]);

			UNROLL for (j = 0; j < VALUE_VECS; j++) sum[i][j] =
				vec_fma(weight, x[j], sum[i][j]);
		}
	}
	UNROLL for (i = 0; i < VALUE_HEADS; i++) if (h + i < w->heads)
		UNROLL for (j = 0; j < VALUE_VECS; j++)
			vec_store(o[i] + j * LANES, sum[i][j]);
}

/* A column of values stays in L1 while all heads pass. */
TARGET static void
value_block(const spmla_i_cpu_attend *w, uint32_t count)
{
	uint32_t h, d;

	for (d = 0; d < SPMLA_MLA_LATENT; d += VALUE_VECS * LANES)
		for (h = 0; h < w->heads; h += VALUE_HEADS)
			value_tile(w, h, d, count);
}

TARGET static void
attend_block(const spmla_i_cpu_attend *w, uint32_t count)
{
	uint32_t h;

	dot_block(w, count);
	for (h = 0; h < w->heads; h++)
		weigh_head(w, h, count);
	value_block(w, count);
}
