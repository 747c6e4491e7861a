/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a model, from the options. V4's is made twice: the first plan
 * gives the columns of each table, from which the pages of each pool follow.
 */
#include "examples/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/device.h"

void
model_options_list(model_options *m, option *list)
{
	const option rows[MODEL_OPTION_COUNT] = {
		{"--backend", "cpu, cuda, hip or level_zero", &m->backend, NULL,
		 NULL, 0, 0},
		{"--model", "v32, v4-flash or v4-pro", &m->model, NULL, NULL, 0,
		 0},
		{"--tables",
		 "V4: preset, own (each group has one), linear (each has one, "
		 "no rings) or device (as preset, in the engine's memory)",
		 &m->tables, NULL, NULL, 0, 0},
		{"--index", "V4: index keys, fp8 or mxfp4", &m->index, NULL,
		 NULL, 0, 0},
		{"--layers", "layers", NULL, &m->layers, NULL, 1, 256},
		{"--heads", "query heads", NULL, &m->heads, NULL, 1, 256},
		{"--index-heads", "heads of the indexer", NULL, &m->index_heads,
		 NULL, 1, 128},
		{"--topk", "keys that a token attends to", NULL, &m->topk, NULL,
		 1, 65536},
		{"--max-requests", "requests at a time", NULL, &m->max_requests,
		 NULL, 1, 32768},
		{"--max-context", "longest prompt and answer together", NULL,
		 &m->max_context, NULL, 1, 1u << 24},
		{"--next-n", "query tokens of a request in a step", NULL,
		 &m->next_n, NULL, 1, MODEL_MAX_NEXT_N},
		{"--page-tokens",
		 "positions of a page; V4: with compressed keys", NULL,
		 &m->page_tokens, NULL, 1, 4096},
		{"--pool-pages", "pages of the pool, 0 = half of the most",
		 NULL, &m->pool_pages, NULL, 0, INT32_MAX},
		{"--prefill",
		 "query tokens of a step of prompts; 0 = none: V3.2 only "
		 "inserts their keys, V4 reads them as it decodes",
		 NULL, &m->prefill, NULL, 0, 65536},
		{"--prompts",
		 "V4: captured (in a bucket) or eager (in steps of prefill)",
		 &m->prompts, NULL, NULL, 0, 0},
		{"--start",
		 "V4: tokens that are in the caches when a request joins; "
		 "the same few pages of keys, repeated",
		 NULL, &m->start, NULL, 0, 1u << 24},
		{"--unproven",
		 "HIP and Level Zero: allow kernels that no GPU ran", NULL,
		 &m->unproven, NULL, 0, 0},
	};

	memcpy(list, rows, sizeof rows);
}

