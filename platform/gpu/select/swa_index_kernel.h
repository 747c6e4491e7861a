/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: one subgroup for each token, because the window is short. Tokens
 * go to different blocks first, so that each of a few tokens has a
 * multiprocessor of its own.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_SWA_INDEX_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_SWA_INDEX_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/select/slot_row_device.h"
#include "spmla/platform/gpu/select/window_device.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"
#include "spmla/platform/gpu/step/table_device.h"

#define SPMLA_K_swa_index(P, S)           \
	SPMLA_K_FAULT(P)                  \
	P(const int32_t, positions)       \
	P(const int32_t, token_row)       \
	P(const int64_t, slot_mapping)    \
	P(const int32_t, block_table)     \
	P(const int32_t, table_cols)      \
	P(const int32_t, replay_starts)   \
	P(const int32_t, image_spans)     \
	P(int32_t, indices)               \
	P(int32_t, lens)                  \
	P(const int32_t, query_start_loc) \
	P(const int32_t, seq_lens)        \
	P(const int32_t, req_row)         \
	P(int32_t, gather_lens)           \
	S(int64_t, indices_stride)        \
	SPMLA_S_TABLE(S)                  \
	S(uint32_t, page_stride_rows)     \
	S(uint32_t, ring)                 \
	S(uint32_t, tokens)               \
	S(uint32_t, requests)             \
	S(uint32_t, window)               \
	S(uint32_t, width)                \
	S(uint32_t, max_image)            \
	S(uint32_t, padded_lens)          \
	S(uint32_t, has_images)           \
	S(uint32_t, has_replay)           \
	S(uint32_t, has_req_row)          \
	S(uint32_t, positions_wide)
SPMLA_KERNEL_SCALARS(swa_index)

#ifdef SPMLA_GPU_KERNELS

/* How many keys a request with `queries` >= 0 gathers; -1 for a bad length. */
FN int32_t
swa_gather_len(int64_t queries, int32_t seq_len, uint32_t replay,
	       uint32_t window)
{
	const int64_t before = seq_len - queries - replay;
	const int64_t most = (int64_t)window - 1;

	if (before < 0)
		return -1;
	return (int32_t)(queries + (before < most ? before : most));
}

SPMLA_KERNEL(swa_index)
void
spmla_k_swa_index(SPMLA_KERNEL_ARGS(swa_index))
{
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const g_table table = G_TABLE(block_table, table_cols, s);
	const uint32_t items = SPMLA_ITEMS_swa_index;
	const uint32_t width = g_width(), own = g_item() / width;
	uint32_t t, b;

	for (t = own * g_blocks() + g_block(); t < s.tokens;
	     t += items / width * g_blocks()) {
		const uint32_t row = (uint32_t)token_row[t];
		const int32_t pos = g_position(positions, s.positions_wide, t);
		uint32_t fault = 0, len;
		int32_t replay = 0;
		g_slots slots;
		g_window w;

		w.start = w.end = 0;
		if (row < s.rows && s.has_replay && replay_starts[row] > 0)
			replay = replay_starts[row];
		if (slot_mapping[t] < 0)
			fault = 0; /* no token, and no fault of the step's */
		else if (row >= s.rows)
			fault = G_FAULT_ROW;
		else if (pos < 0 || replay > pos)
			fault = G_FAULT_POSITION;
		else
			w = g_window_of(
				pos, s.window,
				s.has_images ? image_spans[2 * (uint64_t)t] : 0,
				s.has_images ? image_spans[2 * (uint64_t)t + 1]
					     : -1,
				s.max_image, (uint32_t)replay,
				s.window + s.max_image);
		len = w.end - w.start;
		slots = g_slots_of(&table, len > 0 ? row : 0, s.ring,
				   s.page_stride_rows);
		g_slot_row(&to, &slots, row, w.start, len,
			   indices + (int64_t)t * s.indices_stride, s.width,
			   g_lane(), width);
		if (g_lane() == 0) {
			lens[t] =
				(int32_t)(len && s.padded_lens ? s.width : len);
			if (fault)
				g_report(&to, row < s.rows ? row : t, fault);
		}
	}
	for (b = g_block() * items + g_item(); b < s.requests;
	     b += g_blocks() * items) {
		const int64_t queries =
			(int64_t)query_start_loc[b + 1] - query_start_loc[b];
		const uint32_t row = s.has_req_row ? (uint32_t)req_row[b] : b;
		int32_t len = 0, replay = 0;

		if (queries >= 0 && s.has_replay && row >= s.rows) {
			g_report(&to, b, G_FAULT_ROW);
		} else if (queries >= 0) {
			if (s.has_replay && replay_starts[row] > 0)
				replay = replay_starts[row];
			len = swa_gather_len(queries, seq_lens[b],
					     (uint32_t)replay, s.window);
			if (len < 0) {
				g_report(&to, row, G_FAULT_LENGTH);
				len = 0;
			}
		}
		gather_lens[b] = len;
	}
}

#endif
#endif
