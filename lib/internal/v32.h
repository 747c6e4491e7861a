/* SPDX-License-Identifier: Apache-2.0
 *
 * What decode and prefill of a V3.2 layer share.
 */
#ifndef SPMLA_INTERNAL_V32_H
#define SPMLA_INTERNAL_V32_H

#include "spmla/internal/backend.h"
#include "spmla/v32.h"

/* The block table that the readers of a step see. */
typedef struct spmla_i_table_view {
	const int32_t *table;
	const int32_t *cols;
	uint32_t stride_elems;
} spmla_i_table_view;

spmla_i_table_view spmla_i_main_table(const spmla_ctx *ctx);

/* Every call starts with this. */
spmla_status spmla_i_v32_begin(spmla_ctx *ctx, const spmla_v32_layer *layer,
			       const spmla_shape *shape);

/* And every call of decode: the index rows of a prefill lie elsewhere. */
spmla_status spmla_i_v32_begin_decode(spmla_ctx *ctx,
				      const spmla_v32_layer *layer,
				      const spmla_shape *shape);

/* A layer's caches must match its table: the slots are page * page_tokens +
 * offset. The selection's two buffers come together, planned or the caller's.
 */
spmla_status spmla_i_v32_check_kv(spmla_ctx *ctx, const spmla_v32_layer *l);
spmla_status spmla_i_v32_check_index(spmla_ctx *ctx, const spmla_v32_layer *l);
spmla_status spmla_i_v32_check_topk(spmla_ctx *ctx, const spmla_v32_layer *l);

/* Where a layer's selection lies. */
int32_t *spmla_i_v32_topk_indices(const spmla_ctx *ctx,
				  const spmla_v32_layer *l);
int32_t *spmla_i_v32_topk_lens(const spmla_ctx *ctx, const spmla_v32_layer *l);
int64_t spmla_i_v32_topk_stride(const spmla_ctx *ctx, const spmla_v32_layer *l);

/* The index queries of a step. */
spmla_status spmla_i_v32_prep_q(spmla_ctx *ctx, const spmla_v32_layer *l,
				const spmla_shape *shape, spmla_stream stream);

/* The selection to TOPK_SLOTS: slots of the cache, or rows of the workspace. */
spmla_status spmla_i_v32_map_topk(spmla_ctx *ctx, const spmla_v32_layer *l,
				  const spmla_shape *shape, uint32_t prefill,
				  spmla_stream stream);

#endif
