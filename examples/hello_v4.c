/* SPDX-License-Identifier: Apache-2.0
 *
 * The three kinds of V4 layers in one captured step, replayed 300 times while
 * request 0 grows by a token a step.
 *
 *   gcc hello_v4.c $(pkg-config --cflags --libs spmla)
 *
 * Queries are zero, so all keys of a token have the same weight. Keys of the
 * window are 1, compressed keys come out as 3. After 300 tokens:
 *   ratio 1    128 keys of the window                                  1
 *   ratio 4    and the 75 complete groups of 4    (128 + 75 * 3) / 203 = 1.739
 *   ratio 128  and the 2 complete groups of 128   (128 + 2 * 3) / 130  = 1.031
 * In bf16 these are 1.000, 1.742 and 1.031.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/rope.h"
#include "spmla/spmla_cpu.h"
#include "spmla/v4.h"

enum { HEADS = 64, CONTEXT = 1024, LAYERS = 3, STEPS = 300 };

static const uint32_t ratios[LAYERS] = {1, 4, 128};

/* Tensors of one token, which an engine's kernels write in place. Queries stay
 * zero, so the layers may share them. */
static uint16_t q[HEADS * 512], kv[512], index_q[64 * 128], index_weights[64];
static float compress_kv[1024], compress_score[1024];
static float index_kv[256], index_score[256];
static uint16_t out[LAYERS][HEADS * 512];
/* Weights and tables of the model: ape is of ratio 4 or 128. */
static float ape[128 * 512], norm_weight[512], index_norm_weight[128];
static float cos_sin[LAYERS][CONTEXT * 64];

static const spmla_shape shape = {1, 1, 1, 0}; /* 1 token of 1 request */

static void
check(spmla_status s)
{
	if (s != SPMLA_OK)
		errx(1, "%s", spmla_status_name(s));
}

/* A pool for each kind of cache. Window and states are rings: a request keeps
 * their few pages, however long it grows. INDEX and STATE_INDEX use the tables
 * of C4A and STATE_C4A. */
static void
configure(spmla_config *config)
{
	uint32_t i;

	check(spmla_config_preset(config, SPMLA_MODEL_V4_FLASH));
	config->max_rows = 1;
	config->max_context_tokens = CONTEXT;
	config->cache_layers = LAYERS; /* a window in each */
	config->c4a_layers = 1;
	config->c128a_layers = 1;
	for (i = 0; i < SPMLA_V4_GROUPS; i++)
		config->groups[i].pool_pages = 4;
	config->bucket_count = 1;
	config->buckets[0] = shape;
}

static void
fill_tensors(void)
{
	spmla_rope rope = SPMLA_ROPE_INIT;
	uint32_t i;

	for (i = 0; i < 512; i++) {
		kv[i] = 0x3f80; /* 1 */
		norm_weight[i] = 3;
	}
	for (i = 0; i < 1024; i++)
		compress_kv[i] = 1; /* the norm makes 1 of any such row */
	for (i = 0; i < LAYERS; i++) {
		check(spmla_rope_preset(&rope, SPMLA_MODEL_V4_FLASH,
					ratios[i]));
		check(spmla_rope_fill(cos_sin[i], 0, CONTEXT, &rope, NULL));
	}
}

/* Layer i, which is the only one of its ratio. */
static void
describe(spmla_ctx *ctx, uint32_t i, spmla_v4_layer *layer)
{
	check(spmla_v4_layer_preset(ctx, ratios[i], i, 0, layer));
	layer->cos_sin = cos_sin[i];
	layer->q = q;
	layer->kv = kv;
	layer->out = out[i];
	if (ratios[i] == 1)
		return;
	layer->compress_kv = compress_kv;
	layer->compress_score = compress_score;
	layer->ape = ape;
	layer->norm_weight = norm_weight;
	if (ratios[i] == 128)
		return;
	layer->index_kv = index_kv;
	layer->index_score = index_score;
	layer->index_ape = ape;
	layer->index_norm_weight = index_norm_weight;
	layer->index_q = index_q;
	layer->index_weights = index_weights;
}

/* The step in which request 0 has len tokens. When it joins, it gets pages 0,
 * 1, .. of every table, enough for all that it may become. */
static void
write_step(spmla_ctx *ctx, uint32_t len, uint64_t *ticket)
{
	static const int32_t pages[4] = {0, 1, 2, 3};
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const uint32_t join = len == 1 ? SPMLA_REQUEST_JOIN : 0;
	const spmla_request request = {0, 1, len, join};
	spmla_table_store stores[SPMLA_V4_GROUPS];
	spmla_step step = {sizeof step, 0, 1, 0, &request, stores};
	uint32_t i;

	for (i = 0; join && i < SPMLA_V4_GROUPS; i++) {
		const spmla_table_store all = {i, 0, 0, plan->group_columns[i],
					       pages};

		if (plan->group_table[i] == i) /* has a table of its own */
			stores[step.store_count++] = all;
	}
	check(spmla_step_write(ctx, &step, ticket, NULL));
}

int
main(void)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_v4_layer layer;
	spmla_config config;
	spmla_graph graph;
	spmla_plan plan;
	spmla_ctx *ctx;
	uint64_t ticket;
	uint32_t len, i;
	void *block;

	configure(&config);
	fill_tensors();
	check(spmla_backend_query(&spmla_cpu, NULL, &device, NULL));
	check(spmla_plan_make(&plan, &config, &device, NULL));
	block = aligned_alloc(256, spmla_plan_regions(&plan, NULL, regions));
	spmla_plan_regions(&plan, block, regions);
	check(spmla_init(&ctx, &plan, &spmla_cpu, NULL, regions,
			 SPMLA_MEMORY_COUNT, NULL));

	check(spmla_graph_begin(ctx, NULL)); /* the CPU has one timeline */
	check(spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, NULL));
	for (i = 0; i < LAYERS; i++) {
		describe(ctx, i, &layer);
		check(spmla_v4_attn(ctx, &layer, &shape, NULL, NULL));
	}
	check(spmla_graph_end(ctx, &graph));

	for (len = 1; len <= STEPS; len++) {
		write_step(ctx, len, &ticket);
		check(spmla_graph_replay(ctx, graph, ticket, NULL));
	}
	check(spmla_fini(ctx));
	free(block);
	for (i = 0; i < LAYERS; i++) {
		/* bf16 is the upper half of a float */
		const uint32_t bits = (uint32_t)out[i][0] << 16;
		float result;

		memcpy(&result, &bits, sizeof result);
		printf("ratio %u: out[0] = %.3f\n", ratios[i], result);
	}
	return 0;
}
