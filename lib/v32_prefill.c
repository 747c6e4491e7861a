/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefill of a V3.2 layer. The hard idea: the keys of whole requests are
 * gathered once, one request behind the other. From then on a token's keys are
 * a range of rows, so every operation runs over all tokens of the step. But the
 * index logits of all tokens at once fit nowhere, so they are made and used up
 * in pieces. The slots of the selection are too, in pieces of another size. All
 * pieces follow from the shape alone.
 */
#include "spmla/internal/v32.h"

#include <string.h>

static spmla_status
check_prologue(spmla_ctx *ctx, const spmla_shape *shape)
{
	const spmla_step_prologue_args *p = ctx->step;
	const spmla_i_check checks[] = {
		{"prologue (that began a prefill)", p->piece_tokens,
		 SPMLA_WANT_AT_LEAST, 1},
		{"shape.tokens (of the last prologue)", shape->tokens,
		 SPMLA_WANT_EQUAL, p->shape.tokens},
		{"shape.requests (of the last prologue)", shape->requests,
		 SPMLA_WANT_EQUAL, p->shape.requests},
		{"shape.max_live_context (of the last prologue)",
		 shape->max_live_context ? shape->max_live_context
					 : p->shape.max_live_context,
		 SPMLA_WANT_EQUAL, p->shape.max_live_context},
	};
	const spmla_status s =
		spmla_i_check_now(ctx, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

static spmla_status
gather_index_k(spmla_ctx *ctx, const spmla_v32_layer *l, spmla_stream stream)
{
	const spmla_i_table_view table =
		spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	spmla_indexer_k_gather_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.requests = ctx->step->shape.requests;
	a.keys = ctx->step->shape.max_live_context;
	a.rows = ctx->plan.config.max_rows;
	a.columns = ctx->plan.columns;
	a.table_stride_elems = table.stride_elems;
	a.cu_seq_lens = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	a.req_row = ctx->buf[SPMLA_BUF_REQ_ROW];
	a.block_table = table.table;
	a.table_cols = table.cols;
	a.dst_k = ctx->buf[SPMLA_BUF_GATHERED_INDEX_K];
	a.dst_scale = ctx->buf[SPMLA_BUF_GATHERED_INDEX_SCALES];
	a.cache = spmla_i_pool(ctx, &l->index, SPMLA_GROUP_MAIN);
	return spmla_indexer_k_gather(ctx, &a, stream);
}

/* The logits of tokens [first, first + tokens), in LOGITS from its start. */
static spmla_status
score_piece(spmla_ctx *ctx, const spmla_cache *index, uint32_t first,
	    uint32_t tokens, spmla_stream stream)
{
	const spmla_config *c = &ctx->plan.config;
	const spmla_step_prologue_args *p = ctx->step;
	const uint64_t row = (uint64_t)first * c->index_heads;
	spmla_mqa_logits_gathered_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.heads = c->index_heads;
	a.keys = p->shape.max_live_context;
	a.form = SPMLA_LOGITS_COMPRESSED;
	a.columns = (uint32_t)p->piece_stride_elems;
	/* Gathered keys lie one behind the other. */
	a.layout = c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4
			   ? SPMLA_LAYOUT_INDEX_MXFP4
			   : SPMLA_LAYOUT_INDEX_FP8;
	a.k_encoding = index->encoding;
	a.q = (const uint8_t *)ctx->buf[SPMLA_BUF_INDEX_Q] +
	      row * spmla_i_index_bytes(c);
	if (c->index_layout == SPMLA_LAYOUT_INDEX_MXFP4)
		a.q_scales =
			(const int32_t *)ctx->buf[SPMLA_BUF_INDEX_Q_SCALES] +
			row;
	a.weights = (const float *)ctx->buf[SPMLA_BUF_INDEX_WEIGHTS] + row;
	a.weights_stride_elems = c->index_heads;
	a.k = ctx->buf[SPMLA_BUF_GATHERED_INDEX_K];
	a.k_scales = ctx->buf[SPMLA_BUF_GATHERED_INDEX_SCALES];
	a.starts = (const int32_t *)ctx->buf[SPMLA_BUF_KEY_STARTS] + first;
	a.ends = (const int32_t *)ctx->buf[SPMLA_BUF_KEY_ENDS] + first;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_stride_elems = (int64_t)p->piece_stride_elems;
	return spmla_mqa_logits_gathered(ctx, &a, stream);
}

static spmla_status
select_piece(spmla_ctx *ctx, const spmla_i_topk *topk, uint32_t first,
	     uint32_t tokens, spmla_stream stream)
{
	spmla_topk_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.rows = tokens;
	a.k = ctx->plan.config.topk;
	a.logits = ctx->buf[SPMLA_BUF_LOGITS];
	a.logits_elems = ctx->plan.logits_elems;
	a.row_starts =
		(const int64_t *)ctx->buf[SPMLA_BUF_PIECE_ROW_STARTS] + first;
	a.context_lens =
		(const int32_t *)ctx->buf[SPMLA_BUF_CONTEXT_LENS] + first;
	a.indices = topk->indices + first * topk->stride_elems;
	a.indices_stride_elems = topk->stride_elems;
	a.lens = topk->lens + first;
	return spmla_topk(ctx, &a, stream);
}

static spmla_status
index_tokens(spmla_ctx *ctx, const spmla_v32_layer *l, const spmla_i_topk *topk,
	     const spmla_shape *shape, spmla_stream stream)
{
	const uint32_t piece = ctx->step->piece_tokens;
	spmla_status s = spmla_i_v32_prep_q(ctx, l, shape, stream);
	uint32_t first, tokens;

	if (s == SPMLA_OK)
		s = gather_index_k(ctx, l, stream);
	for (first = 0; s == SPMLA_OK && first < shape->tokens;
	     first += tokens) {
		const uint32_t rest = shape->tokens - first;

		tokens = rest < piece ? rest : piece;
		s = score_piece(ctx, &l->index, first, tokens, stream);
		if (s == SPMLA_OK)
			s = select_piece(ctx, topk, first, tokens, stream);
	}
	return s;
}

static spmla_status
gather_kv(spmla_ctx *ctx, const spmla_v32_layer *l, spmla_stream stream)
{
	const spmla_i_table_view table =
		spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	const int32_t *starts = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	spmla_kv_gather_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.requests = ctx->step->shape.requests;
	a.keys = ctx->step->shape.max_live_context;
	a.rows = ctx->plan.config.max_rows;
	a.columns = ctx->plan.columns;
	a.table_stride_elems = table.stride_elems;
	a.workspace_starts = starts;
	a.workspace_ends = starts + 1;
	a.req_row = ctx->buf[SPMLA_BUF_REQ_ROW];
	a.block_table = table.table;
	a.table_cols = table.cols;
	a.dst = ctx->buf[SPMLA_BUF_GATHERED_KV];
	a.dst_stride_elems = SPMLA_MLA_DIM;
	a.cache = spmla_i_pool(ctx, &l->kv, SPMLA_GROUP_MAIN);
	return spmla_kv_gather(ctx, &a, stream);
}

static spmla_status
attend_gathered(spmla_ctx *ctx, const spmla_v32_layer *l,
		const int32_t *topk_lens, const spmla_i_piece *piece,
		spmla_stream stream)
{
	const uint32_t first = piece->first;
	spmla_sparse_prefill_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = piece->tokens;
	a.heads = ctx->plan.config.heads;
	a.dim = SPMLA_MLA_DIM;
	a.topk = ctx->plan.config.topk;
	a.kv_rows = ctx->step->shape.max_live_context;
	a.lse_base = SPMLA_LSE_NATURAL;
	a.empty_lse = l->empty_lse;
	a.softmax_scale = ctx->plan.config.softmax_scale;
	a.q = l->q + first * l->q_token_stride_elems;
	a.q_token_stride_elems = l->q_token_stride_elems;
	a.q_head_stride_elems = l->q_head_stride_elems;
	a.kv = ctx->buf[SPMLA_BUF_GATHERED_KV];
	a.kv_stride_elems = SPMLA_MLA_DIM;
	if (spmla_i_is_ragged(ctx)) {
		a.indices = ctx->buf[SPMLA_BUF_RAGGED_INDICES];
		a.indptr = ctx->buf[SPMLA_BUF_RAGGED_INDPTR];
		a.topk *= spmla_i_piece_tokens(&ctx->plan.config);
	} else {
		a.indices = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
		a.indices_stride_elems = ctx->plan.config.topk;
		a.topk_lens = topk_lens + first;
	}
	a.attn_sink = l->attn_sink;
	a.out = l->out + first * l->out_token_stride_elems;
	a.out_token_stride_elems = l->out_token_stride_elems;
	a.out_head_stride_elems = l->out_head_stride_elems;
	if (l->lse)
		a.lse = l->lse + first * l->lse_token_stride_elems;
	a.lse_token_stride_elems = l->lse_token_stride_elems;
	a.lse_head_stride_elems = l->lse_head_stride_elems;
	return spmla_sparse_prefill(ctx, &a, stream);
}

static spmla_status
attend_tokens(spmla_ctx *ctx, const spmla_v32_layer *l,
	      const spmla_i_topk *topk, const spmla_shape *shape,
	      spmla_stream stream)
{
	spmla_status s = SPMLA_OK;
	spmla_i_piece p = {0, 0};
	spmla_index_map_args map;

	for (; s == SPMLA_OK && p.first < shape->tokens; p.first += p.tokens) {
		p = spmla_i_piece_at(ctx, shape, p.first);
		map = spmla_i_v32_map(ctx, topk, &p, shape->requests);
		s = spmla_index_map(ctx, &map, stream);
		if (s == SPMLA_OK)
			s = attend_gathered(ctx, l, topk->lens, &p, stream);
	}
	return s;
}

spmla_status
spmla_v32_prefill(spmla_ctx *ctx, const spmla_v32_layer *layer,
		  const spmla_shape *shape, spmla_stream stream)
{
	spmla_i_topk topk;
	spmla_status s = spmla_i_v32_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = check_prologue(ctx, shape);
	if (s == SPMLA_OK && layer->index_q)
		s = spmla_i_v32_check_index(ctx, layer);
	if (s == SPMLA_OK)
		s = spmla_i_v32_topk(ctx, layer, &topk);
	if (s == SPMLA_OK)
		s = spmla_v32_insert(ctx, layer, shape, stream);
	if (s == SPMLA_OK && layer->index_q)
		s = index_tokens(ctx, layer, &topk, shape, stream);
	if (s == SPMLA_OK)
		s = gather_kv(ctx, layer, stream);
	if (s == SPMLA_OK)
		s = attend_tokens(ctx, layer, &topk, shape, stream);
	return spmla_i_v32_end(ctx, s);
}
