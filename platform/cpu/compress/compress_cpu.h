/* SPDX-License-Identifier: Apache-2.0
 *
 * The place of a position's compressor state. The hard idea: a ring is a table
 * whose columns wrap around, and nothing else.
 */
#ifndef SPMLA_PLATFORM_CPU_COMPRESS_COMPRESS_CPU_H
#define SPMLA_PLATFORM_CPU_COMPRESS_COMPRESS_CPU_H

#include "spmla/internal/compress.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"

typedef struct spmla_i_cpu_states {
	spmla_i_cpu_table table;
	uint32_t page_tokens;
	uint32_t ring;
} spmla_i_cpu_states;

/* The slot of a position of `row`, or -1 and *fault. */
static inline int64_t
spmla_i_cpu_state_slot(const spmla_i_cpu_states *st, uint32_t row,
		       uint32_t position, spmla_fault *fault)
{
	const uint32_t col = position / st->page_tokens;
	int32_t page;

	if (row >= st->table.rows) {
		*fault = SPMLA_FAULT_ROW;
		return -1;
	}
	page = spmla_i_cpu_page(&st->table, row,
				st->ring ? col % st->table.columns : col);
	if (page < 0) {
		*fault = SPMLA_FAULT_PAGE;
		return -1;
	}
	return (int64_t)page * st->page_tokens + position % st->page_tokens;
}

/* The kv of a slot, which is valid; its score lies behind. */
static inline float *
spmla_i_cpu_state_at(const spmla_cache *state, uint64_t slot)
{
	uint8_t *page =
		spmla_i_cpu_page_at(state, slot / state->entries_per_page);

	return (float *)(void *)(page + slot % state->entries_per_page *
						spmla_layout_entry_bytes(
							state->layout));
}

#endif
