/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: a block a token, 128 items, one for each value of a group. The
 * four groups are quantised one after another by the whole block: a token is
 * 1152 bytes in and 656 out, so what counts is that tokens run side by side.
 * Rows of V4 go eight a block, by v4_row_gpu.h.
 */
#ifndef SPMLA_PLATFORM_GPU_KV_INSERT_H
#define SPMLA_PLATFORM_GPU_KV_INSERT_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/row_gpu.h"
#include "spmla/platform/gpu/v4_row_gpu.h"

#define SPMLA_K_kv_insert(P, S)        \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, kv_c)        \
	P(const uint16_t, k_pe)        \
	P(const int64_t, slot_mapping) \
	P(uint8_t, cache)              \
	S(int64_t, kv_c_stride)        \
	S(int64_t, k_pe_stride)        \
	S(uint64_t, page_stride_bytes) \
	S(uint32_t, tokens)            \
	S(uint32_t, dtype)             \
	S(uint32_t, raw_scale)         \
	S(uint32_t, fp8)               \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)
SPMLA_KERNEL_SCALARS(kv_insert)

#define SPMLA_K_kv_insert_v4(P, S)     \
	SPMLA_K_FAULT(P)               \
	P(const uint16_t, kv_c)        \
	P(const int64_t, slot_mapping) \
	P(uint8_t, cache)              \
	S(int64_t, kv_c_stride)        \
	S(uint64_t, page_stride_bytes) \
	S(uint32_t, tokens)            \
	S(uint32_t, layout)            \
	S(uint32_t, page_entries)      \
	S(uint32_t, pages)             \
	S(uint32_t, wide)              \
	S(float, inverse)
SPMLA_KERNEL_SCALARS(kv_insert_v4)

#ifdef SPMLA_GPU_KERNELS

FN float
kv_insert_scale(float amax, uint32_t raw)
{
	const float floor_at = raw ? 0x1p-126f : 1e-4f;
	float scale = g_div_rn(amax, 448.0f);

	if (scale < floor_at)
		scale = floor_at;
	return raw ? scale : g_pow2_up(scale);
}

SPMLA_KERNEL(kv_insert)
{
	LOCAL_ARRAY(float, amax, G_ROW_SUBGROUPS);
	const uint32_t i = g_item();
	uint32_t t, g;

	for (t = g_block(); t < s.tokens; t += g_blocks()) {
		const int64_t slot = slot_mapping[t];
		const uint64_t page = (uint64_t)slot / s.page_entries;
		const uint32_t entry =
			(uint32_t)((uint64_t)slot % s.page_entries);
		GLOBAL const uint16_t *latent =
			kv_c + (int64_t)t * s.kv_c_stride;
		GLOBAL const uint16_t *rope = k_pe + (int64_t)t * s.k_pe_stride;
		GLOBAL uint8_t *out;

		if (slot < 0)
			continue;
		if (page >= s.pages) {
			if (i == 0)
				g_fault(fault_state, fault_status, t,
					G_FAULT_SLOT);
			continue;
		}
		out = cache + page * s.page_stride_bytes;
		if (!s.fp8) {
			GLOBAL uint16_t *row =
				(GLOBAL uint16_t
					 *)(out + (uint64_t)entry *
							  SPMLA_MLA_BF16_BYTES);

			for (g = 0; g < SPMLA_MLA_SCALES; g++)
				row[g * SPMLA_MLA_SCALE_GROUP + i] =
					latent[g * SPMLA_MLA_SCALE_GROUP + i];
			if (i < SPMLA_MLA_ROPE)
				row[SPMLA_MLA_LATENT + i] = rope[i];
			continue;
		}
		out += (uint64_t)entry * SPMLA_FP8_DS_MLA_BYTES;
		for (g = 0; g < SPMLA_MLA_SCALES; g++) {
			const uint32_t v = g * SPMLA_MLA_SCALE_GROUP + i;
			const float x = g_load16(latent[v], s.dtype);
			const float scale = kv_insert_scale(
				g_row_amax(x, 0.0f, amax), s.raw_scale);

			out[v] = (uint8_t)g_f32_to_e4m3(g_div_rn(x, scale));
			if (i == 0)
				((GLOBAL float
					  *)(out +
					     SPMLA_FP8_DS_MLA_SCALE_BYTE))[g] =
					scale;
		}
		if (i < SPMLA_MLA_ROPE)
			((GLOBAL uint16_t *)(out +
					     SPMLA_FP8_DS_MLA_ROPE_BYTE))[i] =
				rope[i];
	}
}

SPMLA_KERNEL(kv_insert_v4)
{
	const uint64_t tiles = ((uint64_t)s.tokens + V4_ROWS - 1) / V4_ROWS;
	const uint32_t group = g_item() / V4_LANES;
	const uint32_t first = g_item() % V4_LANES == 0;
	uint64_t tile;

	for (tile = g_block(); tile < tiles; tile += g_blocks()) {
		const uint64_t n = tile * V4_ROWS + group;
		const uint32_t t = (uint32_t)n;
		const int64_t slot = n < s.tokens ? slot_mapping[t] : -1;
		const uint64_t page = (uint64_t)slot / s.page_entries;
		const uint32_t live = slot >= 0 && page < s.pages;
		uint32_t w[4 * V4_EACH];

		if (slot >= 0 && !live && first)
			g_fault(fault_state, fault_status, t, G_FAULT_SLOT);
		v4_load_row(kv_c + (int64_t)t * s.kv_c_stride, live, s.wide, w);
		v4_write_row(w, live, (GLOBAL const float *)kv_c, 0,
			     cache + (live ? page * s.page_stride_bytes : 0),
			     s.layout, s.page_entries,
			     (uint64_t)slot % s.page_entries, s.inverse);
	}
}

#endif
#endif
