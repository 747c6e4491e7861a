/* SPDX-License-Identifier: Apache-2.0
 *
 * See road_rig.h: the caches, and the step that both roads start from.
 */
#include "tests/ops/attend/road_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_TOKENS = 64, GARBAGE = 0x7fff0000 };

/* ---- What follows from request and position ------------------------------ */

static uint64_t
stream_of(uint32_t what, uint32_t id, uint32_t n)
{
	uint64_t rng =
		test_seed() ^ ((uint64_t)what << 48 | (uint64_t)id << 32 | n);

	return rng_next(&rng);
}

void
road_key(uint32_t id, uint32_t is_compressed, uint32_t n, uint8_t *values,
	 uint8_t *scales)
{
	uint64_t rng = stream_of(1 + is_compressed, id, n);
	uint32_t i;

	for (i = 0; i < 448; i++) { /* codes up to 0x38, which is 1 */
		const uint64_t bits = rng_next(&rng);

		values[i] = (uint8_t)((bits & 0x80) | (bits >> 8) % 0x39);
	}
	for (i = 0; i < 64; i++) {
		const uint16_t half = test_bf16(rng_float(&rng));

		memcpy(values + 448 + i * 2, &half, 2);
	}
	for (i = 0; i < 7; i++)
		scales[i] = (uint8_t)(125 + rng_below(&rng, 4));
	scales[7] = 0;
}

void
road_query(uint32_t id, uint32_t position, uint16_t *q)
{
	uint64_t rng = stream_of(3, id, position);
	uint32_t i;

	for (i = 0; i < ROAD_HEADS * ROAD_DIM; i++)
		q[i] = test_bf16(4 * rng_float(&rng));
}

void
road_scores(uint32_t id, uint32_t position, float *scores, uint32_t n)
{
	uint64_t rng = stream_of(4, id, position);
	uint32_t i;

	for (i = 0; i < n; i++)
		scores[i] = (float)rng_below(&rng, 50) / 8;
}

/* ---- Caches -------------------------------------------------------------- */

/* Pages in random order, all bytes NaN; between the rows of the table and
 * behind the columns pages that are none. */
static void
open_cache(road_cache *k, uint32_t entries, uint32_t columns)
{
	uint64_t rng = test_seed() + entries;
	uint32_t row, col, n = 0;
	int32_t page[ROAD_ROWS * ROAD_COLUMNS];

	k->cache = (spmla_cache)SPMLA_CACHE_INIT;
	k->cache.layout = SPMLA_LAYOUT_V4_FP8;
	k->cache.entries_per_page = entries;
	k->cache.pages = ROAD_ROWS * columns;
	k->cache.page_stride_bytes = (entries * 584ull + 575) / 576 * 576;
	k->cache.base =
		test_alloc(k->cache.pages * k->cache.page_stride_bytes, 0xFF);
	k->columns = columns;
	for (n = 0; n < k->cache.pages; n++) {
		const uint32_t other = rng_below(&rng, n + 1);

		page[n] = page[other];
		page[other] = (int32_t)n;
	}
	for (row = n = 0; row < ROAD_ROWS; row++)
		for (col = 0; col < ROAD_STRIDE; col++)
			k->table[row * ROAD_STRIDE + col] =
				col < columns ? page[n++] : GARBAGE;
}

void
road_open(road_rig *r, const road_shape *shape)
{
	static const float sink[ROAD_HEADS] = {1.5f, -INFINITY, 4};
	const uint32_t ratio = shape->ratio;
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->shape = *shape;
	memcpy(r->sink, sink, sizeof sink);
	open_cache(&r->window, PAGE_TOKENS,
		   shape->ring_columns ? shape->ring_columns : ROAD_COLUMNS);
	r->window.ring = shape->ring_columns != 0;
	/* Pages of 256 tokens. */
	open_cache(&r->compressed, ratio > 1 ? 256 / ratio : 1, ROAD_COLUMNS);
	r->q = test_alloc(ROAD_TOKENS * ROAD_HEADS * ROAD_DIM * 2, 0);
	r->rows = malloc(ROAD_WIDTH * ROAD_DIM * sizeof *r->rows);
	ck_assert(r->rows && ref_work_open(&r->work, ROAD_SCORES, 1));
}

