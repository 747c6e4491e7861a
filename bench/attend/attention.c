/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the index scores and of attention, one token of V3.2 each.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/ops/mqa_logits.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/ops/sparse_prefill.h"

enum {
	INDEX_HEADS = 64,
	DIM = 576,
	VALUES = 512,
	TOPK = 2048,
	LISTS = 128, /* of rows, in turn: all of them more than a cache holds */
	PREFILL_ROWS = 131072 /* bf16: 151 MB */
};

static spmla_mqa_logits_args logits;
static spmla_sparse_decode_args decode;
static spmla_sparse_prefill_args prefill;
static const int32_t *decode_lists, *prefill_lists; /* [LISTS][TOPK] */
static uint32_t lists, turn;                        /* of them in use */

static int32_t *
make_lists(bench *b, uint32_t rows)
{
	int32_t *list = bench_room(LISTS * TOPK * 4);
	uint32_t i;

	for (i = 0; i < LISTS * TOPK; i++)
		list[i] = (int32_t)(bench_next(&b->rng) % rows);
	return list;
}

static void
make_logits(bench *b)
{
	const uint32_t pages = BENCH_MAX_CONTEXT / BENCH_PAGE;
	spmla_mqa_logits_args *a = &logits;
	int32_t *table = bench_room(pages * 4);
	uint8_t *q = bench_room(INDEX_HEADS * 128);
	uint8_t *keys = bench_room(pages * BENCH_PAGE * 132);
	float *weights = bench_room(INDEX_HEADS * 4);
	const float scale = 0.0625f;
	uint32_t i, j;

	for (i = 0; i < pages; i++) {
		uint8_t *page = keys + i * BENCH_PAGE * 132;

		table[i] = (int32_t)((i * 37) % pages);
		bench_fill_codes(&b->rng, page, BENCH_PAGE * 128);
		for (j = 0; j < BENCH_PAGE; j++)
			memcpy(page + BENCH_PAGE * 128 + j * 4, &scale, 4);
	}
	bench_fill_codes(&b->rng, q, INDEX_HEADS * 128);
	for (i = 0; i < INDEX_HEADS; i++)
		weights[i] = (float)(bench_next(&b->rng) % 100) / 100;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = 1;
	a->heads = INDEX_HEADS;
	a->rows = 1;
	a->columns = a->table_stride_elems = pages;
	a->q = q;
	a->weights = weights;
	a->token_row = bench_room(4);
	a->row_starts = bench_room(8);
	a->block_table = table;
	a->logits = bench_room(BENCH_MAX_CONTEXT * 4);
	a->logits_elems = BENCH_MAX_CONTEXT;
	a->cache = (spmla_cache)SPMLA_CACHE_INIT;
	a->cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	a->cache.entries_per_page = BENCH_PAGE;
	a->cache.pages = pages;
	a->cache.page_stride_bytes = BENCH_PAGE * 132;
	a->cache.base = keys;
}

static void
make_decode(bench *b)
{
	spmla_sparse_decode_args *a = &decode;
	uint8_t *rows = bench_room((uint64_t)BENCH_POOL_ROWS * BENCH_KV_ROW);
	uint16_t *q = bench_room(BENCH_MAX_HEADS * DIM * 2);
	const float scale = 0.0625f;
	uint32_t i, j;

	for (i = 0; i < BENCH_POOL_ROWS; i++) {
		uint8_t *row = rows + (uint64_t)i * BENCH_KV_ROW;

		bench_fill_codes(&b->rng, row, 512);
		for (j = 0; j < 4; j++)
			memcpy(row + 512 + j * 4, &scale, 4);
		bench_fill_bf16(&b->rng, (uint16_t *)(void *)(row + 528), 64);
	}
	bench_fill_bf16(&b->rng, q, BENCH_MAX_HEADS * DIM);
	decode_lists = make_lists(b, BENCH_POOL_ROWS);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = 1;
	a->topk = TOPK;
	a->softmax_scale = 0.07216878f;
	a->q = q;
	a->q_token_stride_elems = BENCH_MAX_HEADS * DIM;
	a->q_head_stride_elems = DIM;
	a->slots_stride_elems = TOPK;
	a->out = bench_room(BENCH_MAX_HEADS * VALUES * 2);
	a->out_token_stride_elems = BENCH_MAX_HEADS * VALUES;
	a->out_head_stride_elems = VALUES;
	a->cache = (spmla_cache)SPMLA_CACHE_INIT;
	a->cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	a->cache.entries_per_page = BENCH_PAGE;
	a->cache.pages = BENCH_POOL_ROWS / BENCH_PAGE;
	a->cache.page_stride_bytes = BENCH_PAGE * BENCH_KV_ROW;
	a->cache.base = rows;
}

