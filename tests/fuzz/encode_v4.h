/* SPDX-License-Identifier: Apache-2.0
 *
 * V4 for fuzz_encode.c: a small config with a table of each kind, the buffers
 * that an engine may write, a layer of any ratio, and what its ops rely on.
 */
#ifndef TESTS_FUZZ_ENCODE_V4_H
#define TESTS_FUZZ_ENCODE_V4_H

#include "spmla/internal/config.h"
#include "spmla/v4.h"
#include "tests/fuzz/world.h"

enum { V4_TOKENS = 8 };

/* Windows of 6 in a ring, index keys with the table of C4A. 300 tokens have two
 * keys of 128. */
static inline void
v4_world_config(spmla_config *c)
{
	static const spmla_shape buckets[3] = {
		{2, 2, 1, 0}, {4, 2, 2, 400}, {8, 4, 4, 700}};
	static const uint32_t pages[SPMLA_V4_GROUPS] = {4, 8,   128, 0,
							4, 128, 0};
	uint32_t g;

	world_config(c);
	REQUIRE(spmla_config_preset(c, SPMLA_MODEL_V4_FLASH) == SPMLA_OK);
	c->flags = SPMLA_CONFIG_APART;
	c->heads = 2;
	c->index_heads = 3;
	c->topk = 5;
	c->max_rows = 5;
	c->max_context_tokens = 300;
	c->window_tokens = 6;
	c->cache_layers = c->c4a_layers = c->c128a_layers = 1;
	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		c->groups[g].page_tokens = pages[g];
		c->groups[g].pool_pages = pages[g] < 128 ? 12 : 3;
	}
	c->bucket_count = 3;
	memcpy(c->buckets, buckets, sizeof buckets);
	c->ring_slots = 2;
	c->max_table_stores = 8;
	c->max_update_pages = 40;
	c->max_graphs = 3;
	c->max_graph_nodes = 40;
	c->queue_entries = 15;
}

/* The first are the engine's to write; from V4_STEP_BUFS on a prologue derives
 * them. */
enum { V4_STEP_BUFS = 14 };

static const spmla_buf v4_bufs[] = {SPMLA_BUF_STEP_DEVICE,
				    SPMLA_BUF_ROW_LEN,
				    SPMLA_BUF_ADVANCE_BY,
				    SPMLA_BUF_TABLE_STAGING,
				    SPMLA_BUF_BLOCK_TABLE_MAIN,
				    SPMLA_BUF_TABLE_COLS_MAIN,
				    SPMLA_BUF_BLOCK_TABLE_C4A,
				    SPMLA_BUF_TABLE_COLS_C4A,
				    SPMLA_BUF_TABLE_STAGING_C4A,
				    SPMLA_BUF_BLOCK_TABLE_C128A,
				    SPMLA_BUF_TABLE_COLS_C128A,
				    SPMLA_BUF_TABLE_STAGING_C128A,
				    SPMLA_BUF_BLOCK_TABLE_STATE_C4A,
				    SPMLA_BUF_TABLE_COLS_STATE_C128A,
				    SPMLA_BUF_TOKEN_ROW,
				    SPMLA_BUF_POSITIONS,
				    SPMLA_BUF_CONTEXT_LENS,
				    SPMLA_BUF_SLOT_MAPPING,
				    SPMLA_BUF_LOGITS_ROW_STARTS,
				    SPMLA_BUF_TOPK_INDICES,
				    SPMLA_BUF_TOPK_LENS,
				    SPMLA_BUF_COMPRESSED_LENS,
				    SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A,
				    SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A,
				    SPMLA_BUF_SWA_INDICES,
				    SPMLA_BUF_SWA_LENS,
				    SPMLA_BUF_C128A_INDICES,
				    SPMLA_BUF_C128A_LENS,
				    SPMLA_BUF_KV_CACHE,
				    SPMLA_BUF_INDEX_CACHE,
				    SPMLA_BUF_C4A_CACHE,
				    SPMLA_BUF_STATE_C4A_CACHE,
				    SPMLA_BUF_STATE_INDEX_CACHE,
				    SPMLA_BUF_C128A_CACHE,
				    SPMLA_BUF_STATE_C128A_CACHE};

/* ---- A layer ----------------------------------------------------------- */

static inline void
v4_view(const world *w, spmla_buf buf, spmla_cache *cache)
{
	REQUIRE(spmla_cache_view(w->ctx, buf, 0, cache) == SPMLA_OK);
}

