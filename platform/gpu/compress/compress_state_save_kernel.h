/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save: a thread has four columns of a token, a quarter of the
 * width apart, so that a token is 32 to 256 threads and a block 8 to 1 tokens.
 * There is no barrier: what a thread loads is all on its way at once, and bytes
 * in and out are all that this costs.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_STATE_SAVE_KERNEL_H
#define SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_STATE_SAVE_KERNEL_H

#include "spmla/platform/gpu/compress/compress_device.h"
#include "spmla/platform/gpu/step/input_device.h"

#define SPMLA_K_compress_state_save(P, S) \
	SPMLA_K_FAULT(P)                  \
	P(const float, kv)                \
	P(const float, score)             \
	P(const float, ape)               \
	P(const int32_t, positions)       \
	P(const int64_t, slot_mapping)    \
	P(const int32_t, context_lens)    \
	P(const int32_t, token_row)       \
	P(const int32_t, block_table)     \
	P(const int32_t, table_cols)      \
	P(uint8_t, state)                 \
	S(int64_t, kv_stride)             \
	S(int64_t, score_stride)          \
	S(uint64_t, capacity)             \
	SPMLA_S_STATE(S)                  \
	S(uint32_t, tokens)               \
	S(uint32_t, positions_wide)       \
	S(uint32_t, kv_bf16)
SPMLA_KERNEL_SCALARS(compress_state_save)

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(compress_state_save)
void
spmla_k_compress_state_save(SPMLA_KERNEL_ARGS(compress_state_save))
{
	const uint32_t lanes = s.width / 4;
	const uint32_t share = SPMLA_ITEMS_compress_state_save / lanes;
	const uint32_t lane = g_item() % lanes;
	uint64_t t;

	for (t = (uint64_t)g_block() * share + g_item() / lanes; t < s.tokens;
	     t += (uint64_t)g_blocks() * share) {
		const int32_t position =
			g_position(positions, s.positions_wide, t);
		const uint64_t later = t + s.capacity;
		uint64_t at = 0;
		uint32_t fault = 0, known = ~0u, k; /* a row of the table */
		const uint64_t x = t * (uint64_t)s.kv_stride + lane;
		const uint64_t y = t * (uint64_t)s.score_stride + lane;
		GLOBAL const float *z;
		GLOBAL float *out;
		float a[4], b[4], c[4];

		if (!s.ring) {
			const int64_t slot = slot_mapping[t];
			const uint64_t page =
				(uint64_t)slot / s.state_entries.by;

			if (slot < 0)
				continue;
			if (page >= s.state_pages)
				fault = G_FAULT_SLOT;
			else if (position < 0)
				fault = G_FAULT_POSITION;
			else
				at = g_state_entry(
					page, s.state_page_bytes,
					(uint32_t)((uint64_t)slot %
						   s.state_entries.by),
					s.width);
		} else {
			const uint32_t row = (uint32_t)token_row[t];

			known = row;
			if (context_lens[t] <= 0)
				continue;
			if (position >= 0 && later < s.tokens &&
			    context_lens[later] > 0 &&
			    (uint32_t)token_row[later] == row &&
			    g_position(positions, s.positions_wide, later) ==
				    (int64_t)position + (int64_t)s.capacity)
				continue; /* its place is taken */
			if (position < 0)
				fault = G_FAULT_POSITION;
			else if (row >= s.rows)
				fault = G_FAULT_ROW;
			else if (!g_state_at(block_table, table_cols,
					     s.has_cols, s.columns,
					     s.table_stride, 1, s.state_pages,
					     s.state_page_bytes,
					     s.state_entries, s.width, row,
					     position, &at))
				fault = G_FAULT_PAGE;
		}
		if (fault) {
			if (lane == 0)
				g_fault(fault_state, fault_status,
					known < s.rows ? known : (uint32_t)t,
					fault);
			continue;
		}
		z = ape + (uint64_t)((uint32_t)position % s.ratio) * s.width;
		out = (GLOBAL float *)(state + at);
		UNROLL
		for (k = 0; k < 4; k++) {
			a[k] = g_real(kv, s.kv_bf16, x + k * lanes);
			b[k] = g_real(score, s.kv_bf16, y + k * lanes);
			c[k] = z[lane + k * lanes];
		}
		UNROLL
		for (k = 0; k < 4; k++) {
			out[lane + k * lanes] = a[k];
			out[s.width + lane + k * lanes] = b[k] + c[k];
		}
	}
}

#endif
#endif