static uint32_t
least_of(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Room for steps of prompts, with logits for some of their tokens at a time,
 * and a bucket for the end of a prompt beside decode. */
static void
add_prefill(const model_options *m, spmla_config *config)
{
	const uint32_t last = config->bucket_count - 1;
	spmla_shape *mixed = &config->buckets[config->bucket_count++];

	*mixed = config->buckets[last];
	mixed->tokens += MODEL_TAIL_TOKENS;
	mixed->next_n = MODEL_TAIL_TOKENS;
	config->max_prefill_tokens = m->prefill;
	config->logits_budget_bytes = (uint64_t)m->max_context * 4 * 32;
}

/* Buckets of max_requests, half of it, .. down to 1: a step that holds few
 * requests replays a small graph. */
static void
set_buckets(const model_options *m, spmla_config *config)
{
	/* No more context can be alive than the pool holds, unless requests
	 * share pages. */
	const uint64_t pool = config->model == SPMLA_MODEL_V32
				      ? (uint64_t)m->pool_pages * m->page_tokens
				      : UINT32_MAX;
	uint32_t requests = m->max_requests, count = 1, i;

	/* One is left for mixed steps. */
	while (requests > 1 && count < SPMLA_MAX_BUCKETS - 1) {
		requests = (requests + 1) / 2;
		count++;
	}
	config->bucket_count = count;
	requests = m->max_requests;
	for (i = count; i-- > 0; requests = (requests + 1) / 2) {
		spmla_shape *shape = &config->buckets[i];

		shape->tokens = requests * m->next_n;
		shape->requests = requests;
		shape->next_n = m->next_n;
		shape->max_live_context =
			least_of((uint64_t)requests * m->max_context,
				 least_of(pool, UINT32_MAX));
	}
}

/* The fields of all models. */
static void
set_config(const model_options *m, spmla_config *config)
{
	/* A step must give the bits that the same operations give alone. */
	config->flags = SPMLA_CONFIG_BATCH_INVARIANT;
	if (m->unproven)
		config->flags |= SPMLA_CONFIG_ALLOW_UNPROVEN;
	config->heads = m->heads;
	config->index_heads = m->index_heads;
	config->topk = m->topk;
	config->max_rows = m->max_requests;
	config->max_context_tokens = m->max_context;
	config->cache_layers = m->layers;
	set_buckets(m, config);
}

static void
set_v32(const model_options *m, spmla_config *config)
{
	config->groups[SPMLA_GROUP_MAIN].page_tokens = m->page_tokens;
	config->groups[SPMLA_GROUP_MAIN].pool_pages = m->pool_pages;
	if (m->prefill)
		add_prefill(m, config);
	/* A page that each request may grow by, and room for a join of modest
	 * length; longer ones go through spmla_table_write. */
	config->max_update_pages =
		m->max_requests * (3 + (m->next_n - 1) / m->page_tokens + 1);
	/* Prompts name all their pages in their first record. */
	if (m->prefill)
		config->max_update_pages = 0;
	/* A prologue and eight operations a layer at most. */
	config->max_graph_nodes = config->bucket_count * (8 * m->layers + 8);
}

uint32_t
model_v4_ratio(uint32_t layer)
{
	if (layer < 2)
		return 1;
	return layer % 2 == 0 ? 4 : 128;
}

static void
set_group(const model_options *m, uint32_t group, spmla_table_config *g)
{
	const int preset = strcmp(m->tables, "preset") == 0;

	if (group == SPMLA_GROUP_C4A || group == SPMLA_GROUP_C128A ||
	    group == SPMLA_GROUP_INDEX)
		g->page_tokens = m->page_tokens;
	g->pool_pages = 1;
	if (strcmp(m->tables, "device") == 0 && g->source == 0)
		g->source = SPMLA_TABLE_DEVICE;
	if (preset || strcmp(m->tables, "device") == 0)
		return;
	g->source = SPMLA_TABLE_RING;
	if (group == SPMLA_GROUP_STATE_INDEX)
		g->ring_columns = SPMLA_RING_LEAST;
	if (strcmp(m->tables, "linear") == 0)
		g->ring_columns = 0;
}

/* Tables, and a bucket for prompts beside what is decoded. */
static void
set_v4(const model_options *m, spmla_config *config)
{
	const uint32_t last = config->bucket_count - 1;
	spmla_shape mixed;
	uint32_t i;

	for (i = 0; i < m->layers; i++) {
		config->c4a_layers += model_v4_ratio(i) == 4;
		config->c128a_layers += model_v4_ratio(i) == 128;
	}
	if (strcmp(m->index, "mxfp4") == 0)
		config->index_layout = SPMLA_LAYOUT_INDEX_MXFP4;
	for (i = 0; i < SPMLA_V4_GROUPS; i++)
		set_group(m, i, &config->groups[i]);
	mixed = config->buckets[last];
	mixed.tokens += m->prefill;
	if (m->prefill > mixed.next_n)
		mixed.next_n = m->prefill;
	if (m->prefill && strcmp(m->prompts, "captured") == 0) {
		config->buckets[config->bucket_count++] = mixed;
	} else if (m->prefill) {
		config->max_prefill_tokens = mixed.tokens;
		config->prefill_workspace_tokens =
			least_of(mixed.max_live_context, INT32_MAX);
		/* Logits of 8 tokens, rows rounded up to 1 KiB. */
		config->logits_budget_bytes =
			8 * ((uint64_t)m->max_context + 1024);
	}
	/* A prologue and thirteen operations a layer at most. */
	config->max_graph_nodes = config->bucket_count * (13 * m->layers + 8);
}

/* The pages that a step may bring for a table: pages that requests grow by, the
 * end of one prompt, and a page or two in between. */
static uint32_t
update_pages(const model_options *m, uint32_t page_tokens)
{
	return m->max_requests * ((m->next_n - 1) / page_tokens + 2) +
	       m->prefill / page_tokens;
}

/* Columns of a row that are given at the join. */
static uint32_t
given_pages(const model_options *m, const spmla_table_config *g)
{
	return g->ring_columns ? 0 : m->start / g->page_tokens;
}

/* Pools for half of what all requests could fill, and at least for one request,
 * or it would wait for ever; for ring tables, pools for all. */
static void
size_v4(const model_options *m, spmla_config *config, const spmla_plan *first)
{
	uint32_t i;

	config->max_update_pages = 0;
	for (i = 0; i < SPMLA_V4_GROUPS; i++) {
		const spmla_table_config *g = &first->config.groups[i];
		const uint64_t columns =
			first->group_columns[i] - given_pages(m, g);
		const uint64_t most = columns * m->max_requests;
		uint64_t pages = most / 2 > columns ? most / 2 : columns;

		if (first->group_table[i] != i)
			continue;
		if (g->ring_columns)
			pages = most;
		else if (m->pool_pages)
			pages = m->pool_pages;
		pages += m->start ? MODEL_GIVEN_PAGES : 0;
		config->groups[i].pool_pages =
			least_of(pages, INT32_MAX / g->page_tokens);
		config->max_update_pages += update_pages(m, g->page_tokens);
	}
}

/* Whether a value is one of a list that ends with NULL. */
static int
known_name(const char *program, const char *name, const char *value,
	   const char *const *list)
{
	const char *const *at;

	for (at = list; *at; at++)
		if (strcmp(value, *at) == 0)
			return 1;
	fprintf(stderr, "%s: %s: \"%s\" is unknown; there are", program, name,
		value);
	for (at = list; *at; at++)
		fprintf(stderr, " %s%s", *at, at[1] ? "," : "\n");
	return 0;
}

static int
known_names(const char *program, const model_options *m)
{
	static const char *const models[] = {"v32", "v4-flash", "v4-pro", NULL};
	static const char *const tables[] = {"preset", "own", "linear",
					     "device", NULL};
	static const char *const index[] = {"fp8", "mxfp4", NULL};
	static const char *const prompts[] = {"captured", "eager", NULL};

	return known_name(program, "--model", m->model, models) &&
	       known_name(program, "--tables", m->tables, tables) &&
	       known_name(program, "--index", m->index, index) &&
	       known_name(program, "--prompts", m->prompts, prompts);
}

static spmla_model
model_of(const model_options *m)
{
	if (strcmp(m->model, "v32") == 0)
		return SPMLA_MODEL_V32;
	return strcmp(m->model, "v4-pro") == 0 ? SPMLA_MODEL_V4_PRO
					       : SPMLA_MODEL_V4_FLASH;
}

/* A request of any length must fit, or it would wait for ever. */
static int
size_pool(const char *program, model_options *m)
{
	const uint32_t columns = (m->max_context - 1) / m->page_tokens + 1;
	const uint64_t most = (uint64_t)columns * m->max_requests;
	const uint64_t half = most / 2 > columns ? most / 2 : columns;

	if (m->pool_pages == 0 && model_of(m) == SPMLA_MODEL_V32)
		m->pool_pages = least_of(half, INT32_MAX / m->page_tokens);
	if (m->pool_pages &&
	    m->pool_pages < columns - m->start / m->page_tokens) {
		fprintf(stderr,
			"%s: --pool-pages: %" PRIu32 " do not hold one request "
			"of --max-context %" PRIu32 ", which takes %" PRIu32
			"\n",
			program, m->pool_pages, m->max_context, columns);
		return 0;
	}
	return 1;
}

static spmla_status
make_plan(const model_options *m, const spmla_device *device, spmla_plan *plan,
	  spmla_diag *diag)
{
	spmla_config config;
	spmla_status s = spmla_config_preset(&config, model_of(m));

	if (s != SPMLA_OK)
		return s;
	set_config(m, &config);
	if (config.model == SPMLA_MODEL_V32) {
		set_v32(m, &config);
		return spmla_plan_make(plan, &config, device, diag);
	}
	set_v4(m, &config);
	s = spmla_plan_make(plan, &config, device, diag);
	if (s != SPMLA_OK)
		return s;
	size_v4(m, &config, plan);
	return spmla_plan_make(plan, &config, device, diag);
}

int
model_options_plan(const char *program, model_options *m,
		   const spmla_backend **backend, spmla_plan *plan)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[256];
	spmla_status s;

	if (m->start >= m->max_context) {
		fprintf(stderr, "%s: --start: it is not below --max-context\n",
			program);
		return OPTIONS_BAD;
	}
	if (!known_names(program, m) || !size_pool(program, m))
		return OPTIONS_BAD;
	*backend = device_open(program, m->backend);
	if (!*backend)
		return OPTIONS_BAD;
	s = spmla_backend_query(*backend, device_native(), &device, &diag);
	if (s == SPMLA_OK)
		s = make_plan(m, &device, plan, &diag);
	if (s == SPMLA_OK)
		return OPTIONS_GO;
	spmla_diag_text(&diag, text, sizeof text);
	fprintf(stderr, "%s: %s\n", program, text);
	return OPTIONS_BAD;
}
