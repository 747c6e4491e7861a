/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index on the CPU.
 */
#include "spmla/platform/cpu/core/input_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/select/window_cpu.h"
#include "spmla/platform/cpu/step/slot_row_cpu.h"

/* The first key that a request may see because of its replay. */
static uint32_t
replay_start(const spmla_swa_index_args *a, uint32_t row)
{
	if (!a->replay_starts || a->replay_starts[row] < 0)
		return 0;
	return (uint32_t)a->replay_starts[row];
}

/* The number of keys that token t sees, from *start on; 0 if it has none. */
static uint32_t
window_of(spmla_ctx *ctx, const spmla_swa_index_args *a, uint32_t t,
	  uint32_t *start)
{
	const uint32_t row = (uint32_t)a->token_row[t];
	const int32_t pos =
		spmla_i_cpu_position(a->positions, a->positions_dtype, t);
	const int32_t *span =
		a->image_spans ? a->image_spans + 2 * (uint64_t)t : NULL;
	spmla_i_cpu_window w;
	uint32_t replay;

	if (a->slot_mapping[t] < 0)
		return 0;
	if (row >= a->rows) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_ROW);
		return 0;
	}
	replay = replay_start(a, row);
	if (pos < 0 || replay > (uint32_t)pos) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_POSITION);
		return 0;
	}
	w = spmla_i_cpu_window_of(pos, a->window, span, a->max_image, replay,
				  a->window + (span ? a->max_image : 0));
	*start = w.start;
	return w.end - w.start;
}

static int32_t
gather_len(spmla_ctx *ctx, const spmla_swa_index_args *a, uint32_t b)
{
	const uint32_t row = a->req_row ? (uint32_t)a->req_row[b] : b;
	const int64_t most = (int64_t)a->window - 1;
	const int64_t queries =
		(int64_t)a->query_start_loc[b + 1] - a->query_start_loc[b];
	int64_t before = a->seq_lens[b] - queries;

	if (queries < 0)
		return 0;
	if (a->replay_starts && row >= a->rows) {
		spmla_i_cpu_fault(ctx, b, SPMLA_FAULT_ROW);
		return 0;
	}
	if (a->replay_starts)
		before -= replay_start(a, row);
	if (before < 0) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_LENGTH);
		return 0;
	}
	return (int32_t)(queries + (before < most ? before : most));
}

static void
one_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_swa_index_args *a = args;
	const uint32_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	const spmla_i_cpu_slots slots = {
		{a->block_table, a->table_cols, a->rows, a->columns,
		 a->table_stride_elems,
		 spmla_i_slot_pages(a->pool_pages, a->page_tokens, stride)},
		a->page_tokens,
		stride,
		a->ring};
	uint32_t start = 0;
	const uint32_t len = window_of(ctx, a, t, &start);

	(void)worker;
	a->lens[t] = (int32_t)(len && a->padded_lens ? a->width : len);
	spmla_i_cpu_slot_row(ctx, &slots, (uint32_t)a->token_row[t], start, len,
			     a->indices + (int64_t)t * a->indices_stride_elems,
			     a->width);
}

void
spmla_i_cpu_swa_index(spmla_ctx *ctx, const void *args)
{
	const spmla_swa_index_args *a = args;
	uint32_t b;

	spmla_i_cpu_for(ctx, a, a->tokens, one_token);
	for (b = 0; b < a->requests; b++)
		a->gather_lens[b] = gather_len(ctx, a, b);
}
