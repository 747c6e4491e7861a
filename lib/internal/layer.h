/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers of all models check before their ops do.
 */
#ifndef SPMLA_INTERNAL_LAYER_H
#define SPMLA_INTERNAL_LAYER_H

#include "spmla/internal/backend.h"
#include "spmla/ops/sparse_decode.h"

/* Every call of a layer starts with this: its struct is of `bytes`, the plan of
 * its model, the shape that of the step it belongs to or smaller. From here on
 * that is ctx->step. */
spmla_status spmla_i_layer_begin(spmla_ctx *ctx, const void *layer,
				 uint32_t bytes, const char *name,
				 const spmla_shape *shape, uint32_t v4,
				 spmla_stream stream);

/* And every call of decode: the index rows of a prefill lie elsewhere. */
spmla_status spmla_i_layer_decode(spmla_ctx *ctx);

/* What the fields of a layer's cache are called. */
typedef struct spmla_i_pool_fields {
	const char *layout;
	const char *table_group;
	const char *entries_per_page;
	const char *pages;
} spmla_i_pool_fields;

#define SPMLA_I_POOL_FIELDS(name)                                              \
	{                                                                      \
		name ".layout", name ".table_group", name ".entries_per_page", \
			name ".pages"                                          \
	}

/* A cache must match the table of its group: slots are page * entries_per_page
 * + offset. layout 0: the op looks at it. It may name the group, or the one
 * whose table that uses. */
spmla_status spmla_i_check_pool(spmla_ctx *ctx,
				const spmla_i_pool_fields *fields,
				const spmla_cache *cache, uint32_t group,
				uint32_t layout);

/* The cache as ops get it: a page is in the pool or it is not, for every op
 * alike. */
spmla_cache spmla_i_pool(const spmla_ctx *ctx, const spmla_cache *cache,
			 uint32_t group);

/* A selection: the layer's own buffers or the planned ones. */
typedef struct spmla_i_topk {
	int32_t *indices;
	int32_t *lens;
	int64_t stride_elems;
	uint32_t planned; /* the lengths lie in TOPK_LENS */
} spmla_i_topk;

/* Fills `out` from a layer's fields; the two buffers come together, and planned
 * ones may be named as well as left out. */
spmla_status spmla_i_check_topk(spmla_ctx *ctx, const char *const fields[3],
				int32_t *indices, int32_t *lens,
				int64_t stride_elems, spmla_i_topk *out);

/* Parts that the prologue has cut the step's attention into; 0: none, as for a
 * shape with other tokens than its. */
uint32_t spmla_i_layer_parts(spmla_ctx *ctx, uint32_t tokens);

/* The attention: one op, or a->parts parts by the prologue's metadata, and
 * their combine. Fields behind parts are set here. */
spmla_status spmla_i_layer_attend(spmla_ctx *ctx, spmla_sparse_decode_args *a,
				  spmla_buf metadata, spmla_buf num_splits,
				  spmla_stream stream);

#endif
