/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep as V4 has it: rope of the last 64 values, other floors, and
 * MXFP4. A block a head of a token, an item a value.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_V4_H
#define SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_V4_H

#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/mxfp4_gpu.h"
#include "spmla/platform/gpu/row_gpu.h"

#define SPMLA_K_indexer_q_prep_v4(P, S) \
	SPMLA_K_FAULT(P)                \
	P(const uint16_t, q)            \
	P(const uint16_t, weights16)    \
	P(const float, weights32)       \
	P(const int32_t, positions)     \
	P(const float, cos_sin)         \
	P(uint8_t, q_out)               \
	P(float, weights_out)           \
	P(uint8_t, q_scales)            \
	S(int64_t, q_token_stride)      \
	S(int64_t, q_head_stride)       \
	S(int64_t, weights_stride)      \
	S(uint32_t, tokens)             \
	S(uint32_t, heads)              \
	S(uint32_t, has_rope)           \
	S(uint32_t, neox)               \
	S(uint32_t, cos_sin_rows)       \
	S(uint32_t, rope_first)         \
	S(uint32_t, group_floor)        \
	S(uint32_t, mxfp4)              \
	S(uint32_t, weights_f32)        \
	S(float, least)                 \
	S(float, softmax_scale)         \
	S(float, head_scale)
SPMLA_KERNEL_SCALARS(indexer_q_prep_v4)

enum { INDEXER_Q_SUBGROUPS = 8 };

#ifdef SPMLA_GPU_KERNELS

/* The largest of `least` and the block's |x|, of which NaN is none; `largest`
 * holds an entry a subgroup. A barrier at both ends. */
FN float
indexer_q_amax(float x, float least, LOCAL float *largest)
{
	float a = x < 0.0f ? -x : x;
	uint32_t mask, i;

	a = a > least ? a : least; /* of a NaN: least */
	for (mask = g_width() / 2; mask; mask >>= 1) {
		const float b = g_shuffle_xor_f(a, mask);

		a = b > a ? b : a;
	}
	BARRIER();
	if (g_lane() == 0)
		largest[g_item() / g_width()] = a;
	BARRIER();
	for (i = 0; i < G_ROW / g_width(); i++)
		a = largest[i] > a ? largest[i] : a;
	return a;
}

/* The item's value after the rotation of the 64 from `first` on, 0 or 64: four
 * products, one difference, one sum, each rounded; then bf16. cos_sin is the
 * position's. */
FN float
indexer_q_rope(float x, uint32_t first, GLOBAL const float *cos_sin,
	       uint32_t neox, LOCAL float *row)
{
	const uint32_t i = g_item() - first, pairs = G_ROW_ROPE / 2;
	const uint32_t pair = neox ? i % pairs : i / 2;
	const uint32_t second = neox ? i / pairs : i % 2;
	const uint32_t other = neox ? i ^ pairs : i ^ 1u;
	float y;

	BARRIER();
	row[g_item()] = x;
	BARRIER();
	if (i >= G_ROW_ROPE) /* those before `first` too, which wrap */
		return x;
	y = row[first + other];
	if (second)
		x = x * cos_sin[pair] + y * cos_sin[pairs + pair];
	else
		x = x * cos_sin[pair] - y * cos_sin[pairs + pair];
	return g_round_bf16(x);
}

/* A query as MXFP4, the item's value of it: its code, two of which make a byte,
 * and of every 32 items the scale. `parts` holds an entry of 16 items. A
 * barrier at both ends. */
