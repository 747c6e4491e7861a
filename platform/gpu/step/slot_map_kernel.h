/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: a thread a token.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_SLOT_MAP_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_SLOT_MAP_KERNEL_H

#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/input_device.h"
#include "spmla/platform/gpu/step/table_device.h"

#define SPMLA_K_slot_map(P, S)        \
	SPMLA_K_FAULT(P)              \
	P(const int32_t, token_row)   \
	P(const int32_t, positions)   \
	P(const int32_t, block_table) \
	P(const int32_t, table_cols)  \
	P(int32_t, context_lens)      \
	P(int64_t, slot_mapping)      \
	SPMLA_S_TABLE(S)              \
	S(uint32_t, tokens)           \
	S(uint32_t, ratio)            \
	S(uint32_t, ring)             \
	S(uint32_t, positions_wide)   \
	S(spmla_g_divisor, dcp_cycle) \
	S(uint32_t, dcp_run)          \
	S(uint32_t, dcp_first)
SPMLA_KERNEL_SCALARS(slot_map)

#ifdef SPMLA_GPU_KERNELS

/* The slot of one token, or -1. A position below 0, which is 2^31 or more here,
 * has no page. */
FN int64_t
slot_map_token(const PRIVATE g_reporter *to, const PRIVATE g_table *table,
	       uint32_t ring, uint32_t row, uint32_t position)
{
	uint32_t col = position / table->page_tokens;
	int32_t page = -1;

	if (row >= table->rows) {
		g_report(to, row, G_FAULT_ROW);
		return -1;
	}
	if (ring)
		col %= table->columns;
	if (position < 0x80000000u)
		page = g_table_page(table, row, col);
	if (page < 0) {
		g_report(to, row, G_FAULT_PAGE);
		return -1;
	}
	return (int64_t)page * table->page_tokens +
	       position % table->page_tokens;
}

SPMLA_KERNEL(slot_map)
void
spmla_k_slot_map(SPMLA_KERNEL_ARGS(slot_map))
{
	const uint32_t items = SPMLA_ITEMS_slot_map;
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const g_table table = G_TABLE(block_table, table_cols, s);
	uint32_t t;

	for (t = g_block() * items + g_item(); t < s.tokens;
	     t += g_blocks() * items) {
		const uint32_t position =
			(uint32_t)g_position(positions, s.positions_wide, t);
		int64_t slot = -1;

		if (context_lens[t] > 0 && s.dcp_run &&
		    position < 0x80000000u) {
			uint32_t own,
				keys = g_own_keys(position, s.dcp_cycle,
						  s.dcp_run, s.dcp_first, &own);

			if (keys)
				slot = slot_map_token(&to, &table, s.ring,
						      (uint32_t)token_row[t],
						      keys - 1);
			context_lens[t] = slot < 0 ? 0 : (int32_t)keys;
			slot_mapping[t] = own ? slot : -1;
			continue;
		}
		if (context_lens[t] > 0) {
			/* A position below 0 has no page. */
			if (position < 0x80000000u &&
			    (position + 1) % s.ratio != 0) {
				slot_mapping[t] = -1;
				continue;
			}
			slot = slot_map_token(&to, &table, s.ring,
					      (uint32_t)token_row[t], position);
		}
		if (slot > 0)
			slot = (int64_t)((uint64_t)slot / s.ratio);
		slot_mapping[t] = slot;
		if (slot < 0)
			context_lens[t] = 0;
	}
}

#endif
#endif
