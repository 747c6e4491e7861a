/* SPDX-License-Identifier: Apache-2.0
 *
 * Speculative decoding with two captured graphs. One verifies a token and three
 * drafts of it at once. The other makes the next three drafts, one after the
 * other. The host never learns how many drafts were accepted.
 *
 *   gcc draft.c $(pkg-config --cflags --libs spmla)
 *
 * Keys of accepted tokens and of drafts are 1, keys of tokens that will be
 * rejected are 2. Queries are zero, so a result is the mean of all keys that a
 * token sees. It is 1 as long as no rejected key is seen.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"
#include "spmla/v32.h"

enum { HEADS = 16, DRAFTS = 3, QUERY = 1 + DRAFTS };
enum { CONTEXT = 1024, COLUMNS = CONTEXT / 64, ROUNDS = 25, ONE = 0x3f80 };

/* Layer 0 is the target model's. Layer 1 is the draft model's; it has a cache
 * of its own and takes in the verified tokens too. */
enum { TARGET = 0, DRAFT = 1 };

/* bf16 tensors; all that hold zeros share memory, queries are the largest. */
static uint16_t zeros[QUERY * HEADS * 576];
static uint16_t verify_kv[QUERY][512], verify_out[QUERY][HEADS * 512];
static uint16_t draft_kv[512], draft_out[DRAFTS][HEADS * 512];
static uint16_t unused_out[QUERY][HEADS * 512];

static const spmla_shape verify_shape = {QUERY, 1, QUERY, 0};
static const spmla_shape draft_shape = {1, 1, 1, 0};

static void
check(spmla_status s)
{
	if (s != SPMLA_OK)
		errx(1, "%s", spmla_status_name(s));
}

static void *block; /* all of SpMLA's memory */

static spmla_ctx *
open_context(void)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_plan plan;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config config;
	spmla_ctx *ctx;

	check(spmla_config_preset(&config, SPMLA_MODEL_V32));
	config.heads = HEADS;
	config.max_rows = 1;
	config.max_context_tokens = CONTEXT;
	config.cache_layers = 2;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = COLUMNS;
	config.bucket_count = 2;
	config.buckets[0] = draft_shape;
	config.buckets[1] = verify_shape;
	check(spmla_backend_query(&spmla_cpu, NULL, &device, NULL));
	check(spmla_plan_make(&plan, &config, &device, NULL));
	block = aligned_alloc(256, spmla_plan_regions(&plan, NULL, regions));
	spmla_plan_regions(&plan, block, regions);
	check(spmla_init(&ctx, &plan, &spmla_cpu, NULL, regions,
			 SPMLA_MEMORY_COUNT, NULL));
	return ctx;
}

/* Enqueues a layer. An engine's projections would write kv and queries, and
 * its head would read out. */
static void
attend(spmla_ctx *ctx, uint32_t model, const spmla_shape *shape,
       const uint16_t *kv, uint16_t *out)
{
	spmla_v32_layer layer;

	check(spmla_v32_layer_preset(ctx, model, &layer));
	layer.kv_c = kv;
	layer.k_pe = zeros;
	layer.index_k = zeros;
	layer.index_q = zeros;
	layer.index_weights = zeros;
	layer.q = zeros;
	layer.out = out;
	check(spmla_v32_attn(ctx, &layer, shape, NULL));
}

static spmla_graph
capture_verify(spmla_ctx *ctx)
{
	spmla_graph graph;

	check(spmla_graph_begin(ctx, NULL));
	check(spmla_step_prologue(ctx, &verify_shape, SPMLA_FROM_RING, NULL));
	attend(ctx, TARGET, &verify_shape, verify_kv[0], verify_out[0]);
	attend(ctx, DRAFT, &verify_shape, verify_kv[0], unused_out[0]);
	check(spmla_graph_end(ctx, &graph));
	return graph;
}

/* The first step is the one that accept() puts on the device. Each next one is
 * the same a token later. */
