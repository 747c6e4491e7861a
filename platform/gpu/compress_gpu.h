/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a compressor's kernels find the state of a position. The hard idea is
 * that a ring is a table whose columns come round again, and nothing else.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_H
#define SPMLA_PLATFORM_GPU_COMPRESS_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/slot_map_gpu.h"

/* The state and the table of its pages. */
#define SPMLA_S_STATE(S)              \
	S(uint64_t, state_page_bytes) \
	S(uint32_t, state_entries)    \
	S(uint32_t, state_pages)      \
	S(uint32_t, width)            \
	S(uint32_t, ratio)            \
	S(uint32_t, ring)             \
	S(uint32_t, rows)             \
	S(uint32_t, columns)          \
	S(uint32_t, table_stride)     \
	S(uint32_t, has_cols)

#ifdef SPMLA_GPU_KERNELS

#define G_STATE_NONE (~(uint64_t)0)

/* Bytes from the state's base to an entry; `page` is inside it. */
FN uint64_t
g_state_entry(uint64_t page, uint64_t page_bytes, uint32_t entry,
	      uint32_t width)
{
	return page * page_bytes + (uint64_t)entry * width * 8;
}

/* The same of a position of a table row, or G_STATE_NONE: the page is not
 * there. `row` is inside the table. Page and columns are asked for together. */
FN uint64_t
g_state_at(GLOBAL const int32_t *table, GLOBAL const int32_t *cols,
	   uint32_t has_cols, uint32_t columns, uint32_t stride, uint32_t ring,
	   uint32_t pages, uint64_t page_bytes, uint32_t entries,
	   uint32_t width, uint32_t row, uint32_t position)
{
	const uint32_t linear = position / entries;
	const uint32_t col = ring ? linear % columns : linear;
	const uint32_t inside = col < columns;
	const int32_t written = inside && has_cols ? cols[row] : 0x7fffffff;
	const int32_t page = inside ? table[(uint64_t)row * stride + col] : -1;

	if (written < 0 || col >= (uint32_t)written || page < 0 ||
	    (uint32_t)page >= pages)
		return G_STATE_NONE;
	return g_state_entry((uint64_t)page, page_bytes, position % entries,
			     width);
}

#endif
#endif
