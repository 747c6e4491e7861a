/* SPDX-License-Identifier: Apache-2.0
 *
 * See v32_rig.h.
 */
#include "tests/harness/v32_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

uint64_t
test_hash(uint64_t hash, const void *bytes, uint64_t count)
{
	const unsigned char *b = bytes;
	uint64_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void
v32_must(const spmla_ctx *ctx, spmla_status s)
{
	char text[200];

	if (s == SPMLA_OK)
		return;
	spmla_diag_text(spmla_ctx_diag(ctx), text, sizeof text);
	ck_abort_msg("%s: %s", spmla_status_name(s), text);
}

static void
draw_bf16(uint16_t *x, uint64_t n, uint64_t *seed)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = test_bf16(rng_float(seed));
}

static void
draw_f32(float *x, uint64_t n, uint64_t *seed)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = rng_float(seed);
}

void
v32_rig_draw(v32_rig *r, uint64_t *seed)
{
	const uint64_t t = r->tokens;

	draw_bf16(r->kv_c, t * 512, seed);
	draw_bf16(r->k_pe, t * 64, seed);
	draw_bf16(r->index_k, t * 128, seed);
	draw_bf16(r->index_q, t * r->index_heads * 128, seed);
	draw_f32(r->index_weights, t * r->index_heads, seed);
	draw_bf16(r->q, t * r->heads * 576, seed);
}

static void
alloc_tensors(v32_rig *r, uint32_t positions)
{
	const uint64_t t = r->tokens;

	r->out_bytes = t * r->heads * 512 * sizeof *r->out;
	r->lse_bytes = t * r->heads * sizeof *r->lse;
	r->kv_c = test_alloc(t * 512 * 2, 0);
	r->k_pe = test_alloc(t * 64 * 2, 0);
	r->index_k = test_alloc(t * 128 * 2, 0);
	r->index_q = test_alloc(t * r->index_heads * 128 * 2, 0);
	r->index_weights = test_alloc(t * r->index_heads * 4, 0);
	r->q = test_alloc(t * r->heads * 576 * 2, 0);
	r->norm_weight = test_alloc(128 * 4, 0);
	r->norm_bias = test_alloc(128 * 4, 0);
	r->cos_sin = test_alloc((uint64_t)positions * 64 * 4, 0);
	r->attn_sink = test_alloc(r->heads * sizeof(float), 0);
	r->out = test_alloc(r->out_bytes, 0xAB);
	r->lse = test_alloc(r->lse_bytes, 0xAB);
}

static void
fill_layer(v32_rig *r, const spmla_config *c)
{
	spmla_v32_layer *l = &r->layer;

	l->struct_bytes = (uint32_t)sizeof *l;
	l->rope_style = SPMLA_ROPE_INTERLEAVED;
	l->cos_sin_rows = c->max_context_tokens;
	l->norm_eps = 1e-6f;
	l->kv_c = r->kv_c;
	l->k_pe = r->k_pe;
	l->kv_c_stride_elems = 512;
	l->k_pe_stride_elems = 64;
	l->index_k = r->index_k;
	l->index_k_stride_elems = 128;
	l->index_norm_weight = r->norm_weight;
	l->index_norm_bias = r->norm_bias;
	l->cos_sin = r->cos_sin;
	l->index_q = r->index_q;
	l->index_q_token_stride_elems = (int64_t)c->index_heads * 128;
	l->index_q_head_stride_elems = 128;
	l->index_weights = r->index_weights;
	l->index_weights_stride_elems = c->index_heads;
	l->index_weights_dtype = SPMLA_DTYPE_F32;
	l->q = r->q;
	l->q_token_stride_elems = (int64_t)c->heads * 576;
	l->q_head_stride_elems = 576;
	l->out = r->out;
	l->out_token_stride_elems = (int64_t)c->heads * 512;
	l->out_head_stride_elems = 512;
	l->lse = r->lse;
	l->lse_token_stride_elems = c->heads;
	l->lse_head_stride_elems = 1;
}

/* A cache in the rig's own memory; returns its bytes. */
static uint64_t
own_cache(spmla_cache *cache, const spmla_config *c, uint32_t layout)
{
	const spmla_table_config *g = &c->groups[SPMLA_GROUP_MAIN];
	const uint64_t stride = spmla_layout_page_bytes(layout, g->page_tokens);

	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = layout;
	cache->entries_per_page = g->page_tokens;
	cache->pages = g->pool_pages;
	cache->page_stride_bytes = stride;
	cache->base = test_alloc(stride * g->pool_pages, 0xAB);
	return stride * g->pool_pages;
}

/* The engine's table: wider than necessary, -1 everywhere. */
static void
bind_table(v32_rig *r, spmla_ctx *ctx)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);

	r->table_stride = plan->columns + 3;
	r->table = test_alloc((uint64_t)plan->config.max_rows *
				      r->table_stride * sizeof *r->table,
			      0xFF);
	v32_must(ctx, spmla_table_bind(ctx, SPMLA_GROUP_MAIN, r->table,
				       r->table_stride));
}

