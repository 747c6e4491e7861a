/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that an engine does: plan, hand in memory, capture one step of one
 * layer, and replay it 100 times. Request 0 grows by a token a step. Queries
 * are zero, so all keys have the same weight and the result is known: the mean
 * of the first values, 1 + 50.5 / 128.
 */
#include <stdio.h>
#include <stdlib.h>

#include "spmla/spmla_cpu.h"
#include "spmla/v32.h"

enum { HEADS = 128, INDEX_HEADS = 64, PAGE_TOKENS = 64, STEPS = 100 };

/* bf16 tensors of one token. An engine's kernels write them in place. */
static uint16_t kv_c[512], k_pe[64], index_k[128], index_q[INDEX_HEADS * 128];
static uint16_t index_w[INDEX_HEADS], q[HEADS * 576], out[HEADS * 512];

static void
try(spmla_status s)
{
	if (s != SPMLA_OK) {
		puts(spmla_status_name(s));
		exit(1);
	}
}

/* The largest step, context and pool that this program ever has. */
static void
configure(spmla_config *config)
{
	try(spmla_config_preset(config, SPMLA_MODEL_V32));
	config->max_rows = 1;
	config->max_context_tokens = 4096;
	config->cache_layers = 1;
	config->groups[SPMLA_GROUP_MAIN].pool_pages = 64;
	config->bucket_count = 1;
	config->buckets[0] = (spmla_shape){1, 1, 1, 0};
}

/* One region for each kind of memory that the plan needs. */
static void
allocate(const spmla_plan *plan, spmla_region *regions)
{
	uint32_t m;

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = plan->region_bytes[m];

		regions[m].struct_bytes = sizeof regions[m];
		regions[m].memory = m;
		regions[m].base =
			aligned_alloc(4096, bytes / 4096 * 4096 + 4096);
		regions[m].bytes = bytes;
	}
}

static void
describe(spmla_ctx *ctx, spmla_v32_layer *layer)
{
	*layer = (spmla_v32_layer){
		.struct_bytes = sizeof *layer,
		.kv_c = kv_c,
		.kv_c_stride_elems = 512,
		.k_pe = k_pe,
		.k_pe_stride_elems = 64,
		.index_k = index_k,
		.index_k_stride_elems = 128,
		.index_q = index_q,
		.index_q_token_stride_elems = INDEX_HEADS * 128,
		.index_q_head_stride_elems = 128,
		.index_weights = index_w,
		.index_weights_stride_elems = INDEX_HEADS,
		.q = q,
		.q_token_stride_elems = HEADS * 576,
		.q_head_stride_elems = 576,
		.out = out,
		.out_token_stride_elems = HEADS * 512,
		.out_head_stride_elems = 512,
	};
	try(spmla_cache_view(ctx, SPMLA_BUF_KV_CACHE, 0, &layer->kv));
	try(spmla_cache_view(ctx, SPMLA_BUF_INDEX_CACHE, 0, &layer->index));
}

/* The step in which the request has len tokens: its row and length, and the
 * page of its last token. */
static spmla_step
step_of(uint32_t len)
{
	static spmla_request request;
	static spmla_table_store store;
	static int32_t page;
	const uint32_t column = (len - 1) / PAGE_TOKENS;
	const uint32_t join = len == 1 ? SPMLA_REQUEST_JOIN : 0;

	page = (int32_t)column;
	request = (spmla_request){0, 1, len, join};
	store = (spmla_table_store){SPMLA_GROUP_MAIN, 0, column, 1, &page};
	return (spmla_step){sizeof(spmla_step), 0, 1, 1, &request, &store};
}

int
main(void)
{
	const spmla_shape shape = {1, 1, 1, 0};
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_stream stream = NULL; /* the CPU has one timeline */
	spmla_v32_layer layer;
	spmla_config config;
	spmla_graph graph;
	spmla_plan plan;
	spmla_ctx *ctx;
	uint64_t ticket;
	uint32_t len, m;

	configure(&config);
	try(spmla_backend_query(&spmla_cpu, NULL, &device, NULL));
	try(spmla_plan_make(&plan, &config, &device, NULL));
	allocate(&plan, regions);
	try(spmla_init(&ctx, &plan, &spmla_cpu, NULL, regions,
		       SPMLA_MEMORY_COUNT, NULL));
	describe(ctx, &layer);

	try(spmla_graph_begin(ctx, stream));
	try(spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, stream));
	try(spmla_v32_attn(ctx, &layer, &shape, stream)); /* a call a layer */
	try(spmla_graph_end(ctx, &graph));

	for (len = 1; len <= STEPS; len++) {
		const spmla_step step = step_of(len);

		kv_c[0] = (uint16_t)(0x3f80 + len); /* 1 + len / 128 */
		try(spmla_step_write(ctx, &step, &ticket, NULL));
		try(spmla_graph_replay(ctx, graph, ticket, stream));
	}
	try(spmla_fini(ctx));
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		free(regions[m].base);
	printf("out[0] = 0x%04x\n", out[0]);
	return 0;
}
