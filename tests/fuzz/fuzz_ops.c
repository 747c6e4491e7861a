/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op: its host checks with any args, and the op itself with any data. The
 * hard idea is that args are made twice from one set: sound ones, whose arrays
 * are exactly as long as the header says, run; the same with words of them
 * replaced by the input are only recorded into a capture that is dropped, which
 * does all the checks and reads no array.
 *
 * A new op needs a CALL and a make_ here, or this does not compile.
 */
#include "tests/fuzz/input.h"

enum { MOST_ARRAYS = 32, MOST_OPS = 8 };

/* The arrays of one call. */
static void *arrays[MOST_ARRAYS];
static uint32_t array_count;

static void *
array(int64_t bytes)
{
	/* Something to point to, if the count is none or below none. */
	void *p = malloc(bytes > 0 ? (size_t)bytes : 1);

	REQUIRE(p && array_count < MOST_ARRAYS);
	arrays[array_count++] = p;
	return p;
}

static void
free_arrays(void)
{
	while (array_count > 0)
		free(arrays[--array_count]);
}

/* Elements of [n][stride] of which a row uses `width`. */
static int64_t
strided(uint32_t n, int64_t stride, uint32_t width)
{
	return n == 0 ? 0 : (int64_t)(n - 1) * stride + width;
}

/* The same of [tokens][heads], each with a stride. */
static int64_t
nested(uint32_t tokens, int64_t token_stride, uint32_t heads,
       int64_t head_stride, uint32_t width)
{
	if (tokens == 0 || heads == 0)
		return 0;
	return (tokens - 1) * token_stride + strided(heads, head_stride, width);
}

/* Arrays of the input's values: bytes, 16-bit and f32 ones as bytes. */
static void *
bytes_of(input *in, int64_t elems, uint32_t elem_bytes)
{
	void *p = array(elems * elem_bytes);

	if (elems > 0)
		in_fill(in, p, (uint64_t)elems * elem_bytes);
	return p;
}

static int32_t *
i32_of(input *in, int64_t elems)
{
	int32_t *p = array(elems * 4);

	if (elems > 0)
		in_fill_edges(in, (uint32_t *)p, (uint64_t)elems);
	return p;
}

/* Sign-extended, some with other upper halves. */
static int64_t *
i64_of(input *in, int64_t elems)
{
	const uint32_t high = in_below(in, 8) == 7 ? in_edge(in) : 0;
	int64_t *p = array(elems * 8);
	int64_t i;

	for (i = 0; i < elems; i++) {
		uint64_t x = (uint64_t)(int32_t)in_edge(in);

		x ^= (uint64_t)high << 32;
		memcpy(&p[i], &x, sizeof x);
	}
	return p;
}

static float *
f32_of(input *in, int64_t elems)
{
	float *p = array(elems * 4);

	if (elems <= 0)
		return p;
	if (in_below(in, 2))
		in_fill_edges(in, (uint32_t *)(void *)p, (uint64_t)elems);
	else
		in_fill(in, p, (uint64_t)elems * 4);
	return p;
}

/* Ascending from 0 for the most part, as start locations are. */
static int32_t *
starts_of(input *in, int64_t elems)
{
	int32_t *p = array(elems * 4);
	int32_t last = 0;
	int64_t i;

	for (i = 0; i < elems; i++) {
		const uint32_t kind = in_u8(in);

		last = kind < 0xf0 ? (last & 0xff) + (int32_t)(kind % 4)
				   : (int32_t)in_edge(in);
		p[i] = last;
	}
	return p;
}

static uint32_t
maybe(input *in)
{
	return in_below(in, 4) > 0;
}

/* A stride of rows of `width`: the least, a little more, or too little. */
static int64_t
stride_of(input *in, uint32_t width)
{
	static const int8_t more[8] = {0, 0, 0, 1, 5, 8, 16, -1};

	return (int64_t)width + more[in_below(in, 8)];
}

