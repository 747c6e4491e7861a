/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index on the CPU.
 */
#include "spmla/platform/cpu/core/input_cpu.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/step/slot_row_cpu.h"

/* The number of entries that token t sees, -1 if it is no token. `row` is the
 * row for reports. */
static int32_t
entries_of(spmla_ctx *ctx, const spmla_c128a_index_args *a, uint32_t t,
	   uint32_t row)
{
	int32_t pos;
	uint32_t n;

	if (!a->entries && a->slot_mapping[t] < 0)
		return -1;
	if (t < a->decode_tokens && row >= a->rows) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_ROW);
		return -1;
	}
	if (a->entries) {
		n = a->entries[t] > 0 ? (uint32_t)a->entries[t] : 0;
		return (int32_t)(n < a->width ? n : a->width);
	}
	pos = spmla_i_cpu_position(a->positions, a->positions_dtype, t);
	if (pos < 0) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_POSITION);
		return -1;
	}
	n = ((uint32_t)pos + 1) / a->ratio;
	return (int32_t)(n < a->width ? n : a->width);
}

static void
decode_token(spmla_ctx *ctx, const spmla_c128a_index_args *a, uint32_t t)
{
	const uint32_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_entries;
	const spmla_i_cpu_slots slots = {
		{a->block_table, a->table_cols, a->rows, a->columns,
		 a->table_stride_elems,
		 spmla_i_slot_pages(a->pool_pages, a->page_entries, stride)},
		a->page_entries,
		stride,
		0};
	const uint32_t row = (uint32_t)a->token_row[t];
	const int32_t n = entries_of(ctx, a, t, row);

	if (a->decode_lens)
		a->decode_lens[t] = n < 0 ? 0 : (int32_t)a->entries_before + n;
	spmla_i_cpu_slot_row(ctx, &slots, row, 0, n < 0 ? 0 : (uint32_t)n,
			     a->decode_slots +
				     (int64_t)t * a->decode_stride_elems,
			     a->width);
}

static void
prefill_token(spmla_ctx *ctx, const spmla_c128a_index_args *a, uint32_t t)
{
	const uint32_t i = t - a->decode_tokens;
	const int32_t seen = entries_of(ctx, a, t, t);
	const uint32_t n = seen < 0 ? 0 : (uint32_t)seen;
	int32_t *out =
		a->prefill_indices + (int64_t)i * a->prefill_stride_elems;
	uint32_t e;

	for (e = 0; e < a->width; e++)
		out[e] = e < n ? (int32_t)e : -1;
	if (a->prefill_lens)
		a->prefill_lens[i] = (int32_t)n;
}

static void
one_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_c128a_index_args *a = args;

	(void)worker;
	if (t < a->decode_tokens)
		decode_token(ctx, a, t);
	else
		prefill_token(ctx, a, t);
}

void
spmla_i_cpu_c128a_index(spmla_ctx *ctx, const void *args)
{
	const spmla_c128a_index_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, one_token);
}
