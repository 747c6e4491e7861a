/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map on the CPU. A page of compressed keys starts at its number times
 * page_tokens / ratio, so a key's slot is the slot of its last token, divided
 * by the ratio.
 */
#include "spmla/platform/cpu/core/cpu.h"
#include "spmla/platform/cpu/core/input_cpu.h"

static int32_t
position_of(const spmla_slot_map_args *a, uint64_t t)
{
	return spmla_i_cpu_position(a->positions, a->positions_dtype, t);
}

static int64_t
slot_of(spmla_ctx *ctx, const spmla_slot_map_args *a,
	const spmla_i_cpu_table *table, uint32_t t)
{
	const uint32_t row = (uint32_t)a->token_row[t];
	const uint32_t position = (uint32_t)position_of(a, t);
	uint32_t col = position / a->page_tokens;
	int32_t page = -1;

	if (row >= a->rows) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_ROW);
		return -1;
	}
	if (a->ring)
		col %= a->columns;
	if (position_of(a, t) >= 0)
		page = spmla_i_cpu_page(table, row, col);
	if (page < 0) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		return -1;
	}
	return (int64_t)page * a->page_tokens + position % a->page_tokens;
}

void
spmla_i_cpu_slot_map(spmla_ctx *ctx, const void *args)
{
	const spmla_slot_map_args *a = args;
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->pool_pages};
	const uint32_t ratio = a->compress_ratio ? a->compress_ratio : 1;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const int32_t position = position_of(a, t);

		a->slot_mapping[t] = -1;
		if (a->context_lens[t] > 0) {
			if (position >= 0 &&
			    ((uint32_t)position + 1) % ratio != 0)
				continue;
			a->slot_mapping[t] = slot_of(ctx, a, &table, t);
		}
		if (a->slot_mapping[t] > 0)
			a->slot_mapping[t] /= ratio;
		if (a->slot_mapping[t] < 0)
			a->context_lens[t] = 0;
	}
}