/* A finite positive float, or an edge. */
static float
scale_of(input *in)
{
	const uint32_t kind = in_u8(in);
	uint32_t u;
	float x;

	if (kind < 0xc0)
		return (float)(kind + 1) / 64.0f;
	u = in_edge(in);
	memcpy(&x, &u, sizeof x);
	return x;
}

static spmla_cache
cache_of(input *in, uint32_t layout)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = 1 + in_below(in, 5);
	c.pages = 1 + in_below(in, 6);
	c.page_stride_bytes =
		spmla_layout_page_bytes(layout, c.entries_per_page) +
		16 * (uint64_t)in_below(in, 3);
	/* The last page ends with its entries, not with its stride. */
	c.base = bytes_of(in,
			  (int64_t)((c.pages - 1) * c.page_stride_bytes +
				    spmla_layout_entry_bytes(layout) *
					    c.entries_per_page),
			  1);
	return c;
}

static uint32_t
mla_layout(input *in)
{
	return in_below(in, 2) ? SPMLA_LAYOUT_FP8_DS_MLA
			       : SPMLA_LAYOUT_MLA_BF16;
}

/* A block table, as several ops have it. */
typedef struct table {
	uint32_t rows;
	uint32_t columns;
	uint32_t stride;
	const int32_t *pages;
	const int32_t *cols;
} table;

static table
table_of(input *in)
{
	table t;

	t.rows = in_below(in, 5);
	t.columns = in_below(in, 6);
	t.stride = t.columns ? (uint32_t)stride_of(in, t.columns) : 0;
	t.pages = i32_of(in, strided(t.rows, t.stride, t.columns));
	t.cols = maybe(in) ? i32_of(in, t.rows) : NULL;
	return t;
}

/* The call of an op, by its generic type. */
#define CALL(stem)                                                        \
	static spmla_status call_##stem(spmla_ctx *ctx, const void *args) \
	{                                                                 \
		return spmla_##stem(ctx, args, NULL);                     \
	}

/* ---- The protocol's: plain values -------------------------------------- */

static spmla_status
call_step_prologue(spmla_ctx *ctx, const void *args)
{
	const spmla_step_prologue_args *a = args;

	return spmla_step_prologue(ctx, &a->shape, (spmla_source)a->source,
				   NULL);
}

static void
make_step_prologue(input *in, void *args)
{
	spmla_step_prologue_args *a = args;

	a->shape.tokens = in_edge(in);
	a->shape.requests = in_edge(in);
	a->shape.next_n = in_edge(in);
	a->shape.max_live_context = in_edge(in);
	a->source = in_edge(in);
}

static spmla_status
call_table_write(spmla_ctx *ctx, const void *args)
{
	const spmla_table_write_args *a = args;

	return spmla_table_write(ctx, a->group, a->row, a->first_col, a->count,
				 NULL);
}

static void
make_table_write(input *in, void *args)
{
	spmla_table_write_args *a = args;

	a->group = in_below(in, 8) == 7;
	a->row = in_edge(in);
	a->first_col = in_edge(in);
	a->count = in_edge(in);
}

/* ---- Metadata ---------------------------------------------------------- */

CALL(token_map)
static void
make_token_map(input *in, void *args)
{
	spmla_token_map_args *a = args;

	a->requests = in_below(in, 6);
	a->tokens = in_below(in, 12);
	a->query_start_loc = starts_of(in, a->requests + 1);
	a->seq_lens = i32_of(in, a->requests);
	a->req_row = i32_of(in, a->requests);
	a->req_id_per_token = i32_of(in, a->tokens);
	a->token_row = i32_of(in, a->tokens);
	a->positions = i32_of(in, a->tokens);
	a->context_lens = i32_of(in, a->tokens);
}

CALL(slot_map)
static void
make_slot_map(input *in, void *args)
{
	spmla_slot_map_args *a = args;
	const table table = table_of(in);

	a->tokens = in_below(in, 8);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->page_tokens = in_edge(in);
	a->pool_pages = in_edge(in);
	a->token_row = i32_of(in, a->tokens);
	a->positions = i32_of(in, a->tokens);
	a->context_lens = i32_of(in, a->tokens);
	a->slot_mapping = i64_of(in, a->tokens);
}

