/* SPDX-License-Identifier: Apache-2.0
 *
 * See v32_ops.h.
 */
#include "tests/core/v32_ops.h"

#include <math.h>

#include "spmla/ops/ops.h"

static void *
view(const spmla_ctx *ctx, spmla_buf buf)
{
	return spmla_view(ctx, buf, NULL);
}

static void
insert(const v32_rig *r, spmla_ctx *ctx, uint32_t tokens)
{
	const spmla_v32_layer *l = &r->layer;
	const spmla_kv_insert_args kv = {
		.struct_bytes = sizeof kv,
		.tokens = tokens,
		.dtype = SPMLA_DTYPE_BF16,
		.scale_mode = spmla_ctx_plan(ctx)->config.kv_scale_mode,
		.kv_c = l->kv_c,
		.k_pe = l->k_pe,
		.kv_c_stride_elems = l->kv_c_stride_elems,
		.k_pe_stride_elems = l->k_pe_stride_elems,
		.slot_mapping = view(ctx, SPMLA_BUF_SLOT_MAPPING),
		.cache = l->kv,
	};
	const spmla_indexer_k_insert_args k = {
		.struct_bytes = sizeof k,
		.tokens = tokens,
		.dtype = SPMLA_DTYPE_BF16,
		.scale_mode = SPMLA_SCALE_POW2,
		.rope_style = l->rope_style,
		.cos_sin_rows = l->cos_sin_rows,
		.norm_eps = l->norm_eps,
		.k = l->index_k,
		.k_stride_elems = l->index_k_stride_elems,
		.slot_mapping = view(ctx, SPMLA_BUF_SLOT_MAPPING),
		.norm_weight = l->index_norm_weight,
		.norm_bias = l->index_norm_bias,
		.positions = view(ctx, SPMLA_BUF_POSITIONS),
		.cos_sin = l->cos_sin,
		.cache = l->index,
	};

	v32_must(ctx, spmla_kv_insert(ctx, &kv, NULL));
	if (l->index_k)
		v32_must(ctx, spmla_indexer_k_insert(ctx, &k, NULL));
}

static void
prep(const v32_rig *r, spmla_ctx *ctx, uint32_t tokens)
{
	const spmla_v32_layer *l = &r->layer;
	const spmla_indexer_q_prep_args a = {
		.struct_bytes = sizeof a,
		.tokens = tokens,
		.heads = r->index_heads,
		.rope_style = l->rope_style,
		.scale_floor = l->index_q_scale_floor,
		.weights_dtype = l->index_weights_dtype,
		.cos_sin_rows = l->cos_sin_rows,
		.softmax_scale = (float)pow(128, -0.5),
		.head_scale = (float)pow(r->index_heads, -0.5),
		.q = l->index_q,
		.q_token_stride_elems = l->index_q_token_stride_elems,
		.q_head_stride_elems = l->index_q_head_stride_elems,
		.weights = l->index_weights,
		.weights_stride_elems = l->index_weights_stride_elems,
		.positions = view(ctx, SPMLA_BUF_POSITIONS),
		.cos_sin = l->cos_sin,
		.q_out = view(ctx, SPMLA_BUF_INDEX_Q),
		.weights_out = view(ctx, SPMLA_BUF_INDEX_WEIGHTS),
		.q_format = l->index.layout == SPMLA_LAYOUT_INDEX_MXFP4
				    ? SPMLA_INDEX_Q_MXFP4
				    : SPMLA_INDEX_Q_FP8,
		.q_scales = view(ctx, SPMLA_BUF_INDEX_Q_SCALES),
	};

	v32_must(ctx, spmla_indexer_q_prep(ctx, &a, NULL));
}