FN void
indexer_q_mxfp4(float x, LOCAL float *parts, GLOBAL uint8_t *codes,
		GLOBAL uint8_t *scales)
{
	const uint32_t i = g_item(), group = i / SPMLA_MXFP4_GROUP;
	float a = x < 0.0f ? -x : x;
	uint32_t byte, code, other, mask;

	a = a > 0.0f ? a : 0.0f; /* of a NaN: none */
	UNROLL
	for (mask = 8; mask; mask >>= 1) {
		const float b = g_shuffle_xor_f(a, mask);

		a = b > a ? b : a;
	}
	BARRIER();
	if (i % 16 == 0)
		parts[i / 16] = a;
	BARRIER();
	a = parts[2 * group];
	a = parts[2 * group + 1] > a ? parts[2 * group + 1] : a;
	byte = g_mxfp4_scale(a);
	code = g_f32_to_e2m1(x * g_mxfp4_inverse(byte));
	other = g_shuffle_xor(code, 1);
	if (i % 2 == 0)
		codes[i / 2] = (uint8_t)(code | other << 4);
	if (i % SPMLA_MXFP4_GROUP == 0)
		scales[group] = (uint8_t)byte;
}

/* Zeros in place of query r, of a token without a row of the rope table. */
FN void
indexer_q_clear(GLOBAL uint8_t *q_out, GLOBAL uint8_t *q_scales,
		GLOBAL float *weights_out, uint64_t r, uint32_t mxfp4)
{
	const uint32_t i = g_item();

	if (!mxfp4)
		q_out[r * G_ROW + i] = 0;
	else if (i < SPMLA_INDEX_MXFP4_VALUE_BYTES)
		q_out[r * SPMLA_INDEX_MXFP4_VALUE_BYTES + i] = 0;
	else if (i < SPMLA_INDEX_MXFP4_BYTES)
		q_scales[r * SPMLA_INDEX_MXFP4_SCALES + i -
			 SPMLA_INDEX_MXFP4_VALUE_BYTES] = 0;
	if (i == 0)
		weights_out[r] = 0.0f;
}

SPMLA_KERNEL(indexer_q_prep_v4)
{
	LOCAL_ARRAY(float, row, G_ROW);
	LOCAL_ARRAY(float, largest, INDEXER_Q_SUBGROUPS);
	const uint64_t rows = (uint64_t)s.tokens * s.heads;
	const uint32_t i = g_item();
	uint64_t r;

	for (r = g_block(); r < rows; r += g_blocks()) {
		const uint32_t t = (uint32_t)(r / s.heads);
		const uint32_t h = (uint32_t)(r % s.heads);
		const uint32_t position =
			s.has_rope ? (uint32_t)positions[t] : 0;
		const int64_t at = (int64_t)t * s.weights_stride + h;
		float x, weight, scale = 1.0f;

		if (s.has_rope && position >= s.cos_sin_rows) {
			if (i == 0 && h == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_POSITION);
			indexer_q_clear(q_out, q_scales, weights_out, r,
					s.mxfp4);
			continue;
		}
		x = g_bf16_to_f32(q[(int64_t)t * s.q_token_stride +
				    (int64_t)h * s.q_head_stride + i]);
		if (s.has_rope)
			x = indexer_q_rope(x, s.rope_first,
					   cos_sin + (uint64_t)position *
							     G_ROW_ROPE,
					   s.neox, row);
		if (s.mxfp4) {
			indexer_q_mxfp4(
				x, largest,
				q_out + r * SPMLA_INDEX_MXFP4_VALUE_BYTES,
				q_scales + r * SPMLA_INDEX_MXFP4_SCALES);
		} else {
			scale = g_div_rn(indexer_q_amax(x, s.least, largest),
					 448.0f);
			if (s.group_floor && scale < 1e-10f)
				scale = 1e-10f;
			scale = g_pow2_up(scale);
			q_out[r * G_ROW + i] =
				(uint8_t)g_f32_to_e4m3(g_div_rn(x, scale));
		}
		if (i == 0) {
			weight = s.weights_f32 ? weights32[at]
					       : g_bf16_to_f32(weights16[at]);
			weights_out[r] =
				weight * scale * s.softmax_scale * s.head_scale;
		}
	}
}

#endif
#endif
