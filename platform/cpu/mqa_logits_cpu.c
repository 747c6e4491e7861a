/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits on the CPU. The hard idea: e4m3 is decoded once a token (queries,
 * into scratch) and once a key (128 floats on the stack), so that the loop over
 * heads is nothing but dot products in f32.
 */
#include "spmla/internal/cpu_scratch.h"
#include "spmla/platform/cpu/score_cpu.h"

/* The scores of the first n keys of a page. */
static void
score_page(const spmla_mqa_logits_args *a, const float *q, const float *weights,
	   const uint8_t *page, uint32_t n, float *out)
{
	const uint8_t *scales =
		page + (uint64_t)a->cache.entries_per_page * SPMLA_INDEX_DIM;
	float key[SPMLA_INDEX_DIM];
	float scale;
	uint32_t i;

	for (i = 0; i < n; i++) {
		spmla_i_cpu_decode_e4m3(page + (uint64_t)i * SPMLA_INDEX_DIM,
					SPMLA_INDEX_DIM, key);
		memcpy(&scale, scales + (uint64_t)i * sizeof scale,
		       sizeof scale);
		out[i] =
			spmla_i_cpu_score_key(q, weights, a->heads, key, scale);
	}
}

/* One token's row of scores; `row` and the room in logits are valid. */
static void
score_row(spmla_ctx *ctx, const spmla_mqa_logits_args *a, uint32_t token,
	  uint32_t row, uint32_t len)
{
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->cache.pages};
	const uint32_t entries = a->cache.entries_per_page;
	const uint64_t elems = (uint64_t)a->heads * SPMLA_INDEX_DIM;
	float *q = ctx->buf[SPMLA_BUF_INDEX_SCRATCH];
	float *out = a->logits + a->row_starts[token];
	uint32_t first, n, i;

	spmla_i_cpu_decode_e4m3(a->q + token * elems, (uint32_t)elems, q);
	for (first = 0; first < len; first += n) {
		const int32_t page =
			spmla_i_cpu_page(&table, row, first / entries);

		n = len - first < entries ? len - first : entries;
		if (page >= 0) {
			score_page(
				a, q, a->weights + (uint64_t)token * a->heads,
				spmla_i_cpu_page_at(&a->cache, (uint64_t)page),
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
