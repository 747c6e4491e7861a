/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of a V4 layer share.
 */
#ifndef SPMLA_INTERNAL_V4_H
#define SPMLA_INTERNAL_V4_H

#include "spmla/internal/config.h"
#include "spmla/internal/layer.h"
#include "spmla/v4.h"

/* Every call starts with this; the ratio is one of V4's. */
spmla_status spmla_i_v4_begin(spmla_ctx *ctx, const spmla_v4_layer *layer,
			      const spmla_shape *shape, spmla_stream stream);

/* Whether every position of a plan can be rotated: a key that is not written
 * counts in its token's lengths all the same. */
spmla_status spmla_i_v4_check_rope(spmla_ctx *ctx, const spmla_v4_layer *layer);

/* The layer's selection. */
spmla_status spmla_i_v4_topk(spmla_ctx *ctx, const spmla_v4_layer *l,
			     spmla_i_topk *topk);

/* The index queries of a step, and then the selection with them. */
spmla_status spmla_i_v4_prep_q(spmla_ctx *ctx, const spmla_v4_layer *l,
			       const spmla_shape *shape, spmla_stream stream);
spmla_status spmla_i_v4_select(spmla_ctx *ctx, const spmla_v4_layer *l,
			       const spmla_shape *shape, spmla_stream stream);

#endif
