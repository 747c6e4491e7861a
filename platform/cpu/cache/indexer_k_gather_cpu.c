/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather on the CPU. A page keeps codes and scales apart; they become
 * two dense arrays.
 */
#include "spmla/platform/cpu/cache/gather_cpu.h"

static void
copy_tiled(const spmla_indexer_k_gather_args *a, uint8_t *k,
	   const uint8_t *page, uint64_t entry)
{
	const uint32_t run = spmla_i_cpu_index_run(&a->cache);
	const uint8_t *from = page + spmla_i_cpu_index_at(&a->cache, entry);
	uint32_t d;

	for (d = 0; d < SPMLA_INDEX_DIM; d += SPMLA_INDEX_TILE, from += run)
		memcpy(k + d, from, SPMLA_INDEX_TILE);
}

/* Copies entry `entry` of a page to output row n; without a page it is missing.
 */
static void
copy_key(const spmla_indexer_k_gather_args *a, uint32_t n, const uint8_t *page,
	 uint64_t entry)
{
	const uint32_t bytes = a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4
				       ? SPMLA_INDEX_MXFP4_VALUE_BYTES
				       : SPMLA_INDEX_DIM;
	const uint64_t codes_bytes =
		(uint64_t)a->cache.entries_per_page * bytes;
	uint8_t *k = a->dst_k + (uint64_t)n * bytes;
	float *scale = a->dst_scale + n;

	if (!page) {
		memset(k, 0, bytes);
		*scale = spmla_i_f32_from_bits(SPMLA_INDEX_MISSING);
		return;
	}
	if (a->cache.layout == SPMLA_LAYOUT_INDEX_FP8_TILED)
		copy_tiled(a, k, page, entry);
	else
		memcpy(k, page + entry * bytes, bytes);
	memcpy(scale, page + codes_bytes + entry * sizeof *scale,
	       sizeof *scale);
}

static void
gather_request(spmla_ctx *ctx, const spmla_indexer_k_gather_args *a,
	       const spmla_i_cpu_table *table, uint32_t b,
	       spmla_i_cpu_span span, spmla_i_cpu_rows rows)
{
	const spmla_i_cpu_rows mine = spmla_i_cpu_rows_of(rows, span);
	const int64_t row = a->req_row ? a->req_row[b] : (int64_t)b;
	const uint32_t known = row >= 0 && row < (int64_t)a->rows;
	const uint32_t who = known ? (uint32_t)row : b;
	const uint32_t skip = span.moved || !known;
	uint32_t n;

	if (rows.first == 0 && span.moved)
		spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_LENGTH);
	else if (rows.first == 0 && !known && span.first < span.end)
		spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_ROW);
	for (n = mine.first; n < mine.end; n++) {
		const uint32_t position = n - span.first;
		const uint8_t *page = NULL;

		if (!skip) {
			page = spmla_i_cpu_page_of(&a->cache, table, 0, who,
						   position);
			if (!page)
				spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_PAGE);
		}
		copy_key(a, n, page, position % a->cache.entries_per_page);
	}
}

/* Makes the rows of an item, of any request. */
static void
gather_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_indexer_k_gather_args *a = args;
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->cache.pages};
	const spmla_i_cpu_rows rows =
		spmla_i_cpu_gather_rows(ctx, a->keys, item);
	uint32_t previous = 0, b;

	(void)worker;
	for (b = 0; b < a->requests; b++) {
		const spmla_i_cpu_span span = spmla_i_cpu_span_of(
			a->cu_seq_lens[b], a->cu_seq_lens[b + 1], previous,
			a->keys);

		gather_request(ctx, a, &table, b, span, rows);
		previous = span.end;
	}
}

void
spmla_i_cpu_indexer_k_gather(spmla_ctx *ctx, const void *args)
{
	const spmla_indexer_k_gather_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_gather_items(ctx, a->keys),
			gather_rows);
}