CALL(logits_rows)
static void
make_logits_rows(input *in, void *args)
{
	spmla_logits_rows_args *a = args;

	a->tokens = in_below(in, 10);
	a->capacity_elems = in_edge(in);
	if (in_below(in, 8) == 7)
		a->capacity_elems |= (uint64_t)in_edge(in) << 32;
	a->token_row = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->context_lens = i32_of(in, a->tokens);
	a->row_starts = i64_of(in, (int64_t)a->tokens + 1);
}

CALL(prefill_rows)
static void
make_prefill_rows(input *in, void *args)
{
	spmla_prefill_rows_args *a = args;

	a->requests = in_below(in, 6);
	a->tokens = in_below(in, 12);
	a->keys = in_edge(in);
	a->piece_tokens = in_below(in, 5);
	a->piece_stride_elems = in_edge(in);
	a->query_start_loc = starts_of(in, a->requests + 1);
	a->seq_lens = i32_of(in, a->requests);
	a->req_row = i32_of(in, a->requests);
	a->req_id_per_token = i32_of(in, a->tokens);
	a->context_lens = i32_of(in, a->tokens);
	a->workspace_starts = i32_of(in, (int64_t)a->requests + 1);
	a->key_starts = i32_of(in, a->tokens);
	a->key_ends = i32_of(in, a->tokens);
	a->row_starts = i64_of(in, a->tokens);
}

CALL(index_map)
static void
make_index_map(input *in, void *args)
{
	spmla_index_map_args *a = args;
	const table table = table_of(in);

	a->tokens = in_below(in, 5);
	a->k = in_below(in, 9);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->page_tokens = in_edge(in);
	a->page_stride_rows = maybe(in) ? in_edge(in) : 0;
	a->pool_pages = in_edge(in);
	a->workspaces = in_below(in, 4);
	a->token_row = i32_of(in, a->tokens);
	a->indices_stride_elems = stride_of(in, a->k);
	a->indices =
		i32_of(in, strided(a->tokens, a->indices_stride_elems, a->k));
	a->lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->slots_stride_elems = stride_of(in, a->k);
	a->slots = i32_of(in, strided(a->tokens, a->slots_stride_elems, a->k));
	if (in_below(in, 4) == 0 &&
	    a->indices_stride_elems >= a->slots_stride_elems)
		a->slots = (int32_t *)(uintptr_t)a->indices; /* in place */
	a->valid_counts = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->workspace_ids = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->workspace_starts = maybe(in) ? i32_of(in, a->workspaces) : NULL;
}

CALL(indexer_schedule)
static void
make_indexer_schedule(input *in, void *args)
{
	spmla_indexer_schedule_args *a = args;

	a->rule = in_below(in, 5);
	a->batch = in_below(in, 8);
	a->next_n = in_below(in, 5);
	a->num_sms = in_below(in, 24);
	a->context_lens_stride_elems = stride_of(in, a->next_n);
	a->context_lens = i32_of(
		in, strided(a->batch, a->context_lens_stride_elems, a->next_n));
	a->indices = maybe(in) ? i32_of(in, a->batch) : NULL;
	a->schedule = i32_of(in, 2 * ((int64_t)a->num_sms + 1));
}

CALL(tile_sched)
static void
make_tile_sched(input *in, void *args)
{
	spmla_tile_sched_args *a = args;

	a->batch = in_below(in, 8);
	a->parts = in_below(in, 16);
	a->overhead_blocks = in_edge(in);
	a->row_format = in_below(in, 3);
	a->topk = in_edge(in);
	a->extra_topk = maybe(in) ? 0 : in_edge(in);
	a->topk_lens = maybe(in) ? i32_of(in, a->batch) : NULL;
	a->extra_topk_lens = maybe(in) ? i32_of(in, a->batch) : NULL;
	a->tile_scheduler_metadata =
		i32_of(in, (int64_t)a->parts * SPMLA_TILE_ROW_ELEMS);
	a->num_splits = i32_of(in, (int64_t)a->batch + 1);
}

