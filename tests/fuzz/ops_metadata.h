/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the protocol, of metadata and of what goes into and out of the
 * caches. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_METADATA_H
#define TESTS_FUZZ_OPS_METADATA_H

#include "tests/fuzz/ops_input.h"

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
	a->compress_ratio = maybe(in) ? in_below(in, 5) : in_edge(in);
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
	a->context_lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->slot_mapping = maybe(in) ? NULL : i64_of(in, a->tokens);
	a->compact = in_below(in, 8) < 7 ? in_below(in, 2) : in_edge(in);
	a->entries_before = maybe(in) ? 0 : in_edge(in);
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
	a->cache = cache_of(in, kv_layout(in));
	a->kv_scale = scale_of(in);
}

CALL(kv_gather)
static void
make_kv_gather(input *in, void *args)
{
	spmla_kv_gather_args *a = args;
	const table table = table_of(in);
	uint32_t dim;

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
	a->cache = cache_of(in, kv_layout(in));
	dim = a->cache.layout < SPMLA_LAYOUT_V4_FP8 ? SPMLA_MLA_DIM
						    : SPMLA_V4_DIM;
	a->dst_stride_elems = stride_of(in, dim);
	a->dst = bytes_of(in, strided(a->keys, a->dst_stride_elems, dim), 2);
	a->slots = maybe(in) ? NULL : i32_of(in, a->keys);
	a->kv_scale = scale_of(in);
	a->ring = in_below(in, 3);
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

#endif
