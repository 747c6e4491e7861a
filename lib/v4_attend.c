/* SPDX-License-Identifier: Apache-2.0
 *
 * The selection, the attention and the output of a V4 layer.
 */
#include "spmla/internal/v4.h"

#include <math.h>
#include <string.h>

static spmla_status
take_topk(spmla_ctx *ctx, const spmla_v4_layer *l, spmla_i_topk *topk)
{
	static const char *const fields[3] = {"v4_layer.topk_indices",
					      "v4_layer.topk_lens",
					      "v4_layer.topk_stride_elems"};

	return spmla_i_check_topk(ctx, fields, l->topk_indices, l->topk_lens,
				  l->topk_stride_elems, topk);
}

spmla_status
spmla_i_v4_prep_q(spmla_ctx *ctx, const spmla_v4_layer *l,
		  const spmla_shape *shape, spmla_stream stream)
{
	const spmla_config *c = &ctx->plan.config;
	spmla_indexer_q_prep_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.heads = c->index_heads;
	a.rope_style = SPMLA_ROPE_INTERLEAVED;
	a.scale_floor = SPMLA_Q_SCALE_V4;
	a.weights_dtype = l->index_weights_dtype;
	a.cos_sin_rows = l->cos_sin_rows;
	a.softmax_scale = SPMLA_INDEX_SOFTMAX_SCALE;
	a.head_scale = (float)(1.0 / sqrt((double)a.heads)); /* once rounded */
	a.q = l->index_q;
	a.q_token_stride_elems = l->index_q_token_stride_elems;
	a.q_head_stride_elems = l->index_q_head_stride_elems;
	a.weights = l->index_weights;
	a.weights_stride_elems = l->index_weights_stride_elems;
	a.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	a.cos_sin = l->cos_sin;
	a.q_out = ctx->buf[SPMLA_BUF_INDEX_Q];
	a.weights_out = ctx->buf[SPMLA_BUF_INDEX_WEIGHTS];
	a.rope_part = SPMLA_ROPE_LAST;
	a.q_format = c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4
			     ? SPMLA_INDEX_Q_MXFP4
			     : SPMLA_INDEX_Q_FP8;
	a.q_scales = ctx->buf[SPMLA_BUF_INDEX_Q_SCALES];
	return spmla_indexer_q_prep(ctx, &a, stream);
}

/* Tokens whose index logits are made and used up together: all of a decode
 * step, some of a prefill. */
typedef struct piece {
	uint32_t first;
	uint32_t tokens;
	const int64_t *row_starts;
	const int32_t *lens;
} piece;

static piece
piece_at(const spmla_ctx *ctx, const spmla_shape *shape, uint32_t first)
{
	const uint32_t most = ctx->prologue.piece_tokens;
	const int64_t *starts = ctx->buf[most ? SPMLA_BUF_PIECE_ROW_STARTS
					      : SPMLA_BUF_LOGITS_ROW_STARTS];
	const int32_t *lens = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	const uint32_t rest = shape->tokens - first;
	const piece p = {first, most && most < rest ? most : rest,
			 starts + first, lens + first};

	return p;
}

static spmla_status
score(spmla_ctx *ctx, const spmla_v4_layer *l, const piece *p,
      spmla_stream stream)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, SPMLA_GROUP_INDEX);
	const spmla_config *c = &ctx->plan.config;
	const uint64_t row = (uint64_t)p->first * c->index_heads;
	const uint32_t fp4 = c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4;
	const uint64_t value_bytes =
		fp4 ? SPMLA_INDEX_MXFP4_VALUE_BYTES : SPMLA_INDEX_DIM;
	spmla_mqa_logits_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = p->tokens;
	a.heads = c->index_heads;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.q = (const uint8_t *)ctx->buf[SPMLA_BUF_INDEX_Q] + row * value_bytes;
	a.weights = (const float *)ctx->buf[SPMLA_BUF_INDEX_WEIGHTS] + row;
	a.token_row = (const int32_t *)ctx->buf[SPMLA_BUF_TOKEN_ROW] + p->first;
	a.context_lens = p->lens;
	a.row_starts = p->row_starts;
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.cache = spmla_i_pool(ctx, &l->index, SPMLA_GROUP_INDEX);
	if (fp4)
		a.q_scales =
			(const int32_t *)ctx->buf[SPMLA_BUF_INDEX_Q_SCALES] +
			row;
	return spmla_mqa_logits(ctx, &a, stream);
}

static spmla_status
choose(spmla_ctx *ctx, const spmla_i_topk *topk, const piece *p,
       spmla_stream stream)
{
	spmla_topk_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.rows = p->tokens;
	a.k = ctx->plan.config.topk;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.row_starts = p->row_starts;
	a.context_lens = p->lens;
	a.indices = topk->indices + p->first * topk->stride_elems;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens + p->first;
	return spmla_topk(ctx, &a, stream);
}