/* ---- Into the caches and out of them ----------------------------------- */

CALL(kv_insert)
static void
make_kv_insert(input *in, void *args)
{
	spmla_kv_insert_args *a = args;

	a->tokens = in_below(in, 4);
	a->dtype = in_below(in, 3);
	a->scale_mode = in_below(in, 4);
	a->kv_c_stride_elems = stride_of(in, SPMLA_MLA_LATENT);
	a->k_pe_stride_elems = stride_of(in, SPMLA_MLA_ROPE);
	a->kv_c = bytes_of(
		in, strided(a->tokens, a->kv_c_stride_elems, SPMLA_MLA_LATENT),
		2);
	a->k_pe = bytes_of(
		in, strided(a->tokens, a->k_pe_stride_elems, SPMLA_MLA_ROPE),
		2);
	a->slot_mapping = i64_of(in, a->tokens);
	a->cache = cache_of(in, mla_layout(in));
}

CALL(kv_gather)
static void
make_kv_gather(input *in, void *args)
{
	spmla_kv_gather_args *a = args;
	const table table = table_of(in);

	a->requests = in_below(in, 5);
	a->keys = in_below(in, 10);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->workspace_starts = starts_of(in, a->requests);
	a->workspace_ends = maybe(in) ? starts_of(in, a->requests) : NULL;
	a->seq_starts = maybe(in) ? i32_of(in, a->requests) : NULL;
	a->req_row = maybe(in) ? i32_of(in, a->requests) : NULL;
	a->dst_stride_elems = stride_of(in, SPMLA_MLA_DIM);
	a->dst = bytes_of(
		in, strided(a->keys, a->dst_stride_elems, SPMLA_MLA_DIM), 2);
	a->cache = cache_of(in, mla_layout(in));
}

CALL(indexer_k_insert)
static void
make_indexer_k_insert(input *in, void *args)
{
	spmla_indexer_k_insert_args *a = args;

	a->tokens = in_below(in, 4);
	a->dtype = in_below(in, 16) ? SPMLA_DTYPE_BF16 : in_below(in, 3);
	a->scale_mode = in_below(in, 4);
	a->rope_style = in_below(in, 4);
	a->cos_sin_rows = in_below(in, 5);
	a->norm_eps = scale_of(in);
	a->k_stride_elems = stride_of(in, SPMLA_INDEX_DIM);
	a->k = bytes_of(
		in, strided(a->tokens, a->k_stride_elems, SPMLA_INDEX_DIM), 2);
	a->slot_mapping = i64_of(in, a->tokens);
	a->norm_weight = maybe(in) ? f32_of(in, SPMLA_INDEX_DIM) : NULL;
	a->norm_bias = maybe(in) ? f32_of(in, SPMLA_INDEX_DIM) : NULL;
	a->positions = i32_of(in, a->tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_INDEX_ROPE);
	a->cache = cache_of(in, SPMLA_LAYOUT_INDEX_FP8);
}

CALL(indexer_k_gather)
static void
make_indexer_k_gather(input *in, void *args)
{
	spmla_indexer_k_gather_args *a = args;
	const table table = table_of(in);

	a->requests = in_below(in, 5);
	a->keys = in_below(in, 12);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->cu_seq_lens = starts_of(in, (int64_t)a->requests + 1);
	a->req_row = maybe(in) ? i32_of(in, a->requests) : NULL;
	a->dst_k = bytes_of(in, a->keys, SPMLA_INDEX_DIM);
	a->dst_scale = f32_of(in, a->keys);
	a->cache = cache_of(in, SPMLA_LAYOUT_INDEX_FP8);
}

/* ---- A layer ----------------------------------------------------------- */

