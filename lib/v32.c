/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer: what its plan says of it, and its calls in order, on the
 * planned metadata of the step. No host branch here depends on a length, so the
 * calls always record the same nodes.
 */
#include "spmla/internal/v32.h"

#include <string.h>

spmla_status
spmla_v32_layer_preset(spmla_ctx *ctx, uint32_t index, spmla_v32_layer *layer)
{
	const spmla_config *c;
	spmla_v32_layer l;
	spmla_status s = spmla_i_preset_begin(ctx, layer, "v32_layer", 0);

	if (s != SPMLA_OK)
		return s;
	c = &ctx->plan.config;
	memset(&l, 0, sizeof l);
	l.struct_bytes = (uint32_t)sizeof l;
	l.cos_sin_rows = c->max_context_tokens;
	l.norm_eps = 1e-6f;
	l.kv_c_stride_elems = SPMLA_MLA_LATENT;
	l.k_pe_stride_elems = SPMLA_MLA_DIM - SPMLA_MLA_LATENT;
	l.index_k_stride_elems = SPMLA_INDEX_DIM;
	l.index_q_head_stride_elems = SPMLA_INDEX_DIM;
	l.index_q_token_stride_elems = c->index_heads * SPMLA_INDEX_DIM;
	l.index_weights_stride_elems = c->index_heads;
	l.q_head_stride_elems = SPMLA_MLA_DIM;
	l.q_token_stride_elems = c->heads * SPMLA_MLA_DIM;
	l.out_head_stride_elems = SPMLA_MLA_LATENT;
	l.out_token_stride_elems = c->heads * SPMLA_MLA_LATENT;
	l.lse_head_stride_elems = 1;
	l.lse_token_stride_elems = c->heads;
	s = spmla_i_preset_cache(ctx, SPMLA_BUF_KV_CACHE, c->cache_layers,
				 index, &l.kv);
	if (s == SPMLA_OK)
		s = spmla_i_preset_cache(ctx, SPMLA_BUF_INDEX_CACHE,
					 c->cache_layers, index, &l.index);
	if (s == SPMLA_OK)
		*layer = l;
	return s;
}

spmla_status
spmla_v32_attn(spmla_ctx *ctx, const spmla_v32_layer *layer,
	       const spmla_shape *shape, spmla_stream stream)
{
	spmla_status s = spmla_v32_insert(ctx, layer, shape, stream);
	const uint32_t selects = s == SPMLA_OK && layer->index_q;

	if (selects)
		s = spmla_i_v32_index(ctx, layer, shape, 1, stream);
	if (s == SPMLA_OK)
		s = spmla_i_v32_attend(ctx, layer, shape, selects, stream);
	return s;
}
