/* SPDX-License-Identifier: Apache-2.0
 *
 * The insert of a V4 layer: norms and rotates the step's queries in place, and
 * writes its keys to the cache of the window.
 */
#include "spmla/internal/v4.h"

#include <string.h>

spmla_status
spmla_v4_insert(spmla_ctx *ctx, const spmla_v4_layer *layer,
		const spmla_shape *shape, spmla_stream stream)
{
	static const spmla_i_pool_fields fields =
		SPMLA_I_POOL_FIELDS("v4_layer.swa");
	spmla_qnorm_rope_kv_insert_args a;
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);

	if (s == SPMLA_OK)
		s = spmla_i_check_pool(ctx, &fields, &layer->swa,
				       SPMLA_GROUP_SWA,
				       ctx->plan.config.kv_layout);
	if (s == SPMLA_OK)
		s = spmla_i_v4_check_rope(ctx, layer);
	if (s != SPMLA_OK)
		return s;
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.kv_tokens = shape->tokens;
	a.heads = ctx->plan.config.heads;
	a.padded_heads = a.heads;
	a.cos_sin_rows = layer->cos_sin_rows;
	a.norm_eps = layer->norm_eps;
	a.q = layer->q;
	a.q_token_stride_elems = layer->q_token_stride_elems;
	a.q_head_stride_elems = layer->q_head_stride_elems;
	a.q_out = layer->q;
	a.q_out_token_stride_elems = layer->q_token_stride_elems;
	a.q_out_head_stride_elems = layer->q_head_stride_elems;
	a.kv = layer->kv;
	a.kv_stride_elems = layer->kv_stride_elems;
	a.slot_mapping = ctx->buf[SPMLA_BUF_SLOT_MAPPING];
	a.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	a.cos_sin = layer->cos_sin;
	a.cos_sin_dtype = layer->cos_sin_dtype;
	a.cache = spmla_i_pool(ctx, &layer->swa, SPMLA_GROUP_SWA);
	return spmla_i_v4_end(ctx, spmla_qnorm_rope_kv_insert(ctx, &a, stream));
}
