/* SPDX-License-Identifier: Apache-2.0
 *
 * The selection of a V3.2 layer's decode step: index queries, their logits with
 * all keys, and the top-k of these.
 */
#include "spmla/internal/v32.h"

#include <math.h>
#include <string.h>

spmla_status
spmla_i_v32_prep_q(spmla_ctx *ctx, const spmla_v32_layer *l,
		   const spmla_shape *shape, spmla_stream stream)
{
	const uint32_t heads = ctx->plan.config.index_heads;
	spmla_indexer_q_prep_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.heads = heads;
	a.rope_style = l->rope_style;
	a.scale_floor = l->index_q_scale_floor;
	a.weights_dtype = l->index_weights_dtype;
	a.cos_sin_rows = l->cos_sin_rows;
	a.softmax_scale = SPMLA_INDEX_SOFTMAX_SCALE;
	a.head_scale = (float)(1.0 / sqrt((double)heads)); /* rounded once */
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
	a.q_format = spmla_i_index_q_format(&ctx->plan.config);
	a.q_scales = ctx->buf[SPMLA_BUF_INDEX_Q_SCALES];
	return spmla_indexer_q_prep(ctx, &a, stream);
}

static spmla_status
score(spmla_ctx *ctx, const spmla_v32_layer *l, const spmla_shape *shape,
      spmla_stream stream)
{
	const spmla_i_table_view table =
		spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	spmla_mqa_logits_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.heads = ctx->plan.config.index_heads;
	a.rows = ctx->plan.config.max_rows;
	a.columns = ctx->plan.columns;
	a.table_stride_elems = table.stride_elems;
	a.q = ctx->buf[SPMLA_BUF_INDEX_Q];
	a.weights = ctx->buf[SPMLA_BUF_INDEX_WEIGHTS];
	a.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	a.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	a.row_starts = ctx->buf[SPMLA_BUF_LOGITS_ROW_STARTS];
	a.block_table = table.table;
	a.table_cols = table.cols;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.cache = spmla_i_pool(ctx, &l->index, SPMLA_GROUP_MAIN);
	a.q_scales = ctx->buf[SPMLA_BUF_INDEX_Q_SCALES];
	return spmla_mqa_logits(ctx, &a, stream);
}

spmla_status
spmla_i_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
		  const spmla_shape *shape, uint32_t maps, spmla_stream stream)
{
	const spmla_i_piece all = {0, shape ? shape->tokens : 0};
	spmla_topk_args a;
	spmla_i_topk topk;
	spmla_status s = spmla_i_v32_begin_decode(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_index(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_topk(ctx, layer, &topk);
	if (s == SPMLA_OK)
		s = spmla_i_v32_prep_q(ctx, layer, shape, stream);
	if (s == SPMLA_OK)
		s = score(ctx, layer, shape, stream);
	if (s != SPMLA_OK)
		return spmla_i_v32_end(ctx, s);
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.rows = shape->tokens;
	a.k = ctx->plan.config.topk;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.row_starts = ctx->buf[SPMLA_BUF_LOGITS_ROW_STARTS];
	a.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	a.indices = topk.indices;
	a.indices_stride_elems = topk.stride_elems;
	a.lens = topk.lens;
	if (maps)
		a.map = spmla_i_v32_map(ctx, &topk, &all, 0);
	return spmla_i_v32_end(ctx, spmla_topk(ctx, &a, stream));
}

spmla_status
spmla_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	return spmla_i_v32_index(ctx, layer, shape, 0, stream);
}
