/* SPDX-License-Identifier: Apache-2.0
 *
 * How the prologue applies a record's stores to the block tables that SpMLA
 * owns: by one block, trusting nothing.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_STEP_STORES_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_STEP_STORES_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/step/fault_device.h"

/* As spmla_source, spmla_request_flag and spmla_step_flag, and the places of
 * spmla_i_record; the host asserts it. */
enum {
	G_FROM_RING = 1,
	G_FROM_DEVICE = 2,
	G_ADVANCE = 3,
	G_REQUEST_JOIN = 1,
	G_STEP_LENS_ON_DEVICE = 1,
	G_RECORD_WORDS = 16,
	G_RECORD_FLAGS = 4,
	G_RECORD_REQUESTS = 5,
	G_RECORD_STORES = 6,
	G_RECORD_PAGES = 7,
	G_REQUEST_WORDS = 4,
	G_STORE_WORDS = 4,
	G_STEP_DEVICE_WORDS = 16
};

#ifdef SPMLA_GPU_KERNELS

enum { STEP_STORE_ITEMS = SPMLA_ITEMS_step_prologue, PROLOGUE_TABLES = 7 };

/* A table that records change. */
typedef struct prologue_table {
	GLOBAL int32_t *pages;
	GLOBAL int32_t *cols;
	uint32_t columns; /* 0: it is not SpMLA's own */
	uint32_t whole;   /* a row counts up to its first gap */
} prologue_table;

/* A word of the record; the first `n` are staged. */
FN uint32_t
prologue_word(LOCAL const uint32_t *staged, uint32_t n,
	      GLOBAL const uint32_t *slot, uint64_t i)
{
	return i < n ? staged[i] : g_load_system(slot + i);
}

/* A record, and where its lists of stores and of pages begin. */
typedef struct prologue_record {
	LOCAL const uint32_t *staged; /* the first `n` words */
	GLOBAL const uint32_t *slot;
	uint64_t stores_at;
	uint64_t pages_at;
	uint32_t n;
	uint32_t stores;
	uint32_t pages;
} prologue_record;

FN prologue_record
prologue_record_of(LOCAL const uint32_t *staged, uint32_t n,
		   GLOBAL const uint32_t *slot)
{
	const uint64_t requests = staged[G_RECORD_REQUESTS];
	prologue_record r;

	r.staged = staged;
	r.slot = slot;
	r.n = n;
	r.stores = staged[G_RECORD_STORES];
	r.pages = staged[G_RECORD_PAGES];
	r.stores_at = G_RECORD_WORDS + requests * G_REQUEST_WORDS;
	r.pages_at = r.stores_at + (uint64_t)r.stores * G_STORE_WORDS;
	return r;
}

/* Word i of it. */
FN uint32_t
prologue_record_word(const PRIVATE prologue_record *r, uint64_t i)
{
	return prologue_word(r->staged, r->n, r->slot, i);
}

FN void
prologue_set_table(LOCAL prologue_table *table, GLOBAL int32_t *pages,
		   GLOBAL int32_t *cols, uint32_t columns, uint32_t whole)
{
	table->pages = pages;
	table->cols = cols;
	table->columns = columns;
	table->whole = whole;
}

/* The first column from `c` on, up to `end`, that is not written. A lane looks
 * at the columns that it writes. */
FN uint32_t
prologue_gap(GLOBAL const int32_t *line, uint32_t c, uint32_t end)
{
	const uint32_t width = g_width(), lane = g_lane();
	uint32_t base;

	NO_UNROLL
	for (base = c / width * width; base < end; base += width) {
		const uint32_t at = base + lane;
		const uint64_t stop =
			g_ballot(at >= c && (at >= end || line[at] < 0));

		if (stop)
			return base + g_lowest64(stop);
	}
	return end;
}

/* The subgroup that takes the stores of a row of a table. */
FN uint32_t
prologue_taker(uint32_t group_row, uint32_t subgroups)
{
	return ((group_row & 0xffffffu) + (group_row >> 24)) % subgroups;
}