CALL(indexer_q_prep)
static void
make_indexer_q_prep(input *in, void *args)
{
	spmla_indexer_q_prep_args *a = args;
	const int64_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 4);

	a->rope_style = in_below(in, 4);
	a->scale_floor = in_below(in, 3);
	a->weights_dtype = in_below(in, 4);
	a->cos_sin_rows = in_below(in, 5);
	a->softmax_scale = scale_of(in);
	a->head_scale = scale_of(in);
	a->q_head_stride_elems = stride_of(in, SPMLA_INDEX_DIM);
	a->q_token_stride_elems =
		stride_of(in, (uint32_t)heads * SPMLA_INDEX_DIM);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, a->heads,
			       a->q_head_stride_elems, SPMLA_INDEX_DIM),
			2);
	a->weights_stride_elems = stride_of(in, (uint32_t)heads);
	a->weights = bytes_of(
		in, strided(tokens, a->weights_stride_elems, (uint32_t)heads),
		a->weights_dtype == SPMLA_DTYPE_F32 ? 4 : 2);
	a->positions = i32_of(in, tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_INDEX_ROPE);
	a->q_out = bytes_of(in, tokens * heads, SPMLA_INDEX_DIM);
	a->weights_out = f32_of(in, tokens * heads);
}

CALL(mqa_logits)
static void
make_mqa_logits(input *in, void *args)
{
	spmla_mqa_logits_args *a = args;
	const table table = table_of(in);

	a->tokens = in_below(in, 4);
	a->heads = in_below(in, 5);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->q = bytes_of(in, (int64_t)a->tokens * a->heads, SPMLA_INDEX_DIM);
	a->weights = f32_of(in, (int64_t)a->tokens * a->heads);
	a->token_row = i32_of(in, a->tokens);
	a->context_lens = i32_of(in, a->tokens);
	a->row_starts = i64_of(in, a->tokens);
	a->logits_elems = in_below(in, 80);
	a->logits = f32_of(in, (int64_t)a->logits_elems);
	a->cache = cache_of(in, SPMLA_LAYOUT_INDEX_FP8);
}

CALL(topk)
static void
make_topk(input *in, void *args)
{
	spmla_topk_args *a = args;

	a->rows = in_below(in, 4);
	a->k = in_below(in, 20);
	a->logits_elems = in_below(in, 100);
	a->logits = f32_of(in, (int64_t)a->logits_elems);
	a->row_starts = i64_of(in, a->rows);
	a->context_lens = i32_of(in, a->rows);
	a->indices_stride_elems = stride_of(in, a->k);
	a->indices =
		i32_of(in, strided(a->rows, a->indices_stride_elems, a->k));
	a->lens = maybe(in) ? i32_of(in, a->rows) : NULL;
}

/* The second cache, and the work of parts. */
static void
make_decode_tail(input *in, spmla_sparse_decode_args *a)
{
	a->extra_topk = maybe(in) ? 0 : in_below(in, 70);
	a->extra_slots_stride_elems = stride_of(in, a->extra_topk);
	a->extra_slots =
		i32_of(in, strided(a->tokens, a->extra_slots_stride_elems,
				   a->extra_topk));
	a->extra_topk_lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
	if (a->extra_topk)
		a->extra_cache = cache_of(in, SPMLA_LAYOUT_V4_FP8);
	a->parts = maybe(in) ? 0 : in_below(in, 5);
	if (a->parts == 0)
		return;
	a->split_rows = in_below(in, 8);
	a->tile_scheduler_metadata =
		i32_of(in, (int64_t)a->parts * SPMLA_TILE_ROW_ELEMS);
	a->num_splits = starts_of(in, (int64_t)a->tokens + 1);
	a->split_out = bytes_of(in, (int64_t)a->split_rows * a->heads,
				4 * SPMLA_MLA_LATENT);
	a->split_lse = f32_of(in, (int64_t)a->split_rows * a->heads);
}

