/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: 8 lanes take one head of a token, and a block takes 16 heads
 * at a time. Lane l has values 8l .. 8l + 7 of each half, all loaded before any
 * is used. Every lane rotates; the other value of a pair is in the lane or one
 * shuffle away. Which half is rotated changes only addresses. With MXFP4, 4
 * lanes share a group of 32 values in each half. With many tokens instructions
 * are the limit, not bytes, so a lane has one load, one MXFP4 scale and one
 * store for each half.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_INDEXER_Q_PREP_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_INDEXER_Q_PREP_KERNEL_H

#include "spmla/platform/gpu/cache/row_device.h"
#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/mxfp4.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"

/* For both kernels: e4m3 and MXFP4. */
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
	S(uint32_t, wide)            \
	S(float, least)              \
	S(float, softmax_scale)      \
	S(float, head_scale)         \
	S(uint32_t, positions_wide)  \
	S(uint32_t, rope_form)       \
	S(uint32_t, fnuz)
SPMLA_KERNEL_SCALARS(indexer_q_prep)
#define SPMLA_K_indexer_q_prep_mxfp4(P, S) SPMLA_K_indexer_q_prep(P, S)
typedef spmla_k_indexer_q_prep_scalars spmla_k_indexer_q_prep_mxfp4_scalars;

enum {
	Q_PREP_LANES = 8, /* of a head */
	Q_PREP_HEADS = SPMLA_ITEMS_indexer_q_prep / Q_PREP_LANES,
	Q_PREP_PAIRS = G_ROW_ROPE / 2,
	Q_PREP_GROUP = SPMLA_MXFP4_GROUP / 8 /* lanes of a scale of MXFP4 */
};

#ifdef SPMLA_GPU_KERNELS

/* The lane's cosines and sines for a position, one of each for each pair: a
 * lane has eight pairs with NEOX, else four. */
FN void
q_prep_factors(GLOBAL const float *cos_sin, uint32_t position, uint32_t neox,
	       uint32_t form, PRIVATE uint32_t *c, PRIVATE uint32_t *s)
{
	const uint32_t lane = g_item() % Q_PREP_LANES;
	const uint64_t at = (uint64_t)position * G_ROW_ROPE +
			    (neox ? 8 * (lane % 4) : 4 * lane);

	g_reals4(cos_sin, form, at, c);
	g_reals4(cos_sin, form, at + Q_PREP_PAIRS, s);
	if (!neox)
		return;
	g_reals4(cos_sin, form, at + 4, c + 4);
	g_reals4(cos_sin, form, at + Q_PREP_PAIRS + 4, s + 4);
}

/* Rotates the eight values of w: two products and their sum, each rounded; then
 * bf16. By all threads of the subgroup together. */
FN void
q_prep_rotate(PRIVATE uint32_t *w, const PRIVATE uint32_t *c,
	      const PRIVATE uint32_t *s, const uint32_t neox)
{
	const uint32_t first = g_item() % Q_PREP_LANES < Q_PREP_LANES / 2;
	const uint32_t sign = first ? 0x80008000u : 0;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4; i++) {
		float x[2], y[2];

		g_row_values(w[i], SPMLA_DTYPE_BF16, x);
		if (!neox) {
			w[i] = g_f32_to_bf16x2(
				x[0] * g_float(c[i]) - x[1] * g_float(s[i]),
				x[1] * g_float(c[i]) + x[0] * g_float(s[i]));
			continue;
		}
		g_row_values(g_shuffle_xor(w[i], Q_PREP_LANES / 2) ^ sign,
			     SPMLA_DTYPE_BF16, y);
		w[i] = g_f32_to_bf16x2(x[0] * g_float(c[2 * i]) +
					       y[0] * g_float(s[2 * i]),
				       x[1] * g_float(c[2 * i + 1]) +
					       y[1] * g_float(s[2 * i + 1]));
	}
}

/* Computes the lane's codes of a head, four words; returns the head's scale. A
 * code means half as much in FNUZ as in e4m3fn, so the scale is twice that. */
