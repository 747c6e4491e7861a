/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of slots for a range of positions of one request: a token's window and
 * its compressed keys have this in common. The hard idea: no thread waits for
 * another, so a subgroup or a block can make the row, alone in its launch or
 * not.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_SLOT_ROW_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_SLOT_ROW_DEVICE_H

#include "spmla/platform/gpu/step/fault_device.h"
#include "spmla/platform/gpu/step/table_device.h"

#ifdef SPMLA_GPU_KERNELS

enum { G_SLOT_ROW_LOADS = 4 }; /* pages that a thread asks for at a time */

/* Where the slots of one row of a block table are. pool_pages is
 * spmla_i_slot_pages: every slot fits int32. */
typedef struct g_slots {
	GLOBAL const int32_t *pages; /* of the row */
	uint32_t known;              /* columns that are there and written */
	uint32_t modulo;             /* columns of a ring; 0: linear */
	uint32_t pool_pages;
	uint32_t page_tokens;
	uint32_t page_stride; /* slots from page to page */
} g_slots;

/* `row` is inside the table. */
FN g_slots
g_slots_of(const PRIVATE g_table *table, uint32_t row, uint32_t ring,
	   uint32_t page_stride)
{
	g_slots slots;
	int32_t known;

	slots.pages = table->pages + (uint64_t)row * table->stride;
	slots.known = table->columns;
	if (table->has_cols) {
		known = table->cols[row] > 0 ? table->cols[row] : 0;
		if ((uint32_t)known < table->columns)
			slots.known = (uint32_t)known;
	}
	slots.modulo = ring ? table->columns : 0;
	slots.pool_pages = table->pool_pages;
	slots.page_tokens = table->page_tokens;
	slots.page_stride = page_stride;
	return slots;
}

/* Writes the slot of position start + k to out[k] for k < len, and -1 from
 * there to width. `items` threads make the row; the caller is number `item`. A
 * missing page gives -1, and the thread of its first key reports it for `row`.
 * With len 0, slots.pages is not read. */
FN void
g_slot_row(const PRIVATE g_reporter *to, const PRIVATE g_slots *slots,
	   uint32_t row, uint32_t start, uint32_t len, GLOBAL int32_t *out,
	   uint32_t width, uint32_t item, uint32_t items)
{
	uint32_t first, i;

	for (first = item; first < width; first += G_SLOT_ROW_LOADS * items) {
		int32_t page[G_SLOT_ROW_LOADS];

		UNROLL
		for (i = 0; i < G_SLOT_ROW_LOADS; i++) {
			const uint32_t k = first + i * items;

			page[i] = -1;
			if (k < len) {
				uint32_t col = (start + k) / slots->page_tokens;

				if (slots->modulo)
					col %= slots->modulo;
				if (col < slots->known)
					page[i] = slots->pages[col];
			}
		}
		UNROLL
		for (i = 0; i < G_SLOT_ROW_LOADS; i++) {
			const uint32_t k = first + i * items;
			const uint32_t in_page =
				(start + k) % slots->page_tokens;
			int32_t slot = -1;

			if (page[i] >= 0 &&
			    (uint32_t)page[i] < slots->pool_pages)
				slot = (int32_t)((uint32_t)page[i] *
							 slots->page_stride +
						 in_page);
			else if (k < len && (k == 0 || in_page == 0))
				g_report(to, row, G_FAULT_PAGE);
			if (k < width)
				out[k] = slot;
		}
	}
}

#endif
#endif
