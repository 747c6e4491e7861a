/* SPDX-License-Identifier: Apache-2.0
 *
 * Presets, and the one place that checks a config and fills in its defaults.
 * spmla_plan.h states the limits beside the fields.
 */
#include "spmla/internal/config.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/bf16.h"
#include "spmla/internal/checked_math.h"
#include "spmla/ops/inv_rope_quant.h"

enum {
	MAX_HEADS = 256,
	MAX_INDEX_HEADS = 128,
	MAX_TOPK = 65536,
	MAX_ROWS = 65536,
	MAX_CONTEXT = 1 << 24,
	MAX_CACHE_LAYERS = 1024,
	MAX_RING_SLOTS = 1024,
	MAX_TABLE_STORES = 65536,
	MAX_UPDATE_PAGES = 1 << 24,
	MAX_TOKENS = 65536,
	MAX_GRAPH_NODES = 1 << 20,
	MAX_QUEUE = 65536,
	MAX_WORKSPACE = INT32_MAX,
	MAX_CPU_WORKERS = 1024,
	MAX_WINDOW = 4096,
	MAX_RANKS = 65536,
	MAX_INTERLEAVE = 4096
};

/* V4: 512^-0.5. V3.2: 192^-0.5 * m * m; YaRN scales its q and k by m = 0.1 ln
 * 40 + 1 = 1.368888. */
#define SCALE_V4  0.04419417382415922f
#define SCALE_V32 0.1352337788608801f

/* The fields of all V4 models. */
static void
preset_v4(spmla_config *c)
{
	c->kv_layout = SPMLA_LAYOUT_V4_FP8;
	c->index_layout = SPMLA_LAYOUT_INDEX_FP8;
	c->softmax_scale = SCALE_V4;
	c->window_tokens = 128;
	c->output_quant = SPMLA_O_FP8;
	c->groups[SPMLA_GROUP_SWA].ring_columns = SPMLA_RING_LEAST;
	c->groups[SPMLA_GROUP_INDEX].source = SPMLA_TABLE_OF(SPMLA_GROUP_C4A);
	c->groups[SPMLA_GROUP_STATE_C4A].ring_columns = SPMLA_RING_LEAST;
	c->groups[SPMLA_GROUP_STATE_C128A].ring_columns = SPMLA_RING_LEAST;
	c->groups[SPMLA_GROUP_STATE_INDEX].source =
		SPMLA_TABLE_OF(SPMLA_GROUP_STATE_C4A);
}

spmla_status
spmla_config_preset(spmla_config *config, spmla_model model)
{
	if (!config)
		return SPMLA_E_NULL;
	if (model < SPMLA_MODEL_V32 || model > SPMLA_MODEL_V4_PRO)
		return SPMLA_E_RANGE;
	memset(config, 0, sizeof *config);
	config->struct_bytes = (uint32_t)sizeof *config;
	config->model = (uint32_t)model;
	config->heads = model == SPMLA_MODEL_V4_FLASH ? 64 : 128;
	config->index_heads = 64;
	config->kv_scale_mode = SPMLA_SCALE_POW2;
	if (model == SPMLA_MODEL_V32) {
		config->topk = 2048;
		config->kv_layout = SPMLA_LAYOUT_FP8_DS_MLA;
		config->softmax_scale = SCALE_V32;
		config->groups[SPMLA_GROUP_MAIN].source = SPMLA_TABLE_RING;
		config->groups[SPMLA_GROUP_MAIN].page_tokens = 64;
	} else {
		config->topk = model == SPMLA_MODEL_V4_PRO ? 1024 : 512;
		preset_v4(config);
	}
	return SPMLA_OK;
}