/* Writes the record's pages from `page` on to columns [from, end) of a row of a
 * table. By all lanes of a subgroup. */
FN void
prologue_write_row(const PRIVATE prologue_record *r,
		   LOCAL const prologue_table *table, uint32_t rows,
		   uint32_t row, uint32_t from, uint32_t end, uint32_t page)
{
	const uint32_t width = g_width(), lane = g_lane();
	const uint32_t columns = table->columns;
	GLOBAL int32_t *line = table->pages + (uint64_t)row * columns;
	GLOBAL int32_t *cols = table->cols;
	uint32_t known, last, begin, c;

	/* The engine may see this memory: it is not trusted. */
	known = g_broadcast(lane == 0 ? (uint32_t)cols[row] : 0, 0);
	last = g_broadcast(lane == 0 ? (uint32_t)cols[rows + row] : 0, 0);
	last = last <= columns ? last : 0;
	known = known <= last ? known : 0;
	/* Columns that a store jumps over are not written. */
	begin = last < from ? last : from;
	NO_UNROLL
	for (c = begin / width * width + lane; c < end; c += width)
		if (c >= from)
			line[c] = (int32_t)prologue_record_word(
				r, r->pages_at + page + (c - from));
		else if (c >= begin)
			line[c] = -1;
	last = last < end ? end : last;
	if (!table->whole) {
		known = last;
	} else if (known >= from) {
		known = known < end ? end : known;
		/* It may have closed a gap. */
		if (known < last)
			known = prologue_gap(line, known, last);
	}
	if (lane == 0) {
		cols[row] = (int32_t)known;
		cols[rows + row] = (int32_t)last;
	}
}

/* Checks the store at word `at` of the record, and applies it. */
FN void
prologue_apply(const PRIVATE g_reporter *to, const PRIVATE prologue_record *r,
	       uint64_t at, LOCAL const prologue_table *tables, uint32_t groups,
	       uint32_t rows)
{
	const uint32_t group_row = prologue_record_word(r, at);
	const uint32_t group = group_row >> 24, row = group_row & 0xffffffu;
	const uint32_t columns = group < groups ? tables[group].columns : 0;
	const uint32_t from = prologue_record_word(r, at + 1);
	const uint32_t count = prologue_record_word(r, at + 2);
	const uint32_t page = prologue_record_word(r, at + 3);

	if (row >= rows || columns == 0 || count > columns ||
	    from > columns - count || count > r->pages ||
	    page > r->pages - count) {
		if (g_lane() == 0)
			g_report(to, row, G_FAULT_ROW);
		return;
	}
	prologue_write_row(r, &tables[group], rows, row, from, from + count,
			   page);
}

/* A record's stores. A subgroup takes the stores of its rows, in order, and a
 * lane always the same columns. So the stores of one row keep their order, and
 * different rows do not wait for each other. Returns whether the subgroup had
 * any. */
FN uint32_t
prologue_stores(const PRIVATE g_reporter *to, LOCAL const uint32_t *staged,
		uint32_t n, GLOBAL const uint32_t *slot,
		LOCAL const prologue_table *tables, uint32_t groups,
		uint32_t rows)
{
	const prologue_record r = prologue_record_of(staged, n, slot);
	const uint32_t width = g_width(), lane = g_lane();
	const uint32_t subgroups = STEP_STORE_ITEMS / width;
	const uint32_t own = g_item() / width;
	uint32_t first, had = 0;

	for (first = 0; first < r.stores; first += width) {
		const uint64_t at =
			r.stores_at + (uint64_t)first * G_STORE_WORDS;
		const uint32_t is = first + lane < r.stores;
		const uint32_t group_row =
			is ? prologue_record_word(&r, at + lane * G_STORE_WORDS)
			   : 0;
		uint64_t mine = g_ballot(
			is && prologue_taker(group_row, subgroups) == own);

		had |= mine != 0;
		for (; mine; mine &= mine - 1)
			prologue_apply(to, &r,
				       at + g_lowest64(mine) * G_STORE_WORDS,
				       tables, groups, rows);
	}
	return had;
}

#endif
#endif