FN float
q_prep_head(const PRIVATE uint32_t *w, float least, uint32_t group_floor,
	    uint32_t fnuz, PRIVATE uint32_t *codes)
{
	const float more = fnuz ? 2.0f : 1.0f;
	float scale =
		more * g_row_pow2(g_row_amax_bf16(w, 8, Q_PREP_LANES, least));
	float inverse;
	uint32_t i, j;

	if (group_floor && scale < 0x1p-33f) /* 1e-10 rounded up */
		scale = 0x1p-33f;
	inverse = more * g_row_divisor_of(scale, 0).inverse;
	UNROLL
	for (i = 0; i < 4; i++) {
		float x[4];

		g_row_values(w[2 * i], SPMLA_DTYPE_BF16, x);
		g_row_values(w[2 * i + 1], SPMLA_DTYPE_BF16, x + 2);
		UNROLL
		for (j = 0; j < 4; j++)
			x[j] *= inverse;
		codes[i] = g_row_codes4(x);
		if (fnuz)
			codes[i] = g_e4m3x4_to_fnuz(codes[i]);
	}
	return scale;
}

/* The same for MXFP4: a lane gets one word of codes for each half, and the
 * scale bytes of the two groups. */
FN void
q_prep_groups(const PRIVATE uint32_t *w, PRIVATE uint32_t *codes,
	      PRIVATE uint32_t *bytes)
{
	bytes[0] = g_mxfp4_scale(g_row_amax_bf16(w, 4, Q_PREP_GROUP, 0.0f));
	bytes[1] = g_mxfp4_scale(g_row_amax_bf16(w + 4, 4, Q_PREP_GROUP, 0.0f));
	codes[0] = g_mxfp4_codes8(w, g_mxfp4_inverse(bytes[0]));
	codes[1] = g_mxfp4_codes8(w + 4, g_mxfp4_inverse(bytes[1]));
}

/* Stores one or two words of codes; `wide`: p is aligned to their size. */
FN void
q_prep_store(GLOBAL uint8_t *p, uint32_t wide, uint32_t words,
	     const PRIVATE uint32_t *codes)
{
	uint32_t i;

	if (wide && words == 1) {
		*(GLOBAL uint32_t *)p = codes[0];
		return;
	}
	if (wide) {
		*(GLOBAL uint64_t *)p = (uint64_t)codes[1] << 32 | codes[0];
		return;
	}
	UNROLL
	for (i = 0; i < 4 * words; i++)
		p[i] = (uint8_t)(codes[i / 4] >> 8 * (i % 4));
}

/* The arguments of either kernel. */
typedef struct q_prep_job {
	SPMLA_KERNEL_FIELDS(indexer_q_prep)
} q_prep_job;

/* Rotates a lane's values of a head at a position. */
FN void
q_prep_turn(const PRIVATE q_prep_job *job, uint32_t position,
	    const uint32_t wide, PRIVATE uint32_t *w)
{
	uint32_t c[8], sines[8];

	q_prep_factors(job->cos_sin, position, job->s.neox,
		       wide ? G_REALS_WIDE : job->s.rope_form, c, sines);
	if (job->s.neox)
		q_prep_rotate(w, c, sines, 1);
	else
		q_prep_rotate(w, c, sines, 0);
}

/* Writes a lane's codes of a head, which is row `row` of the output, and for
 * MXFP4 its scale bytes. */
FN void
q_prep_write(const PRIVATE q_prep_job *job, uint64_t row, const uint32_t mxfp4,
	     const uint32_t wide, const PRIVATE uint32_t *codes,
	     const PRIVATE uint32_t *bytes)
{
	const uint32_t lane = g_item() % Q_PREP_LANES;
	const uint32_t first = job->s.rope_first, other = G_ROW_ROPE - first;
	const uint32_t packed = mxfp4; /* log2 of the values of a byte */
	const uint32_t words = mxfp4 ? 1u : 2u; /* of the codes of a half */
	GLOBAL uint8_t *to = job->q_out + ((row * G_ROW + 8 * lane) >> packed);

	q_prep_store(to + (first >> packed), wide, words, codes);
	q_prep_store(to + (other >> packed), wide, words, codes + words);
	if (mxfp4 && lane % Q_PREP_GROUP == 0) {
		GLOBAL uint8_t *scales = job->q_scales +
					 row * SPMLA_INDEX_MXFP4_SCALES +
					 lane / Q_PREP_GROUP;

		scales[first / SPMLA_MXFP4_GROUP] = (uint8_t)bytes[0];
		scales[other / SPMLA_MXFP4_GROUP] = (uint8_t)bytes[1];
	}
}

