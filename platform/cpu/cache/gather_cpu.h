/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the CPU's gathers: the output rows that a request owns, and the
 * page of a key. The hard idea: bounds of any kind become disjoint spans inside
 * the output. So no row has two owners, and the result does not depend on the
 * order of work.
 */
#ifndef SPMLA_PLATFORM_CPU_CACHE_GATHER_CPU_H
#define SPMLA_PLATFORM_CPU_CACHE_GATHER_CPU_H

#include "spmla/platform/cpu/core/parallel_cpu.h"

#include <string.h>

/* Request b owns the output rows [first, end). */
typedef struct spmla_i_cpu_span {
	uint32_t first;
	uint32_t end;
	uint32_t moved; /* a bound was bad */
} spmla_i_cpu_span;

/* The rows that an item makes, of any request: some of all `rows`. The item
 * that begins at 0 reports faults of a whole request. */
typedef struct spmla_i_cpu_rows {
	uint32_t first;
	uint32_t end;
} spmla_i_cpu_rows;

enum { SPMLA_I_CPU_GATHER_ROWS = 64 }; /* an item has at least about so many */

static inline uint32_t
spmla_i_cpu_gather_items(const spmla_ctx *ctx, uint32_t rows)
{
	return spmla_i_cpu_pieces(ctx, 1, 4, rows / SPMLA_I_CPU_GATHER_ROWS);
}

static inline spmla_i_cpu_rows
spmla_i_cpu_gather_rows(const spmla_ctx *ctx, uint32_t rows, uint32_t item)
{
	const uint32_t items = spmla_i_cpu_gather_items(ctx, rows);
	const spmla_i_cpu_rows r = {
		spmla_i_cpu_piece_start(rows, item, items),
		spmla_i_cpu_piece_start(rows, item + 1, items)};

	return r;
}

/* The rows of a span that belong to the item. */
static inline spmla_i_cpu_rows
spmla_i_cpu_rows_of(spmla_i_cpu_rows r, spmla_i_cpu_span s)
{
	r.first = s.first > r.first ? s.first : r.first;
	r.end = s.end < r.end ? s.end : r.end;
	return r;
}

static inline uint32_t
spmla_i_cpu_clamp(int64_t x, uint32_t low, uint32_t high)
{
	return x < low ? low : x > high ? high : (uint32_t)x;
}

/* The span of bounds [start, end) after a request that ends at `previous`;
 * previous <= rows. */
static inline spmla_i_cpu_span
spmla_i_cpu_span_of(int64_t start, int64_t end, uint32_t previous,
		    uint32_t rows)
{
	spmla_i_cpu_span s;

	s.first = spmla_i_cpu_clamp(start, previous, rows);
	s.end = spmla_i_cpu_clamp(end, s.first, rows);
	s.moved = s.first != start || s.end != end;
	return s;
}

/* The page that holds position `position` of a table row, or NULL. */
static inline const uint8_t *
spmla_i_cpu_page_of(const spmla_cache *cache, const spmla_i_cpu_table *table,
		    uint32_t ring, uint32_t row, uint32_t position)
{
	const uint32_t col = position / cache->entries_per_page;
	const int32_t page =
		spmla_i_cpu_page(table, row, ring ? col % table->columns : col);

	return page < 0 ? NULL : spmla_i_cpu_page_at(cache, (uint64_t)page);
}

#endif
