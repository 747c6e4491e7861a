/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits on the CPU: the keys that a token sees, a page at a time, and the
 * values for missing ones. score_cpu.h has the scores. A score depends only on
 * its key and its token, so where tokens are few, workers share the pages of a
 * row.
 */
#include <math.h>

#include "spmla/platform/cpu/core/input_cpu.h"
#include "spmla/platform/cpu/select/score_cpu.h"

enum { PIECES_A_WORKER = 4 };

static uint32_t
pieces_of(const spmla_ctx *ctx, const spmla_mqa_logits_args *a)
{
	return spmla_i_cpu_pieces(ctx, a->tokens, PIECES_A_WORKER, a->columns);
}

/* The token's queries. */
static spmla_i_cpu_score
open_token(const spmla_ctx *ctx, const spmla_mqa_logits_args *a,
	   uint32_t worker, uint32_t token)
{
	const uint64_t head = (uint64_t)token * a->heads;

	if (a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4)
		return spmla_i_cpu_score_open_mxfp4(
			ctx, worker, a->heads,
			a->q + head * SPMLA_INDEX_MXFP4_VALUE_BYTES,
			(const uint8_t *)(a->q_scales + head),
			a->weights + head);
	return spmla_i_cpu_score_open(ctx, worker, a->heads,
				      a->q + head * SPMLA_INDEX_DIM,
				      a->weights + head, a->q_encoding);
}

/* Scores n keys of a page from `first` on. */
static void
score_page(const spmla_i_cpu_score *s, const spmla_cache *cache,
	   const uint8_t *page, uint32_t first, uint32_t n, float *out)
{
	const uint64_t entries = cache->entries_per_page;
	const uint64_t mxfp4 = SPMLA_INDEX_MXFP4_VALUE_BYTES;

	if (cache->layout == SPMLA_LAYOUT_INDEX_MXFP4)
		spmla_i_cpu_score_keys_mxfp4(
			s, page + first * mxfp4,
			page + entries * mxfp4 +
				first * (uint64_t)SPMLA_INDEX_MXFP4_SCALES,
			n, out);
	else if (cache->layout == SPMLA_LAYOUT_INDEX_FP8_TILED)
		spmla_i_cpu_score_keys_tiled(s, cache, page, first, n, out);
	else
		(cache->encoding == SPMLA_E4M3_FNUZ
			 ? spmla_i_cpu_score_keys_fnuz
			 : spmla_i_cpu_score_keys)(
			s, page + first * (uint64_t)SPMLA_INDEX_DIM,
			page + entries * SPMLA_INDEX_DIM +
				first * sizeof(float),
			n, out);
}

/* The scores of the first n keys of a page go to logits from `at` on. */
static void
put_page(const spmla_mqa_logits_args *a, const spmla_i_cpu_score *s,
	 const uint8_t *page, uint32_t n, uint64_t at)
{
	float own[SPMLA_I_CPU_SCORE_KEYS];
	uint32_t first, k;

	if (a->logits_dtype == SPMLA_REAL_F32) {
		score_page(s, &a->cache, page, 0, n, (float *)a->logits + at);
		return;
	}
	for (first = 0; first < n; first += SPMLA_I_CPU_SCORE_KEYS) {
		const uint32_t some = n - first < SPMLA_I_CPU_SCORE_KEYS
					      ? n - first
					      : SPMLA_I_CPU_SCORE_KEYS;

		score_page(s, &a->cache, page, first, some, own);
		for (k = 0; k < some; k++)
			spmla_i_cpu_put_real(a->logits, a->logits_dtype,
					     at + first + k, own[k]);
	}
}

/* The first element of a token's row of logits. */
static int64_t
start_of(const spmla_mqa_logits_args *a, uint32_t t)
{
	return a->row_starts ? a->row_starts[t] : t * a->row_stride_elems;
}

/* Scores keys [first, end) of a token. first begins a page; `row` and the room
 * in logits are valid. */
