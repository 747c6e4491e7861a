/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer: the ops in order, on the planned metadata of the step. No host
 * branch here depends on a length, so the calls record the same nodes always.
 */
#include "spmla/internal/v32.h"

#include <math.h>
#include <string.h>

spmla_status
spmla_i_v32_begin(spmla_ctx *ctx, const spmla_v32_layer *layer,
		  const spmla_shape *shape)
{
	return spmla_i_layer_begin(ctx, layer, sizeof *layer, "v32_layer",
				   shape, 0);
}

spmla_status
spmla_i_v32_begin_decode(spmla_ctx *ctx, const spmla_v32_layer *layer,
			 const spmla_shape *shape)
{
	const spmla_status s = spmla_i_v32_begin(ctx, layer, shape);

	return s == SPMLA_OK ? spmla_i_layer_decode(ctx) : s;
}

spmla_status
spmla_i_v32_check_kv(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v32_layer.kv");

	return spmla_i_check_pool(ctx, &fields, &l->kv, SPMLA_GROUP_MAIN,
				  ctx->plan.config.kv_layout);
}

spmla_status
spmla_i_v32_check_index(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v32_layer.index");

	return spmla_i_check_pool(ctx, &fields, &l->index, SPMLA_GROUP_MAIN, 0);
}

static spmla_status
insert_index_k(spmla_ctx *ctx, const spmla_v32_layer *l,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_indexer_k_insert_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.dtype = SPMLA_DTYPE_BF16;
	a.scale_mode = SPMLA_SCALE_POW2;
	a.rope_style = l->rope_style;
	a.cos_sin_rows = l->cos_sin_rows;
	a.norm_eps = l->norm_eps;
	a.k = l->index_k;
	a.k_stride_elems = l->index_k_stride_elems;
	a.slot_mapping = ctx->buf[SPMLA_BUF_SLOT_MAPPING];
	a.norm_weight = l->index_norm_weight;
	a.norm_bias = l->index_norm_bias;
	a.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	a.cos_sin = l->cos_sin;
	a.cache = l->index;
	return spmla_indexer_k_insert(ctx, &a, stream);
}

spmla_status
spmla_v32_insert(spmla_ctx *ctx, const spmla_v32_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	spmla_kv_insert_args a;
	spmla_status s = spmla_i_v32_begin(ctx, layer, shape);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_kv(ctx, layer);
	if (s == SPMLA_OK && layer->index_k)
		s = spmla_i_v32_check_index(ctx, layer);
	if (s != SPMLA_OK)
		return s;
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.dtype = SPMLA_DTYPE_BF16;
	a.scale_mode = ctx->plan.config.kv_scale_mode;
	a.kv_c = layer->kv_c;
	a.k_pe = layer->k_pe;
	a.kv_c_stride_elems = layer->kv_c_stride_elems;
	a.k_pe_stride_elems = layer->k_pe_stride_elems;
	a.slot_mapping = ctx->buf[SPMLA_BUF_SLOT_MAPPING];
	a.cache = layer->kv;
	s = spmla_kv_insert(ctx, &a, stream);
	if (s == SPMLA_OK && layer->index_k)
		s = insert_index_k(ctx, layer, shape, stream);
	return s;
}

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
	a.q_out = ctx->buf[SPMLA_BUF_INDEX_Q];
	a.weights_out = ctx->buf[SPMLA_BUF_INDEX_WEIGHTS];
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
	return spmla_mqa_logits(ctx, &a, stream);
}

spmla_status
spmla_i_v32_topk(spmla_ctx *ctx, const spmla_v32_layer *l, spmla_i_topk *topk)
{
	static const char *const fields[3] = {"v32_layer.topk_indices",
					      "v32_layer.topk_lens",
					      "v32_layer.topk_stride_elems"};

	return spmla_i_check_topk(ctx, fields, l->topk_indices, l->topk_lens,
				  l->topk_stride_elems, topk);
}

spmla_status
spmla_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	spmla_topk_args a;
	spmla_i_topk topk;
	spmla_status s = spmla_i_v32_begin_decode(ctx, layer, shape);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_index(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_topk(ctx, layer, &topk);
	if (s == SPMLA_OK)
		s = spmla_i_v32_prep_q(ctx, layer, shape, stream);
	if (s == SPMLA_OK)
		s = score(ctx, layer, shape, stream);
	if (s != SPMLA_OK)
		return s;
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
	return spmla_topk(ctx, &a, stream);
}

spmla_status
spmla_v32_attn(spmla_ctx *ctx, const spmla_v32_layer *layer,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_v32_insert(ctx, layer, shape, stream);

	if (s == SPMLA_OK && layer->index_q)
		s = spmla_v32_index(ctx, layer, shape, stream);
	if (s == SPMLA_OK)
		s = spmla_v32_attend(ctx, layer, shape, stream);
	return s;
}
