/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_cache_view: a planned pool of one layer, as the cache that layers and
 * operations take.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"

/* A planned pool. */
typedef struct pool {
	uint32_t layout; /* 0: no such buffer */
	uint32_t group;
	uint32_t layers;
	const char *field; /* of the config, with the layers */
} pool;

static pool
pool_of(const spmla_config *c, spmla_buf buf)
{
	const uint32_t v4 = spmla_i_is_v4(c);
	static const char *const fields[3] = {"config.cache_layers",
					      "config.c4a_layers",
					      "config.c128a_layers"};
	const struct {
		spmla_buf buf;
		pool pool;
	} pools[] = {
		{SPMLA_BUF_KV_CACHE,
		 {c->kv_layout, SPMLA_GROUP_MAIN, c->cache_layers, fields[0]}},
		{SPMLA_BUF_INDEX_CACHE,
		 {c->index_layout, v4 ? SPMLA_GROUP_INDEX : SPMLA_GROUP_MAIN,
		  v4 ? c->c4a_layers : c->cache_layers, fields[v4]}},
		{SPMLA_BUF_C4A_CACHE,
		 {c->kv_layout, SPMLA_GROUP_C4A, c->c4a_layers, fields[1]}},
		{SPMLA_BUF_C128A_CACHE,
		 {c->kv_layout, SPMLA_GROUP_C128A, c->c128a_layers, fields[2]}},
		{SPMLA_BUF_STATE_C4A_CACHE,
		 {SPMLA_LAYOUT_STATE_1024, SPMLA_GROUP_STATE_C4A, c->c4a_layers,
		  fields[1]}},
		{SPMLA_BUF_STATE_INDEX_CACHE,
		 {SPMLA_LAYOUT_STATE_256, SPMLA_GROUP_STATE_INDEX,
		  c->c4a_layers, fields[1]}},
		{SPMLA_BUF_STATE_C128A_CACHE,
		 {SPMLA_LAYOUT_STATE_512, SPMLA_GROUP_STATE_C128A,
		  c->c128a_layers, fields[2]}},
	};
	static const pool none = {0, 0, 0, NULL};
	uint32_t i;

	for (i = 0; i < (v4 ? SPMLA_I_COUNT(pools) : 2); i++)
		if (pools[i].buf == buf)
			return pools[i].pool;
	return none;
}

spmla_status
spmla_cache_view(spmla_ctx *ctx, spmla_buf buf, uint32_t layer,
		 spmla_cache *cache)
{
	const spmla_config *c;
	const spmla_table_config *g;
	uint64_t stride;
	pool p;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!cache)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "cache", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	c = &ctx->plan.config;
	p = pool_of(c, buf);
	if (p.layout == 0)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE,
				    "buf (a *_CACHE of the model)",
				    (uint64_t)buf, SPMLA_WANT_NOTHING, 0);
	if (!ctx->buf[buf])
		return spmla_i_fail(&ctx->diag, SPMLA_E_UNSUPPORTED, p.field, 0,
				    SPMLA_WANT_AT_LEAST, 1);
	if (layer >= p.layers)
		return spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, "layer", layer,
				    SPMLA_WANT_AT_MOST, p.layers - 1);
	g = &c->groups[p.group];
	cache->struct_bytes = (uint32_t)sizeof *cache;
	cache->layout = p.layout;
	cache->table_group = p.group;
	cache->entries_per_page =
		g->page_tokens / spmla_i_group_ratio(c, p.group);
	stride = spmla_layout_page_bytes(p.layout, cache->entries_per_page);
	cache->pages = g->pool_pages;
	cache->encoding = 0;
	cache->page_stride_bytes = stride;
	cache->base = (uint8_t *)ctx->buf[buf] + layer * stride * g->pool_pages;
	return SPMLA_OK;
}