CALL(sparse_decode)
static void
make_sparse_decode(input *in, void *args)
{
	spmla_sparse_decode_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 3);
	const uint32_t v4 = in_below(in, 2);
	const uint32_t dim = v4 ? SPMLA_V4_DIM : SPMLA_MLA_DIM;

	a->topk = in_below(in, 70);
	a->empty_lse = in_below(in, 3);
	a->softmax_scale = scale_of(in);
	a->q_head_stride_elems = stride_of(in, dim);
	a->q_token_stride_elems = stride_of(in, heads * dim);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, heads,
			       a->q_head_stride_elems, dim),
			2);
	a->slots_stride_elems = stride_of(in, a->topk);
	a->slots = i32_of(in, strided(tokens, a->slots_stride_elems, a->topk));
	a->topk_lens = maybe(in) ? i32_of(in, tokens) : NULL;
	a->attn_sink = maybe(in) ? f32_of(in, heads) : NULL;
	a->out_head_stride_elems = stride_of(in, SPMLA_MLA_LATENT);
	a->out_token_stride_elems = stride_of(in, heads * SPMLA_MLA_LATENT);
	a->out = bytes_of(in,
			  nested(tokens, a->out_token_stride_elems, heads,
				 a->out_head_stride_elems, SPMLA_MLA_LATENT),
			  2);
	a->lse_head_stride_elems = stride_of(in, 1);
	a->lse_token_stride_elems = stride_of(in, heads);
	if (maybe(in))
		a->lse = f32_of(in, nested(tokens, a->lse_token_stride_elems,
					   heads, a->lse_head_stride_elems, 1));
	a->cache = cache_of(in, v4 ? SPMLA_LAYOUT_V4_FP8 : mla_layout(in));
	make_decode_tail(in, a);
}

CALL(split_combine)
static void
make_split_combine(input *in, void *args)
{
	spmla_split_combine_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 5);

	a->split_rows = in_below(in, 8);
	a->empty_lse = in_below(in, 3);
	a->num_splits = starts_of(in, (int64_t)tokens + 1);
	a->split_out = bytes_of(in, (int64_t)a->split_rows * heads,
				4 * SPMLA_MLA_LATENT);
	a->split_lse = f32_of(in, (int64_t)a->split_rows * heads);
	a->attn_sink = maybe(in) ? f32_of(in, heads) : NULL;
	a->out_head_stride_elems = stride_of(in, SPMLA_MLA_LATENT);
	a->out_token_stride_elems = stride_of(in, heads * SPMLA_MLA_LATENT);
	a->out = bytes_of(in,
			  nested(tokens, a->out_token_stride_elems, heads,
				 a->out_head_stride_elems, SPMLA_MLA_LATENT),
			  2);
	a->lse_head_stride_elems = stride_of(in, 1);
	a->lse_token_stride_elems = stride_of(in, heads);
	if (maybe(in))
		a->lse = f32_of(in, nested(tokens, a->lse_token_stride_elems,
					   heads, a->lse_head_stride_elems, 1));
}

/* ---- Prefill ----------------------------------------------------------- */

CALL(sparse_prefill)
static void
make_sparse_prefill(input *in, void *args)
{
	spmla_sparse_prefill_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 3);
	const uint32_t dim = a->dim = in_below(in, 2) ? 512 : 576;

	a->topk = in_below(in, 70);
	a->kv_rows = in_below(in, 6);
	a->lse_base = in_below(in, 3);
	a->empty_lse = in_below(in, 3);
	a->softmax_scale = scale_of(in);
	a->q_head_stride_elems = stride_of(in, dim);
	a->q_token_stride_elems = stride_of(in, heads * dim);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, heads,
			       a->q_head_stride_elems, dim),
			2);
	a->kv_stride_elems = stride_of(in, dim);
	a->kv = bytes_of(in, strided(a->kv_rows, a->kv_stride_elems, dim), 2);
	a->indices_stride_elems = stride_of(in, a->topk);
	a->indices =
		i32_of(in, strided(tokens, a->indices_stride_elems, a->topk));
	a->topk_lens = maybe(in) ? i32_of(in, tokens) : NULL;
	a->attn_sink = maybe(in) ? f32_of(in, heads) : NULL;
	a->out_head_stride_elems = stride_of(in, SPMLA_MLA_LATENT);
	a->out_token_stride_elems = stride_of(in, heads * SPMLA_MLA_LATENT);
	a->out = bytes_of(in,
			  nested(tokens, a->out_token_stride_elems, heads,
				 a->out_head_stride_elems, SPMLA_MLA_LATENT),
			  2);
	a->lse_head_stride_elems = stride_of(in, 1);
	a->lse_token_stride_elems = stride_of(in, heads);
	if (maybe(in))
		a->lse = f32_of(in, nested(tokens, a->lse_token_stride_elems,
					   heads, a->lse_head_stride_elems, 1));
	if (maybe(in))
		a->max_logits =
			f32_of(in, nested(tokens, a->lse_token_stride_elems,
					  heads, a->lse_head_stride_elems, 1));
}

