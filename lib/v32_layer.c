/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that every call of a V3.2 layer makes before its operations do, and
 * the names of its fields where an operation refuses one.
 */
#include "spmla/internal/v32.h"

spmla_status
spmla_i_v32_begin(spmla_ctx *ctx, const spmla_v32_layer *layer,
		  const spmla_shape *shape, spmla_stream stream)
{
	return spmla_i_layer_begin(ctx, layer, sizeof *layer, "v32_layer",
				   shape, 0, stream);
}

spmla_status
spmla_i_v32_begin_decode(spmla_ctx *ctx, const spmla_v32_layer *layer,
			 const spmla_shape *shape, spmla_stream stream)
{
	const spmla_status s = spmla_i_v32_begin(ctx, layer, shape, stream);

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

	const spmla_status s =
		spmla_i_check_pool(ctx, &fields, &l->index, SPMLA_GROUP_MAIN,
				   ctx->plan.config.index_layout);

	if (s != SPMLA_OK || l->rope_style == SPMLA_ROPE_NONE)
		return s;
	return spmla_i_check_rope(ctx, "v32_layer.cos_sin_rows",
				  l->cos_sin_rows);
}

spmla_status
spmla_i_v32_check_sink(spmla_ctx *ctx, const spmla_v32_layer *l)
{
	const uint32_t ranks = ctx->plan.config.dcp_ranks;
	const spmla_i_check check = {
		"v32_layer.attn_sink (with config.dcp_ranks above 1)",
		ranks > 1 && l->attn_sink, SPMLA_WANT_EQUAL, 0};
	const spmla_status s = spmla_i_check_all(&ctx->diag, &check, 1);

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
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

#define SAME(op, field)      #op "." #field, "v32_layer." #field
#define AS(op, field, layer) #op "." #field, "v32_layer." #layer
#define ATTENTION(op)                                             \
	{SAME(op, empty_lse)}, {SAME(op, q)},                     \
		{SAME(op, q_token_stride_elems)},                 \
		{SAME(op, q_head_stride_elems)}, {SAME(op, out)}, \
		{SAME(op, out_token_stride_elems)},               \
		{SAME(op, out_head_stride_elems)},                \
		{SAME(op, lse_token_stride_elems)},               \
	{                                                         \
		SAME(op, lse_head_stride_elems)                   \
	}

spmla_status
spmla_i_v32_end(spmla_ctx *ctx, spmla_status s)
{
	static const spmla_i_name names[] = {
		{SAME(kv_insert, kv_c)},
		{SAME(kv_insert, kv_c_stride_elems)},
		{SAME(kv_insert, k_pe)},
		{SAME(kv_insert, k_pe_stride_elems)},
		{AS(indexer_k_insert, k, index_k)},
		{AS(indexer_k_insert, k_stride_elems, index_k_stride_elems)},
		{AS(indexer_k_insert, norm_bias, index_norm_bias)},
		{SAME(indexer_k_insert, norm_eps)},
		{SAME(indexer_k_insert, rope_style)},
		{AS(indexer_k_insert, norm_dtype, index_norm_dtype)},
		{SAME(indexer_k_insert, cos_sin)},
		{SAME(indexer_k_insert, cos_sin_dtype)},
		{SAME(indexer_k_insert, cos_sin_rows)},
		{SAME(indexer_q_prep, rope_style)},
		{SAME(indexer_q_prep, cos_sin)},
		{SAME(indexer_q_prep, cos_sin_dtype)},
		{SAME(indexer_q_prep, cos_sin_rows)},
		{AS(indexer_q_prep, scale_floor, index_q_scale_floor)},
		{AS(indexer_q_prep, q, index_q)},
		{AS(indexer_q_prep, q_token_stride_elems,
		    index_q_token_stride_elems)},
		{AS(indexer_q_prep, q_head_stride_elems,
		    index_q_head_stride_elems)},
		{AS(indexer_q_prep, weights, index_weights)},
		{AS(indexer_q_prep, weights_dtype, index_weights_dtype)},
		{AS(indexer_q_prep, weights_stride_elems,
		    index_weights_stride_elems)},
		{AS(topk, indices_stride_elems, topk_stride_elems)},
		{AS(index_map, indices_stride_elems, topk_stride_elems)},
		ATTENTION(sparse_decode),
		ATTENTION(sparse_prefill),
		SPMLA_I_NAME_CACHE("kv_insert.cache", "v32_layer.kv"),
		SPMLA_I_NAME_CACHE("kv_gather.cache", "v32_layer.kv"),
		SPMLA_I_NAME_CACHE("sparse_decode.cache", "v32_layer.kv"),
		SPMLA_I_NAME_CACHE("indexer_k_insert.cache", "v32_layer.index"),
		SPMLA_I_NAME_CACHE("indexer_k_gather.cache", "v32_layer.index"),
		SPMLA_I_NAME_CACHE("mqa_logits.cache", "v32_layer.index"),
	};

	return spmla_i_layer_end(ctx, s, names, SPMLA_I_COUNT(names));
}