void
road_close(road_rig *r)
{
	ref_work_close(&r->work);
	free(r->rows);
	free(r->q);
	free(r->window.cache.base);
	free(r->compressed.cache.base);
	fixture_close(&r->f);
}

/* ---- A step -------------------------------------------------------------- */

/* Writes key n. */
static void
put(const road_cache *k, uint32_t id, uint32_t row, uint32_t is_compressed,
    uint32_t n)
{
	const uint32_t entries = k->cache.entries_per_page, entry = n % entries;
	const uint32_t col = k->ring ? n / entries % k->columns : n / entries;
	uint8_t *page = k->cache.base;

	ck_assert_uint_lt(col, k->columns);
	page += (uint64_t)(uint32_t)k->table[row * ROAD_STRIDE + col] *
		k->cache.page_stride_bytes;
	road_key(id, is_compressed, n, page + entry * 576ull,
		 page + entries * 576ull + entry * 8ull);
}

/* The keys of a request. What its window has left behind was not written, and
 * its pages are given back. */
static void
put_keys(road_rig *r, const road_request *q, uint32_t row)
{
	const uint32_t before = q->tokens + r->shape.window - 1;
	const uint32_t from = q->seq > before ? q->seq - before : 0;
	const uint32_t keys = r->shape.ratio > 1 ? q->seq / r->shape.ratio : 0;
	const uint32_t per = r->compressed.cache.entries_per_page;
	uint32_t n;

	for (n = from; n < q->seq; n++)
		put(&r->window, q->id, row, 0, n);
	for (n = 0; n < keys; n++)
		put(&r->compressed, q->id, row, 1, n);
	r->compressed.cols[row] = (int32_t)((keys + per - 1) / per);
	r->window.cols[row] = (int32_t)r->window.columns;
	if (r->window.ring)
		return;
	r->window.cols[row] =
		(int32_t)((q->seq + PAGE_TOKENS - 1) / PAGE_TOKENS);
	for (n = 0; n < from / PAGE_TOKENS; n++)
		r->window.table[row * ROAD_STRIDE + n] = GARBAGE;
}

