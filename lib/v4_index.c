/* SPDX-License-Identifier: Apache-2.0
 *
 * The selection of a V4 layer of ratio 4: index queries, then their logits and
 * the top-k of these, in a prefill for some tokens at a time.
 */
#include "spmla/internal/v4.h"

#include <math.h>
#include <string.h>

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
	a.cos_sin_dtype = l->cos_sin_dtype;
	a.q_out = ctx->buf[SPMLA_BUF_INDEX_Q];
	a.weights_out = ctx->buf[SPMLA_BUF_INDEX_WEIGHTS];
	a.rope_part = SPMLA_ROPE_LAST;
	a.q_format = spmla_i_index_q_format(c);
	a.q_scales = ctx->buf[SPMLA_BUF_INDEX_Q_SCALES];
	return spmla_i_v4_end(ctx, spmla_indexer_q_prep(ctx, &a, stream));
}

/* Tokens whose index logits are made and used up together: all tokens of a
 * decode step, some of a prefill. */
typedef struct piece {
	uint32_t first;
	uint32_t tokens;
	const int64_t *row_starts;
	const int32_t *lens;
} piece;

static piece
piece_at(const spmla_ctx *ctx, const spmla_shape *shape, uint32_t first)
{
	const uint32_t most = ctx->step->piece_tokens;
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
	spmla_mqa_logits_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = p->tokens;
	a.heads = c->index_heads;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.q = (const uint8_t *)ctx->buf[SPMLA_BUF_INDEX_Q] +
	      row * spmla_i_index_bytes(c);
	a.weights = (const float *)ctx->buf[SPMLA_BUF_INDEX_WEIGHTS] + row;
	a.token_row = (const int32_t *)ctx->buf[SPMLA_BUF_TOKEN_ROW] + p->first;
	a.context_lens = p->lens;
	a.row_starts = p->row_starts;
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.cache = spmla_i_pool(ctx, &l->index, SPMLA_GROUP_INDEX);
	if (c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4)
		a.q_scales =
			(const int32_t *)ctx->buf[SPMLA_BUF_INDEX_Q_SCALES] +
			row;
	return spmla_mqa_logits(ctx, &a, stream);
}

static spmla_status
choose(spmla_ctx *ctx, const spmla_i_topk *topk, const piece *p, uint32_t maps,
       spmla_stream stream)
{
	const spmla_i_piece all = {p->first, p->tokens};
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
	if (maps)
		a.map = spmla_i_v4_map(ctx, topk, &all);
	return spmla_topk(ctx, &a, stream);
}

spmla_status
spmla_i_v4_select(spmla_ctx *ctx, const spmla_v4_layer *l,
		  const spmla_shape *shape, uint32_t maps, spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.index");
	spmla_i_topk topk;
	spmla_status s = spmla_i_v4_topk(ctx, l, &topk);
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
			s = choose(ctx, &topk, &p, maps, stream);
	}
	return spmla_i_v4_end(ctx, s);
}

spmla_status
spmla_v4_index(spmla_ctx *ctx, const spmla_v4_layer *layer,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK && layer->ratio != SPMLA_COMPRESS_OVERLAP)
		s = spmla_i_op_failed(
			ctx,
			spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				     "v4_layer.ratio", layer->ratio,
				     SPMLA_WANT_EQUAL, SPMLA_COMPRESS_OVERLAP));
	if (s == SPMLA_OK)
		s = spmla_i_v4_prep_q(ctx, layer, shape, stream);
	return s == SPMLA_OK ? spmla_i_v4_select(ctx, layer, shape, 0, stream)
			     : s;
}
