/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of each region: first all buffers that live across phases, one
 * after another, then the phases. All phases start at the same byte, because no
 * two of them are alive at once.
 */
#include "spmla/arena/arena_plan.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/checked_math.h"

#include <string.h>

typedef struct layout {
	spmla_plan *plan;
	uint32_t apart;
	uint32_t overflow;
	uint64_t resident_end[SPMLA_MEMORY_COUNT]; /* where phases start */
	uint64_t phase_end[SPMLA_MEMORY_COUNT][SPMLA_LIFE_COUNT];
} layout;

static uint32_t
is_resident(const spmla_i_arena_row *row, uint32_t apart)
{
	return apart || row->branch || row->life == SPMLA_LIFE_CONTEXT ||
	       row->life == SPMLA_LIFE_STEP;
}

/* Puts a row at *end and moves *end behind it. */
static void
place(layout *l, const spmla_i_arena_row *row, uint64_t bytes, uint64_t *end)
{
	spmla_plan *plan = l->plan;
	spmla_extent *e = &plan->extents[plan->row_count++];
	const uint64_t zone = l->apart ? SPMLA_I_RED_ZONE : 0;
	uint64_t next;

	e->buf = (uint32_t)row->buf;
	e->memory = (uint32_t)row->memory;
	e->life = (uint32_t)row->life;
	e->branch = row->branch;
	e->offset_bytes = spmla_i_align(*end, SPMLA_I_BUF_ALIGN, &l->overflow);
	e->bytes = bytes;
	next = spmla_i_add(e->offset_bytes, bytes, &l->overflow);
	if (plan->region_bytes[row->memory] < next)
		plan->region_bytes[row->memory] = next;
	if (row->memory == SPMLA_MEMORY_DEVICE)
		plan->life_bytes[row->life] = spmla_i_add(
			plan->life_bytes[row->life],
			spmla_i_align(bytes, SPMLA_I_BUF_ALIGN, &l->overflow),
			&l->overflow);
	*end = spmla_i_add(next, zone, &l->overflow);
}

/* One walk, over the resident rows or over the rows of the phases. */
static const spmla_i_arena_row *
walk(layout *l, const uint64_t dim[SPMLA_I_DIM_COUNT], uint32_t resident)
{
	uint32_t i;

	for (i = 0; i < spmla_i_arena_rows; i++) {
		const spmla_i_arena_row *row = &spmla_i_arena_table[i];
		uint64_t bytes;

		/* Rows of the other walk must not overflow in this one. */
		if (is_resident(row, l->apart) != resident)
			continue;
		bytes = spmla_i_mul(dim[row->dim[0]], dim[row->dim[1]],
				    &l->overflow);
		bytes = spmla_i_mul(bytes, row->elem_bytes, &l->overflow);
		if (bytes == 0)
			continue;
		place(l, row, bytes,
		      resident ? &l->resident_end[row->memory]
			       : &l->phase_end[row->memory][row->life]);
		if (l->overflow)
			return row;
	}
	return NULL;
}

spmla_status
spmla_i_arena_plan(spmla_plan *plan, const uint64_t dim[SPMLA_I_DIM_COUNT],
		   uint32_t apart, spmla_diag *diag)
{
	const spmla_i_arena_row *bad;
	layout l;
	uint32_t m, p;

	memset(&l, 0, sizeof l);
	l.plan = plan;
	l.apart = apart;
	plan->row_count = 0;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		plan->region_align[m] = SPMLA_I_BUF_ALIGN;
	bad = walk(&l, dim, 1);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		for (p = 0; p < SPMLA_LIFE_COUNT; p++)
			l.phase_end[m][p] = l.resident_end[m];
	if (!bad)
		bad = walk(&l, dim, 0);
	if (bad)
		return spmla_i_fail(diag, SPMLA_E_OVERFLOW, bad->name, 0,
				    SPMLA_WANT_NOTHING, 0);
	return SPMLA_OK;
}
