/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: a block a token, an item a value; after each step the row
 * is rounded to bf16, as if it had been stored and read again.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEXER_K_INSERT_H
#define SPMLA_PLATFORM_GPU_INDEXER_K_INSERT_H

#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/row_gpu.h"

#define SPMLA_K_indexer_k_insert(P, S) \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, k)           \
	P(const int64_t, slot_mapping) \
	P(const float, norm_weight)    \
	P(const float, norm_bias)      \
	P(const int32_t, positions)    \
	P(const float, cos_sin)        \
	P(uint8_t, cache)              \
	S(int64_t, k_stride)           \
	S(uint64_t, page_stride_bytes) \
	S(uint32_t, tokens)            \
	S(uint32_t, dtype)             \
	S(uint32_t, raw_scale)         \
	S(uint32_t, has_norm)          \
	S(uint32_t, has_rope)          \
	S(uint32_t, neox)              \
	S(uint32_t, cos_sin_rows)      \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)             \
	S(float, norm_eps)
SPMLA_KERNEL_SCALARS(indexer_k_insert)

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(indexer_k_insert)
{
	LOCAL_ARRAY(float, row, G_ROW);
	LOCAL_ARRAY(float, largest, G_ROW_SUBGROUPS);
	const uint32_t i = g_item();
	uint32_t t;

	for (t = g_block(); t < s.tokens; t += g_blocks()) {
		const int64_t slot = slot_mapping[t];
		const uint64_t page = (uint64_t)slot / s.page_entries;
		const uint32_t entry =
			(uint32_t)((uint64_t)slot % s.page_entries);
		GLOBAL uint8_t *out;
		uint32_t position = 0;
		float x, scale;

		if (slot < 0)
			continue;
		if (page >= s.pages) {
			if (i == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_SLOT);
			continue;
		}
		if (s.has_rope) {
			position = (uint32_t)positions[t];
			if (position >= s.cos_sin_rows) {
				if (i == 0)
					g_fault(fault_state, fault_status, t,
						G_FAULT_POSITION);
				continue;
			}
		}
		out = cache + page * s.page_stride_bytes;
		x = g_load16(k[(int64_t)t * s.k_stride + i], s.dtype);
		if (s.has_norm) {
			float var, rstd;

			x -= g_row_sum(x, row) * 0.0078125f;
			var = g_row_sum(x * x, row) * 0.0078125f;
			rstd = g_div_rn(1.0f, g_sqrt_rn(var + s.norm_eps));
			x = g_round_bf16(x * rstd * norm_weight[i] +
					 norm_bias[i]);
		}
		if (s.has_rope)
			x = g_row_rope(
				x, cos_sin + (uint64_t)position * G_ROW_ROPE,
				s.neox, row);
		scale = g_div_rn(g_row_amax(x, 1e-4f, largest), 448.0f);
		if (!s.raw_scale)
			scale = g_pow2_up(scale);
		out[(uint64_t)entry * G_ROW + i] =
			(uint8_t)g_f32_to_e4m3(g_div_rn(x, scale));
		if (i == 0)
			((GLOBAL float *)(out + (uint64_t)s.page_entries *
							G_ROW))[entry] = scale;
	}
}

#endif
#endif
