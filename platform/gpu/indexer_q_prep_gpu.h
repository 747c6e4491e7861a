/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: 16 lanes have some heads of a token at a time, all of which
 * they ask for before they use one. Lane l has values 4l .. 4l + 3 of the half
 * that is rotated and the same of the other half: every lane rotates, with
 * factors that it reads once for all its heads, and the other value of a pair
 * is one shuffle away, or its own. Which half is rotated moves the addresses
 * alone. Of MXFP4, 8 lanes have a group of 32 in either half.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H
#define SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/mxfp4_gpu.h"
#include "spmla/platform/gpu/row_gpu.h"

/* Of both kernels: e4m3 and MXFP4. */
#define SPMLA_K_indexer_q_prep(P, S) \
	SPMLA_K_FAULT(P)             \
	P(const uint16_t, q)         \
	P(const uint16_t, weights16) \
	P(const float, weights32)    \
	P(const int32_t, positions)  \
	P(const float, cos_sin)      \
	P(uint8_t, q_out)            \
	P(uint8_t, q_scales)         \
	P(float, weights_out)        \
	S(int64_t, q_token_stride)   \
	S(int64_t, q_head_stride)    \
	S(int64_t, weights_stride)   \
	S(uint32_t, tokens)          \
	S(uint32_t, heads)           \
	S(uint32_t, has_rope)        \
	S(uint32_t, neox)            \
	S(uint32_t, cos_sin_rows)    \
	S(uint32_t, rope_first)      \
	S(uint32_t, group_floor)     \
	S(uint32_t, weights_f32)     \
	S(uint32_t, wide_q)          \
	S(uint32_t, wide_out)        \
	S(uint32_t, wide_rope)       \
	S(float, least)              \
	S(float, softmax_scale)      \
	S(float, head_scale)
SPMLA_KERNEL_SCALARS(indexer_q_prep)
#define SPMLA_K_indexer_q_prep_mxfp4(P, S) SPMLA_K_indexer_q_prep(P, S)
typedef spmla_k_indexer_q_prep_scalars spmla_k_indexer_q_prep_mxfp4_scalars;

enum {
	Q_PREP_EACH = 2, /* heads of 16 lanes */
	Q_PREP_HEADS = G_ROW_GROUPS * Q_PREP_EACH,
	Q_PREP_PAIRS = G_ROW_ROPE / 2,
	Q_PREP_GROUP = SPMLA_MXFP4_GROUP / 4 /* lanes of a scale of MXFP4 */
};

#ifdef SPMLA_GPU_KERNELS

/* What the lane's four values x, and their partners y, are multiplied by:
 * x * c + y * n. cos_sin is the position's. */
FN void
q_prep_factors(GLOBAL const float *cos_sin, uint32_t neox, uint32_t wide,
	       PRIVATE float *c, PRIVATE float *n)
{
	const uint32_t lane = g_item() % G_ROW_LANES;
	uint32_t i;

	if (neox && wide) {
		GLOBAL const float *at = cos_sin + 4 * (lane % 8);
		uint32_t cosines[4], sines[4];

		g_load4(at, cosines);
		g_load4(at + Q_PREP_PAIRS, sines);
		UNROLL
		for (i = 0; i < 4; i++) {
			c[i] = g_float(cosines[i]);
			n[i] = g_float(sines[i]);
		}
	} else {
		UNROLL
		for (i = 0; i < 4; i++) {
			const uint32_t pair =
				neox ? 4 * (lane % 8) + i : 2 * lane + i / 2;

			c[i] = cos_sin[pair];
			n[i] = cos_sin[Q_PREP_PAIRS + pair];
		}
	}
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t is_first = neox ? lane < 8 : i % 2 == 0;

		n[i] = is_first ? -n[i] : n[i];
	}
}

/* Rotates the four values of w: two products and their sum, each rounded; then
 * bf16. By all items of the subgroup together. */
