/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention of a V4 layer: over the keys of the window and, by its ratio,
 * over the selected compressed keys or all of them. Tokens are independent, so
 * a step that is longer than every bucket runs in pieces. The lists of
 * compressed keys are long, so they are planned for one piece only.
 */
#include "spmla/internal/step_lists.h"
#include "spmla/internal/v4.h"
#include "spmla/ops/c128a_index.h"

#include <string.h>

spmla_index_map_args
spmla_i_v4_map(const spmla_ctx *ctx, const spmla_i_topk *topk,
	       const spmla_i_piece *piece)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, SPMLA_GROUP_C4A);
	spmla_index_map_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = piece->tokens;
	a.k = ctx->plan.config.topk;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.page_tokens = v.page_tokens / SPMLA_COMPRESS_OVERLAP;
	a.pool_pages = v.pool_pages;
	a.token_row = spmla_i_words(ctx, SPMLA_BUF_TOKEN_ROW, piece->first);
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.indices = topk->indices + piece->first * topk->stride_elems;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens + piece->first;
	spmla_i_layer_slots(ctx, &a);
	a.valid_counts = ctx->buf[SPMLA_BUF_C4A_LENS];
	/* The selection may be the engine's own, but no token may see another
	 * request's keys. */
	a.context_lens =
		spmla_i_words(ctx, SPMLA_BUF_COMPRESSED_LENS, piece->first);
	a.compact = 1;
	a.whole = 1;
	a.other_lens = spmla_i_words(ctx, SPMLA_BUF_SWA_LENS, piece->first);
	a.kept_lens = ctx->buf[SPMLA_BUF_C4A_SWA_LENS];
	return a;
}

/* Maps the selection, unless it is mapped. Then the window, whose rows may have
 * lost their keys, is packed too if lists are ragged. */
static spmla_status
map_topk(spmla_ctx *ctx, const spmla_i_topk *topk, const spmla_i_piece *piece,
	 uint32_t mapped, spmla_stream stream)
{
	spmla_index_map_args a;
	spmla_status s = SPMLA_OK;

	if (!mapped) {
		a = spmla_i_v4_map(ctx, topk, piece);
		s = spmla_index_map(ctx, &a, stream);
	}
	if (s != SPMLA_OK || !spmla_i_is_ragged(ctx))
		return s;
	return spmla_i_pack_c4a_window(ctx, piece->first, piece->tokens,
				       stream);
}

/* Writes the slots of all keys of a piece to C128A_INDICES, and their ragged
 * list. In a step of one piece the prologue does this. */
static spmla_status
list_c128a(spmla_ctx *ctx, const spmla_i_piece *piece, spmla_stream stream)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, SPMLA_GROUP_C128A);
	const uint32_t stride = spmla_i_c128a_width(&ctx->plan.config);
	const uint32_t keys =
		ctx->step->shape.max_live_context / SPMLA_COMPRESS_MOST + 1;
	spmla_c128a_index_args a;
	spmla_status s;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = piece->tokens;
	a.decode_tokens = piece->tokens;
	a.ratio = SPMLA_COMPRESS_MOST;
	a.width = keys < stride ? keys : stride;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.page_entries = v.page_tokens / SPMLA_COMPRESS_MOST;
	a.pool_pages = v.pool_pages;
	a.entries = spmla_i_words(ctx, SPMLA_BUF_C128A_LENS, piece->first);
	a.token_row = spmla_i_words(ctx, SPMLA_BUF_TOKEN_ROW, piece->first);
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.decode_slots = ctx->buf[SPMLA_BUF_C128A_INDICES];
	a.decode_stride_elems = stride;
	s = spmla_c128a_index(ctx, &a, stream);
	if (s != SPMLA_OK || !spmla_i_is_ragged(ctx))
		return s;
	return spmla_i_pack_c128a(ctx, piece->first, piece->tokens, stream);
}

/* The list of all keys of the window. In a layer of ratio 4 index_map may have
 * emptied it. */
static void
set_window(const spmla_ctx *ctx, uint32_t four, uint32_t first,
	   spmla_sparse_decode_args *a)
{
	a->topk = ctx->plan.config.window_tokens;
	if (spmla_i_is_ragged(ctx)) {
		a->slots = ctx->buf[four ? SPMLA_BUF_RAGGED_INDICES_C4A_SWA
					 : SPMLA_BUF_RAGGED_INDICES_SWA];
		a->indptr =
			four ? ctx->buf[SPMLA_BUF_RAGGED_INDPTR_C4A_SWA]
			     : spmla_i_words(ctx, SPMLA_BUF_RAGGED_INDPTR_SWA,
					     first);
		a->longest = a->topk;
		a->topk *= four ? spmla_i_piece_tokens(&ctx->plan.config)
				: ctx->plan.max_tokens;
		return;
	}
	a->slots = (const int32_t *)ctx->buf[SPMLA_BUF_SWA_INDICES] +
		   (uint64_t)first * a->topk;
	a->slots_stride_elems = a->topk;
	a->topk_lens = four ? ctx->buf[SPMLA_BUF_C4A_SWA_LENS]
			    : spmla_i_words(ctx, SPMLA_BUF_SWA_LENS, first);
}