spmla_status
spmla_config_operations(spmla_config *config)
{
	const spmla_status s = spmla_config_preset(config, SPMLA_MODEL_V32);

	if (s != SPMLA_OK)
		return s;
	config->heads = MAX_HEADS;
	config->index_heads = MAX_INDEX_HEADS;
	config->topk = 1;
	config->max_rows = 1;
	config->max_context_tokens = 1;
	config->bucket_count = 1;
	config->buckets[0] = (spmla_shape){1, 1, 1, 0};
	config->groups[SPMLA_GROUP_MAIN].pool_pages = 1;
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

/* Fields that depend on no other. */
static spmla_status
check_fields(const spmla_config *c, spmla_diag *diag)
{
	const uint32_t flags = SPMLA_CONFIG_BATCH_INVARIANT |
			       SPMLA_CONFIG_APART | SPMLA_CONFIG_RAGGED |
			       SPMLA_CONFIG_ALLOW_UNPROVEN;
	const spmla_i_check checks[] = {
		{"config.model", c->model,
		 SPMLA_I_FROM_TO(SPMLA_MODEL_V32, SPMLA_MODEL_V4_PRO)},
		{"config.flags", c->flags, SPMLA_WANT_AT_MOST, flags},
		{"config.heads", c->heads, SPMLA_WANT_AT_LEAST, 1},
		{"config.heads", c->heads, SPMLA_WANT_AT_MOST, MAX_HEADS},
		{"config.index_heads", c->index_heads, SPMLA_WANT_AT_LEAST, 1},
		{"config.index_heads", c->index_heads, SPMLA_WANT_AT_MOST,
		 MAX_INDEX_HEADS},
		{"config.topk", c->topk, SPMLA_WANT_AT_LEAST, 1},
		{"config.topk", c->topk, SPMLA_WANT_AT_MOST, MAX_TOPK},
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
		{"config.max_prefill_tokens", c->max_prefill_tokens,
		 SPMLA_WANT_AT_MOST, MAX_TOKENS},
		{"config.logits_budget_bytes", c->logits_budget_bytes,
		 SPMLA_WANT_AT_MOST, UINT64_C(1) << 40},
		{"config.prefill_workspace_tokens", c->prefill_workspace_tokens,
		 SPMLA_WANT_AT_MOST, MAX_WORKSPACE},
		{"config.cpu_workers", c->cpu_workers, SPMLA_WANT_AT_MOST,
		 MAX_CPU_WORKERS},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* Fields that depend on the model. */
static spmla_status
resolve_model(spmla_config *c, spmla_diag *diag)
{
	const uint32_t v4 = spmla_i_is_v4(c);

	if (spmla_i_f32_bits(c->softmax_scale) == 0)
		c->softmax_scale = v4 ? SCALE_V4 : SCALE_V32;
	set_default(&c->kv_layout,
		    v4 ? SPMLA_LAYOUT_V4_FP8 : SPMLA_LAYOUT_FP8_DS_MLA);
	set_default(&c->kv_scale_mode, SPMLA_SCALE_POW2);
	set_default(&c->index_layout, SPMLA_LAYOUT_INDEX_FP8);
	set_default(&c->dcp_ranks, 1);
	set_default(&c->dcp_interleave, 1);
	if (v4)
		set_default(&c->window_tokens, 128);
	const spmla_i_check checks[] = {
		{"config.kv_layout", c->kv_layout,
		 SPMLA_I_FROM_TO(
			 v4 ? SPMLA_LAYOUT_V4_FP8 : SPMLA_LAYOUT_FP8_DS_MLA,
			 v4 ? SPMLA_LAYOUT_V4_FP8 : SPMLA_LAYOUT_MLA_BF16)},
		{"config.kv_scale_mode", c->kv_scale_mode,
		 SPMLA_I_FROM_TO(SPMLA_SCALE_POW2,
				 v4 ? SPMLA_SCALE_POW2 : SPMLA_SCALE_RAW)},
		{"config.window_tokens", c->window_tokens, SPMLA_WANT_AT_MOST,
		 v4 ? MAX_WINDOW : 0},
		{"config.index_layout", c->index_layout, SPMLA_WANT_ONE_OF,
		 1u << SPMLA_LAYOUT_INDEX_FP8 | 1u << SPMLA_LAYOUT_INDEX_MXFP4 |
			 (v4 ? 0u : 1u << SPMLA_LAYOUT_INDEX_FP8_TILED)},
		{"config.c4a_layers", c->c4a_layers, SPMLA_WANT_AT_MOST,
		 v4 ? MAX_CACHE_LAYERS : 0},
		{"config.c128a_layers", c->c128a_layers, SPMLA_WANT_AT_MOST,
		 v4 ? MAX_CACHE_LAYERS : 0},
		{"config.draft_tokens", c->draft_tokens, SPMLA_WANT_AT_MOST,
		 v4 ? MAX_TOKENS : 0},
		{"config.output_quant", c->output_quant,
		 SPMLA_I_FROM_TO(SPMLA_O_BF16,
				 v4 ? SPMLA_O_FP8_PACKED : SPMLA_O_BF16)},
		{"config.dcp_ranks", c->dcp_ranks, SPMLA_WANT_AT_MOST,
		 v4 || c->max_prefill_tokens ? 1 : MAX_RANKS},
		{"config.dcp_rank", c->dcp_rank, SPMLA_WANT_AT_MOST,
		 c->dcp_ranks - 1},
		{"config.dcp_interleave", c->dcp_interleave, SPMLA_WANT_AT_MOST,
		 MAX_INTERLEAVE},
		{"config.reserved", c->reserved, SPMLA_WANT_EQUAL, 0},
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

/* Prefill's own fields; the others do not depend on them. */
static spmla_status
resolve_prefill(spmla_config *c, spmla_diag *diag)
{
	uint64_t row_bytes;

	if (c->max_prefill_tokens == 0) {
		/* The plan must not depend on unused fields. */
		c->prefill_workspace_tokens = 0;
		c->logits_budget_bytes = 0;
		return SPMLA_OK;
	}
	set_default(&c->prefill_workspace_tokens, c->max_context_tokens);
	row_bytes = sizeof(float) *
		    spmla_i_piece_stride(c, c->prefill_workspace_tokens);
	if (c->logits_budget_bytes == 0)
		c->logits_budget_bytes = row_bytes > UINT64_C(64) << 20
						 ? row_bytes
						 : UINT64_C(64) << 20;
	if (c->logits_budget_bytes < row_bytes)
		return spmla_i_fail(
			diag, SPMLA_E_RANGE, "config.logits_budget_bytes",
			c->logits_budget_bytes, SPMLA_WANT_AT_LEAST, row_bytes);
	return SPMLA_OK;
}

/* The most pages that a record is likely to store in the tables that it
 * changes: for each table four pages per request, or one whole row. A prefill
 * may store all pages of the workspace. A ring table needs no more pages than
 * it holds. */
static uint32_t
default_update_pages(const spmla_config *c, uint32_t requests)
{
	uint64_t most = 0, columns = 0, prefill = 0;
	uint32_t i;

	for (i = 0; i < spmla_i_group_count(c); i++) {
		const spmla_table_config *g = &c->groups[i];
		const uint64_t row = spmla_i_group_columns(c, i);
		const uint64_t rows = row * requests;
		uint64_t pages = spmla_i_cdiv(c->prefill_workspace_tokens,
					      g->page_tokens) +
				 requests;

		if (i > 0 && g->source != SPMLA_TABLE_RING)
			continue;
		if (g->ring_columns && rows < pages)
			pages = rows;
		most += 4 * (uint64_t)requests;
		columns += row;
		prefill += c->max_prefill_tokens ? pages : 0;
	}
	if (columns > most)
		most = columns;
	if (prefill > most)
		most = prefill;
	return cap_u32(most, MAX_UPDATE_PAGES);
}

/* Two per request for each table that a record changes. */
static uint32_t
default_table_stores(const spmla_config *c, uint32_t requests)
{
	uint32_t tables = 1, i;

	for (i = 1; i < spmla_i_group_count(c); i++)
		tables += c->groups[i].source == SPMLA_TABLE_RING;
	return cap_u32(2 * (uint64_t)requests * tables, MAX_TABLE_STORES);
}

static void
fill_defaults(spmla_config *c)
{
	uint32_t requests = 0, i;

	for (i = 0; i < c->bucket_count; i++) {
		spmla_shape *b = &c->buckets[i];

		if (b->requests > requests)
			requests = b->requests;
		set_default(
			&b->max_live_context,
			cap_u32((uint64_t)b->requests * c->max_context_tokens,
				UINT32_MAX));
	}
	/* Entries behind bucket_count are unused: the plan must not depend on
	 * them. */
	memset(&c->buckets[i], 0,
	       (SPMLA_MAX_BUCKETS - i) * sizeof c->buckets[0]);
	set_default(&c->ring_slots, 4);
	set_default(&c->max_table_stores, default_table_stores(c, requests));
	set_default(&c->max_update_pages, default_update_pages(c, requests));
	set_default(&c->max_graphs, c->bucket_count > 4 ? c->bucket_count : 4);
	set_default(&c->max_graph_nodes,
		    (spmla_i_is_v4(c) ? 1024 : 512) * c->max_graphs);
	set_default(&c->queue_entries, 64);
	set_default(&c->cpu_workers, 1);
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
	s = check_fields(c, diag);
	if (s == SPMLA_OK)
		s = resolve_model(c, diag);
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(diag, "config.softmax_scale",
					   c->softmax_scale);
	if (s == SPMLA_OK)
		s = check_buckets(c, diag);
	if (s == SPMLA_OK)
		s = spmla_i_groups_resolve(c, diag);
	if (s == SPMLA_OK)
		s = resolve_prefill(c, diag);
	if (s != SPMLA_OK)
		return s;
	fill_defaults(c);
	return SPMLA_OK;
}
