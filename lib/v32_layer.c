/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that every call of a V3.2 layer makes before its operations do.
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

	return spmla_i_check_pool(ctx, &fields, &l->index, SPMLA_GROUP_MAIN, 0);
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
