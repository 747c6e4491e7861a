/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: a block a head of a token, an item a value.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H
#define SPMLA_PLATFORM_GPU_INDEXER_Q_PREP_H

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
	S(float, softmax_scale)      \
	S(float, head_scale)
SPMLA_KERNEL_SCALARS(indexer_q_prep)

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(indexer_q_prep)
{
	LOCAL_ARRAY(float, row, G_ROW);
	LOCAL_ARRAY(float, largest, G_ROW_SUBGROUPS);
	const uint64_t rows = (uint64_t)s.tokens * s.heads;
	const uint32_t i = g_item();
	uint64_t r;

	for (r = g_block(); r < rows; r += g_blocks()) {
		const uint32_t t = (uint32_t)(r / s.heads);
		const uint32_t h = (uint32_t)(r % s.heads);
		const uint32_t position =
			s.has_rope ? (uint32_t)positions[t] : 0;
		const int64_t at = (int64_t)t * s.weights_stride + h;
		float x, scale, weight;

		if (s.has_rope && position >= s.cos_sin_rows) {
			if (i == 0 && h == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_POSITION);
			q_out[r * G_ROW + i] = 0;
			if (i == 0)
				weights_out[r] = 0.0f;
			continue;
		}
		x = g_bf16_to_f32(q[(int64_t)t * s.q_token_stride +
				    (int64_t)h * s.q_head_stride + i]);
		if (s.has_rope)
			x = g_row_rope(
				x, cos_sin + (uint64_t)position * G_ROW_ROPE,
				s.neox, row);
		scale = g_div_rn(g_row_amax(x, 1e-10f, largest), 448.0f);
		if (s.group_floor && scale < 1e-10f)
			scale = 1e-10f;
		scale = g_pow2_up(scale);
		q_out[r * G_ROW + i] =
			(uint8_t)g_f32_to_e4m3(g_div_rn(x, scale));
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
