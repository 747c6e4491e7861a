/* SPDX-License-Identifier: Apache-2.0
 *
 * The compressor of a V4 layer. The operations treat its states as rings: keys
 * are made from the ring's rows of earlier steps and from this step's own rows,
 * and only then are the step's last rows kept. Linear tables take the same
 * path.
 */
#include "spmla/internal/v4.h"

#include <string.h>

/* One compressor: of the keys or of the index keys. */
typedef struct chain {
	uint32_t group; /* of its cache */
	uint32_t state_group;
	spmla_buf slots;
	const void *kv;
	const void *score;
	int64_t kv_stride_elems;
	int64_t score_stride_elems;
	const float *ape;
	const void *norm_weight;
	const spmla_cache *state;
	const spmla_cache *cache;
} chain;

static spmla_status
make_keys(spmla_ctx *ctx, const spmla_v4_layer *l, const chain *c,
	  const spmla_shape *shape, spmla_stream stream)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, c->state_group);
	spmla_kv_compress_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.ratio = l->ratio;
	a.form = SPMLA_STATE_RING;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.cos_sin_rows = l->cos_sin_rows;
	a.norm_eps = l->norm_eps;
	a.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	a.slot_mapping = ctx->buf[c->slots];
	a.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.norm_weight = c->norm_weight;
	a.cos_sin = l->cos_sin;
	a.cos_sin_dtype = l->cos_sin_dtype;
	a.norm_dtype = l->norm_dtype;
	a.kv_dtype = l->compress_dtype;
	a.kv = c->kv;
	a.score = c->score;
	a.kv_stride_elems = c->kv_stride_elems;
	a.score_stride_elems = c->score_stride_elems;
	a.ape = c->ape;
	a.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	a.state = spmla_i_pool(ctx, c->state, c->state_group);
	a.cache = spmla_i_pool(ctx, c->cache, c->group);
	/* A prefill has keys enough to fill a GPU. */
	if (shape->tokens <= ctx->buf_bytes[SPMLA_BUF_SPLIT_COUNTS] / 4) {
		a.split_keys = ctx->buf[SPMLA_BUF_SPLIT_KEYS];
		a.split_counts = ctx->buf[SPMLA_BUF_SPLIT_COUNTS];
	}
	return spmla_kv_compress(ctx, &a, stream);
}

static spmla_status
keep_rows(spmla_ctx *ctx, const spmla_v4_layer *l, const chain *c,
	  const spmla_shape *shape, spmla_stream stream)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, c->state_group);
	spmla_compress_state_save_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = shape->tokens;
	a.ratio = l->ratio;
	a.form = SPMLA_STATE_RING;
	a.kv = c->kv;
	a.score = c->score;
	a.kv_stride_elems = c->kv_stride_elems;
	a.score_stride_elems = c->score_stride_elems;
	a.ape = c->ape;
	a.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	a.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	a.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	a.block_table = v.table;
	a.table_cols = v.cols;
	a.rows = ctx->plan.config.max_rows;
	a.columns = v.columns;
	a.table_stride_elems = v.stride_elems;
	a.state = spmla_i_pool(ctx, c->state, c->state_group);
	a.kv_dtype = l->compress_dtype;
	return spmla_compress_state_save(ctx, &a, stream);
}

/* The field that an operation refuses, and the field of the layer that it came
 * from: first for the keys, then for the index keys. */
#define AS(field, layer) "kv_compress." #field, "v4_layer." #layer

static const spmla_i_name names[2][19] = {
	{{AS(norm_eps, norm_eps)},
	 {AS(cos_sin, cos_sin)},
	 {AS(cos_sin_dtype, cos_sin_dtype)},
	 {AS(norm_dtype, norm_dtype)},
	 {AS(kv_dtype, compress_dtype)},
	 {AS(norm_weight, norm_weight)},
	 {AS(kv, compress_kv)},
	 {AS(score, compress_score)},
	 {AS(kv_stride_elems, compress_kv_stride_elems)},
	 {AS(score_stride_elems, compress_score_stride_elems)},
	 {AS(ape, ape)},
	 SPMLA_I_NAME_CACHE("kv_compress.state", "v4_layer.state"),
	 SPMLA_I_NAME_CACHE("kv_compress.cache", "v4_layer.compressed")},
	{{AS(norm_eps, norm_eps)},
	 {AS(cos_sin, cos_sin)},
	 {AS(cos_sin_dtype, cos_sin_dtype)},
	 {AS(norm_dtype, norm_dtype)},
	 {AS(kv_dtype, compress_dtype)},
	 {AS(norm_weight, index_norm_weight)},
	 {AS(kv, index_kv)},
	 {AS(score, index_score)},
	 {AS(kv_stride_elems, index_kv_stride_elems)},
	 {AS(score_stride_elems, index_score_stride_elems)},
	 {AS(ape, index_ape)},
	 SPMLA_I_NAME_CACHE("kv_compress.state", "v4_layer.index_state"),
	 SPMLA_I_NAME_CACHE("kv_compress.cache", "v4_layer.index")},
};

