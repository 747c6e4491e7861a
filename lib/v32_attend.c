/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention of a V3.2 layer's decode step: the selection to slots, and then
 * one op, or on a GPU that few tokens would not fill, parts by the metadata
 * that the prologue has made, and their combine.
 */
#include "spmla/internal/splits.h"
#include "spmla/internal/v32.h"

#include <string.h>

spmla_status
spmla_i_v32_map_topk(spmla_ctx *ctx, const spmla_i_topk *topk,
		     const spmla_shape *shape, uint32_t prefill,
		     spmla_stream stream)
{
	const spmla_table_config *g =
		&ctx->plan.config.groups[SPMLA_GROUP_MAIN];
	const spmla_i_table_view table =
		spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	spmla_index_map_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.k = ctx->plan.config.topk;
	a.rows = ctx->plan.config.max_rows;
	a.columns = ctx->plan.columns;
	a.table_stride_elems = table.stride_elems;
	a.page_tokens = g->page_tokens;
	a.pool_pages = g->pool_pages;
	a.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	a.block_table = table.table;
	a.table_cols = table.cols;
	a.indices = topk->indices;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens;
	a.slots = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
	a.slots_stride_elems = ctx->plan.config.topk;
	/* A selection may be the engine's own; no token sees another request's
	 * keys, whatever it says. */
	a.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	if (prefill) {
		a.workspaces = shape->requests;
		a.workspace_ids = ctx->buf[SPMLA_BUF_REQ_ID_PER_TOKEN];
		a.workspace_starts = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	}
	return spmla_index_map(ctx, &a, stream);
}

/* The results of tokens that were done in splits. */
static spmla_status
combine(spmla_ctx *ctx, const spmla_sparse_decode_args *d, spmla_stream stream)
{
	spmla_split_combine_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = d->tokens;
	a.heads = d->heads;
	a.split_rows = d->split_rows;
	a.empty_lse = d->empty_lse;
	a.num_splits = d->num_splits;
	a.split_out = d->split_out;
	a.split_lse = d->split_lse;
	a.attn_sink = d->attn_sink;
	a.out = d->out;
	a.out_token_stride_elems = d->out_token_stride_elems;
	a.out_head_stride_elems = d->out_head_stride_elems;
	a.lse = d->lse;
	a.lse_token_stride_elems = d->lse_token_stride_elems;
	a.lse_head_stride_elems = d->lse_head_stride_elems;
	return spmla_split_combine(ctx, &a, stream);
}

spmla_status
spmla_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	spmla_sparse_decode_args a;
	spmla_i_topk topk;
	spmla_status s = spmla_i_v32_begin_decode(ctx, layer, shape);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_kv(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_topk(ctx, layer, &topk);
	if (s == SPMLA_OK)
		s = spmla_i_v32_map_topk(ctx, &topk, shape, 0, stream);
	if (s != SPMLA_OK)
		return s;
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.heads = ctx->plan.config.heads;
	a.topk = ctx->plan.config.topk;
	a.empty_lse = layer->empty_lse;
	a.softmax_scale = ctx->plan.config.softmax_scale;
	a.q = layer->q;
	a.q_token_stride_elems = layer->q_token_stride_elems;
	a.q_head_stride_elems = layer->q_head_stride_elems;
	a.slots = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
	a.slots_stride_elems = ctx->plan.config.topk;
	a.topk_lens = topk.lens;
	a.attn_sink = layer->attn_sink;
	a.out = layer->out;
	a.out_token_stride_elems = layer->out_token_stride_elems;
	a.out_head_stride_elems = layer->out_head_stride_elems;
	a.lse = layer->lse;
	a.lse_token_stride_elems = layer->lse_token_stride_elems;
	a.lse_head_stride_elems = layer->lse_head_stride_elems;
	a.cache = layer->kv;
	/* The prologue's metadata are of its own tokens and of the lengths that
	 * topk writes, wherever to. */
	if ((layer->index_q || !layer->topk_lens) &&
	    shape->tokens == ctx->prologue.shape.tokens)
		a.parts = spmla_i_decode_parts(&ctx->plan, shape->tokens);
	if (!a.parts)
		return spmla_sparse_decode(ctx, &a, stream);
	a.tile_scheduler_metadata = ctx->buf[SPMLA_BUF_TILE_SCHEDULER_METADATA];
	a.num_splits = ctx->buf[SPMLA_BUF_NUM_SPLITS];
	a.split_out = ctx->buf[SPMLA_BUF_SPLIT_OUT];
	a.split_lse = ctx->buf[SPMLA_BUF_SPLIT_LSE];
	a.split_rows = shape->tokens + a.parts;
	s = spmla_sparse_decode(ctx, &a, stream);
	return s == SPMLA_OK ? combine(ctx, &a, stream) : s;
}
