/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the calls of a V4 layer.
 */
#ifndef SPMLA_INTERNAL_V4_H
#define SPMLA_INTERNAL_V4_H

#include "spmla/internal/config.h"
#include "spmla/internal/layer.h"
#include "spmla/v4.h"

/* Every call but compress ends with this: errors name the layer's fields. */
spmla_status spmla_i_v4_end(spmla_ctx *ctx, spmla_status s);

spmla_status spmla_i_v4_check_ratio(spmla_ctx *ctx, uint32_t ratio);

/* Every call starts with this. It also checks the ratio. */
spmla_status spmla_i_v4_begin(spmla_ctx *ctx, const spmla_v4_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* Checks that every position of the plan can be rotated: a key that is not
 * written would still count in its token's lengths. */
spmla_status spmla_i_v4_check_rope(spmla_ctx *ctx, const spmla_v4_layer *layer);

/* The layer's selection. */
spmla_status spmla_i_v4_topk(spmla_ctx *ctx, const spmla_v4_layer *l,
			     spmla_i_topk *topk);

/* The map of a selection to slots, in TOPK_SLOTS and C4A_LENS, or ragged. */
spmla_index_map_args spmla_i_v4_map(const spmla_ctx *ctx,
				    const spmla_i_topk *topk,
				    const spmla_i_piece *piece);

/* The index queries of a step. Then the selection with them; with `maps`, the
 * same launch also maps it. Then attention; unless `mapped`, it maps the
 * selection first. */
spmla_status spmla_i_v4_prep_q(spmla_ctx *ctx, const spmla_v4_layer *l,
			       const spmla_shape *shape, spmla_stream stream);
spmla_status spmla_i_v4_select(spmla_ctx *ctx, const spmla_v4_layer *l,
			       const spmla_shape *shape, uint32_t maps,
			       spmla_stream stream);
spmla_status spmla_i_v4_attend(spmla_ctx *ctx, const spmla_v4_layer *layer,
			       const spmla_shape *shape, uint32_t mapped,
			       spmla_stream stream);

#endif
