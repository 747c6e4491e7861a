/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer: the ops in order, on the planned metadata of the step. No host
 * branch here depends on a length, so the calls record the same nodes always.
 */
#include "spmla/internal/v32.h"

#include <math.h>
#include <string.h>

spmla_i_table_view
spmla_i_main_table(const spmla_ctx *ctx)
{
	const spmla_i_table *bound = &ctx->tables[SPMLA_GROUP_MAIN];
	const spmla_i_table_view device = {bound->device, NULL,
					   bound->stride_elems};
	const spmla_i_table_view ring = {ctx->buf[SPMLA_BUF_BLOCK_TABLE_MAIN],
					 ctx->buf[SPMLA_BUF_TABLE_COLS_MAIN],
					 ctx->plan.columns};

	return bound->device ? device : ring;
}

spmla_status
spmla_i_v32_begin(spmla_ctx *ctx, const spmla_v32_layer *layer,
		  const spmla_shape *shape)
{
	uint32_t live, prefill;
	spmla_status s =
		spmla_i_op_begin(ctx, layer, sizeof *layer, "v32_layer");

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_check_shape(ctx, shape, &live, &prefill);
	if (s == SPMLA_OK && shape->tokens > ctx->prologue.shape.tokens)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				 "shape.tokens (of the last prologue)",
				 shape->tokens, SPMLA_WANT_AT_MOST,
				 ctx->prologue.shape.tokens);
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_i_v32_begin_decode(spmla_ctx *ctx, const spmla_v32_layer *layer,
			 const spmla_shape *shape)
{
	spmla_status s = spmla_i_v32_begin(ctx, layer, shape);

	if (s == SPMLA_OK && ctx->prologue.piece_tokens)
		s = spmla_i_op_failed(
			ctx, spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
					  "shape (the last prologue began a "
					  "prefill)",
					  1, SPMLA_WANT_EQUAL, 0));
	return s;
}

static spmla_status
check_pool(spmla_ctx *ctx, const spmla_cache *cache, const char *group,
	   const char *entries, const char *pages)
{
	const spmla_table_config *g =
		&ctx->plan.config.groups[SPMLA_GROUP_MAIN];
	const spmla_i_check checks[] = {
		{group, cache->table_group, SPMLA_WANT_EQUAL, SPMLA_GROUP_MAIN},
		{entries, cache->entries_per_page, SPMLA_WANT_EQUAL,
		 g->page_tokens},
		{pages, cache->pages, SPMLA_WANT_AT_LEAST, g->pool_pages},
	};
	const spmla_status s =
		spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_i_v32_check_kv(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	if (l->kv.layout != ctx->plan.config.kv_layout)
		return spmla_i_op_failed(
			ctx, spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
					  "v32_layer.kv.layout", l->kv.layout,
					  SPMLA_WANT_EQUAL,
					  ctx->plan.config.kv_layout));
	return check_pool(ctx, &l->kv, "v32_layer.kv.table_group",
			  "v32_layer.kv.entries_per_page",
			  "v32_layer.kv.pages");
}

spmla_status
spmla_i_v32_check_index(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	return check_pool(ctx, &l->index, "v32_layer.index.table_group",
			  "v32_layer.index.entries_per_page",
			  "v32_layer.index.pages");
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
	const spmla_i_table_view table = spmla_i_main_table(ctx);
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
	a.cache = l->index;
	/* A page is in the pool or it is not, for every op alike. */
	a.cache.pages = ctx->plan.config.groups[SPMLA_GROUP_MAIN].pool_pages;
	return spmla_mqa_logits(ctx, &a, stream);
}

/* Where a layer's selection lies. */
int32_t *
spmla_i_v32_topk_indices(const spmla_ctx *ctx, const spmla_v32_layer *l)
{
	return l->topk_indices ? l->topk_indices
			       : ctx->buf[SPMLA_BUF_TOPK_INDICES];
}

int32_t *
spmla_i_v32_topk_lens(const spmla_ctx *ctx, const spmla_v32_layer *l)
{
	return l->topk_lens ? l->topk_lens : ctx->buf[SPMLA_BUF_TOPK_LENS];
}

int64_t
spmla_i_v32_topk_stride(const spmla_ctx *ctx, const spmla_v32_layer *l)
{
	return l->topk_stride_elems ? l->topk_stride_elems
				    : (int64_t)ctx->plan.config.topk;
}

/* The selection's two buffers come together, planned or the caller's. */
spmla_status
spmla_i_v32_check_topk(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	const int64_t topk = ctx->plan.config.topk;
	spmla_status s = SPMLA_OK;

	if (!l->topk_indices != !l->topk_lens)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_NULL,
				 l->topk_indices ? "v32_layer.topk_lens"
						 : "v32_layer.topk_indices",
				 0, SPMLA_WANT_NOT_NULL, 0);
	else if (!l->topk_indices && spmla_i_v32_topk_stride(ctx, l) != topk)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				 "v32_layer.topk_stride_elems",
				 spmla_i_stride(l->topk_stride_elems),
				 SPMLA_WANT_EQUAL, (uint64_t)topk);
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	spmla_topk_args a;
	spmla_status s = spmla_i_v32_begin_decode(ctx, layer, shape);

	if (s == SPMLA_OK)
		s = spmla_i_v32_check_index(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_check_topk(ctx, layer);
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
	a.indices = spmla_i_v32_topk_indices(ctx, layer);
	a.indices_stride_elems = spmla_i_v32_topk_stride(ctx, layer);
	a.lens = spmla_i_v32_topk_lens(ctx, layer);
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
