/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of slots for a range of positions of one request. The window and the
 * compressed keys of a token share it.
 */
#ifndef SPMLA_PLATFORM_CPU_STEP_SLOT_ROW_CPU_H
#define SPMLA_PLATFORM_CPU_STEP_SLOT_ROW_CPU_H

#include "spmla/internal/checked_math.h"
#include "spmla/platform/cpu/core/cpu.h"

/* table.pool_pages is spmla_i_slot_pages: every slot fits. */
typedef struct spmla_i_cpu_slots {
	spmla_i_cpu_table table;
	uint32_t page_tokens;
	uint32_t page_stride; /* slots from page to page */
	uint32_t ring;        /* a ring table */
} spmla_i_cpu_slots;

/* out[k] is the slot of position start + k for k < len, -1 up to width. A
 * missing page gives -1 and one report. `row` is valid, len <= width. */
static inline void
spmla_i_cpu_slot_row(spmla_ctx *ctx, const spmla_i_cpu_slots *s, uint32_t row,
		     uint32_t start, uint32_t len, int32_t *out, uint32_t width)
{
	int32_t page = -1;
	uint32_t k;

	for (k = 0; k < len; k++) {
		const uint32_t p = start + k, in_page = p % s->page_tokens;
		uint32_t col = p / s->page_tokens;

		if (s->ring)
			col %= s->table.columns;
		if (k == 0 || in_page == 0) {
			page = spmla_i_cpu_page(&s->table, row, col);
			if (page < 0)
				spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		}
		out[k] = page < 0 ? -1
				  : (int32_t)((uint32_t)page * s->page_stride +
					      in_page);
	}
	for (; k < width; k++)
		out[k] = -1;
}

#endif
