/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the kernels of the compressor find the state of a position. The hard
 * idea: a ring is nothing but a table whose columns wrap around.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_DEVICE_H
#define SPMLA_PLATFORM_GPU_COMPRESS_COMPRESS_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/table_device.h"

/* Scalars of the state and of the table of its pages. */
#define SPMLA_S_STATE(S)                  \
	S(uint64_t, state_page_bytes)     \
	S(spmla_g_divisor, state_entries) \
	S(spmla_g_divisor, columns)       \
	S(uint32_t, state_pages)          \
	S(uint32_t, width)                \
	S(uint32_t, ratio)                \
	S(uint32_t, ring)                 \
	S(uint32_t, rows)                 \
	S(uint32_t, table_stride)         \
	S(uint32_t, has_cols)

#ifdef SPMLA_GPU_KERNELS

/* The byte offset of an entry in the state. */
FN uint64_t
g_state_entry(uint64_t page, uint64_t page_bytes, uint32_t entry,
	      uint32_t width)
{
	return page * page_bytes + (uint64_t)entry * width * 8;
}

/* *at is the byte offset of a position's entry, by a row of the table. Returns
 * whether the entry is there: the position is not below 0, and its page is
 * written and in the state. `row` is inside the table. There are no branches,
 * so that page and columns are loaded at the same time, and beside the caller's
 * loads. */
FN uint32_t
g_state_at(GLOBAL const int32_t *table, GLOBAL const int32_t *cols,
	   uint32_t has_cols, const spmla_g_divisor columns, uint32_t stride,
	   uint32_t ring, uint32_t pages, uint64_t page_bytes,
	   const spmla_g_divisor entries, uint32_t width, uint32_t row,
	   int32_t position, PRIVATE uint64_t *at)
{
	GLOBAL const int32_t *pages_of = table + (uint64_t)row * stride;
	/* Any number for a position below 0; it is not used. */
	const uint32_t linear = g_divide((uint32_t)position, entries);
	const uint32_t col = ring ? g_modulo(linear, columns) : linear;
	const uint32_t inside = (position >= 0) & (col < columns.by);
	const int32_t written = inside & has_cols ? cols[row] : 0x7fffffff;
	const int32_t page = inside ? pages_of[col] : -1;

	*at = g_state_entry((uint32_t)page, page_bytes,
			    (uint32_t)position - linear * entries.by, width);
	return (written >= 0) & (col < (uint32_t)written) & (page >= 0) &
	       ((uint32_t)page < pages);
}

#endif
#endif
