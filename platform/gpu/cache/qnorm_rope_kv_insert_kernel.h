/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: a block takes eight heads of a token, or eight keys, at
 * a time, with 16 threads a row (v4_row_device.h). A row is read once, with
 * four loads of 16 bytes a thread in flight, before its position or slot is
 * known. It stays in registers until it is written.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_QNORM_ROPE_KV_INSERT_KERNEL_H
#define SPMLA_PLATFORM_GPU_CACHE_QNORM_ROPE_KV_INSERT_KERNEL_H

#include "spmla/platform/gpu/cache/v4_row_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_qnorm_rope_kv_insert(P, S) \
	SPMLA_K_FAULT(P)                   \
	P(const uint16_t, q)               \
	P(uint16_t, q_out)                 \
	P(const uint16_t, kv)              \
	P(const int64_t, slot_mapping)     \
	P(const int32_t, positions)        \
	P(const float, cos_sin)            \
	P(uint8_t, cache)                  \
	P(const float, scale_at)           \
	S(int64_t, q_token_stride)         \
	S(int64_t, q_head_stride)          \
	S(int64_t, out_token_stride)       \
	S(int64_t, out_head_stride)        \
	S(int64_t, kv_stride)              \
	S(uint64_t, page_stride_bytes)     \
	S(uint32_t, tokens)                \
	S(uint32_t, kv_tokens)             \
	S(uint32_t, heads)                 \
	S(uint32_t, padded_heads)          \
	S(uint32_t, cos_sin_rows)          \
	S(uint32_t, layout)                \
	S(uint32_t, page_entries)          \
	S(uint32_t, pages)                 \
	S(uint32_t, wide_q)                \
	S(uint32_t, wide_out)              \
	S(uint32_t, wide_kv)               \
	S(uint32_t, rope_form)             \
	S(float, norm_eps)                 \
	S(uint32_t, has_scale_at)          \
	S(uint32_t, fnuz)                  \
	S(float, kv_inverse)               \
	S(uint32_t, positions_wide)
SPMLA_KERNEL_SCALARS(qnorm_rope_kv_insert)

#ifdef SPMLA_GPU_KERNELS

/* 1 / sqrt(mean of squares + eps) of the row of 512 values that 16 lanes
 * have. */
FN float
qnorm_rstd(const PRIVATE uint32_t *w, float eps)
{
	float sum = 0.0f;
	uint32_t i;

	UNROLL
	for (i = 0; i < 4 * V4_EACH; i++) {
		const float x = g_bf16x2_low(w[i]), y = g_bf16x2_high(w[i]);

		sum += x * x;
		sum += y * y;
	}
	sum = g_sum16(sum);
	return g_div_rn(1.0f,
			g_sqrt_rn(sum * (1.0f / (float)SPMLA_V4_DIM) + eps));
}

/* Norms, rotates and writes a head. It is loaded if it is `there`, before the
 * position is known; if the position turns out to be bad, it is not `live`, and
 * zeros are written. All threads of the subgroup call it. */
FN void
qnorm_head(GLOBAL const uint16_t *q, uint32_t there, uint32_t live,
	   uint32_t wide_q, float eps, GLOBAL const float *cos_sin,
	   uint32_t position, uint32_t rope_form, GLOBAL uint16_t *out,
	   uint32_t is_head, uint32_t wide_out)
{
	const uint32_t lane = g_item() % V4_LANES;
	uint32_t w[4 * V4_EACH], angles[8], i, j;
	float r;

	v4_load_row(q, there, wide_q, w);
	v4_load_angles(cos_sin, position, live, rope_form, angles);
	UNROLL
	for (i = 0; i < 4 * V4_EACH; i++)
		w[i] = live ? w[i] : 0;
	r = qnorm_rstd(w, eps);
	UNROLL
	for (j = 0; j < V4_EACH; j++) {
		const uint32_t o = V4_LANES * j + lane;

		if (o >= V4_ROPE_OCTET) {
			v4_rotate8(w + 4 * j, r, angles);
		} else {
			UNROLL
			for (i = 4 * j; i < 4 * j + 4; i++)
				w[i] = g_bf16x2_bits(g_bf16x2_low(w[i]) * r,
						     g_bf16x2_high(w[i]) * r);
		}
		if (is_head)
			g_row_store8(out + 8 * o, wide_out, w + 4 * j);
	}
}

SPMLA_KERNEL(qnorm_rope_kv_insert)
void
spmla_k_qnorm_rope_kv_insert(SPMLA_KERNEL_ARGS(qnorm_rope_kv_insert))
{
	const uint32_t tiles = (s.padded_heads + V4_ROWS - 1) / V4_ROWS;
	const uint64_t q_tiles = (uint64_t)s.tokens * tiles;
	const uint64_t all =
		q_tiles + ((uint64_t)s.kv_tokens + V4_ROWS - 1) / V4_ROWS;
	const uint32_t group = g_item() / V4_LANES;
	const uint32_t first = g_item() % V4_LANES == 0;
	uint64_t tile;

	for (tile = g_block(); tile < q_tiles; tile += g_blocks()) {
		const uint32_t t = (uint32_t)(tile / tiles);
		const uint32_t h = (uint32_t)(tile % tiles) * V4_ROWS + group;
		const uint32_t position =
			(uint32_t)g_position(positions, s.positions_wide, t);
		const uint32_t known = position < s.cos_sin_rows;

		if (!known && h == 0 && first)
			g_fault(fault_state, fault_status, t, G_FAULT_POSITION);
		qnorm_head(q + (int64_t)t * s.q_token_stride +
				   (int64_t)h * s.q_head_stride,
			   h < s.heads, known && h < s.heads, s.wide_q,
			   s.norm_eps, cos_sin, position, s.rope_form,
			   q_out + (int64_t)t * s.out_token_stride +
				   (int64_t)h * s.out_head_stride,
			   h < s.padded_heads, s.wide_out);
	}
	for (; tile < all; tile += g_blocks()) {
		const uint64_t n = (tile - q_tiles) * V4_ROWS + group;
		const uint32_t t = (uint32_t)n, there = n < s.kv_tokens;
		const int64_t slot = there ? slot_mapping[t] : -1;
		const uint32_t position =
			there ? (uint32_t)g_position(positions,
						     s.positions_wide, t)
			      : 0;
		const g_place place = g_place_of(slot, s.page_entries, s.pages);
		const uint32_t live = place.inside && position < s.cos_sin_rows;
		uint32_t w[4 * V4_EACH], angles[8];

		if (slot >= 0 && !place.inside && first)
			g_fault(fault_state, fault_status, t, G_FAULT_SLOT);
		v4_load_row(kv + (int64_t)t * s.kv_stride, there, s.wide_kv, w);
		v4_load_angles(cos_sin, position, position < s.cos_sin_rows,
			       s.rope_form, angles);
		if (g_item() % V4_LANES >= V4_ROPE_OCTET % V4_LANES)
			v4_rotate8(w + 4 * (V4_EACH - 1), 1.0f, angles);
		v4_write_row(
			w, live,
			cache + (live ? place.page * s.page_stride_bytes : 0),
			s.layout, s.fnuz, s.page_entries, place.entry,
			v4_inverse_at(scale_at, s.has_scale_at, s.kv_inverse));
	}
}

#endif
#endif
