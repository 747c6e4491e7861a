/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map where slots are moved to the front or tokens without a slot are
 * left out: a block a token, and a scan for each piece of its row.
 */
#ifndef SPMLA_PLATFORM_GPU_INDEX_MAP_COMPACT_H
#define SPMLA_PLATFORM_GPU_INDEX_MAP_COMPACT_H

#include "spmla/platform/gpu/index_map_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"

#define SPMLA_K_index_map_compact(P, S) SPMLA_K_index_map(P, S)
SPMLA_KERNEL_SCALARS(index_map_compact)

enum { INDEX_COMPACT_ITEMS = SPMLA_ITEMS_index_map_compact };

#ifdef SPMLA_GPU_KERNELS

/* What one token's indices are mapped by. */
typedef struct index_compact_token {
	GLOBAL const int32_t *table;
	GLOBAL const int32_t *cols;
	int32_t start;         /* of its workspace */
	uint32_t in_workspace; /* 0: by the table */
	uint32_t row;          /* of the table */
	uint32_t bad;          /* no such row or workspace */
	uint32_t reported;     /* row that its faults name */
	uint32_t has_context;  /* whether `context` bounds the indices */
	int32_t context;
} index_compact_token;

/* The slot of an index, or -1, reported if that is a fault. */
FN int32_t
index_compact_slot(const PRIVATE g_reporter *to,
		   const PRIVATE index_compact_token *k,
		   const PRIVATE spmla_k_index_map_compact_scalars *s,
		   int32_t index)
{
	const uint32_t col = (uint32_t)index / s->page_tokens;
	uint32_t fault = 0;
	int64_t slot = -1;

	if (index < 0)
		return -1;
	if (k->has_context && index >= k->context) {
		fault = G_FAULT_INDEX;
	} else if (col >= s->columns) {
		return -1; /* no entry, and no fault of the step's */
	} else if (k->bad) {
		fault = G_FAULT_ROW;
	} else {
		if (k->in_workspace) {
			slot = (int64_t)k->start + index;
		} else {
			const int32_t page = g_table_page(
				k->table, k->cols, s->has_cols, s->columns,
				s->stride, s->pool_pages, k->row, col);

			if (page < 0)
				fault = G_FAULT_PAGE;
			else
				slot = (int64_t)page * s->page_stride_rows +
				       (uint32_t)index % s->page_tokens;
		}
		if (!fault && (slot < 0 || slot > 0x7fffffff))
			fault = G_FAULT_INDEX;
	}
	if (!fault)
		return (int32_t)slot;
	g_report(to, k->reported, fault);
	return -1;
}

SPMLA_KERNEL(index_map_compact)
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	uint32_t t, j;

	for (t = g_block(); t < s.tokens; t += g_blocks()) {
		GLOBAL const int32_t *in =
			indices + (int64_t)t * s.indices_stride;
		GLOBAL int32_t *out = slots + (int64_t)t * s.slots_stride;
		const int32_t id = s.has_ids ? workspace_ids[t] : -1;
		index_compact_token k;
		uint32_t len = s.k, first, some, kept = 0;
		uint64_t valid = 0, all;

		k.table = block_table;
		k.cols = table_cols;
		k.row = (uint32_t)token_row[t];
		k.reported = k.row < s.rows ? k.row : t;
		k.bad = id < 0 ? k.row >= s.rows : (uint32_t)id >= s.workspaces;
		k.in_workspace = id >= 0;
		k.start = id >= 0 && !k.bad ? workspace_starts[id] : 0;
		k.has_context = s.has_context;
		k.context = s.has_context ? context_lens[t] : 0;
		if (s.has_lens)
			len = lens[t] > 0 ? (uint32_t)lens[t] : 0;
		if (s.has_slots && slot_mapping[t] < 0)
			len = 0;
		if (!s.compact) {
			for (j = g_item(); j < s.k; j += INDEX_COMPACT_ITEMS) {
				const int32_t slot = index_compact_slot(
					&to, &k, &s, j < len ? in[j] : -1);

				valid += slot >= 0;
				out[j] = slot;
			}
			if (!s.has_counts)
				continue;
			(void)g_scan_sum(valid, INDEX_COMPACT_ITEMS, sums,
					 &all);
			if (g_item() == 0)
				valid_counts[t] = (int32_t)all;
			continue;
		}
		/* The scan's barriers lie between the reads of a piece and its
		 * writes, which do not go past it: it may be in place. */
		for (first = 0; first < s.k && first < len;
		     first += INDEX_COMPACT_ITEMS) {
			uint32_t at;
			int32_t slot;

			j = first + g_item();
			slot = index_compact_slot(
				&to, &k, &s, j < s.k && j < len ? in[j] : -1);
			at = kept + g_scan_flags(slot >= 0, INDEX_COMPACT_ITEMS,
						 sums, &some);
			if (slot >= 0)
				out[at] = slot;
			kept += some;
		}
		for (j = kept + g_item(); j < s.k; j += INDEX_COMPACT_ITEMS)
			out[j] = -1;
		if (s.has_counts && g_item() == 0)
			valid_counts[t] = (int32_t)kept;
	}
}

#endif
#endif
