/* SPDX-License-Identifier: Apache-2.0
 *
 * Presets, and the one place where a config is checked and its defaults are
 * filled in. Limits stand beside the fields in spmla_plan.h.
 */
#include "spmla/internal/config.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/bf16.h"
#include "spmla/internal/checked_math.h"

enum {
	MAX_HEADS = 256,
	MAX_INDEX_HEADS = 128,
	MAX_TOPK = 65536,
	MAX_ROWS = 65536,
	MAX_CONTEXT = 1 << 24,
	MAX_CACHE_LAYERS = 1024,
	MAX_PAGE_TOKENS = 4096,
	MAX_RING_SLOTS = 1024,
	MAX_TABLE_STORES = 65536,
	MAX_UPDATE_PAGES = 1 << 24,
	MAX_TOKENS = 65536,
	MAX_GRAPH_NODES = 1 << 20,
	MAX_QUEUE = 65536
};

spmla_status
spmla_config_preset(spmla_config *config, spmla_model model)
{
	if (!config)
		return SPMLA_E_NULL;
	if (model != SPMLA_MODEL_V32)
		return SPMLA_E_RANGE;
	memset(config, 0, sizeof *config);
	config->struct_bytes = (uint32_t)sizeof *config;
	config->model = (uint32_t)model;
	config->heads = 128;
	config->index_heads = 64;
	config->topk = 2048;
	config->kv_layout = SPMLA_LAYOUT_FP8_DS_MLA;
	config->kv_scale_mode = SPMLA_SCALE_POW2;
	config->softmax_scale = 0.07216878364870322f; /* 192^-0.5 */
	config->groups[SPMLA_GROUP_MAIN].source = SPMLA_TABLE_RING;
	config->groups[SPMLA_GROUP_MAIN].page_tokens = 64;
	return SPMLA_OK;
}

static void
set_default(uint32_t *field, uint32_t value)
{
	if (*field == 0)
		*field = value;
}

static uint32_t
cap_u32(uint64_t x, uint32_t cap)
{
	return x < cap ? (uint32_t)x : cap;
}

