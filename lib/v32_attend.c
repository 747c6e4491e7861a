/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention of a V3.2 layer's decode step: maps the selection to slots,
 * then attends to the keys there.
 */
#include "spmla/internal/v32.h"

#include <string.h>

spmla_index_map_args
spmla_i_v32_map(const spmla_ctx *ctx, const spmla_i_topk *topk,
		const spmla_i_piece *piece, uint32_t workspaces)
{
	const spmla_table_config *g =
		&ctx->plan.config.groups[SPMLA_GROUP_MAIN];
	const spmla_i_table_view table =
		spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	spmla_index_map_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = piece->tokens;
	a.k = ctx->plan.config.topk;
	a.rows = ctx->plan.config.max_rows;
	a.columns = ctx->plan.columns;
	a.table_stride_elems = table.stride_elems;
	a.page_tokens = g->page_tokens;
	a.pool_pages = g->pool_pages;
	a.token_row = spmla_i_words(ctx, SPMLA_BUF_TOKEN_ROW, piece->first);
	a.block_table = table.table;
	a.table_cols = table.cols;
	a.indices = topk->indices + piece->first * topk->stride_elems;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens + piece->first;
	spmla_i_layer_slots(ctx, &a);
	a.whole = 1;
	/* The selection may be the engine's own, but no token may see another
	 * request's keys. */
	a.context_lens =
		spmla_i_words(ctx, SPMLA_BUF_CONTEXT_LENS, piece->first);
	if (workspaces) {
		a.workspaces = workspaces;
		a.workspace_ids = spmla_i_words(ctx, SPMLA_BUF_REQ_ID_PER_TOKEN,
						piece->first);
		a.workspace_starts = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	}
	return a;
}

spmla_status
spmla_i_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
		   const spmla_shape *shape, uint32_t mapped,
		   spmla_stream stream)
{
	const spmla_i_piece all = {0, shape ? shape->tokens : 0};
	spmla_index_map_args map;
	spmla_sparse_decode_args a;
	spmla_i_topk topk;
	spmla_status s = spmla_i_v32_begin_decode(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_kv(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_check_sink(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_topk(ctx, layer, &topk);
	if (s == SPMLA_OK && !mapped) {
		map = spmla_i_v32_map(ctx, &topk, &all, 0);
		s = spmla_index_map(ctx, &map, stream);
	}
	if (s != SPMLA_OK)
		return spmla_i_v32_end(ctx, s);
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
	if (spmla_i_is_ragged(ctx)) {
		a.slots = ctx->buf[SPMLA_BUF_RAGGED_INDICES];
		a.indptr = ctx->buf[SPMLA_BUF_RAGGED_INDPTR];
		a.longest = a.topk;
		a.topk *= spmla_i_piece_tokens(&ctx->plan.config);
	} else {
		a.slots = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
		a.slots_stride_elems = ctx->plan.config.topk;
		a.topk_lens = topk.lens;
	}
	a.attn_sink = layer->attn_sink;
	a.out = layer->out;
	a.out_token_stride_elems = layer->out_token_stride_elems;
	a.out_head_stride_elems = layer->out_head_stride_elems;
	a.lse = layer->lse;
	a.lse_token_stride_elems = layer->lse_token_stride_elems;
	a.lse_head_stride_elems = layer->lse_head_stride_elems;
	a.cache = layer->kv;
	/* The prologue's metadata are made for the lengths that topk writes,
	 * into whichever buffer. */
	if (layer->index_q || topk.planned)
		spmla_i_layer_cut(ctx, &a);
	s = spmla_i_layer_attend(ctx, &a, SPMLA_BUF_TILE_SCHEDULER_METADATA,
				 SPMLA_BUF_NUM_SPLITS, stream);
	return spmla_i_v32_end(ctx, s);
}

spmla_status
spmla_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	return spmla_i_v32_attend(ctx, layer, shape, 0, stream);
}