static void
make_prefill(bench *b)
{
	spmla_sparse_prefill_args *a = &prefill;
	uint16_t *kv = bench_room((uint64_t)PREFILL_ROWS * DIM * 2);

	bench_fill_bf16(&b->rng, kv, (uint64_t)PREFILL_ROWS * DIM);
	prefill_lists = make_lists(b, PREFILL_ROWS);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = 1;
	a->dim = DIM;
	a->topk = TOPK;
	a->kv_rows = PREFILL_ROWS;
	a->softmax_scale = 0.07216878f;
	a->q = decode.q;
	a->q_token_stride_elems = BENCH_MAX_HEADS * DIM;
	a->q_head_stride_elems = DIM;
	a->kv = kv;
	a->kv_stride_elems = DIM;
	a->indices_stride_elems = TOPK;
	a->out = decode.out;
	a->out_token_stride_elems = BENCH_MAX_HEADS * VALUES;
	a->out_head_stride_elems = VALUES;
}

void
bench_make_attention(bench *b)
{
	make_logits(b);
	make_decode(b);
	make_prefill(b);
}

static void
run_logits(void *arg)
{
	const bench *b = arg;

	if (spmla_mqa_logits(b->ctx, &logits, NULL) != SPMLA_OK)
		abort();
}

static void
run_decode(void *arg)
{
	const bench *b = arg;

	decode.slots = decode_lists + turn++ % lists * TOPK;
	if (spmla_sparse_decode(b->ctx, &decode, NULL) != SPMLA_OK)
		abort();
}

static void
run_prefill(void *arg)
{
	const bench *b = arg;

	prefill.indices = prefill_lists + turn++ % lists * TOPK;
	if (spmla_sparse_prefill(b->ctx, &prefill, NULL) != SPMLA_OK)
		abort();
}

void
bench_measure_attention(bench *b)
{
	static const uint32_t contexts[2] = {8192, 32768};
	static const uint32_t heads[2] = {16, 128};
	char shape[64];
	int32_t len;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		len = (int32_t)contexts[i];
		logits.context_lens = &len;
		snprintf(shape, sizeof shape, "64 heads, %u keys", contexts[i]);
		bench_measure(b, "mqa_logits", shape, run_logits,
			      BENCH_READS_IN_ORDER, (132.0 + 4) * contexts[i],
			      2.0 * INDEX_HEADS * 128 * contexts[i]);
	}
	for (i = 0; i < 8; i++) {
		const uint32_t h = heads[i / 2 % 2];
		const double row = i < 4 ? BENCH_KV_ROW : DIM * 2;

		decode.heads = prefill.heads = h;
		lists = i % 2 ? LISTS : 1;
		snprintf(shape, sizeof shape, "%u heads, %d rows, %s", h, TOPK,
			 i % 2 ? "memory" : "cached");
		bench_measure(b, i < 4 ? "sparse_decode" : "sparse_prefill",
			      shape, i < 4 ? run_decode : run_prefill,
			      i % 2 ? BENCH_READS_ROWS : BENCH_READS_IN_ORDER,
			      row * TOPK + h * (DIM + VALUES) * 2.0,
			      2.0 * h * TOPK * (DIM + VALUES));
	}
}
