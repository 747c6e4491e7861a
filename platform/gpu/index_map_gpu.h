/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: a block a token. Slots are computed in 64 bits and only then
 * narrowed, so that nothing can wrap into a slot that looks valid.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEX_MAP_H
#define SPMLA_PLATFORM_GPU_INDEX_MAP_H

#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"
#include "spmla/platform/gpu/slot_map_gpu.h"

#define SPMLA_K_index_map(P, S)            \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, token_row)        \
	P(const int32_t, block_table)      \
	P(const int32_t, table_cols)       \
	P(const int32_t, indices)          \
	P(const int32_t, lens)             \
	P(int32_t, slots)                  \
	P(int32_t, valid_counts)           \
	P(const int32_t, workspace_ids)    \
	P(const int32_t, workspace_starts) \
	P(const int32_t, context_lens)     \
	S(int64_t, indices_stride)         \
	S(int64_t, slots_stride)           \
	SPMLA_S_TABLE(S)                   \
	S(uint32_t, tokens)                \
	S(uint32_t, k)                     \
	S(uint32_t, page_stride_rows)      \
	S(uint32_t, workspaces)            \
	S(uint32_t, has_lens)              \
	S(uint32_t, has_counts)            \
	S(uint32_t, has_ids)               \
	S(uint32_t, has_context)
SPMLA_KERNEL_SCALARS(index_map)

enum { INDEX_MAP_ITEMS = SPMLA_ITEMS_index_map };

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(index_map)
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	uint32_t t, j;

	for (t = g_block(); t < s.tokens; t += g_blocks()) {
		GLOBAL const int32_t *in =
			indices + (int64_t)t * s.indices_stride;
		GLOBAL int32_t *out = slots + (int64_t)t * s.slots_stride;
		const int32_t id = s.has_ids ? workspace_ids[t] : -1;
		const uint32_t row = (uint32_t)token_row[t];
		const int32_t context = s.has_context ? context_lens[t] : 0;
		uint32_t len = s.k;
		uint64_t valid = 0;

		if (s.has_lens)
			len = lens[t] > 0 ? (uint32_t)lens[t] : 0;
		for (j = g_item(); j < s.k; j += INDEX_MAP_ITEMS) {
			const int32_t index = j < len ? in[j] : -1;
			const uint32_t col = (uint32_t)index / s.page_tokens;
			uint32_t fault = 0;
			int64_t slot = -1;

			if (index >= 0 && s.has_context && index >= context) {
				fault = G_FAULT_INDEX;
			} else if (index < 0 || col >= s.columns) {
				/* No entry, and no fault of the step's. */
			} else if (id >= 0) {
				if ((uint32_t)id >= s.workspaces)
					fault = G_FAULT_ROW;
				else
					slot = (int64_t)workspace_starts[id] +
					       index;
			} else if (row >= s.rows) {
				fault = G_FAULT_ROW;
			} else {
				const int32_t page = g_table_page(
					block_table, table_cols, s.has_cols,
					s.columns, s.stride, s.pool_pages, row,
					col);

				if (page < 0)
					fault = G_FAULT_PAGE;
				else
					slot = (int64_t)page *
						       s.page_stride_rows +
					       (uint32_t)index % s.page_tokens;
			}
			if (!fault && index >= 0 && col < s.columns &&
			    (slot < 0 || slot > 0x7fffffff)) {
				fault = G_FAULT_INDEX;
				slot = -1;
			}
			if (fault)
				g_report(&to, row < s.rows ? row : t, fault);
			valid += slot >= 0;
			out[j] = (int32_t)slot;
		}
		if (s.has_counts) {
			uint64_t all;

			(void)g_scan_sum(valid, INDEX_MAP_ITEMS, sums, &all);
			if (g_item() == 0)
				valid_counts[t] = (int32_t)all;
		}
	}
}

#endif
#endif