void
v32_rig_open(v32_rig *r, spmla_ctx *ctx, uint32_t cache_layer, uint64_t seed)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_config *c = &plan->config;

	memset(r, 0, sizeof *r);
	r->tokens = plan->max_tokens;
	r->heads = c->heads;
	r->index_heads = c->index_heads;
	alloc_tensors(r, c->max_context_tokens);
	v32_rig_draw(r, &seed);
	draw_f32(r->norm_weight, 128, &seed);
	draw_f32(r->norm_bias, 128, &seed);
	draw_f32(r->cos_sin, (uint64_t)c->max_context_tokens * 64, &seed);
	draw_f32(r->attn_sink, c->heads, &seed);
	r->seed = seed;
	r->query = 1;
	fill_layer(r, c);
	if (c->groups[SPMLA_GROUP_MAIN].source == SPMLA_TABLE_DEVICE)
		bind_table(r, ctx);
	if (c->cache_layers) {
		ck_assert_int_eq(spmla_cache_view(ctx, SPMLA_BUF_KV_CACHE,
						  cache_layer, &r->layer.kv),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_cache_view(ctx, SPMLA_BUF_INDEX_CACHE,
						  cache_layer, &r->layer.index),
				 SPMLA_OK);
	} else {
		r->kv_bytes = own_cache(&r->layer.kv, c, c->kv_layout);
		r->index_bytes = own_cache(&r->layer.index, c,
					   plan->config.index_layout);
	}
}

void
v32_rig_close(v32_rig *r)
{
	free(r->kv_c);
	free(r->k_pe);
	free(r->index_k);
	free(r->index_q);
	free(r->q);
	free(r->norm_weight);
	free(r->norm_bias);
	free(r->cos_sin);
	free(r->index_weights);
	free(r->attn_sink);
	free(r->out);
	free(r->lse);
	free(r->table);
	if (r->kv_bytes) {
		free(r->layer.kv.base);
		free(r->layer.index.base);
	}
	memset(r, 0, sizeof *r);
}

void
v32_rig_write(const v32_rig *r, spmla_ctx *ctx, uint32_t n, uint64_t *ticket)
{
	const uint32_t page = spmla_ctx_plan(ctx)->config.groups[0].page_tokens;
	spmla_step step = SPMLA_STEP_INIT;
	spmla_request requests[2];
	spmla_table_store stores[2];
	int32_t pages[2];
	uint32_t b;

	for (b = 0; b < 2 && n >= 2 * b; b++) {
		const uint32_t pos = (n - 2 * b) * r->query;
		const uint32_t end = pos + r->query; /* at most a page more */
		const uint32_t col = (end - 1) / page;

		requests[b] = (spmla_request){
			b, r->query, end, pos == 0 ? SPMLA_REQUEST_JOIN : 0};
		step.request_count++;
		if (pos > 0 && (pos - 1) / page == col)
			continue;
		pages[b] = (int32_t)(2 + 2 * col + b);
		if (r->table)
			r->table[b * r->table_stride + col] = pages[b];
		else
			stores[step.store_count++] = (spmla_table_store){
				SPMLA_GROUP_MAIN, b, col, 1, &pages[b]};
	}
	step.requests = requests;
	step.stores = stores;
	v32_must(ctx, spmla_step_write(ctx, &step, ticket, NULL));
}

void
v32_rig_capture(v32_rig *r, spmla_ctx *ctx)
{
	const spmla_shape *shape =
		&spmla_ctx_plan(ctx)->config.buckets[r->bucket];

	v32_must(ctx, spmla_graph_begin(ctx, NULL));
	v32_must(ctx, spmla_step_prologue(ctx, shape, SPMLA_FROM_RING, NULL));
	v32_must(ctx, spmla_v32_attn(ctx, &r->layer, shape, NULL));
	v32_must(ctx, spmla_graph_end(ctx, &r->graph));
}

void
v32_rig_step(v32_rig *r, spmla_ctx *ctx, uint32_t n)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	uint64_t ticket;

	v32_rig_draw(r, &r->seed);
	v32_rig_write(r, ctx, n, &ticket);
	v32_must(ctx, spmla_graph_replay(ctx, r->graph, ticket, NULL));
	(void)spmla_cpu_queue_run(ctx, UINT32_MAX);
	r->hash = test_hash(r->hash, r->out, r->out_bytes);
	r->hash = test_hash(r->hash, r->lse, r->lse_bytes);
	v32_must(ctx, spmla_status_read(ctx, &status));
	if (status.count > 0)
		ck_abort_msg("step %u: %s", n, spmla_fault_name(status.fault));
}

uint64_t
v32_rig_decode(v32_rig *r, spmla_ctx *ctx, uint32_t steps)
{
	uint32_t n;

	v32_rig_capture(r, ctx);
	for (n = 0; n < steps; n++)
		v32_rig_step(r, ctx, n);
	return r->hash;
}