static inline void
v4_inputs(spmla_v4_layer *l)
{
	static float cos_sin[24 * 64], wide[V4_TOKENS * 1024], ape[128 * 512],
		norm[512], narrow[V4_TOKENS * 256], weights[V4_TOKENS * 3];
	static uint16_t kv[V4_TOKENS * 512], index_q[V4_TOKENS * 3 * 128],
		wo[128 * 1024];

	l->cos_sin = cos_sin;
	l->cos_sin_rows = 24; /* fewer than there are positions */
	l->norm_eps = 1e-6f;
	l->kv = kv;
	l->kv_stride_elems = 512;
	l->compress_kv = l->compress_score = wide;
	l->compress_kv_stride_elems = l->compress_score_stride_elems = 1024;
	l->ape = ape;
	l->norm_weight = norm;
	l->index_kv = l->index_score = narrow;
	l->index_kv_stride_elems = l->index_score_stride_elems = 256;
	l->index_ape = ape;
	l->index_norm_weight = norm;
	l->index_q = index_q;
	l->index_q_token_stride_elems = 3 * 128;
	l->index_q_head_stride_elems = 128;
	l->index_weights = weights;
	l->index_weights_stride_elems = 3;
	l->index_weights_dtype = SPMLA_DTYPE_F32;
	l->output_quant = SPMLA_O_BF16;
	l->output_groups = 1;
	l->output_columns = 128;
	l->wo = wo;
	l->wo_group_stride_elems = 128 * 1024;
	l->wo_row_stride_elems = 1024;
}

static inline const spmla_v4_layer *
v4_layer(const world *w, uint32_t ratio)
{
	static uint16_t q[V4_TOKENS * 2 * 512], out[V4_TOKENS * 2 * 512],
		z[V4_TOKENS * 128];
	static spmla_v4_layer l;

	memset(&l, 0, sizeof l);
	l.struct_bytes = (uint32_t)sizeof l;
	l.ratio = ratio;
	v4_inputs(&l);
	l.q = q;
	l.q_token_stride_elems = 2 * 512;
	l.q_head_stride_elems = 512;
	l.out = out;
	l.out_token_stride_elems = 2 * 512;
	l.out_head_stride_elems = 512;
	l.z = z;
	l.z_token_stride_elems = 128;
	l.z_group_stride_elems = 128;
	v4_view(w, SPMLA_BUF_KV_CACHE, &l.swa);
	v4_view(w, ratio == 128 ? SPMLA_BUF_C128A_CACHE : SPMLA_BUF_C4A_CACHE,
		&l.compressed);
	v4_view(w,
		ratio == 128 ? SPMLA_BUF_STATE_C128A_CACHE
			     : SPMLA_BUF_STATE_C4A_CACHE,
		&l.state);
	v4_view(w, SPMLA_BUF_INDEX_CACHE, &l.index);
	v4_view(w, SPMLA_BUF_STATE_INDEX_CACHE, &l.index_state);
	return &l;
}

/* ---- What the ops rely on ---------------------------------------------- */

static inline void
v4_check_row(const int32_t *row, int32_t len, uint32_t most, uint32_t slots)
{
	int32_t k;

	REQUIRE(len >= 0 && (uint32_t)len <= most);
	for (k = 0; k < len; k++)
		REQUIRE(row[k] >= -1 && row[k] < (int32_t)slots);
}

static inline void
v4_check_tokens(const world *w, const spmla_shape *shape)
{
	const int32_t *len = spmla_view(w->ctx, SPMLA_BUF_CONTEXT_LENS, NULL);
	const int32_t *keys =
		spmla_view(w->ctx, SPMLA_BUF_COMPRESSED_LENS, NULL);
	const int64_t *four =
		spmla_view(w->ctx, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A, NULL);
	const int64_t *most = spmla_view(
		w->ctx, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A, NULL);
	const int32_t *swa = spmla_view(w->ctx, SPMLA_BUF_SWA_INDICES, NULL);
	const int32_t *swa_len = spmla_view(w->ctx, SPMLA_BUF_SWA_LENS, NULL);
	const int32_t *all = spmla_view(w->ctx, SPMLA_BUF_C128A_INDICES, NULL);
	const int32_t *all_len = spmla_view(w->ctx, SPMLA_BUF_C128A_LENS, NULL);
	const spmla_config *c = &w->plan.config;
	const uint32_t width = spmla_i_c128a_width(c);
	uint32_t t;

	for (t = 0; t < shape->tokens; t++) {
		/* all of it or nothing */
		REQUIRE(keys[t] == len[t] / 4 || keys[t] == 0);
		REQUIRE(all_len[t] == (swa_len[t] ? len[t] / 128 : 0));
		REQUIRE(swa_len[t] == 0 || keys[t] == len[t] / 4);
		/* two keys of 4 in a page of 8, one of 128 in a page of 128 */
		REQUIRE(four[t] >= -1 &&
			four[t] < 2 * (int64_t)c->groups[1].pool_pages);
		REQUIRE(most[t] >= -1 &&
			most[t] < (int64_t)c->groups[2].pool_pages);
		v4_check_row(swa + t * c->window_tokens, swa_len[t],
			     c->window_tokens, 4 * c->groups[0].pool_pages);
		v4_check_row(all + t * width, all_len[t], 300 / 128,
			     c->groups[2].pool_pages);
	}
}

#endif
