/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the calls of a V3.2 layer.
 */
#ifndef SPMLA_INTERNAL_V32_H
#define SPMLA_INTERNAL_V32_H

#include "spmla/internal/layer.h"
#include "spmla/v32.h"

/* Every call starts with this. */
spmla_status spmla_i_v32_begin(spmla_ctx *ctx, const spmla_v32_layer *layer,
			       const spmla_shape *shape, spmla_stream stream);

/* Every call ends with this: errors name the layer's fields. */
spmla_status spmla_i_v32_end(spmla_ctx *ctx, spmla_status s);

/* Every call of decode adds this: after the prologue of a prefill the rows of
 * index logits lie elsewhere. */
spmla_status spmla_i_v32_begin_decode(spmla_ctx *ctx,
				      const spmla_v32_layer *layer,
				      const spmla_shape *shape,
				      spmla_stream stream);

/* Checks the layer's KV cache; its index cache and the rows of its rope table;
 * its selection. */
spmla_status spmla_i_v32_check_kv(spmla_ctx *ctx, const spmla_v32_layer *l);
spmla_status spmla_i_v32_check_index(spmla_ctx *ctx, const spmla_v32_layer *l);

/* Several ranks would each count the sink. */
spmla_status spmla_i_v32_check_sink(spmla_ctx *ctx, const spmla_v32_layer *l);
spmla_status spmla_i_v32_topk(spmla_ctx *ctx, const spmla_v32_layer *l,
			      spmla_i_topk *topk);

/* The index queries of a step. */
spmla_status spmla_i_v32_prep_q(spmla_ctx *ctx, const spmla_v32_layer *l,
				const spmla_shape *shape, spmla_stream stream);

/* Maps the selection of a piece's tokens to TOPK_SLOTS: slots of the cache or,
 * with workspaces, rows of these. */
spmla_index_map_args spmla_i_v32_map(const spmla_ctx *ctx,
				     const spmla_i_topk *topk,
				     const spmla_i_piece *piece,
				     uint32_t workspaces);

/* spmla_v32_index; with `maps`, the same launch also maps its selection.
 * spmla_v32_attend; unless `mapped`, it maps the selection first. */
spmla_status spmla_i_v32_index(spmla_ctx *ctx, const spmla_v32_layer *layer,
			       const spmla_shape *shape, uint32_t maps,
			       spmla_stream stream);
spmla_status spmla_i_v32_attend(spmla_ctx *ctx, const spmla_v32_layer *layer,
				const spmla_shape *shape, uint32_t mapped,
				spmla_stream stream);

#endif