CALL(mqa_logits_gathered)
static void
make_mqa_logits_gathered(input *in, void *args)
{
	spmla_mqa_logits_gathered_args *a = args;

	a->tokens = in_below(in, 4);
	a->heads = in_below(in, 5);
	a->keys = in_below(in, 9);
	a->form = in_below(in, 4);
	a->columns = in_below(in, 12);
	a->q = bytes_of(in, (int64_t)a->tokens * a->heads, SPMLA_INDEX_DIM);
	a->weights_stride_elems = stride_of(in, a->heads);
	a->weights = f32_of(
		in, strided(a->tokens, a->weights_stride_elems, a->heads));
	a->k = bytes_of(in, a->keys, SPMLA_INDEX_DIM);
	a->k_scales = f32_of(in, a->keys);
	a->starts = i32_of(in, a->tokens);
	a->ends = i32_of(in, a->tokens);
	a->logits_stride_elems = stride_of(in, a->columns);
	a->logits = f32_of(
		in, strided(a->tokens, a->logits_stride_elems, a->columns));
}

CALL(q_absorb)
static void
make_q_absorb(input *in, void *args)
{
	spmla_q_absorb_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 3);
	const uint32_t tokens = a->tokens = in_below(in, 3);
	const uint32_t rope = maybe(in);
	const uint32_t width = rope ? SPMLA_MLA_DIM : SPMLA_MLA_LATENT;

	a->rope_style = in_below(in, 4);
	a->cos_sin_rows = in_below(in, 5);
	a->q_nope_head_stride_elems = stride_of(in, 128);
	a->q_nope_token_stride_elems = stride_of(in, heads * 128);
	a->q_nope = bytes_of(in,
			     nested(tokens, a->q_nope_token_stride_elems, heads,
				    a->q_nope_head_stride_elems, 128),
			     2);
	a->w_row_stride_elems = stride_of(in, 512);
	a->w_head_stride_elems = stride_of(in, 128 * 512);
	a->w_uk_t = bytes_of(in,
			     nested(heads, a->w_head_stride_elems, 128,
				    a->w_row_stride_elems, 512),
			     2);
	a->q_pe_head_stride_elems = stride_of(in, 64);
	a->q_pe_token_stride_elems = stride_of(in, heads * 64);
	if (rope)
		a->q_pe = bytes_of(in,
				   nested(tokens, a->q_pe_token_stride_elems,
					  heads, a->q_pe_head_stride_elems, 64),
				   2);
	a->positions = i32_of(in, tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_INDEX_ROPE);
	a->q_head_stride_elems = stride_of(in, width);
	a->q_token_stride_elems = stride_of(in, heads * width);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, heads,
			       a->q_head_stride_elems, width),
			2);
}

CALL(v_up)
static void
make_v_up(input *in, void *args)
{
	spmla_v_up_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 3);
	const uint32_t tokens = a->tokens = in_below(in, 3);

	a->latent_head_stride_elems = stride_of(in, 512);
	a->latent_token_stride_elems = stride_of(in, heads * 512);
	a->latent = bytes_of(in,
			     nested(tokens, a->latent_token_stride_elems, heads,
				    a->latent_head_stride_elems, 512),
			     2);
	a->w_row_stride_elems = stride_of(in, 128);
	a->w_head_stride_elems = stride_of(in, 512 * 128);
	a->w_uv = bytes_of(in,
			   nested(heads, a->w_head_stride_elems, 512,
				  a->w_row_stride_elems, 128),
			   2);
	a->out_token_stride_elems = stride_of(in, heads * 128);
	a->out = bytes_of(
		in, strided(tokens, a->out_token_stride_elems, heads * 128), 2);
}