/* The list of compressed keys, selected or all. */
static void
set_extra(const spmla_ctx *ctx, uint32_t four, uint32_t first,
	  spmla_sparse_decode_args *a)
{
	const spmla_config *c = &ctx->plan.config;

	a->extra_topk = four ? c->topk : spmla_i_c128a_width(c);
	if (spmla_i_is_ragged(ctx)) {
		a->extra_slots =
			ctx->buf[four ? SPMLA_BUF_RAGGED_INDICES
				      : SPMLA_BUF_RAGGED_INDICES_C128A];
		a->extra_indptr =
			ctx->buf[four ? SPMLA_BUF_RAGGED_INDPTR
				      : SPMLA_BUF_RAGGED_INDPTR_C128A];
		a->extra_longest = a->extra_topk;
		a->extra_topk *= spmla_i_piece_tokens(c);
		return;
	}
	a->extra_slots =
		ctx->buf[four ? SPMLA_BUF_TOPK_SLOTS : SPMLA_BUF_C128A_INDICES];
	a->extra_slots_stride_elems = a->extra_topk;
	a->extra_topk_lens =
		four ? ctx->buf[SPMLA_BUF_C4A_LENS]
		     : spmla_i_words(ctx, SPMLA_BUF_C128A_LENS, first);
}

/* Adds the compressed keys of the layer's ratio, and parts where they pay. They
 * do not pay for a window alone. */
static spmla_status
add_compressed(spmla_ctx *ctx, const spmla_v4_layer *l,
	       const spmla_i_piece *piece, uint32_t mapped,
	       spmla_sparse_decode_args *a, spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.compressed");
	const spmla_config *c = &ctx->plan.config;
	const uint32_t four = l->ratio == SPMLA_COMPRESS_OVERLAP;
	const uint32_t group = four ? SPMLA_GROUP_C4A : SPMLA_GROUP_C128A;
	spmla_i_topk topk;
	spmla_status s = spmla_i_check_pool(ctx, &fields, &l->compressed, group,
					    c->kv_layout);

	if (s == SPMLA_OK && four)
		s = spmla_i_v4_topk(ctx, l, &topk);
	if (s == SPMLA_OK && four)
		s = map_topk(ctx, &topk, piece, mapped, stream);
	else if (s == SPMLA_OK &&
		 ctx->step->shape.tokens > spmla_i_piece_tokens(c))
		s = list_c128a(ctx, piece, stream);
	if (s != SPMLA_OK)
		return s;
	set_extra(ctx, four, piece->first, a);
	a->extra_cache = spmla_i_pool(ctx, &l->compressed, group);
	/* The metadata of ratio 4 are made for the keys that topk selects, or
	 * more. */
	if (!four || l->index_q || topk.planned)
		spmla_i_layer_cut(ctx, a);
	return SPMLA_OK;
}

static spmla_status
attend_piece(spmla_ctx *ctx, const spmla_v4_layer *layer,
	     const spmla_i_piece *piece, uint32_t mapped, spmla_stream stream)
{
	const uint32_t four = layer->ratio == SPMLA_COMPRESS_OVERLAP;
	const uint32_t first = piece->first;
	spmla_sparse_decode_args a;
	spmla_status s = SPMLA_OK;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = piece->tokens;
	a.heads = ctx->plan.config.heads;
	a.empty_lse = layer->empty_lse;
	a.softmax_scale = ctx->plan.config.softmax_scale;
	a.q = layer->q + first * layer->q_token_stride_elems;
	a.q_token_stride_elems = layer->q_token_stride_elems;
	a.q_head_stride_elems = layer->q_head_stride_elems;
	set_window(ctx, four, first, &a);
	a.attn_sink = layer->attn_sink;
	a.out = layer->out + first * layer->out_token_stride_elems;
	a.out_token_stride_elems = layer->out_token_stride_elems;
	a.out_head_stride_elems = layer->out_head_stride_elems;
	if (layer->lse)
		a.lse = layer->lse + first * layer->lse_token_stride_elems;
	a.lse_token_stride_elems = layer->lse_token_stride_elems;
	a.lse_head_stride_elems = layer->lse_head_stride_elems;
	a.cache = spmla_i_pool(ctx, &layer->swa, SPMLA_GROUP_SWA);
	if (layer->ratio != 1)
		s = add_compressed(ctx, layer, piece, mapped, &a, stream);
	if (s != SPMLA_OK)
		return s;
	return spmla_i_layer_attend(
		ctx, &a,
		four ? SPMLA_BUF_TILE_SCHEDULER_METADATA
		     : SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A,
		four ? SPMLA_BUF_NUM_SPLITS : SPMLA_BUF_NUM_SPLITS_C128A,
		stream);
}

spmla_status
spmla_i_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
		  const spmla_shape *shape, uint32_t mapped,
		  spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.swa");
	spmla_i_piece p = {0, 0};
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = spmla_i_check_pool(ctx, &fields, &layer->swa,
				       SPMLA_GROUP_SWA,
				       ctx->plan.config.kv_layout);
	if (s != SPMLA_OK)
		return s;
	for (; s == SPMLA_OK && p.first < shape->tokens; p.first += p.tokens) {
		p = spmla_i_piece_at(ctx, shape, p.first);
		s = attend_piece(ctx, layer, &p, mapped, stream);
	}
	return spmla_i_v4_end(ctx, s);
}

spmla_status
spmla_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	return spmla_i_v4_attend(ctx, layer, shape, 0, stream);
}