static void
make_positions(road_rig *r)
{
	const spmla_token_map_args a = {.struct_bytes = sizeof a,
					.requests = r->requests,
					.tokens = r->tokens,
					.query_start_loc = r->start_loc,
					.seq_lens = r->seq_lens,
					.req_row = r->req_row,
					.req_id_per_token = r->req_id,
					.token_row = r->token_row,
					.positions = r->positions,
					.context_lens = r->context_lens};
	const spmla_slot_map_args slots = {.struct_bytes = sizeof slots,
					   .tokens = r->tokens,
					   .rows = ROAD_ROWS,
					   .columns = r->window.columns,
					   .page_tokens = PAGE_TOKENS,
					   .pool_pages = r->window.cache.pages,
					   .table_stride_elems = ROAD_STRIDE,
					   .token_row = r->token_row,
					   .positions = r->positions,
					   .block_table = r->window.table,
					   .table_cols = r->window.cols,
					   .context_lens = r->context_lens,
					   .slot_mapping = r->slot_mapping,
					   .ring = r->window.ring};

	ck_assert_int_eq(spmla_token_map(r->f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_slot_map(r->f.ctx, &slots, NULL), SPMLA_OK);
}

static void
make_windows(road_rig *r)
{
	const spmla_swa_index_args a = {.struct_bytes = sizeof a,
					.tokens = r->tokens,
					.window = r->shape.window,
					.width = r->shape.window,
					.rows = ROAD_ROWS,
					.columns = r->window.columns,
					.table_stride_elems = ROAD_STRIDE,
					.page_tokens = PAGE_TOKENS,
					.pool_pages = r->window.cache.pages,
					.ring = r->window.ring,
					.requests = r->requests,
					.positions = r->positions,
					.token_row = r->token_row,
					.slot_mapping = r->slot_mapping,
					.block_table = r->window.table,
					.table_cols = r->window.cols,
					.replay_starts = r->replay_starts,
					.indices = r->window_slots,
					.indices_stride_elems = ROAD_WIDTH,
					.lens = r->window_lens,
					.query_start_loc = r->start_loc,
					.seq_lens = r->seq_lens,
					.req_row = r->req_row,
					.gather_lens = r->gather_lens};

	ck_assert_int_eq(spmla_swa_index(r->f.ctx, &a, NULL), SPMLA_OK);
}

/* The top-k of random scores; with ratio 128 all keys there are. */
static void
choose(road_rig *r)
{
	float *scores = test_alloc(ROAD_TOKENS * ROAD_SCORES * 4, 0xFF);
	int64_t starts[ROAD_TOKENS];
	const spmla_topk_args topk = {.struct_bytes = sizeof topk,
				      .rows = r->tokens,
				      .k = r->shape.topk,
				      .logits = scores,
				      .logits_elems = ROAD_TOKENS * ROAD_SCORES,
				      .row_starts = starts,
				      .context_lens = r->compressed_lens,
				      .indices = r->chosen,
				      .indices_stride_elems = ROAD_WIDTH};
	const spmla_c128a_index_args all = {
		.struct_bytes = sizeof all,
		.tokens = r->tokens,
		.ratio = r->shape.ratio,
		.width = r->shape.topk,
		.page_entries = r->compressed.cache.entries_per_page,
		.positions = r->positions,
		.slot_mapping = r->slot_mapping,
		.prefill_indices = r->chosen,
		.prefill_stride_elems = ROAD_WIDTH};
	uint32_t t;

	for (t = 0; t < r->tokens; t++) {
		const uint32_t n = (uint32_t)r->compressed_lens[t];

		starts[t] = (int64_t)t * ROAD_SCORES;
		ck_assert_uint_le(n, ROAD_SCORES);
		road_scores(r->request[r->req_id[t]].id,
			    (uint32_t)r->positions[t], scores + starts[t], n);
	}
	ck_assert_int_eq(r->shape.ratio == 4
				 ? spmla_topk(r->f.ctx, &topk, NULL)
				 : spmla_c128a_index(r->f.ctx, &all, NULL),
			 SPMLA_OK);
	free(scores);
}

void
road_step(road_rig *r, const road_request *request, uint32_t requests)
{
	uint32_t b, t;

	ck_assert_uint_le(requests, ROAD_REQUESTS);
	r->request = request;
	r->requests = requests;
	r->tokens = 0;
	for (b = 0; b < requests; b++) {
		const road_request *q = &request[b];
		const uint32_t row = (q->id * 5 + 3) % ROAD_ROWS;

		r->start_loc[b] = (int32_t)r->tokens;
		r->tokens += q->tokens;
		ck_assert_uint_le(r->tokens, ROAD_TOKENS);
		r->seq_lens[b] = (int32_t)q->seq;
		r->req_row[b] = (int32_t)row;
		r->replay_starts[row] = (int32_t)q->replay;
		put_keys(r, q, row);
	}
	r->start_loc[requests] = (int32_t)r->tokens;
	make_positions(r);
	make_windows(r);
	for (t = 0; t < r->tokens; t++) {
		r->compressed_lens[t] =
			r->shape.ratio > 1
				? r->context_lens[t] / (int32_t)r->shape.ratio
				: 0;
		road_query(request[r->req_id[t]].id, (uint32_t)r->positions[t],
			   r->q + t * ROAD_HEADS * ROAD_DIM);
	}
	if (r->shape.topk)
		choose(r);
	ck_assert_uint_eq(fixture_status(&r->f).count, 0);
}
