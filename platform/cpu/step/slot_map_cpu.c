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

/* The slot of token t's row at a position. */
static int64_t
slot_of(spmla_ctx *ctx, const spmla_slot_map_args *a,
	const spmla_i_cpu_table *table, uint32_t t, int32_t at)
{
	const uint32_t row = (uint32_t)a->token_row[t];
	const uint32_t position = (uint32_t)at;
	uint32_t col = position / a->page_tokens;
	int32_t page = -1;

	if (row >= a->rows) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_ROW);
		return -1;
	}
	if (a->ring)
		col %= a->columns;
	if (at >= 0)
		page = spmla_i_cpu_page(table, row, col);
	if (page < 0) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		return -1;
	}
	return (int64_t)page * a->page_tokens + position % a->page_tokens;
}

/* The slot where ranks have positions in turn. */
static void
map_own(spmla_ctx *ctx, const spmla_slot_map_args *a,
	const spmla_i_cpu_table *table, uint32_t t)
{
	const uint32_t run = a->dcp_interleave, cycle = run * a->dcp_ranks;
	const uint32_t p = (uint32_t)position_of(a, t),
		       first = a->dcp_rank * run;
	const uint32_t rest = p % cycle + 1;
	uint32_t n = p / cycle * run, more = rest > first ? rest - first : 0;
	int64_t slot;

	n += more < run ? more : run;
	a->context_lens[t] = (int32_t)n;
	if (n == 0)
		return;
	slot = slot_of(ctx, a, table, t, (int32_t)n - 1);
	if (slot < 0)
		a->context_lens[t] = 0;
	else if (more > 0 && more <= run)
		a->slot_mapping[t] = slot;
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
			if (a->dcp_ranks > 1 && position >= 0) {
				map_own(ctx, a, &table, t);
				continue;
			}
			a->slot_mapping[t] =
				slot_of(ctx, a, &table, t, position);
		}
		if (a->slot_mapping[t] > 0)
			a->slot_mapping[t] /= ratio;
		if (a->slot_mapping[t] < 0)
			a->context_lens[t] = 0;
	}
}
