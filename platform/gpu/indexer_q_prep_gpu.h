/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: 16 lanes have some heads of a token at a time, all of which
 * they ask for before they use one. Lane l has values 4l .. 4l + 3 of the half
 * that is rotated and the same of the other half: every lane rotates, with
 * factors that it reads once for all its heads, and the other value of a pair
 * is one shuffle away, or its own.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H
#define SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/row_gpu.h"

#define SPMLA_K_indexer_q_prep(P, S) \
	SPMLA_K_FAULT(P)             \
	P(const uint16_t, q)         \
	P(const uint16_t, weights16) \
	P(const float, weights32)    \
	P(const int32_t, positions)  \
	P(const float, cos_sin)      \
	P(uint8_t, q_out)            \
	P(float, weights_out)        \
	S(int64_t, q_token_stride)   \
	S(int64_t, q_head_stride)    \
	S(int64_t, weights_stride)   \
	S(uint32_t, tokens)          \
	S(uint32_t, heads)           \
	S(uint32_t, has_rope)        \
	S(uint32_t, neox)            \
	S(uint32_t, cos_sin_rows)    \
	S(uint32_t, group_floor)     \
	S(uint32_t, weights_f32)     \
	S(uint32_t, wide_q)          \
	S(uint32_t, wide_out)        \
	S(uint32_t, wide_rope)       \
	S(float, softmax_scale)      \
	S(float, head_scale)
SPMLA_KERNEL_SCALARS(indexer_q_prep)

enum {
	Q_PREP_EACH = 2, /* heads of 16 lanes */
	Q_PREP_HEADS = G_ROW_GROUPS * Q_PREP_EACH,
	Q_PREP_PAIRS = G_ROW_ROPE / 2
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
q_prep_head(const PRIVATE uint32_t *w, uint32_t group_floor,
	    PRIVATE uint32_t *codes)
{
	float x[G_ROW_EACH], scale;
	g_row_divisor d;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++)
		g_row_values(w[i], SPMLA_DTYPE_BF16, x + 2 * i);
	scale = g_row_pow2(g_row_amax(x, 1e-10f));
	if (group_floor && scale < 0x1p-33f) /* 1e-10 rounded up */
		scale = 0x1p-33f;
	d = g_row_divisor_of(scale, 0);
	codes[0] = g_row_codes4(x, &d);
	codes[1] = g_row_codes4(x + 4, &d);
	return scale;
}

/* Four codes; `wide`: p is a multiple of 4. */
FN void
q_prep_store(GLOBAL uint8_t *p, uint32_t wide, uint32_t codes)
{
	if (wide) {
		*(GLOBAL uint32_t *)p = codes;
		return;
	}
	p[0] = (uint8_t)codes;
	p[1] = (uint8_t)(codes >> 8);
	p[2] = (uint8_t)(codes >> 16);
	p[3] = (uint8_t)(codes >> 24);
}

SPMLA_KERNEL(indexer_q_prep)
{
	const uint32_t chunks = (s.heads + Q_PREP_HEADS - 1) / Q_PREP_HEADS;
	/* 2^32 of them would be 8 TB of q. */
	const uint32_t tiles = s.tokens * chunks;
	const uint32_t lane = g_item() % G_ROW_LANES;
	const uint32_t group = g_item() / G_ROW_LANES * Q_PREP_EACH;
	uint32_t tile, e;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint32_t t = tile / chunks;
		const uint32_t h = (tile - t * chunks) * Q_PREP_HEADS + group;
		const uint32_t position =
			s.has_rope ? (uint32_t)positions[t] : 0;
		const uint32_t is_known =
			!s.has_rope || position < s.cos_sin_rows;
		/* The weight of head `lane` of those here. */
		const uint32_t weighs =
			lane < Q_PREP_EACH && h + lane < s.heads;
		const uint64_t row = (uint64_t)t * s.heads + h;
		GLOBAL const uint16_t *from =
			q + (int64_t)t * s.q_token_stride +
			(int64_t)h * s.q_head_stride + 4 * lane;
		GLOBAL uint8_t *to = q_out + row * G_ROW + 4 * lane;
		uint32_t w[Q_PREP_EACH][4];
		float weight = 0.0f, own = 0.0f, c[4], n[4];

		UNROLL
		for (e = 0; e < Q_PREP_EACH; e++) {
			w[e][0] = w[e][1] = w[e][2] = w[e][3] = 0;
			if (h + e < s.heads) {
				g_row_load4(from, s.wide_q, w[e]);
				g_row_load4(from + G_ROW_ROPE, s.wide_q,
					    w[e] + 2);
			}
			from += s.q_head_stride;
		}
		if (weighs) {
			const int64_t at =
				(int64_t)t * s.weights_stride + h + lane;

			weight = s.weights_f32 ? weights32[at]
					       : g_bf16_to_f32(weights16[at]);
		}
		if (!is_known && h == 0 && lane == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_POSITION);
		if (s.has_rope && is_known)
			q_prep_factors(cos_sin +
					       (uint64_t)position * G_ROW_ROPE,
				       s.neox, s.wide_rope, c, n);
		UNROLL
		for (e = 0; e < Q_PREP_EACH; e++) {
			uint32_t codes[2];
			float scale;

			if (s.has_rope && is_known)
				q_prep_rotate(w[e], c, n, s.neox);
			scale = q_prep_head(w[e], s.group_floor, codes);
			own = lane == e ? scale : own;
			if (h + e < s.heads) {
				q_prep_store(to, s.wide_out,
					     is_known ? codes[0] : 0);
				q_prep_store(to + G_ROW_ROPE, s.wide_out,
					     is_known ? codes[1] : 0);
			}
			to += G_ROW;
		}
		if (weighs)
			weights_out[row + lane] =
				is_known ? weight * own * s.softmax_scale *
						   s.head_scale
					 : 0.0f;
	}
}

#endif
#endif