static void
score_keys(spmla_ctx *ctx, const spmla_mqa_logits_args *a, uint32_t worker,
	   uint32_t token, uint32_t first, uint32_t end)
{
	const uint32_t row = (uint32_t)a->token_row[token];
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->cache.pages};
	const uint32_t entries = a->cache.entries_per_page;
	const spmla_i_cpu_score s = open_token(ctx, a, worker, token);
	const uint64_t start = (uint64_t)start_of(a, token);
	uint32_t n, i;

	for (; first < end; first += n) {
		const int32_t page =
			spmla_i_cpu_page(&table, row, first / entries);

		n = end - first < entries ? end - first : entries;
		if (page >= 0) {
			put_page(a, &s,
				 spmla_i_cpu_page_at(&a->cache, (uint64_t)page),
				 n, start + first);
			continue;
		}
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		for (i = 0; i < n; i++)
			spmla_i_cpu_put_real(a->logits, a->logits_dtype,
					     start + first + i, -INFINITY);
	}
}

/* The keys of a token: no more than a row of one stride has room for. */
static uint32_t
len_of(const spmla_mqa_logits_args *a, uint32_t t)
{
	const int64_t len = a->context_lens[t];

	if (len <= 0)
		return 0;
	return (uint32_t)(!a->row_starts && len > a->row_stride_elems
				  ? a->row_stride_elems
				  : len);
}

/* Whether a token's row lies inside logits. */
static uint32_t
fits(const spmla_mqa_logits_args *a, uint32_t t)
{
	const int64_t start = start_of(a, t);

	return start >= 0 && (uint64_t)start <= a->logits_elems &&
	       len_of(a, t) <= a->logits_elems - (uint64_t)start;
}

/* Does one piece of one token. */
static void
score_piece(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_mqa_logits_args *a = args;
	const uint32_t entries = a->cache.entries_per_page;
	const uint32_t pieces = pieces_of(ctx, a);
	const uint32_t t = item / pieces, piece = item % pieces;
	const int32_t row = a->token_row[t];
	uint32_t len, pages, first, end;

	if (a->context_lens[t] <= 0)
		return;
	if (row < 0 || (uint32_t)row >= a->rows || !fits(a, t)) {
		if (piece > 0)
			return;
		if (row < 0 || (uint32_t)row >= a->rows)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_ROW);
		else
			spmla_i_cpu_fault(ctx, (uint32_t)row,
					  SPMLA_FAULT_LOGITS);
		return;
	}
	len = len_of(a, t);
	if (piece == 0 && len < (uint32_t)a->context_lens[t])
		spmla_i_cpu_fault(ctx, (uint32_t)row, SPMLA_FAULT_LOGITS);
	pages = (len - 1) / entries + 1;
	first = spmla_i_cpu_piece_start(pages, piece, pieces) * entries;
	end = spmla_i_cpu_piece_start(pages, piece + 1, pieces);
	end = end == pages ? len : end * entries;
	if (first < end)
		score_keys(ctx, a, worker, t, first, end);
}

/* Whether rows ascend without overlap, as logits_rows makes them. Where some
 * overlap, tokens run in order and the last one's scores stay. */
static uint32_t
rows_apart(const spmla_mqa_logits_args *a)
{
	int64_t end = 0;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		if (a->context_lens[t] <= 0 || !fits(a, t))
			continue;
		if (start_of(a, t) < end)
			return 0;
		end = start_of(a, t) + len_of(a, t);
	}
	return 1;
}

void
spmla_i_cpu_mqa_logits(spmla_ctx *ctx, const void *args)
{
	const spmla_mqa_logits_args *a = args;
	const uint32_t items = a->tokens * pieces_of(ctx, a);

	if (spmla_i_cpu_workers(ctx) > 1 && rows_apart(a))
		spmla_i_cpu_for(ctx, a, items, score_piece);
	else
		spmla_i_cpu_in_order(ctx, a, items, score_piece);
}
