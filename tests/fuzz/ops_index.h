/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of V4's index operations. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_INDEX_H
#define TESTS_FUZZ_OPS_INDEX_H

#include "tests/fuzz/ops_input.h"

CALL(swa_index)
static void
make_swa_index(input *in, void *args)
{
	spmla_swa_index_args *a = args;
	const table table = table_of(in);

	a->tokens = in_below(in, 6);
	a->window = in_below(in, 12);
	a->width = a->window + in_below(in, 8);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->page_tokens = maybe(in) ? in_below(in, 6) : in_edge(in);
	a->page_stride_rows = maybe(in) ? 0 : in_edge(in);
	a->pool_pages = in_edge(in);
	a->ring = in_below(in, 3);
	a->requests = in_below(in, 6);
	a->positions = i32_of(in, a->tokens);
	a->token_row = i32_of(in, a->tokens);
	a->slot_mapping = i64_of(in, a->tokens);
	a->replay_starts = maybe(in) ? i32_of(in, a->rows) : NULL;
	a->indices_stride_elems = stride_of(in, a->width);
	a->indices = i32_of(
		in, strided(a->tokens, a->indices_stride_elems, a->width));
	a->lens = i32_of(in, a->tokens);
	a->query_start_loc = starts_of(in, (int64_t)a->requests + 1);
	a->seq_lens = i32_of(in, a->requests);
	a->req_row = maybe(in) ? i32_of(in, a->requests) : NULL;
	a->gather_lens = i32_of(in, a->requests);
	a->max_image = in_below(in, 6);
	a->image_spans = maybe(in) ? i32_of(in, 2 * (int64_t)a->tokens) : NULL;
	a->padded_lens = in_below(in, 3);
}

CALL(c128a_index)
static void
make_c128a_index(input *in, void *args)
{
	spmla_c128a_index_args *a = args;
	const table table = table_of(in);
	uint32_t prefill;

	a->tokens = in_below(in, 6);
	a->decode_tokens = in_below(in, 8);
	prefill =
		a->tokens > a->decode_tokens ? a->tokens - a->decode_tokens : 0;
	a->ratio = in_below(in, 6);
	a->width = in_below(in, 12);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->page_entries = maybe(in) ? in_below(in, 6) : in_edge(in);
	a->page_stride_rows = maybe(in) ? 0 : in_edge(in);
	a->pool_pages = in_edge(in);
	a->positions = i32_of(in, a->tokens);
	a->slot_mapping = i64_of(in, a->tokens);
	a->token_row = i32_of(in, a->decode_tokens);
	a->decode_stride_elems = stride_of(in, a->width);
	a->decode_slots = i32_of(in, strided(a->decode_tokens,
					     a->decode_stride_elems, a->width));
	a->decode_lens = i32_of(in, a->decode_tokens);
	a->prefill_stride_elems = stride_of(in, a->width);
	a->prefill_indices =
		i32_of(in, strided(prefill, a->prefill_stride_elems, a->width));
	a->prefill_lens = maybe(in) ? i32_of(in, prefill) : NULL;
	a->entries_before = maybe(in) ? 0 : in_edge(in);
}

CALL(combine_index)
static void
make_combine_index(input *in, void *args)
{
	spmla_combine_index_args *a = args;

	a->tokens = in_below(in, 6);
	a->requests = in_below(in, 6);
	a->window = in_below(in, 8);
	a->ratio = in_below(in, 6);
	a->topk = in_below(in, 8);
	a->width = a->topk + a->window + in_below(in, 8);
	a->request_rows = maybe(in) ? in_below(in, 60) : in_edge(in);
	a->window_row = maybe(in) ? in_below(in, 20) : in_edge(in);
	a->req_id_per_token = i32_of(in, a->tokens);
	a->context_lens = i32_of(in, a->tokens);
	a->seq_lens = i32_of(in, a->requests);
	a->gather_lens = i32_of(in, a->requests);
	a->topk_stride_elems = stride_of(in, a->topk);
	a->topk_indices =
		i32_of(in, strided(a->tokens, a->topk_stride_elems, a->topk));
	a->indices_stride_elems = stride_of(in, a->width);
	a->indices = i32_of(
		in, strided(a->tokens, a->indices_stride_elems, a->width));
	a->lens = i32_of(in, a->tokens);
	a->max_image = in_below(in, 6);
	a->image_spans = maybe(in) ? i32_of(in, 2 * (int64_t)a->tokens) : NULL;
}

CALL(ragged_index)
static void
make_ragged_index(input *in, void *args)
{
	spmla_ragged_index_args *a = args;

	a->tokens = in_below(in, 8);
	a->width = in_below(in, 12);
	a->num_slots = maybe(in) ? 0 : in_edge(in);
	a->capacity_elems = in_below(in, 90);
	a->indices_stride_elems = stride_of(in, a->width);
	a->indices = i32_of(
		in, strided(a->tokens, a->indices_stride_elems, a->width));
	a->lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->ragged_indptr = i32_of(in, (int64_t)a->tokens + 1);
	a->ragged_indices = i32_of(in, a->capacity_elems);
}

#endif
