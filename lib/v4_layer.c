/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that every call of a V4 layer makes before its operations do, and the
 * names of its fields where an operation refuses one.
 */
#include "spmla/internal/v4.h"

spmla_status
spmla_i_v4_check_ratio(spmla_ctx *ctx, uint32_t ratio)
{
	if (ratio == 1 || ratio == SPMLA_COMPRESS_OVERLAP ||
	    ratio == SPMLA_COMPRESS_MOST)
		return SPMLA_OK;
	return spmla_i_fail(
		&ctx->diag, SPMLA_E_RANGE, "v4_layer.ratio", ratio,
		SPMLA_I_EITHER(1, SPMLA_COMPRESS_OVERLAP, SPMLA_COMPRESS_MOST));
}

spmla_status
spmla_i_v4_begin(spmla_ctx *ctx, const spmla_v4_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_i_layer_begin(ctx, layer, sizeof *layer,
					     "v4_layer", shape, 1, stream);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_v4_check_ratio(ctx, layer->ratio);
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_i_v4_check_rope(spmla_ctx *ctx, const spmla_v4_layer *layer)
{
	return spmla_i_check_rope(ctx, "v4_layer.cos_sin_rows",
				  layer->cos_sin_rows);
}

spmla_status
spmla_i_v4_topk(spmla_ctx *ctx, const spmla_v4_layer *l, spmla_i_topk *topk)
{
	static const char *const fields[3] = {"v4_layer.topk_indices",
					      "v4_layer.topk_lens",
					      "v4_layer.topk_stride_elems"};

	return spmla_i_check_topk(ctx, fields, l->topk_indices, l->topk_lens,
				  l->topk_stride_elems, topk);
}

#define SAME(op, field)      #op "." #field, "v4_layer." #field
#define AS(op, field, layer) #op "." #field, "v4_layer." #layer

spmla_status
spmla_i_v4_end(spmla_ctx *ctx, spmla_status s)
{
	static const spmla_i_name names[] = {
		{SAME(qnorm_rope_kv_insert, norm_eps)},
		{SAME(qnorm_rope_kv_insert, q)},
		{SAME(qnorm_rope_kv_insert, q_token_stride_elems)},
		{SAME(qnorm_rope_kv_insert, q_head_stride_elems)},
		{SAME(qnorm_rope_kv_insert, kv)},
		{SAME(qnorm_rope_kv_insert, kv_stride_elems)},
		{SAME(qnorm_rope_kv_insert, cos_sin)},
		{SAME(qnorm_rope_kv_insert, cos_sin_dtype)},
		{SAME(indexer_q_prep, cos_sin)},
		{SAME(indexer_q_prep, cos_sin_dtype)},
		{SAME(indexer_q_prep, cos_sin_rows)},
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
		{SAME(sparse_decode, empty_lse)},
		{SAME(sparse_decode, q)},
		{SAME(sparse_decode, q_token_stride_elems)},
		{SAME(sparse_decode, q_head_stride_elems)},
		{SAME(sparse_decode, out)},
		{SAME(sparse_decode, out_token_stride_elems)},
		{SAME(sparse_decode, out_head_stride_elems)},
		{SAME(sparse_decode, lse_token_stride_elems)},
		{SAME(sparse_decode, lse_head_stride_elems)},
		{AS(inv_rope_quant, quant, output_quant)},
		{AS(inv_rope_quant, o_token_stride_elems,
		    out_token_stride_elems)},
		{AS(inv_rope_quant, o_head_stride_elems,
		    out_head_stride_elems)},
		{SAME(inv_rope_quant, cos_sin)},
		{SAME(inv_rope_quant, cos_sin_dtype)},
		{SAME(inv_rope_quant, cos_sin_rows)},
		{AS(o_group_proj, columns, output_columns)},
		{AS(o_group_proj, w, wo)},
		{AS(o_group_proj, w_group_stride_elems, wo_group_stride_elems)},
		{AS(o_group_proj, w_row_stride_elems, wo_row_stride_elems)},
		{AS(o_group_proj, w_scales, wo_scales)},
		{AS(o_group_proj, w_scale_group_stride_elems,
		    wo_scale_group_stride_elems)},
		{AS(o_group_proj, w_scale_row_stride_elems,
		    wo_scale_row_stride_elems)},
		{SAME(o_group_proj, z_token_stride_elems)},
		{SAME(o_group_proj, z_group_stride_elems)},
		SPMLA_I_NAME_CACHE("qnorm_rope_kv_insert.cache",
				   "v4_layer.swa"),
		SPMLA_I_NAME_CACHE("sparse_decode.cache", "v4_layer.swa"),
		SPMLA_I_NAME_CACHE("sparse_decode.extra_cache",
				   "v4_layer.compressed"),
		SPMLA_I_NAME_CACHE("mqa_logits.cache", "v4_layer.index"),
	};

	return spmla_i_layer_end(ctx, s, names, SPMLA_I_COUNT(names));
}