/* The body of both kernels. `mxfp4` and `wide` are constants, so no dead branch
 * stands between the loads. `wide`: a lane's values, codes and factors are each
 * aligned to their size. */
FN void
q_prep_all(const PRIVATE q_prep_job *job, const uint32_t mxfp4,
	   const uint32_t wide)
{
	const PRIVATE spmla_k_indexer_q_prep_scalars *s = &job->s;
	const uint32_t chunks = (s->heads + Q_PREP_HEADS - 1) / Q_PREP_HEADS;
	/* 2^32 of them would be 8 TB of q. */
	const uint32_t tiles = s->tokens * chunks;
	const uint32_t lane = g_item() % Q_PREP_LANES;
	const uint32_t other = G_ROW_ROPE - s->rope_first;
	uint32_t tile;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint32_t t = tile / chunks;
		const uint32_t h = (tile - t * chunks) * Q_PREP_HEADS +
				   g_item() / Q_PREP_LANES;
		const uint32_t is_head = h < s->heads;
		const uint64_t row = (uint64_t)t * s->heads + h;
		GLOBAL const uint16_t *from =
			job->q + (int64_t)t * s->q_token_stride +
			(int64_t)h * s->q_head_stride + 8 * lane;
		/* The half that is rotated, then the other one. */
		uint32_t w[8] = {0, 0, 0, 0, 0, 0, 0, 0};
		uint32_t codes[4], bytes[2] = {0, 0}, weight = 0, position = 0,
				   is_known;
		float scale = 1.0f;

		if (s->has_rope)
			position = (uint32_t)g_position(
				job->positions, job->s.positions_wide, t);
		/* Kept as loaded: a conversion would wait for the load. */
		if (is_head && lane == 0) {
			const int64_t at = (int64_t)t * s->weights_stride + h;

			weight = s->weights_f32 ? g_bits(job->weights32[at])
						: job->weights16[at];
		}
		if (is_head) {
			g_row_load8(from + s->rope_first, wide, w);
			g_row_load8(from + other, wide, w + 4);
		}
		/* Checked only now: sooner, the loads above would wait for the
		 * position. */
		is_known = !s->has_rope || position < s->cos_sin_rows;
		if (!is_known && h == 0 && lane == 0)
			g_fault(job->fault_state, job->fault_status, t,
				G_FAULT_POSITION);
		if (s->has_rope && is_known)
			q_prep_turn(job, position, wide, w);
		if (mxfp4)
			q_prep_groups(w, codes, bytes);
		else
			scale = q_prep_head(w, s->least, s->group_floor,
					    s->fnuz, codes);
		if (!is_head)
			continue;
		if (!is_known) {
			codes[0] = codes[1] = codes[2] = codes[3] = 0;
			bytes[0] = bytes[1] = 0;
		}
		q_prep_write(job, row, mxfp4, wide, codes, bytes);
		if (lane == 0) {
			scale *= s->weights_f32 ? g_float(weight)
						: g_bf16_to_f32(weight);
			scale = scale * s->softmax_scale * s->head_scale;
			job->weights_out[row] = is_known ? scale : 0.0f;
		}
	}
}

/* Ten blocks per SM with 48 registers each: with twelve, ptxas spills. */
SPMLA_KERNEL_BLOCKS(indexer_q_prep, 10)
void
spmla_k_indexer_q_prep(SPMLA_KERNEL_ARGS(indexer_q_prep))
{
	const q_prep_job job = {SPMLA_KERNEL_VALUES(indexer_q_prep)};

	if (s.wide)
		q_prep_all(&job, 0, 1);
	else
		q_prep_all(&job, 0, 0);
}

SPMLA_KERNEL_BLOCKS(indexer_q_prep_mxfp4, 10)
void
spmla_k_indexer_q_prep_mxfp4(SPMLA_KERNEL_ARGS(indexer_q_prep_mxfp4))
{
	const q_prep_job job = {SPMLA_KERNEL_VALUES(indexer_q_prep)};

	if (s.wide)
		q_prep_all(&job, 1, 1);
	else
		q_prep_all(&job, 1, 0);
}

#endif
#endif
