/* SPDX-License-Identifier: Apache-2.0
 *
 * The insert of a V3.2 layer: writes the step's keys and index keys to their
 * caches.
 */
#include "spmla/internal/v32.h"

#include <string.h>

static spmla_indexer_k_insert_args
index_keys(const spmla_ctx *ctx, const spmla_v32_layer *l,
	   const spmla_shape *shape)
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
	a.cos_sin_dtype = l->cos_sin_dtype;
	a.norm_dtype = l->index_norm_dtype;
	a.cache = l->index;
	return a;
}

spmla_status
spmla_v32_insert(spmla_ctx *ctx, const spmla_v32_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	spmla_kv_insert_args a;
	spmla_status s = spmla_i_v32_begin(ctx, layer, shape, stream);

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
	if (layer->index_k)
		a.index = index_keys(ctx, layer, shape);
	return spmla_i_v32_end(ctx, spmla_kv_insert(ctx, &a, stream));
}