CALL(lse2_to_lse)
static void
make_lse2_to_lse(input *in, void *args)
{
	spmla_lse2_to_lse_args *a = args;

	a->count = in_below(in, 20);
	a->lse2 = f32_of(in, (int64_t)a->count);
	a->lse = maybe(in) ? f32_of(in, (int64_t)a->count)
			   : (float *)(uintptr_t)a->lse2; /* in place */
}

CALL(filter_prefill_indices)
static void
make_filter_prefill_indices(input *in, void *args)
{
	spmla_filter_prefill_indices_args *a = args;
	const uint32_t tokens = a->tokens = in_below(in, 5);

	a->k = in_below(in, 9);
	a->indices_stride_elems = stride_of(in, a->k);
	a->indices = i32_of(in, strided(tokens, a->indices_stride_elems, a->k));
	a->context_lens = i32_of(in, tokens);
	a->context_indices_stride_elems = stride_of(in, a->k);
	a->new_indices_stride_elems = stride_of(in, a->k);
	if (maybe(in))
		a->context_indices = i32_of(
			in,
			strided(tokens, a->context_indices_stride_elems, a->k));
	if (maybe(in))
		a->new_indices = i32_of(
			in, strided(tokens, a->new_indices_stride_elems, a->k));
}

/* ---- All of them ------------------------------------------------------- */

static const struct {
	uint32_t args_bytes;
	uint32_t plain; /* no struct_bytes in front */
	void (*make)(input *in, void *args);
	spmla_status (*call)(spmla_ctx *ctx, const void *args);
} ops[] = {
#define SPMLA_OP(stem)                          \
	{(uint32_t)sizeof(spmla_##stem##_args), \
	 SPMLA_OP_##stem <= SPMLA_OP_table_write, make_##stem, call_##stem},
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};

static void
check_status(const world *w, input *in, spmla_status s)
{
	if (s == SPMLA_OK)
		return;
	REQUIRE(spmla_ctx_diag(w->ctx)->status == (uint32_t)s);
	world_diag(w, in);
}

/* Words of the args become the input's; recorded only, if at all. A pointer is
 * also moved off its alignment so. */
static void
call_wild(const world *w, input *in, uint32_t op, spmla_i_args *args)
{
	uint32_t *words = (uint32_t *)(void *)args;
	spmla_graph graph = 0;
	spmla_status s;
	uint32_t n;

	for (n = in_below(in, 5); n > 0; n--) {
		const uint32_t at = in_u8(in) % (ops[op].args_bytes / 4);

		if (in_below(in, 4) == 0)
			words[at] += in_below(in, 17);
		else
			words[at] = in_edge(in);
	}
	REQUIRE(spmla_graph_begin(w->ctx, NULL) == SPMLA_OK);
	s = ops[op].call(w->ctx, args);
	check_status(w, in, s);
	REQUIRE((spmla_graph_end(w->ctx, &graph) == SPMLA_OK) ==
		(s == SPMLA_OK));
	if (s != SPMLA_OK)
		REQUIRE(spmla_graph_abort(w->ctx) == SPMLA_OK);
}

static void
one_op(const world *w, input *in)
{
	/* Most bytes mean the same op when there are more of them. */
	const uint32_t op = in_below(in, 64) % (sizeof ops / sizeof *ops);
	spmla_i_args args;

	memset(&args, 0, sizeof args);
	ops[op].make(in, &args);
	if (!ops[op].plain)
		memcpy(&args, &ops[op].args_bytes, sizeof(uint32_t));
	check_status(w, in, ops[op].call(w->ctx, &args));
	call_wild(w, in, op, &args);
	free_arrays();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static world w;
	input in = {data, data + size};
	spmla_config config;
	uint32_t n;

	world_config(&config);
	config.max_graphs = MOST_OPS;
	world_open(&w, &config, 0);
	for (n = 0; n < MOST_OPS && (n == 0 || in_left(&in) > 0); n++)
		one_op(&w, &in);
	world_close(&w);
	return 0;
}
