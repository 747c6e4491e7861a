/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the layers of all models make before their operations do, and
 * their attention.
 */
#ifndef SPMLA_INTERNAL_LAYER_H
#define SPMLA_INTERNAL_LAYER_H

#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"
#include "spmla/ops/index_map.h"
#include "spmla/ops/sparse_decode.h"

/* Every call of a layer starts with this. It checks that the layer's struct has
 * `bytes` bytes, that the plan is of its model, and that the shape is no larger
 * than the step's. It sets ctx->step. */
spmla_status spmla_i_layer_begin(spmla_ctx *ctx, const void *layer,
				 uint32_t bytes, const char *name,
				 const spmla_shape *shape, uint32_t v4,
				 spmla_stream stream);

/* Whether the plan is of the layer's model. */
spmla_status spmla_i_layer_model(spmla_ctx *ctx, uint32_t v4);

/* A preset starts with this: `layer` is the one to fill. */
spmla_status spmla_i_preset_begin(spmla_ctx *ctx, const void *layer,
				  const char *name, uint32_t v4);

/* The pool of a preset: layer `index` of the `planned` ones, or zeros. */
spmla_status spmla_i_preset_cache(spmla_ctx *ctx, spmla_buf buf,
				  uint32_t planned, uint32_t index,
				  spmla_cache *cache);

/* Every call of decode adds this: after the prologue of a prefill the rows of
 * index logits lie elsewhere. */
spmla_status spmla_i_layer_decode(spmla_ctx *ctx);

/* A field of an operation, as a diag names it, and the field of the layer that
 * it came from. */
typedef struct spmla_i_name {
	const char *op;
	const char *layer;
} spmla_i_name;

#define SPMLA_I_NAME_CACHE(op, layer)                                  \
	{op ".struct_bytes", layer ".struct_bytes"},                   \
		{op ".layout", layer ".layout"},                       \
		{op ".page_stride_bytes", layer ".page_stride_bytes"}, \
	{                                                              \
		op ".base", layer ".base"                              \
	}

/* Ends a call of a layer with its status: if an operation refused a field, the
 * diag names the layer's. */
spmla_status spmla_i_layer_end(spmla_ctx *ctx, spmla_status s,
			       const spmla_i_name *names, uint32_t count);

/* Checks that a layer's rope table has every position of the plan. */
spmla_status spmla_i_check_rope(spmla_ctx *ctx, const char *field,
				uint32_t rows);

/* The names of the fields of a layer's cache. */
typedef struct spmla_i_pool_fields {
	const char *layout;
	const char *table_group;
	const char *entries_per_page;
	const char *pages;
	const char *encoding;
} spmla_i_pool_fields;

#define SPMLA_I_POOL_FIELDS(name)                                              \
	{                                                                      \
		name ".layout", name ".table_group", name ".entries_per_page", \
			name ".pages", name ".encoding"                        \
	}

/* Checks that a cache matches the table of its group: slots are page *
 * entries_per_page + offset. The cache may name its group, or the group whose
 * table its group uses. */
spmla_status spmla_i_check_pool(spmla_ctx *ctx,
				const spmla_i_pool_fields *fields,
				const spmla_cache *cache, uint32_t group,
				uint32_t layout);

/* The cache as operations get it, with the pool's number of pages: so all
 * operations agree on which pages are in the pool. */
spmla_cache spmla_i_pool(const spmla_ctx *ctx, const spmla_cache *cache,
			 uint32_t group);

/* A selection: the layer's own buffers or the planned ones. */
typedef struct spmla_i_topk {
	int32_t *indices;
	int32_t *lens;
	int64_t stride_elems;
	uint32_t planned; /* the lengths lie in TOPK_LENS */
} spmla_i_topk;

/* Fills `out` from a layer's fields. Both buffers must be given, or neither.
 * Planned buffers may be named or left out. */
spmla_status spmla_i_check_topk(spmla_ctx *ctx, const char *const fields[3],
				int32_t *indices, int32_t *lens,
				int64_t stride_elems, spmla_i_topk *out);

/* Tokens that are attended together: all of a decode step, some of a longer
 * one. */
typedef struct spmla_i_piece {
	uint32_t first;
	uint32_t tokens;
} spmla_i_piece;

/* The piece that begins with token `first`. */
static inline spmla_i_piece
spmla_i_piece_at(const spmla_ctx *ctx, const spmla_shape *shape, uint32_t first)
{
	const uint32_t most = spmla_i_piece_tokens(&ctx->plan.config);
	const uint32_t rest = shape->tokens - first;
	const spmla_i_piece p = {first, rest < most ? rest : most};

	return p;
}

/* Element `first` of a planned buffer of 32-bit words. */
static inline int32_t *
spmla_i_words(const spmla_ctx *ctx, spmla_buf buf, uint32_t first)
{
	return (int32_t *)ctx->buf[buf] + first;
}

/* Whether the step's lists of keys are ragged. */
static inline uint32_t
spmla_i_is_ragged(const spmla_ctx *ctx)
{
	return (ctx->plan.config.flags & SPMLA_CONFIG_RAGGED) != 0;
}

/* Where index_map puts the slots of a selection. */
void spmla_i_layer_slots(const spmla_ctx *ctx, spmla_index_map_args *a);

/* Sets a->parts and a->whole_tokens: how the prologue has cut a layer's
 * attention. All tokens are whole, unless splits are fixed, if the call has
 * another number of tokens than the prologue, or if its few tokens are decoded
 * in one launch. Lends the call its workspace. */
void spmla_i_layer_cut(spmla_ctx *ctx, spmla_sparse_decode_args *a);

/* Checks the arguments of sparse_decode, of at least one token. */
spmla_status spmla_i_sparse_decode_check(spmla_ctx *ctx,
					 const spmla_sparse_decode_args *a);

/* The attention: one operation, or a->parts parts by the prologue's metadata
 * and their combine. Sets the fields behind a->parts. */
spmla_status spmla_i_layer_attend(spmla_ctx *ctx, spmla_sparse_decode_args *a,
				  spmla_buf metadata, spmla_buf num_splits,
				  spmla_stream stream);

#endif
