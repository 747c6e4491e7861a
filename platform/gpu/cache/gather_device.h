/* SPDX-License-Identifier: Apache-2.0
 *
 * What the gathers share: which output rows a request owns, and in which page a
 * key lies. The hard idea: a running maximum turns any bounds, even bad ones,
 * into disjoint spans. So every block finds all spans by scans alone, 256
 * requests at a time, and then the owner of a row by binary search in shared
 * memory.
 */
#ifndef SPMLA_PLATFORM_GPU_CACHE_GATHER_DEVICE_H
#define SPMLA_PLATFORM_GPU_CACHE_GATHER_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/table_device.h"

enum { GATHER_ITEMS = 256 };

#ifdef SPMLA_GPU_KERNELS

/* A request's rows of the output, [first, end). */
typedef struct gather_span {
	uint32_t first;
	uint32_t end;
	uint32_t start; /* position of the first key */
	int32_t row;    /* of the table; -1: the span's rows are zeros */
} gather_span;

/* The spans of up to GATHER_ITEMS requests, in shared memory. */
typedef struct gather_line {
	gather_span spans[GATHER_ITEMS];
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
} gather_line;

/* In place of the byte offset of a page. */
#define GATHER_ZEROS 0xffffffffffffffffu /* the row is zeros */
#define GATHER_LEAVE 0xfffffffffffffffeu /* no request owns the row */

FN uint32_t
gather_clamp(int64_t x, uint32_t high)
{
	return x < 0 ? 0 : x > (int64_t)high ? high : (uint32_t)x;
}

/* Makes the spans of up to GATHER_ITEMS requests, one a thread. The thread's is
 * request b, if it is `there`, with bounds [begin, end); no span begins before
 * `done`. The first block reports bad bounds and rows. `few`: all requests fit
 * into one subgroup, and this is the first call. Returns where the last span
 * ends. Spans may be read until the next call. */
FN uint32_t
gather_spans(const PRIVATE g_reporter *to, uint32_t few, uint32_t there,
	     uint32_t b, int64_t begin, int64_t end, int32_t start, int32_t row,
	     uint32_t table_rows, uint32_t keys, uint32_t done,
	     LOCAL gather_line *line)
{
	LOCAL gather_span *spans = line->spans;
	const uint32_t i = g_item();
	const uint32_t low = there ? gather_clamp(begin, keys) : 0;
	const uint32_t high = there ? gather_clamp(end, keys) : 0;
	const uint32_t is_known = row >= 0 && (uint32_t)row < table_rows;
	uint32_t most = low > high ? low : high, first, stop, is_bad, last;

	most = most > done ? most : done;
	if (few) {
		first = g_scan_max_lanes(most, &last);
		stop = first > most ? first : most;
		/* Only the first subgroup's spans will be read. */
		if (i < g_width())
			spans[i].end = stop;
	} else {
		stop = g_scan_max(most, GATHER_ITEMS, line->sums, &last);
		spans[i].end = stop;
		BARRIER();
		first = i ? spans[i - 1].end : done;
	}
	first = first > low ? first : low;
	first = there ? first : stop;
	is_bad = (int64_t)first != begin || (int64_t)stop != end ||
		 (start < 0 && first < stop);
	if (there && g_block() == 0) {
		if (is_bad)
			g_report(to, is_known ? (uint32_t)row : b,
				 G_FAULT_LENGTH);
		else if (!is_known && first < stop)
			g_report(to, b, G_FAULT_ROW);
	}
	spans[i].first = first;
	spans[i].start = (uint32_t)start;
	spans[i].row = there && is_known && !is_bad ? row : -1;
	BARRIER();
	return few ? spans[g_width() - 1].end : last;
}

/* The byte offset of the page that output row n comes from; *entry is the entry
 * in it. GATHER_ZEROS if the row is zeros: a key without a page is reported.
 * GATHER_LEAVE if no request owns the row. n is below the end of the last
 * span. */
FN uint64_t
gather_page(const PRIVATE g_reporter *to, LOCAL const gather_span *spans,
	    const PRIVATE g_table *table, uint32_t ring, uint64_t page_bytes,
	    uint32_t n, PRIVATE uint32_t *entry)
{
	uint32_t low = 0, high = 0; /* range of the first end above n */
	uint32_t position, col;
	int32_t page;

	/* Mostly there are few requests: the range begins with the first ones,
	 * and grows. */
	while (high < GATHER_ITEMS - 1 && spans[high].end <= n) {
		low = high + 1;
		high = 2 * high + 1;
	}
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (spans[middle].end > n)
			high = middle;
		else
			low = middle + 1;
	}
	*entry = 0;
	if (n < spans[low].first)
		return GATHER_LEAVE;
	if (spans[low].row < 0)
		return GATHER_ZEROS;
	/* Both are below 2^31. */
	position = spans[low].start + (n - spans[low].first);
	col = position / table->page_tokens;
	if (ring)
		col %= table->columns;
	page = g_table_page(table, (uint32_t)spans[low].row, col);
	if (page < 0) {
		g_report(to, (uint32_t)spans[low].row, G_FAULT_PAGE);
		return GATHER_ZEROS;
	}
	*entry = position % table->page_tokens;
	return (uint64_t)page * page_bytes;
}

#endif
#endif
