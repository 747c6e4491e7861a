/* SPDX-License-Identifier: Apache-2.0
 *
 * See options.h.
 */
#include "examples/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/device.h"

static int
parse_number(const char *text, uint64_t *value)
{
	uint64_t v = 0;
	const char *p;

	if (*text == 0)
		return 0;
	for (p = text; *p != 0; p++) {
		const uint64_t digit = (uint64_t)(*p - '0');

		if (*p < '0' || *p > '9' || v > (UINT64_MAX - digit) / 10)
			return 0;
		v = v * 10 + digit;
	}
	*value = v;
	return 1;
}

static int
set_option(const char *program, const option *o, const char *text)
{
	uint64_t value;

	if (o->text) {
		*o->text = text;
		return OPTIONS_GO;
	}
	if (!parse_number(text, &value) || value < o->least ||
	    value > o->most) {
		fprintf(stderr,
			"%s: %s: \"%s\" is not a whole number from %" PRIu64
			" to %" PRIu64 "\n",
			program, o->name, text, o->least, o->most);
		return OPTIONS_BAD;
	}
	if (o->number)
		*o->number = (uint32_t)value;
	else
		*o->wide = value;
	return OPTIONS_GO;
}

static void
print_help(const char *program, const option *options, uint32_t count)
{
	uint32_t i;

	printf("usage: %s [--option value]...\n", program);
	for (i = 0; i < count; i++) {
		const option *o = &options[i];

		printf("  %-15s %s; default ", o->name, o->help);
		if (o->text)
			printf("%s\n", *o->text ? *o->text : "none");
		else
			printf("%" PRIu64 "\n",
			       o->number ? *o->number : *o->wide);
	}
}

static const option *
find_option(const option *options, uint32_t count, const char *arg,
	    const char **value)
{
	uint32_t i;

	*value = NULL;
	for (i = 0; i < count; i++) {
		const size_t n = strlen(options[i].name);

		if (strncmp(arg, options[i].name, n) != 0)
			continue;
		if (arg[n] == '=')
			*value = arg + n + 1;
		if (arg[n] == '=' || arg[n] == 0)
			return &options[i];
	}
	return NULL;
}

int
options_parse(const char *program, const option *options, uint32_t count,
	      int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value;
		const option *o;

		if (strcmp(argv[i], "--help") == 0) {
			print_help(program, options, count);
			return OPTIONS_HELP;
		}
		o = find_option(options, count, argv[i], &value);
		if (!o) {
			fprintf(stderr,
				"%s: %s: unknown option; --help lists them\n",
				program, argv[i]);
			return OPTIONS_BAD;
		}
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value) {
			fprintf(stderr, "%s: %s: a value is missing\n", program,
				o->name);
			return OPTIONS_BAD;
		}
		if (set_option(program, o, value) != OPTIONS_GO)
			return OPTIONS_BAD;
	}
	return OPTIONS_GO;
}

int
path_resolve(const char *path, char *out, size_t capacity)
{
	const char *folder = getenv("BUILD_WORKING_DIRECTORY");
	int n;

	if (path[0] == '/' || !folder)
		n = snprintf(out, capacity, "%s", path);
	else
		n = snprintf(out, capacity, "%s/%s", folder, path);
	return n >= 0 && (size_t)n < capacity;
}

void
model_options_list(model_options *m, option *list)
{
	const option rows[MODEL_OPTION_COUNT] = {
		{"--backend", "cpu or cuda", &m->backend, NULL, NULL, 0, 0},
		{"--model", "v32", &m->model, NULL, NULL, 0, 0},
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
		{"--page-tokens", "tokens of a cache page", NULL,
		 &m->page_tokens, NULL, 1, 4096},
		{"--pool-pages", "pages of the pool, 0 = half of the most",
		 NULL, &m->pool_pages, NULL, 0, INT32_MAX},
		{"--prefill",
		 "query tokens of a step of prompts, 0 = none: only their "
		 "keys are inserted",
		 NULL, &m->prefill, NULL, 0, 65536},
	};

	memcpy(list, rows, sizeof rows);
}

static uint32_t
least_of(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Room for steps of prompts, with logits for some of their tokens at a time;
 * and a bucket for the end of a prompt beside what is decoded. */
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
	const uint64_t pool = (uint64_t)m->pool_pages * m->page_tokens;
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
		/* No more context can be alive than the pool holds. */
		shape->max_live_context =
			least_of((uint64_t)requests * m->max_context,
				 least_of(pool, UINT32_MAX));
	}
}

static void
set_config(const model_options *m, spmla_config *config)
{
	/* A step must give the bits that the same operations give alone. */
	config->flags = SPMLA_CONFIG_BATCH_INVARIANT;
	config->heads = m->heads;
	config->index_heads = m->index_heads;
	config->topk = m->topk;
	config->max_rows = m->max_requests;
	config->max_context_tokens = m->max_context;
	config->cache_layers = m->layers;
	config->groups[SPMLA_GROUP_MAIN].page_tokens = m->page_tokens;
	config->groups[SPMLA_GROUP_MAIN].pool_pages = m->pool_pages;
	set_buckets(m, config);
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

static int
known_names(const char *program, const model_options *m)
{
	if (strcmp(m->model, "v32") != 0) {
		fprintf(stderr,
			"%s: --model: \"%s\" is unknown; there is v32\n",
			program, m->model);
		return 0;
	}
	return 1;
}

/* A request of any length must fit, or it would wait for ever. */
static int
size_pool(const char *program, model_options *m)
{
	const uint32_t columns = (m->max_context - 1) / m->page_tokens + 1;
	const uint64_t most = (uint64_t)columns * m->max_requests;
	const uint64_t half = most / 2 > columns ? most / 2 : columns;

	if (m->pool_pages == 0)
		m->pool_pages = least_of(half, INT32_MAX / m->page_tokens);
	if (m->pool_pages < columns) {
		fprintf(stderr,
			"%s: --pool-pages: %" PRIu32 " do not hold one request "
			"of --max-context %" PRIu32 ", which takes %" PRIu32
			"\n",
			program, m->pool_pages, m->max_context, columns);
		return 0;
	}
	return 1;
}

int
model_options_plan(const char *program, model_options *m,
		   const spmla_backend **backend, spmla_plan *plan)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config config;
	char text[256];
	spmla_status s;

	if (!known_names(program, m) || !size_pool(program, m))
		return OPTIONS_BAD;
	*backend = device_open(program, m->backend);
	if (!*backend)
		return OPTIONS_BAD;
	s = spmla_config_preset(&config, SPMLA_MODEL_V32);
	if (s == SPMLA_OK)
		s = spmla_backend_query(*backend, device_native(), &device,
					&diag);
	if (s == SPMLA_OK) {
		set_config(m, &config);
		s = spmla_plan_make(plan, &config, &device, &diag);
	}
	if (s == SPMLA_OK)
		return OPTIONS_GO;
	spmla_diag_text(&diag, text, sizeof text);
	fprintf(stderr, "%s: %s\n", program, text);
	return OPTIONS_BAD;
}
