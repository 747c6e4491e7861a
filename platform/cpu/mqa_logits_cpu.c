/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits on the CPU: which keys a token sees, a page at a time, and what is
 * written where there is none. The scores are score_cpu.h's.
 */
#include "spmla/platform/cpu/score_cpu.h"

/* One token's row of scores; `row` and the room in logits are valid. */
static void
score_row(spmla_ctx *ctx, const spmla_mqa_logits_args *a, uint32_t token,
	  uint32_t row, uint32_t len)
{
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->cache.pages};
	const uint32_t entries = a->cache.entries_per_page;
	const uint64_t first_head = (uint64_t)token * a->heads;
	const spmla_i_cpu_score s = spmla_i_cpu_score_open(
		ctx, a->heads, a->q + first_head * SPMLA_INDEX_DIM,
		a->weights + first_head);
	float *out = a->logits + a->row_starts[token];
	uint32_t first, n, i;

	for (first = 0; first < len; first += n) {
		const int32_t page =
			spmla_i_cpu_page(&table, row, first / entries);

		n = len - first < entries ? len - first : entries;
		if (page >= 0) {
			const uint8_t *keys =
				spmla_i_cpu_page_at(&a->cache, (uint64_t)page);

			spmla_i_cpu_score_keys(&s, keys,
					       keys + (uint64_t)entries *
							       SPMLA_INDEX_DIM,
					       n, out + first);
			continue;
		}
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		for (i = 0; i < n; i++)
			out[first + i] = spmla_i_f32_from_bits(0xff800000u);
	}
}

void
spmla_i_cpu_mqa_logits(spmla_ctx *ctx, const void *args)
{
	const spmla_mqa_logits_args *a = args;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const int32_t len = a->context_lens[t];
		const int32_t row = a->token_row[t];
		const int64_t start = a->row_starts[t];

		if (len <= 0)
			continue;
		if (row < 0 || (uint32_t)row >= a->rows)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_ROW);
		else if (start < 0 || (uint64_t)start > a->logits_elems ||
			 (uint32_t)len > a->logits_elems - (uint64_t)start)
			spmla_i_cpu_fault(ctx, (uint32_t)row,
					  SPMLA_FAULT_LOGITS);
		else
			score_row(ctx, a, t, (uint32_t)row, (uint32_t)len);
	}
}