static spmla_graph
capture_draft(spmla_ctx *ctx)
{
	spmla_graph graph;
	uint32_t i;

	*(int32_t *)spmla_view(ctx, SPMLA_BUF_ADVANCE_BY, NULL) = 1;
	check(spmla_graph_begin(ctx, NULL));
	for (i = 0; i < DRAFTS; i++) {
		check(spmla_step_prologue(
			ctx, &draft_shape,
			i == 0 ? SPMLA_FROM_DEVICE : SPMLA_ADVANCE, NULL));
		attend(ctx, DRAFT, &draft_shape, draft_kv, draft_out[i]);
	}
	check(spmla_graph_end(ctx, &graph));
	return graph;
}

/* The record of a verification: the host knows only an upper bound of the
 * length. With the first one come all pages that the request will need. */
static void
write_step(spmla_ctx *ctx, uint32_t bound, uint64_t *ticket)
{
	static int32_t pages[COLUMNS];
	const uint32_t join = bound == QUERY ? SPMLA_REQUEST_JOIN : 0;
	const spmla_request request = {0, QUERY, bound, join};
	const spmla_table_store store = {SPMLA_GROUP_MAIN, 0, 0, COLUMNS,
					 pages};
	spmla_step step = SPMLA_STEP_INIT;
	int32_t i;

	for (i = 0; i < COLUMNS; i++)
		pages[i] = i;
	step.flags = SPMLA_STEP_LENS_ON_DEVICE;
	step.request_count = 1;
	step.requests = &request;
	step.store_count = join ? 1 : 0;
	step.stores = &store;
	check(spmla_step_write(ctx, &step, ticket, NULL));
}

/* An engine's kernel, after its sampler: the sequence has `kept` tokens. The
 * next step to verify ends DRAFTS tokens behind the new token, the first step
 * to draft with that token. */
static void
accept(spmla_ctx *ctx, uint32_t kept)
{
	int32_t *row_len = (int32_t *)spmla_view(ctx, SPMLA_BUF_ROW_LEN, NULL);
	uint8_t *next = (uint8_t *)spmla_view(ctx, SPMLA_BUF_STEP_DEVICE, NULL);
	const spmla_request request = {0, 1, kept + 1, 0};
	spmla_step_device head;

	row_len[0] = (int32_t)(kept + QUERY);
	memset(&head, 0, sizeof head);
	head.requests = 1;
	memcpy(next, &head, sizeof head);
	memcpy(next + sizeof head, &request, sizeof request);
}

int
main(void)
{
	spmla_ctx *ctx = open_context();
	const spmla_graph verify = capture_verify(ctx);
	const spmla_graph draft = capture_draft(ctx);
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	uint32_t round, i, kept = 0, wrong = 0;
	uint64_t ticket;

	draft_kv[0] = ONE;
	accept(ctx, kept);
	for (round = 0; round < ROUNDS; round++) {
		const uint32_t good = 1 + round * 7 % QUERY; /* and a token */

		for (i = 0; i < QUERY; i++)
			verify_kv[i][0] = i < good ? ONE : ONE + 128; /* 2 */
		write_step(ctx, (round + 1) * QUERY, &ticket);
		check(spmla_graph_replay(ctx, verify, ticket, NULL));
		for (i = 0; i < QUERY; i++) /* only the good ones see 1 alone */
			wrong += (verify_out[i][0] == ONE) != (i < good);
		kept += good;
		accept(ctx, kept);
		check(spmla_graph_replay(ctx, draft, 0, NULL));
		for (i = 0; i < DRAFTS; i++)
			wrong += draft_out[i][0] != ONE;
	}
	check(spmla_status_read(ctx, &status));
	check(spmla_fini(ctx));
	free(block);
	printf("%d rounds: %u tokens kept, %u rejected, %u wrong, %u faults\n",
	       ROUNDS, kept, ROUNDS * QUERY - kept, wrong, status.count);
	return wrong || status.count;
}
