/* SPDX-License-Identifier: Apache-2.0
 *
 * See road_rig.h: the two roads.
 */
#include "tests/ops/attend/road_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A row of the workspace is wider than it has to be. */
enum { ROW_ELEMS = ROAD_DIM + 8, TOKEN_ELEMS = ROAD_HEADS * ROAD_DIM };

static const float softmax_scale = 0.0441941738f; /* 512^-0.5 */

static void
open_result(road_result *to)
{
	memset(to, 0, sizeof *to);
	to->out = test_alloc(ROAD_TOKENS * TOKEN_ELEMS * 2, 0x5A);
	to->lse = test_alloc(ROAD_TOKENS * ROAD_HEADS * 4, 0x5A);
}

void
road_free(road_result *result)
{
	free(result->out);
	free(result->lse);
}

/* ---- Gathered ------------------------------------------------------------ */

/* A chunk on its way. */
typedef struct chunk {
	spmla_gathered_chunk is;
	uint32_t requests;
	uint32_t first; /* token */
	uint32_t tokens;
	uint16_t *workspace;
	int32_t indices[ROAD_TOKENS * ROAD_WIDTH];
	int32_t lens[ROAD_TOKENS];
} chunk;

/* Compressed keys to the front of each request's rows, or the window's behind
 * them. */
static void
gather(road_rig *r, const chunk *c, uint32_t is_compressed)
{
	const road_cache *k = is_compressed ? &r->compressed : &r->window;
	int32_t starts[ROAD_REQUESTS], ends[ROAD_REQUESTS];
	int32_t positions[ROAD_REQUESTS];
	const spmla_kv_gather_args a = {
		.struct_bytes = sizeof a,
		.requests = c->requests,
		.keys = c->requests * c->is.request_rows,
		.rows = ROAD_ROWS,
		.columns = k->columns,
		.table_stride_elems = ROAD_STRIDE,
		.workspace_starts = starts,
		.seq_starts = positions,
		.req_row = r->req_row + c->is.requests.first,
		.block_table = k->table,
		.table_cols = k->cols,
		.dst = c->workspace,
		.dst_stride_elems = ROW_ELEMS,
		.cache = k->cache,
		.workspace_ends = ends,
		.ring = k->ring};
	uint32_t i;

	for (i = 0; i < c->requests; i++) {
		const uint32_t b = c->is.requests.first + i;
		const int32_t seq = r->seq_lens[b];
		const int32_t take = is_compressed
					     ? seq / (int32_t)r->shape.ratio
					     : r->gather_lens[b];

		starts[i] = (int32_t)(i * c->is.request_rows +
				      (is_compressed ? 0 : c->is.window_row));
		ends[i] = starts[i] + take;
		positions[i] = is_compressed ? 0 : seq - take;
	}
	ck_assert_int_eq(spmla_kv_gather(r->f.ctx, &a, NULL), SPMLA_OK);
}