spmla_status
spmla_i_v4_select(spmla_ctx *ctx, const spmla_v4_layer *l,
		  const spmla_shape *shape, spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.index");
	spmla_i_topk topk;
	spmla_status s = take_topk(ctx, l, &topk);
	uint32_t first;
	piece p;

	if (s == SPMLA_OK)
		s = spmla_i_check_pool(ctx, &fields, &l->index,
				       SPMLA_GROUP_INDEX,
				       ctx->plan.config.index_layout);
	for (first = 0; s == SPMLA_OK && first < shape->tokens;
	     first += p.tokens) {
		p = piece_at(ctx, shape, first);
		s = score(ctx, l, &p, stream);
		if (s == SPMLA_OK)
			s = choose(ctx, &topk, &p, stream);
	}
	return s;
}

spmla_status
spmla_v4_index(spmla_ctx *ctx, const spmla_v4_layer *layer,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape);

	if (s == SPMLA_OK && layer->ratio != SPMLA_COMPRESS_OVERLAP)
		s = spmla_i_op_failed(
			ctx,
			spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				     "v4_layer.ratio", layer->ratio,
				     SPMLA_WANT_EQUAL, SPMLA_COMPRESS_OVERLAP));
	if (s == SPMLA_OK)
		s = spmla_i_v4_prep_q(ctx, layer, shape, stream);
	return s == SPMLA_OK ? spmla_i_v4_select(ctx, layer, shape, stream) : s;
}

/* The selection to slots, in TOPK_SLOTS and C4A_LENS. */
static spmla_status
map_topk(spmla_ctx *ctx, const spmla_i_topk *topk, const spmla_shape *shape,
	 spmla_stream stream)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, SPMLA_GROUP_C4A);
	spmla_index_map_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.k = ctx->plan.config.topk;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.page_tokens = v.page_tokens / SPMLA_COMPRESS_OVERLAP;
	a.pool_pages = v.pool_pages;
	a.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.indices = topk->indices;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens;
	a.slots = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
	a.slots_stride_elems = ctx->plan.config.topk;
	a.valid_counts = ctx->buf[SPMLA_BUF_C4A_LENS];
	/* A selection may be the engine's own; no token sees another request's
	 * keys, whatever it says. */
	a.context_lens = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	a.compact = 1;
	return spmla_index_map(ctx, &a, stream);
}

/* The compressed keys that the layer's ratio adds, and the parts that pay with
 * them: those of a window alone do not. */
static spmla_status
add_compressed(spmla_ctx *ctx, const spmla_v4_layer *l,
	       const spmla_shape *shape, spmla_sparse_decode_args *a,
	       spmla_stream stream)
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
		s = take_topk(ctx, l, &topk);
	if (s == SPMLA_OK && four)
		s = map_topk(ctx, &topk, shape, stream);
	if (s != SPMLA_OK)
		return s;
	a->extra_topk = four ? c->topk : spmla_i_c128a_width(c);
	a->extra_slots =
		ctx->buf[four ? SPMLA_BUF_TOPK_SLOTS : SPMLA_BUF_C128A_INDICES];
	a->extra_slots_stride_elems = a->extra_topk;
	a->extra_topk_lens =
		ctx->buf[four ? SPMLA_BUF_C4A_LENS : SPMLA_BUF_C128A_LENS];
	a->extra_cache = spmla_i_pool(ctx, &l->compressed, group);
	/* The metadata of ratio 4 are of no fewer keys than topk selects. */
	if (!four || l->index_q || topk.planned)
		a->parts = spmla_i_layer_parts(ctx, shape->tokens);
	return SPMLA_OK;
}

spmla_status
spmla_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.swa");
	const uint32_t four = layer && layer->ratio == SPMLA_COMPRESS_OVERLAP;
	spmla_sparse_decode_args a;
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape);

	if (s == SPMLA_OK)
		s = spmla_i_check_pool(ctx, &fields, &layer->swa,
				       SPMLA_GROUP_SWA,
				       ctx->plan.config.kv_layout);
	if (s != SPMLA_OK)
		return s;
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.heads = ctx->plan.config.heads;
	a.topk = ctx->plan.config.window_tokens;
	a.empty_lse = layer->empty_lse;
	a.softmax_scale = ctx->plan.config.softmax_scale;
	a.q = layer->q;
	a.q_token_stride_elems = layer->q_token_stride_elems;
	a.q_head_stride_elems = layer->q_head_stride_elems;
	a.slots = ctx->buf[SPMLA_BUF_SWA_INDICES];
	a.slots_stride_elems = a.topk;
	a.topk_lens = ctx->buf[SPMLA_BUF_SWA_LENS];
	a.attn_sink = layer->attn_sink;
	a.out = layer->out;
	a.out_token_stride_elems = layer->out_token_stride_elems;
	a.out_head_stride_elems = layer->out_head_stride_elems;
	a.lse = layer->lse;
	a.lse_token_stride_elems = layer->lse_token_stride_elems;
	a.lse_head_stride_elems = layer->lse_head_stride_elems;
	a.cache = spmla_i_pool(ctx, &layer->swa, SPMLA_GROUP_SWA);
	if (layer->ratio != 1)
		s = add_compressed(ctx, layer, shape, &a, stream);
	return s == SPMLA_OK
		       ? spmla_i_layer_attend(
				 ctx, &a,
				 four ? SPMLA_BUF_TILE_SCHEDULER_METADATA
				      : SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A,
				 four ? SPMLA_BUF_NUM_SPLITS
				      : SPMLA_BUF_NUM_SPLITS_C128A,
				 stream)
		       : s;
}