static void
select_keys(const v32_rig *r, spmla_ctx *ctx, uint32_t tokens)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_v32_layer *l = &r->layer;
	const spmla_mqa_logits_args score = {
		.struct_bytes = sizeof score,
		.tokens = tokens,
		.heads = r->index_heads,
		.rows = plan->config.max_rows,
		.columns = plan->columns,
		.table_stride_elems =
			r->table ? r->table_stride : plan->columns,
		.q = view(ctx, SPMLA_BUF_INDEX_Q),
		.weights = view(ctx, SPMLA_BUF_INDEX_WEIGHTS),
		.token_row = view(ctx, SPMLA_BUF_TOKEN_ROW),
		.context_lens = view(ctx, SPMLA_BUF_CONTEXT_LENS),
		.row_starts = view(ctx, SPMLA_BUF_LOGITS_ROW_STARTS),
		.block_table = r->table ? r->table
					: view(ctx, SPMLA_BUF_BLOCK_TABLE_MAIN),
		.table_cols = view(ctx, SPMLA_BUF_TABLE_COLS_MAIN),
		.logits = view(ctx, SPMLA_BUF_LOGITS),
		.logits_elems = plan->logits_elems,
		.cache = l->index,
		.q_scales = view(ctx, SPMLA_BUF_INDEX_Q_SCALES),
	};
	const spmla_topk_args best = {
		.struct_bytes = sizeof best,
		.rows = tokens,
		.k = plan->config.topk,
		.logits = score.logits,
		.logits_elems = plan->logits_elems,
		.row_starts = score.row_starts,
		.context_lens = score.context_lens,
		.indices = l->topk_indices ? l->topk_indices
					   : view(ctx, SPMLA_BUF_TOPK_INDICES),
		.indices_stride_elems = l->topk_stride_elems
						? l->topk_stride_elems
						: plan->config.topk,
		.lens = l->topk_lens ? l->topk_lens
				     : view(ctx, SPMLA_BUF_TOPK_LENS),
	};

	v32_must(ctx, spmla_mqa_logits(ctx, &score, NULL));
	v32_must(ctx, spmla_topk(ctx, &best, NULL));
}

static void
map_slots(const v32_rig *r, spmla_ctx *ctx, uint32_t tokens)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_v32_layer *l = &r->layer;
	const spmla_index_map_args a = {
		.struct_bytes = sizeof a,
		.tokens = tokens,
		.k = plan->config.topk,
		.rows = plan->config.max_rows,
		.columns = plan->columns,
		.table_stride_elems =
			r->table ? r->table_stride : plan->columns,
		.page_tokens = plan->config.groups[0].page_tokens,
		.pool_pages = plan->config.groups[0].pool_pages,
		.token_row = view(ctx, SPMLA_BUF_TOKEN_ROW),
		.block_table = r->table ? r->table
					: view(ctx, SPMLA_BUF_BLOCK_TABLE_MAIN),
		.table_cols = view(ctx, SPMLA_BUF_TABLE_COLS_MAIN),
		.indices = l->topk_indices ? l->topk_indices
					   : view(ctx, SPMLA_BUF_TOPK_INDICES),
		.indices_stride_elems = l->topk_stride_elems
						? l->topk_stride_elems
						: plan->config.topk,
		.lens = l->topk_lens ? l->topk_lens
				     : view(ctx, SPMLA_BUF_TOPK_LENS),
		.slots = view(ctx, SPMLA_BUF_TOPK_SLOTS),
		.slots_stride_elems = plan->config.topk,
		.context_lens = view(ctx, SPMLA_BUF_CONTEXT_LENS),
	};

	v32_must(ctx, spmla_index_map(ctx, &a, NULL));
}

static void
attend(const v32_rig *r, spmla_ctx *ctx, uint32_t tokens)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_v32_layer *l = &r->layer;
	uint64_t bytes;
	uint32_t *workspace =
		spmla_view(ctx, SPMLA_BUF_DECODE_WORKSPACE, &bytes);
	const spmla_sparse_decode_args a = {
		.struct_bytes = sizeof a,
		.tokens = tokens,
		.heads = r->heads,
		.topk = plan->config.topk,
		.empty_lse = l->empty_lse,
		.softmax_scale = plan->config.softmax_scale,
		.q = l->q,
		.q_token_stride_elems = l->q_token_stride_elems,
		.q_head_stride_elems = l->q_head_stride_elems,
		.slots = view(ctx, SPMLA_BUF_TOPK_SLOTS),
		.slots_stride_elems = plan->config.topk,
		.topk_lens = l->topk_lens ? l->topk_lens
					  : view(ctx, SPMLA_BUF_TOPK_LENS),
		.attn_sink = l->attn_sink,
		.out = l->out,
		.out_token_stride_elems = l->out_token_stride_elems,
		.out_head_stride_elems = l->out_head_stride_elems,
		.lse = l->lse,
		.lse_token_stride_elems = l->lse_token_stride_elems,
		.lse_head_stride_elems = l->lse_head_stride_elems,
		.cache = l->kv,
		.workspace = workspace,
		.workspace_bytes = bytes,
	};

	v32_must(ctx, spmla_sparse_decode(ctx, &a, NULL));
}

void
v32_by_ops(const v32_rig *r, spmla_ctx *ctx, const spmla_shape *shape)
{
	insert(r, ctx, shape->tokens);
	if (r->layer.index_q) {
		prep(r, ctx, shape->tokens);
		select_keys(r, ctx, shape->tokens);
	}
	map_slots(r, ctx, shape->tokens);
	attend(r, ctx, shape->tokens);
}
