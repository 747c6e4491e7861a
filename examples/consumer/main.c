/* The least that a project which links SpMLA can do with it: a plan, a context,
 * and one step of one layer. The query is zero and there is one key, so that
 * what comes out is what went in. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"
#include "spmla/v32.h"

enum { HEADS = 2, INDEX_HEADS = 4 };

/* The tensors of one token; a real engine's kernels fill them. */
static uint16_t kv_c[512], k_pe[64], index_k[128], index_q[INDEX_HEADS * 128];
static uint16_t q[HEADS * 576], out[HEADS * 512];
static float index_weights[INDEX_HEADS], lse[HEADS];

static void
must(spmla_status status, const spmla_diag *diag)
{
	char text[200];

	if (status == SPMLA_OK)
		return;
	spmla_diag_text(diag, text, sizeof text);
	fprintf(stderr, "%s\n", text);
	exit(1);
}

static void
make_plan(spmla_plan *plan)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config config;

	must(spmla_config_preset(&config, SPMLA_MODEL_V32), NULL);
	config.heads = HEADS;
	config.index_heads = INDEX_HEADS;
	config.kv_layout = SPMLA_LAYOUT_MLA_BF16;
	config.max_rows = 1;
	config.max_context_tokens = 256;
	config.cache_layers = 1;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 4;
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){1, 1, 1, 0};
	must(spmla_backend_query(&spmla_cpu, NULL, &device, &diag), &diag);
	must(spmla_plan_make(plan, &config, &device, &diag), &diag);
}

static spmla_ctx *
open_context(const spmla_plan *plan, void **block)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *ctx = NULL;

	*block = aligned_alloc(256, spmla_plan_regions(plan, NULL, regions));
	spmla_plan_regions(plan, *block, regions);
	must(spmla_init(&ctx, plan, &spmla_cpu, NULL, regions,
			SPMLA_MEMORY_COUNT, &diag),
	     &diag);
	return ctx;
}

static void
run_step(spmla_ctx *ctx, const spmla_v32_layer *layer)
{
	const spmla_shape *shape = &spmla_ctx_plan(ctx)->config.buckets[0];
	const spmla_diag *diag = spmla_ctx_diag(ctx);
	const int32_t page = 3;
	const spmla_request request = {0, 1, 1, SPMLA_REQUEST_JOIN};
	const spmla_table_store store = {SPMLA_GROUP_MAIN, 0, 0, 1, &page};
	const spmla_step step = {sizeof step, 0, 1, 1, &request, &store};
	uint64_t ticket;

	must(spmla_step_write(ctx, &step, &ticket, NULL), diag);
	must(spmla_step_prologue(ctx, shape, SPMLA_FROM_RING, NULL), diag);
	must(spmla_v32_attn(ctx, layer, shape, NULL), diag);
}

int
main(void)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_v32_layer layer;
	spmla_plan plan;
	spmla_ctx *ctx;
	void *block;
	uint32_t i;

	for (i = 0; i < 512; i++)
		kv_c[i] = (uint16_t)(0x3f80 + i); /* bf16: 1, 1 + 2^-7, .. */
	make_plan(&plan);
	ctx = open_context(&plan, &block);
	must(spmla_v32_layer_preset(ctx, 0, &layer), spmla_ctx_diag(ctx));
	layer.kv_c = kv_c;
	layer.k_pe = k_pe;
	layer.index_k = index_k;
	layer.index_q = index_q;
	layer.index_weights = index_weights;
	layer.index_weights_dtype = SPMLA_DTYPE_F32;
	layer.q = q;
	layer.out = out;
	layer.lse = lse;
	run_step(ctx, &layer);
	must(spmla_status_read(ctx, &status), NULL);
	must(spmla_fini(ctx), spmla_ctx_diag(ctx));
	free(block);
	if (status.count != 0 || memcmp(out, kv_c, sizeof kv_c) != 0 ||
	    fabsf(lse[0]) > 1e-6f) {
		fprintf(stderr, "%s: out[0] 0x%04x, lse %g\n",
			spmla_fault_name(status.fault), out[0], (double)lse[0]);
		return 1;
	}
	printf("spmla %s, one step, lse %.1f\n", spmla_version_string(),
	       (double)fabsf(lse[0]));
	return 0;
}