/* Fields that stand alone. */
static spmla_status
check_fields(const spmla_config *c, spmla_diag *diag)
{
	const uint32_t flags =
		SPMLA_CONFIG_BATCH_INVARIANT | SPMLA_CONFIG_APART;
	const spmla_i_check checks[] = {
		{"config.model", c->model, SPMLA_WANT_EQUAL, SPMLA_MODEL_V32},
		{"config.flags", c->flags, SPMLA_WANT_AT_MOST, flags},
		{"config.heads", c->heads, SPMLA_WANT_AT_LEAST, 1},
		{"config.heads", c->heads, SPMLA_WANT_AT_MOST, MAX_HEADS},
		{"config.index_heads", c->index_heads, SPMLA_WANT_AT_LEAST, 1},
		{"config.index_heads", c->index_heads, SPMLA_WANT_AT_MOST,
		 MAX_INDEX_HEADS},
		{"config.topk", c->topk, SPMLA_WANT_AT_LEAST, 1},
		{"config.topk", c->topk, SPMLA_WANT_AT_MOST, MAX_TOPK},
		{"config.kv_layout", c->kv_layout, SPMLA_WANT_AT_MOST,
		 SPMLA_LAYOUT_MLA_BF16},
		{"config.kv_scale_mode", c->kv_scale_mode, SPMLA_WANT_AT_MOST,
		 SPMLA_SCALE_RAW},
		{"config.max_rows", c->max_rows, SPMLA_WANT_AT_LEAST, 1},
		{"config.max_rows", c->max_rows, SPMLA_WANT_AT_MOST, MAX_ROWS},
		{"config.max_context_tokens", c->max_context_tokens,
		 SPMLA_WANT_AT_LEAST, 1},
		{"config.max_context_tokens", c->max_context_tokens,
		 SPMLA_WANT_AT_MOST, MAX_CONTEXT},
		{"config.cache_layers", c->cache_layers, SPMLA_WANT_AT_MOST,
		 MAX_CACHE_LAYERS},
		{"config.bucket_count", c->bucket_count, SPMLA_WANT_AT_LEAST,
		 1},
		{"config.bucket_count", c->bucket_count, SPMLA_WANT_AT_MOST,
		 SPMLA_MAX_BUCKETS},
		{"config.ring_slots", c->ring_slots, SPMLA_WANT_AT_MOST,
		 MAX_RING_SLOTS},
		{"config.max_table_stores", c->max_table_stores,
		 SPMLA_WANT_AT_MOST, MAX_TABLE_STORES},
		{"config.max_update_pages", c->max_update_pages,
		 SPMLA_WANT_AT_MOST, MAX_UPDATE_PAGES},
		{"config.max_graphs", c->max_graphs, SPMLA_WANT_AT_MOST,
		 SPMLA_I_MAX_GRAPHS},
		{"config.max_graph_nodes", c->max_graph_nodes,
		 SPMLA_WANT_AT_MOST, MAX_GRAPH_NODES},
		{"config.queue_entries", c->queue_entries, SPMLA_WANT_AT_MOST,
		 MAX_QUEUE},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_buckets(const spmla_config *c, spmla_diag *diag)
{
	uint32_t i;

	for (i = 0; i < c->bucket_count; i++) {
		const spmla_shape *b = &c->buckets[i];
		const spmla_i_check checks[] = {
			{"config.buckets.tokens", b->tokens,
			 SPMLA_WANT_AT_LEAST, 1},
			{"config.buckets.tokens", b->tokens, SPMLA_WANT_AT_MOST,
			 MAX_TOKENS},
			{"config.buckets.requests", b->requests,
			 SPMLA_WANT_AT_LEAST, 1},
			{"config.buckets.requests", b->requests,
			 SPMLA_WANT_AT_MOST, c->max_rows},
			{"config.buckets.next_n", b->next_n,
			 SPMLA_WANT_AT_LEAST, 1},
			{"config.buckets.next_n", b->next_n, SPMLA_WANT_AT_MOST,
			 b->tokens},
		};
		const spmla_status s =
			spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

		if (s != SPMLA_OK) {
			if (diag)
				diag->index = i;
			return s;
		}
	}
	return SPMLA_OK;
}

static spmla_status
check_group(const spmla_table_config *g, spmla_diag *diag)
{
	const spmla_i_check checks[] = {
		{"config.groups.source", g->source, SPMLA_WANT_AT_MOST,
		 SPMLA_TABLE_DEVICE},
		{"config.groups.page_tokens", g->page_tokens,
		 SPMLA_WANT_AT_LEAST, 1},
		{"config.groups.page_tokens", g->page_tokens,
		 SPMLA_WANT_AT_MOST, MAX_PAGE_TOKENS},
		{"config.groups.pool_pages", g->pool_pages, SPMLA_WANT_AT_LEAST,
		 1},
		{"config.groups.pool_pages", g->pool_pages, SPMLA_WANT_AT_MOST,
		 g->page_tokens ? INT32_MAX / g->page_tokens : 1},
		{"config.groups.reserved", g->reserved, SPMLA_WANT_EQUAL, 0},
	};
	const spmla_status s =
		spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s != SPMLA_OK && diag)
		diag->index = SPMLA_GROUP_MAIN;
	return s;
}

static void
fill_defaults(spmla_config *c)
{
	spmla_table_config *g = &c->groups[SPMLA_GROUP_MAIN];
	uint32_t requests = 0, columns, i;

	set_default(&c->kv_layout, SPMLA_LAYOUT_FP8_DS_MLA);
	set_default(&c->kv_scale_mode, SPMLA_SCALE_POW2);
	set_default(&g->source, SPMLA_TABLE_RING);
	for (i = 0; i < c->bucket_count; i++) {
		spmla_shape *b = &c->buckets[i];

		if (b->requests > requests)
			requests = b->requests;
		set_default(
			&b->max_live_context,
			cap_u32((uint64_t)b->requests * c->max_context_tokens,
				UINT32_MAX));
	}
	/* Entries behind bucket_count do not count: the plan must not depend
	 * on what is left in them. */
	memset(&c->buckets[i], 0,
	       (SPMLA_MAX_BUCKETS - i) * sizeof c->buckets[0]);
	memset(&c->groups[1], 0,
	       (SPMLA_MAX_TABLE_GROUPS - 1) * sizeof c->groups[0]);
	columns = (uint32_t)spmla_i_cdiv(c->max_context_tokens, g->page_tokens);
	set_default(&c->ring_slots, 4);
	set_default(&c->max_table_stores,
		    cap_u32(2 * (uint64_t)requests, MAX_TABLE_STORES));
	set_default(&c->max_update_pages,
		    4 * requests > columns ? 4 * requests : columns);
	set_default(&c->max_graphs, c->bucket_count > 4 ? c->bucket_count : 4);
	set_default(&c->max_graph_nodes, 512 * c->max_graphs);
	set_default(&c->queue_entries, 64);
}

spmla_status
spmla_i_config_resolve(spmla_config *c, const spmla_config *in,
		       spmla_diag *diag)
{
	spmla_status s;
	uint32_t bytes;

	memcpy(&bytes, in, sizeof bytes);
	if (bytes < SPMLA_CONFIG_MIN_BYTES)
		return spmla_i_fail(
			diag, SPMLA_E_STRUCT_SIZE, "config.struct_bytes", bytes,
			SPMLA_WANT_AT_LEAST, SPMLA_CONFIG_MIN_BYTES);
	if (bytes > sizeof *c)
		return spmla_i_fail(diag, SPMLA_E_STRUCT_SIZE,
				    "config.struct_bytes", bytes,
				    SPMLA_WANT_AT_MOST, sizeof *c);
	if (bytes % 4 != 0)
		return spmla_i_fail(diag, SPMLA_E_STRUCT_SIZE,
				    "config.struct_bytes", bytes,
				    SPMLA_WANT_MULTIPLE_OF, 4);
	memset(c, 0, sizeof *c);
	memcpy(c, in, bytes);
	c->struct_bytes = (uint32_t)sizeof *c;
	if (spmla_i_f32_bits(c->softmax_scale) == 0)
		c->softmax_scale = 0.07216878364870322f;
	set_default(&c->groups[SPMLA_GROUP_MAIN].page_tokens, 64);
	s = check_fields(c, diag);
	if (s == SPMLA_OK && !spmla_i_finite_positive(c->softmax_scale))
		s = spmla_i_fail(diag, SPMLA_E_RANGE, "config.softmax_scale",
				 spmla_i_f32_bits(c->softmax_scale),
				 SPMLA_WANT_FINITE, 0);
	if (s == SPMLA_OK)
		s = check_buckets(c, diag);
	if (s == SPMLA_OK)
		s = check_group(&c->groups[SPMLA_GROUP_MAIN], diag);
	if (s != SPMLA_OK)
		return s;
	fill_defaults(c);
	return SPMLA_OK;
}

spmla_status
spmla_i_device_check(const spmla_device *device, spmla_diag *diag)
{
	static const char *const names[] = {
#define SPMLA_OP(stem) "device.ops: " #stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
	};
	spmla_status s;
	uint32_t bytes, op;

	/* It may be shorter than it should: nothing else is read before. */
	memcpy(&bytes, device, sizeof bytes);
	s = spmla_i_check_size(diag, "device.struct_bytes", bytes,
			       sizeof *device);
	if (s != SPMLA_OK)
		return s;
	const spmla_i_check checks[] = {
		{"device.kind", device->kind, SPMLA_WANT_EQUAL,
		 SPMLA_BACKEND_CPU},
		{"device.arch", device->arch, SPMLA_WANT_EQUAL, 0},
		{"device.sm_count", device->sm_count, SPMLA_WANT_AT_LEAST, 1},
		{"device.sm_count", device->sm_count, SPMLA_WANT_AT_MOST, 4096},
		{"device.subgroup_width", device->subgroup_width,
		 SPMLA_WANT_AT_LEAST, 1},
		{"device.subgroup_width", device->subgroup_width,
		 SPMLA_WANT_AT_MOST, 64},
		{"device.reserved", device->reserved, SPMLA_WANT_EQUAL, 0},
	};

	s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	if (s != SPMLA_OK)
		return s;
	/* What a decode step of V3.2 is made of; the others are called alone. */
	for (op = 0; op <= SPMLA_OP_sparse_decode; op++)
		if (!(device->ops & SPMLA_I_OP_BIT(op)))
			return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
					    names[op], 0, SPMLA_WANT_AT_LEAST,
					    1);
	return SPMLA_OK;
}
