/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that every call of a V4 layer makes before its operations do.
 */
#include "spmla/internal/v4.h"

spmla_status
spmla_i_v4_begin(spmla_ctx *ctx, const spmla_v4_layer *layer,
		 const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_i_layer_begin(ctx, layer, sizeof *layer,
					     "v4_layer", shape, 1, stream);

	if (s != SPMLA_OK)
		return s;
	if (layer->ratio != 1 && layer->ratio != SPMLA_COMPRESS_OVERLAP &&
	    layer->ratio != SPMLA_COMPRESS_MOST)
		return spmla_i_op_failed(
			ctx, spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
					  "v4_layer.ratio (or 4, 128)",
					  layer->ratio, SPMLA_WANT_EQUAL, 1));
	return SPMLA_OK;
}

spmla_status
spmla_i_v4_check_rope(spmla_ctx *ctx, const spmla_v4_layer *layer)
{
	const uint32_t most = ctx->plan.config.max_context_tokens;

	if (layer->cos_sin_rows >= most)
		return SPMLA_OK;
	return spmla_i_op_failed(ctx, spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
						   "v4_layer.cos_sin_rows",
						   layer->cos_sin_rows,
						   SPMLA_WANT_AT_LEAST, most));
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