/* Which rows of the workspace each token sees. */
static void
combine(road_rig *r, chunk *c)
{
	const uint32_t first = c->is.requests.first;
	int32_t start_loc[ROAD_REQUESTS + 1], req_id[ROAD_TOKENS];
	int32_t token_row[ROAD_TOKENS], positions[ROAD_TOKENS];
	int32_t context_lens[ROAD_TOKENS];
	const spmla_token_map_args map = {.struct_bytes = sizeof map,
					  .requests = c->requests,
					  .tokens = c->tokens,
					  .query_start_loc = start_loc,
					  .seq_lens = r->seq_lens + first,
					  .req_row = r->req_row + first,
					  .req_id_per_token = req_id,
					  .token_row = token_row,
					  .positions = positions,
					  .context_lens = context_lens};
	const spmla_combine_index_args a = {
		.struct_bytes = sizeof a,
		.tokens = c->tokens,
		.requests = c->requests,
		.window = r->shape.window,
		.ratio = r->shape.ratio,
		.topk = r->shape.topk,
		.width = ROAD_WIDTH,
		.request_rows = c->is.request_rows,
		.window_row = c->is.window_row,
		.req_id_per_token = req_id,
		.context_lens = context_lens,
		.seq_lens = r->seq_lens + first,
		.gather_lens = r->gather_lens + first,
		.topk_indices = r->chosen + c->first * ROAD_WIDTH,
		.topk_stride_elems = ROAD_WIDTH,
		.indices = c->indices,
		.indices_stride_elems = ROAD_WIDTH,
		.lens = c->lens};
	uint32_t i;

	for (i = 0; i <= c->requests; i++)
		start_loc[i] = r->start_loc[first + i] - (int32_t)c->first;
	ck_assert_int_eq(spmla_token_map(r->f.ctx, &map, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_combine_index(r->f.ctx, &a, NULL), SPMLA_OK);
}

static void
attend(road_rig *r, const chunk *c, const road_result *to)
{
	const spmla_sparse_prefill_args a = {
		.struct_bytes = sizeof a,
		.tokens = c->tokens,
		.heads = ROAD_HEADS,
		.dim = ROAD_DIM,
		.topk = ROAD_WIDTH,
		.kv_rows = c->requests * c->is.request_rows,
		.softmax_scale = softmax_scale,
		.q = r->q + c->first * TOKEN_ELEMS,
		.q_token_stride_elems = TOKEN_ELEMS,
		.q_head_stride_elems = ROAD_DIM,
		.kv = c->workspace,
		.kv_stride_elems = ROW_ELEMS,
		.indices = c->indices,
		.indices_stride_elems = ROAD_WIDTH,
		.topk_lens = c->lens,
		.attn_sink = r->sink,
		.out = to->out + c->first * TOKEN_ELEMS,
		.out_token_stride_elems = TOKEN_ELEMS,
		.out_head_stride_elems = ROAD_DIM,
		.lse = to->lse + c->first * ROAD_HEADS,
		.lse_token_stride_elems = ROAD_HEADS,
		.lse_head_stride_elems = 1};

	ck_assert_int_eq(spmla_sparse_prefill(r->f.ctx, &a, NULL), SPMLA_OK);
}

/* Requests of the chunk that have tokens. */
static uint32_t
active(const road_rig *r, const chunk *c)
{
	uint32_t b, n = 0;

	for (b = c->is.requests.first; b < c->is.requests.end; b++)
		n += r->request[b].tokens != 0;
	return n;
}

void
road_gathered(road_rig *r, uint32_t workspace_rows, road_result *to)
{
	static chunk c;
	const uint64_t bytes = (uint64_t)workspace_rows * ROW_ELEMS * 2;
	spmla_gathered_chunk chunks[ROAD_REQUESTS];
	uint32_t seq[ROAD_REQUESTS], take[ROAD_REQUESTS], i;

	open_result(to);
	for (i = 0; i < r->requests; i++) {
		seq[i] = (uint32_t)r->seq_lens[i];
		take[i] = (uint32_t)r->gather_lens[i];
	}
	ck_assert_int_eq(spmla_split_gathered_chunks(
				 seq, take, r->requests, r->shape.ratio,
				 workspace_rows, chunks, ROAD_REQUESTS,
				 &to->chunks, NULL),
			 SPMLA_OK);
	c.workspace = test_alloc(bytes, 0);
	for (i = 0; i < to->chunks; i++) {
		c.is = chunks[i];
		c.requests = c.is.requests.end - c.is.requests.first;
		c.first = (uint32_t)r->start_loc[c.is.requests.first];
		c.tokens = (uint32_t)r->start_loc[c.is.requests.end] - c.first;
		to->shared += active(r, &c) > 1;
		memset(c.workspace, 0xFF, bytes);
		if (r->shape.ratio > 1)
			gather(r, &c, 1);
		gather(r, &c, 0);
		combine(r, &c);
		attend(r, &c, to);
	}
	free(c.workspace);
	ck_assert_uint_eq(fixture_status(&r->f).count, 0);
}

/* ---- Paged --------------------------------------------------------------- */

/* The slots of the compressed keys that each token sees. */
static void
map_chosen(road_rig *r, int32_t *slots, int32_t *lens)
{
	const road_cache *k = &r->compressed;
	const spmla_index_map_args some = {.struct_bytes = sizeof some,
					   .tokens = r->tokens,
					   .k = r->shape.topk,
					   .rows = ROAD_ROWS,
					   .columns = k->columns,
					   .table_stride_elems = ROAD_STRIDE,
					   .page_tokens =
						   k->cache.entries_per_page,
					   .pool_pages = k->cache.pages,
					   .token_row = r->token_row,
					   .block_table = k->table,
					   .table_cols = k->cols,
					   .indices = r->chosen,
					   .indices_stride_elems = ROAD_WIDTH,
					   .slots = slots,
					   .slots_stride_elems = ROAD_WIDTH,
					   .valid_counts = lens,
					   .context_lens = r->compressed_lens,
					   .slot_mapping = r->slot_mapping,
					   .compact = 1};
	const spmla_c128a_index_args all = {.struct_bytes = sizeof all,
					    .tokens = r->tokens,
					    .decode_tokens = r->tokens,
					    .ratio = r->shape.ratio,
					    .width = r->shape.topk,
					    .rows = ROAD_ROWS,
					    .columns = k->columns,
					    .table_stride_elems = ROAD_STRIDE,
					    .page_entries =
						    k->cache.entries_per_page,
					    .pool_pages = k->cache.pages,
					    .positions = r->positions,
					    .slot_mapping = r->slot_mapping,
					    .token_row = r->token_row,
					    .block_table = k->table,
					    .table_cols = k->cols,
					    .decode_slots = slots,
					    .decode_stride_elems = ROAD_WIDTH,
					    .decode_lens = lens};

	ck_assert_int_eq(r->shape.ratio == 4
				 ? spmla_index_map(r->f.ctx, &some, NULL)
				 : spmla_c128a_index(r->f.ctx, &all, NULL),
			 SPMLA_OK);
}

void
road_paged(road_rig *r, road_result *to)
{
	static int32_t slots[ROAD_TOKENS * ROAD_WIDTH], lens[ROAD_TOKENS];
	spmla_sparse_decode_args a = {.struct_bytes = sizeof a,
				      .tokens = r->tokens,
				      .heads = ROAD_HEADS,
				      .topk = r->shape.window,
				      .softmax_scale = softmax_scale,
				      .q = r->q,
				      .q_token_stride_elems = TOKEN_ELEMS,
				      .q_head_stride_elems = ROAD_DIM,
				      .slots = r->window_slots,
				      .slots_stride_elems = ROAD_WIDTH,
				      .topk_lens = r->window_lens,
				      .attn_sink = r->sink,
				      .out_token_stride_elems = TOKEN_ELEMS,
				      .out_head_stride_elems = ROAD_DIM,
				      .lse_token_stride_elems = ROAD_HEADS,
				      .lse_head_stride_elems = 1,
				      .cache = r->window.cache,
				      .extra_topk = r->shape.topk,
				      .extra_slots = slots,
				      .extra_slots_stride_elems = ROAD_WIDTH,
				      .extra_topk_lens = lens,
				      .extra_cache = r->compressed.cache};

	open_result(to);
	a.out = to->out;
	a.lse = to->lse;
	if (r->shape.topk)
		map_chosen(r, slots, lens);
	ck_assert_int_eq(spmla_sparse_decode(r->f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_uint_eq(fixture_status(&r->f).count, 0);
}