FN void
q_prep_rotate(PRIVATE uint32_t *w, const PRIVATE float *c,
	      const PRIVATE float *n, uint32_t neox)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < 2; i++) {
		const uint32_t other =
			neox ? g_shuffle_xor(w[i], 8) : w[i] << 16 | w[i] >> 16;
		float x[2], y[2];

		g_row_values(w[i], SPMLA_DTYPE_BF16, x);
		g_row_values(other, SPMLA_DTYPE_BF16, y);
		w[i] = g_f32_to_bf16x2(x[0] * c[2 * i] + y[0] * n[2 * i],
				       x[1] * c[2 * i + 1] +
					       y[1] * n[2 * i + 1]);
	}
}

/* The codes of a head whose halves 16 lanes have, and its scale. */
FN float
q_prep_head(const PRIVATE uint32_t *w, float least, uint32_t group_floor,
	    PRIVATE uint32_t *codes)
{
	float x[G_ROW_EACH], scale;
	g_row_divisor d;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		g_row_values(w[i], SPMLA_DTYPE_BF16, x + 2 * i);
	scale = g_row_pow2(g_row_amax(x, least));
	if (group_floor && scale < 0x1p-33f) /* 1e-10 rounded up */
		scale = 0x1p-33f;
	d = g_row_divisor_of(scale, 0);
	codes[0] = g_row_codes4(x, &d);
	codes[1] = g_row_codes4(x + 4, &d);
	return scale;
}

/* The codes of four values as MXFP4, and the byte of their group's scale. By
 * all items of the subgroup together. */
FN uint32_t
q_prep_mxfp4(const PRIVATE uint32_t *w, PRIVATE uint32_t *byte)
{
	float x[4], amax = 0.0f, inverse;
	uint32_t codes = 0, i, mask;

	UNROLL
	for (i = 0; i < 2; i++)
		g_row_values(w[i], SPMLA_DTYPE_BF16, x + 2 * i);
	UNROLL
	for (i = 0; i < 4; i++)
		amax = g_larger(amax, g_abs(x[i]));
	UNROLL
	for (mask = Q_PREP_GROUP / 2; mask; mask >>= 1)
		amax = g_larger(amax, g_shuffle_xor_f(amax, mask));
	*byte = g_mxfp4_scale(amax);
	inverse = g_mxfp4_inverse(*byte);
	UNROLL
	for (i = 0; i < 4; i++)
		codes |= g_f32_to_e2m1(x[i] * inverse) << 4 * i;
	return codes;
}

/* Four codes in 4 >> packed bytes, of which p is a multiple if it is `wide`. */
FN void
q_prep_store(GLOBAL uint8_t *p, uint32_t wide, uint32_t packed, uint32_t codes)
{
	if (wide && packed) {
		*(GLOBAL uint16_t *)p = (uint16_t)codes;
		return;
	}
	if (wide) {
		*(GLOBAL uint32_t *)p = codes;
		return;
	}
	p[0] = (uint8_t)codes;
	p[1] = (uint8_t)(codes >> 8);
	if (packed)
		return;
	p[2] = (uint8_t)(codes >> 16);
	p[3] = (uint8_t)(codes >> 24);
}

