/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of a decode layer. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_LAYER_H
#define TESTS_FUZZ_OPS_LAYER_H

#include "tests/fuzz/ops_input.h"

/* ---- A layer ----------------------------------------------------------- */

CALL(indexer_q_prep)
static void
make_indexer_q_prep(input *in, void *args)
{
	spmla_indexer_q_prep_args *a = args;
	const int64_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 4);

	a->rope_style = in_below(in, 4);
	a->scale_floor = in_below(in, 4);
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
	a->rope_part = in_below(in, 3);
	a->q_format = in_below(in, 3);
	a->q_scales = i32_of(in, tokens * heads);
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
	a->cache = cache_of(in, in_below(in, 2) ? SPMLA_LAYOUT_INDEX_MXFP4
						: SPMLA_LAYOUT_INDEX_FP8);
	a->q_scales = i32_of(in, (int64_t)a->tokens * a->heads);
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

#endif