static spmla_status
run_chain(spmla_ctx *ctx, const spmla_v4_layer *l, const chain *c,
	  const spmla_shape *shape, spmla_stream stream)
{
	const uint32_t index = c->group == SPMLA_GROUP_INDEX;
	spmla_status s = make_keys(ctx, l, c, shape, stream);

	/* keep_rows takes no field that make_keys has not checked. */
	if (s != SPMLA_OK)
		return spmla_i_layer_end(ctx, s, names[index],
					 SPMLA_I_COUNT(names[index]));
	return keep_rows(ctx, l, c, shape, stream);
}

static chain
key_chain(const spmla_v4_layer *l)
{
	const uint32_t four = l->ratio == SPMLA_COMPRESS_OVERLAP;
	const chain c = {four ? SPMLA_GROUP_C4A : SPMLA_GROUP_C128A,
			 four ? SPMLA_GROUP_STATE_C4A : SPMLA_GROUP_STATE_C128A,
			 four ? SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A
			      : SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A,
			 l->compress_kv,
			 l->compress_score,
			 l->compress_kv_stride_elems,
			 l->compress_score_stride_elems,
			 l->ape,
			 l->norm_weight,
			 &l->state,
			 &l->compressed};

	return c;
}

static chain
index_chain(const spmla_ctx *ctx, const spmla_v4_layer *l)
{
	const chain c = {SPMLA_GROUP_INDEX,
			 SPMLA_GROUP_STATE_INDEX,
			 ctx->buf[SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX]
				 ? SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX
				 : SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A,
			 l->index_kv,
			 l->index_score,
			 l->index_kv_stride_elems,
			 l->index_score_stride_elems,
			 l->index_ape,
			 l->index_norm_weight,
			 &l->index_state,
			 &l->index};

	return c;
}

static spmla_status
check_chain(spmla_ctx *ctx, const chain *c, const spmla_i_pool_fields *cache,
	    const spmla_i_pool_fields *state, uint32_t layout,
	    uint32_t state_layout)
{
	const spmla_status s =
		spmla_i_check_pool(ctx, cache, c->cache, c->group, layout);

	return s == SPMLA_OK ? spmla_i_check_pool(ctx, state, c->state,
						  c->state_group, state_layout)
			     : s;
}

spmla_status
spmla_v4_compress(spmla_ctx *ctx, const spmla_v4_layer *layer,
		  const spmla_shape *shape, spmla_stream stream)
{
	static const spmla_i_pool_fields fields[4] = {
		SPMLA_I_POOL_FIELDS("v4_layer.compressed"),
		SPMLA_I_POOL_FIELDS("v4_layer.state"),
		SPMLA_I_POOL_FIELDS("v4_layer.index"),
		SPMLA_I_POOL_FIELDS("v4_layer.index_state")};
	const spmla_config *config;
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);
	chain keys, index;
	uint32_t four;

	if (s != SPMLA_OK || layer->ratio == 1)
		return s;
	config = &ctx->plan.config;
	four = layer->ratio == SPMLA_COMPRESS_OVERLAP;
	keys = key_chain(layer);
	index = index_chain(ctx, layer);
	s = check_chain(ctx, &keys, &fields[0], &fields[1], config->kv_layout,
			four ? SPMLA_LAYOUT_STATE_1024
			     : SPMLA_LAYOUT_STATE_512);
	if (s == SPMLA_OK && four && layer->index_kv)
		s = check_chain(ctx, &index, &fields[2], &fields[3],
				config->index_layout, SPMLA_LAYOUT_STATE_256);
	if (s == SPMLA_OK)
		s = spmla_i_v4_check_rope(ctx, layer);
	if (s == SPMLA_OK)
		s = run_chain(ctx, layer, &keys, shape, stream);
	if (s == SPMLA_OK && four && layer->index_kv)
		s = run_chain(ctx, layer, &index, shape, stream);
	return s;
}