/* Both kernels; `mxfp4` is a constant. */
FN void
q_prep_all(GLOBAL spmla_g_state *fault_state,
	   GLOBAL spmla_g_status *fault_status, GLOBAL const uint16_t *q,
	   GLOBAL const uint16_t *weights16, GLOBAL const float *weights32,
	   GLOBAL const int32_t *positions, GLOBAL const float *cos_sin,
	   GLOBAL uint8_t *q_out, GLOBAL uint8_t *q_scales,
	   GLOBAL float *weights_out,
	   const PRIVATE spmla_k_indexer_q_prep_scalars *s, uint32_t mxfp4)
{
	const uint32_t chunks = (s->heads + Q_PREP_HEADS - 1) / Q_PREP_HEADS;
	/* 2^32 of them would be 8 TB of q. */
	const uint32_t tiles = s->tokens * chunks;
	const uint32_t lane = g_item() % G_ROW_LANES;
	const uint32_t group = g_item() / G_ROW_LANES * Q_PREP_EACH;
	const uint32_t other = G_ROW_ROPE - s->rope_first;
	const uint32_t packed = mxfp4; /* log2 of the values of a byte */
	uint32_t tile, e;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint32_t t = tile / chunks;
		const uint32_t h = (tile - t * chunks) * Q_PREP_HEADS + group;
		const uint32_t position =
			s->has_rope ? (uint32_t)positions[t] : 0;
		const uint32_t is_known =
			!s->has_rope || position < s->cos_sin_rows;
		/* The weight of head `lane` of those here. */
		const uint32_t weighs =
			lane < Q_PREP_EACH && h + lane < s->heads;
		const uint64_t row = (uint64_t)t * s->heads + h;
		GLOBAL const uint16_t *from =
			q + (int64_t)t * s->q_token_stride +
			(int64_t)h * s->q_head_stride + 4 * lane;
		GLOBAL uint8_t *to =
			q_out + ((row * G_ROW + 4 * lane) >> packed);
		uint32_t w[Q_PREP_EACH][4];
		float weight = 0.0f, own = 0.0f, c[4], n[4];

		UNROLL
		for (e = 0; e < Q_PREP_EACH; e++) {
			w[e][0] = w[e][1] = w[e][2] = w[e][3] = 0;
			if (h + e < s->heads) {
				g_row_load4(from + s->rope_first, s->wide_q,
					    w[e]);
				g_row_load4(from + other, s->wide_q, w[e] + 2);
			}
			from += s->q_head_stride;
		}
		if (weighs) {
			const int64_t at =
				(int64_t)t * s->weights_stride + h + lane;

			weight = s->weights_f32 ? weights32[at]
						: g_bf16_to_f32(weights16[at]);
		}
		if (!is_known && h == 0 && lane == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_POSITION);
		if (s->has_rope && is_known)
			q_prep_factors(cos_sin +
					       (uint64_t)position * G_ROW_ROPE,
				       s->neox, s->wide_rope, c, n);
		UNROLL
		for (e = 0; e < Q_PREP_EACH; e++) {
			uint32_t codes[2], bytes[2] = {0, 0};
			float scale = 1.0f;

			if (s->has_rope && is_known)
				q_prep_rotate(w[e], c, n, s->neox);
			if (mxfp4) {
				codes[0] = q_prep_mxfp4(w[e], &bytes[0]);
				codes[1] = q_prep_mxfp4(w[e] + 2, &bytes[1]);
			} else {
				scale = q_prep_head(w[e], s->least,
						    s->group_floor, codes);
			}
			own = lane == e ? scale : own;
			if (h + e < s->heads) {
				q_prep_store(to + (s->rope_first >> packed),
					     s->wide_out, packed,
					     is_known ? codes[0] : 0);
				q_prep_store(to + (other >> packed),
					     s->wide_out, packed,
					     is_known ? codes[1] : 0);
			}
			if (mxfp4 && h + e < s->heads &&
			    lane % Q_PREP_GROUP == 0) {
				GLOBAL uint8_t *scales =
					q_scales +
					(row + e) * SPMLA_INDEX_MXFP4_SCALES +
					lane / Q_PREP_GROUP;

				scales[s->rope_first / SPMLA_MXFP4_GROUP] =
					(uint8_t)(is_known ? bytes[0] : 0);
				scales[other / SPMLA_MXFP4_GROUP] =
					(uint8_t)(is_known ? bytes[1] : 0);
			}
			to += G_ROW >> packed;
		}
		if (weighs)
			weights_out[row + lane] =
				is_known ? weight * own * s->softmax_scale *
						   s->head_scale
					 : 0.0f;
	}
}

SPMLA_KERNEL(indexer_q_prep)
{
	q_prep_all(fault_state, fault_status, q, weights16, weights32,
		   positions, cos_sin, q_out, q_scales, weights_out, &s, 0);
}

SPMLA_KERNEL(indexer_q_prep_mxfp4)
{
	q_prep_all(fault_state, fault_status, q, weights16, weights32,
		   positions, cos_sin, q_out, q_scales, weights_out, &s, 1);
}

#endif
#endif
