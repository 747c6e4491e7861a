/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: one block for each token, because a row has 8192 entries at a
 * context of a million tokens.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_C128A_INDEX_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_C128A_INDEX_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/select/slot_row_device.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"
#include "spmla/platform/gpu/step/table_device.h"

#define SPMLA_K_c128a_index(P, S)      \
	SPMLA_K_FAULT(P)               \
	P(const int32_t, positions)    \
	P(const int64_t, slot_mapping) \
	P(const int32_t, token_row)    \
	P(const int32_t, block_table)  \
	P(const int32_t, table_cols)   \
	P(int32_t, decode_slots)       \
	P(int32_t, decode_lens)        \
	P(int32_t, prefill_indices)    \
	P(int32_t, prefill_lens)       \
	P(const int32_t, entries)      \
	S(int64_t, decode_stride)      \
	S(int64_t, prefill_stride)     \
	SPMLA_S_TABLE(S)               \
	S(uint32_t, page_stride_rows)  \
	S(uint32_t, tokens)            \
	S(uint32_t, decode_tokens)     \
	S(uint32_t, ratio)             \
	S(uint32_t, width)             \
	S(uint32_t, entries_before)    \
	S(uint32_t, has_decode_lens)   \
	S(uint32_t, has_prefill_lens)  \
	S(uint32_t, has_entries)       \
	S(uint32_t, positions_wide)
SPMLA_KERNEL_SCALARS(c128a_index)

#ifdef SPMLA_GPU_KERNELS

/* How many compressed entries are complete at position pos >= 0. */
FN uint32_t
c128a_entries(int32_t pos, uint32_t ratio, uint32_t width)
{
	const uint32_t n = ((uint32_t)pos + 1) / ratio;

	return n < width ? n : width;
}

/* Writes out[e] = e for e < n, and -1 from there to width. `items` threads do
 * this together; the caller is number `item`. */
FN void
c128a_local_row(uint32_t n, GLOBAL int32_t *out, uint32_t width, uint32_t item,
		uint32_t items)
{
	uint32_t e;

	for (e = item; e < width; e += items)
		out[e] = e < n ? (int32_t)e : -1;
}

SPMLA_KERNEL(c128a_index)
void
spmla_k_c128a_index(SPMLA_KERNEL_ARGS(c128a_index))
{
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const g_table table = G_TABLE(block_table, table_cols, s);
	const uint32_t items = SPMLA_ITEMS_c128a_index;
	uint32_t t;

	for (t = g_block(); t < s.tokens; t += g_blocks()) {
		const uint32_t decode = t < s.decode_tokens;
		const uint32_t row = decode ? (uint32_t)token_row[t] : t;
		const uint32_t known = !decode || row < s.rows;
		uint32_t n = 0, before = 0, fault = 0;

		if (!s.has_entries && slot_mapping[t] < 0) {
			fault = 0; /* no token, and no fault of the step's */
		} else if (!known) {
			fault = G_FAULT_ROW;
		} else if (s.has_entries) {
			n = entries[t] > 0 ? (uint32_t)entries[t] : 0;
			n = n < s.width ? n : s.width;
			before = s.entries_before;
		} else if (g_position(positions, s.positions_wide, t) < 0) {
			fault = G_FAULT_POSITION;
		} else {
			n = c128a_entries(
				g_position(positions, s.positions_wide, t),
				s.ratio, s.width);
			before = s.entries_before;
		}
		if (decode) {
			const g_slots slots = g_slots_of(
				&table, known ? row : 0, 0, s.page_stride_rows);

			g_slot_row(&to, &slots, row, 0, n,
				   decode_slots + (int64_t)t * s.decode_stride,
				   s.width, g_item(), items);
		} else {
			c128a_local_row(n,
					prefill_indices +
						(int64_t)(t - s.decode_tokens) *
							s.prefill_stride,
					s.width, g_item(), items);
		}
		if (g_item() != 0)
			continue;
		if (decode && s.has_decode_lens)
			decode_lens[t] = (int32_t)(before + n);
		else if (!decode && s.has_prefill_lens)
			prefill_lens[t - s.decode_tokens] = (int32_t)n;
		if (fault)
			g_report(&to, known ? row : t, fault);
	}
}

#endif
#endif
