/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that an engine does: plan, hand in memory, capture a step of one
 * V3.2 layer, and replay it 100 times while request 0 grows by a token a step.
 *
 *   gcc hello_v32.c $(pkg-config --cflags --libs spmla)
 *
 * Queries are zero, so all keys have the same weight. Their first values are 1
 * and 2 in turn, so the first value of the result is 1.5: 0x3fc0 in bf16.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "spmla/spmla_cpu.h"
#include "spmla/v32.h"

/* bf16 tensors of one token, which an engine's kernels write in place: kv_c
 * [512], k_pe [64], index_k [128], index_q [64][128], index_weights [64],
 * q [128][576], out [128][512]. All that are read but kv_c are zeros here. */
static uint16_t kv_c[512], zeros[128 * 576], out[128 * 512];

static void
check(spmla_status s)
{
	if (s != SPMLA_OK)
		errx(1, "%s", spmla_status_name(s));
}

int
main(void)
{
	const spmla_shape shape = {1, 1, 1, 0}; /* 1 token of 1 request */
	const int32_t pages[2] = {7, 8};        /* any of the pool's 64 */
	/* Row 0 joins, with one query token and its pages from column 0 on. */
	spmla_request request = {0, 1, 0, SPMLA_REQUEST_JOIN};
	const spmla_table_store store = {SPMLA_GROUP_MAIN, 0, 0, 2, pages};
	const spmla_step step = {sizeof step, 0, 1, 1, &request, &store};
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_stream stream = NULL; /* the CPU has one timeline */
	spmla_v32_layer layer;
	spmla_config config;
	spmla_graph graph;
	spmla_plan plan;
	spmla_ctx *ctx;
	uint64_t ticket;
	void *block;

	/* The largest step, context and pool that there will be. */
	check(spmla_config_preset(&config, SPMLA_MODEL_V32));
	config.max_rows = config.cache_layers = config.bucket_count = 1;
	config.max_context_tokens = 4096;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 64;
	config.buckets[0] = shape;
	check(spmla_backend_query(&spmla_cpu, NULL, &device, NULL));
	check(spmla_plan_make(&plan, &config, &device, NULL));
	block = aligned_alloc(256, spmla_plan_regions(&plan, NULL, regions));
	spmla_plan_regions(&plan, block, regions);
	check(spmla_init(&ctx, &plan, &spmla_cpu, NULL, regions,
			 SPMLA_MEMORY_COUNT, NULL));

	check(spmla_v32_layer_preset(ctx, 0, &layer));
	layer.kv_c = kv_c;
	layer.k_pe = layer.index_k = layer.index_q = layer.q = zeros;
	layer.index_weights = zeros;
	layer.out = out;

	check(spmla_graph_begin(ctx, stream));
	check(spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, stream));
	check(spmla_v32_attn(ctx, &layer, &shape, stream)); /* each layer */
	check(spmla_graph_end(ctx, &graph));

	while (request.seq_len_tokens++ < 100) {
		kv_c[0] = request.seq_len_tokens % 2 ? 0x3f80 : 0x4000;
		check(spmla_step_write(ctx, &step, &ticket, NULL));
		check(spmla_graph_replay(ctx, graph, ticket, stream));
		request.flags = 0; /* it has joined */
	}
	check(spmla_fini(ctx));
	free(block);
	printf("out[0] = 0x%x\n", out[0]);
}
