/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_layer_rig.h.
 */
#include "tests/harness/v4_layer_rig.h"
#include "tests/harness/v32_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 2, COLUMNS = 128, MOST_WIDTH = 1024 };

static const spmla_buf pools[] = {
	SPMLA_BUF_KV_CACHE,          SPMLA_BUF_INDEX_CACHE,
	SPMLA_BUF_C4A_CACHE,         SPMLA_BUF_STATE_C4A_CACHE,
	SPMLA_BUF_STATE_INDEX_CACHE, SPMLA_BUF_C128A_CACHE,
	SPMLA_BUF_STATE_C128A_CACHE};

void
v4_layer_config(spmla_config *c)
{
	static const spmla_shape buckets[3] = {
		{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 4, 0}};
	static const uint32_t page_tokens[SPMLA_V4_GROUPS] = {8, 16, 256, 0,
							      4, 64, 0};
	static const uint32_t pool_pages[SPMLA_V4_GROUPS] = {24, 40, 8, 0,
							     20, 12, 0};
	uint32_t g;

	ck_assert_int_eq(spmla_config_preset(c, SPMLA_MODEL_V4_FLASH),
			 SPMLA_OK);
	c->heads = 4;
	c->index_heads = 4;
	c->topk = 8;
	c->max_rows = 8;
	c->max_context_tokens = 512;
	c->window_tokens = 16;
	c->output_quant = SPMLA_O_BF16;
	c->cache_layers = c->c4a_layers = c->c128a_layers = 1;
	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		c->groups[g].page_tokens = page_tokens[g];
		c->groups[g].pool_pages = pool_pages[g];
	}
	c->bucket_count = 3;
	memcpy(c->buckets, buckets, sizeof buckets);
}

/* ---- Tensors ----------------------------------------------------------- */

static void *
tensor(v4_layer_rig *r, uint64_t bytes, uint8_t byte)
{
	void *p = test_alloc(bytes, byte);

	ck_assert_uint_lt(r->tensor_count,
			  sizeof r->tensors / sizeof r->tensors[0]);
	r->tensors[r->tensor_count++] = p;
	return p;
}

static float *
draw_f32(v4_layer_rig *r, uint64_t n, uint64_t *seed)
{
	float *x = tensor(r, n * sizeof *x, 0);
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = rng_float(seed);
	return x;
}

static uint16_t *
draw_bf16(v4_layer_rig *r, uint64_t n, uint64_t *seed)
{
	uint16_t *x = tensor(r, n * sizeof *x, 0);
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = test_bf16(rng_float(seed));
	return x;
}

static void
fill_inputs(v4_layer_rig *r, const spmla_config *c, uint64_t *seed)
{
	const uint64_t t = r->tokens;
	spmla_v4_layer *l = &r->layer;

	l->cos_sin = draw_f32(r, c->max_context_tokens * UINT64_C(64), seed);
	l->cos_sin_rows = c->max_context_tokens;
	l->norm_eps = 1e-6f;
	l->q = draw_bf16(r, t * r->heads * 512, seed);
	l->q_token_stride_elems = r->heads * 512;
	l->q_head_stride_elems = 512;
	l->kv = draw_bf16(r, t * 512, seed);
	l->kv_stride_elems = 512;
	l->compress_kv = draw_f32(r, t * MOST_WIDTH, seed);
	l->compress_score = draw_f32(r, t * MOST_WIDTH, seed);
	l->compress_kv_stride_elems = MOST_WIDTH;
	l->compress_score_stride_elems = MOST_WIDTH;
	l->ape = draw_f32(r, 128 * 512, seed);
	l->norm_weight = draw_f32(r, 512, seed);
	l->index_kv = draw_f32(r, t * 256, seed);
	l->index_score = draw_f32(r, t * 256, seed);
	l->index_kv_stride_elems = 256;
	l->index_score_stride_elems = 256;
	l->index_ape = draw_f32(r, 4 * 256, seed);
	l->index_norm_weight = draw_f32(r, 128, seed);
	l->index_q = draw_bf16(r, t * c->index_heads * 128, seed);
	l->index_q_token_stride_elems = c->index_heads * 128;
	l->index_q_head_stride_elems = 128;
	l->index_weights = draw_f32(r, t * c->index_heads, seed);
	l->index_weights_stride_elems = c->index_heads;
	l->index_weights_dtype = SPMLA_DTYPE_F32;
	l->attn_sink = draw_f32(r, r->heads, seed);
}

static void
fill_outputs(v4_layer_rig *r, uint64_t *seed)
{
	const int64_t inner = r->heads / GROUPS * 512;
	spmla_v4_layer *l = &r->layer;

	r->q_bytes = (uint64_t)r->tokens * r->heads * 512 * sizeof *l->q;
	r->out_bytes = r->q_bytes;
	r->z_bytes = (uint64_t)r->tokens * GROUPS * COLUMNS * sizeof *l->z;
	l->out = tensor(r, r->out_bytes, 0xAB);
	l->out_token_stride_elems = r->heads * 512;
	l->out_head_stride_elems = 512;
	l->lse = tensor(r, r->tokens * r->heads * sizeof *l->lse, 0xAB);
	l->lse_token_stride_elems = r->heads;
	l->lse_head_stride_elems = 1;
	l->output_quant = SPMLA_O_BF16;
	l->output_groups = GROUPS;
	l->output_columns = COLUMNS;
	l->wo = draw_bf16(r, (uint64_t)(GROUPS * COLUMNS * inner), seed);
	l->wo_group_stride_elems = COLUMNS * inner;
	l->wo_row_stride_elems = inner;
	l->z = tensor(r, r->z_bytes, 0xAB);
	l->z_token_stride_elems = GROUPS * COLUMNS;
	l->z_group_stride_elems = COLUMNS;
	r->q_before = tensor(r, r->q_bytes, 0);
	memcpy(r->q_before, l->q, r->q_bytes);
}

static void
view(spmla_ctx *ctx, spmla_buf buf, spmla_cache *cache)
{
	ck_assert_int_eq(spmla_cache_view(ctx, buf, 0, cache), SPMLA_OK);
}

spmla_v4_layer
v4_layer_of(const v4_layer_rig *r, spmla_ctx *ctx, uint32_t ratio)
{
	spmla_v4_layer l = r->layer;

	l.ratio = ratio;
	view(ctx, SPMLA_BUF_KV_CACHE, &l.swa);
	view(ctx, ratio == 128 ? SPMLA_BUF_C128A_CACHE : SPMLA_BUF_C4A_CACHE,
	     &l.compressed);
	view(ctx,
	     ratio == 128 ? SPMLA_BUF_STATE_C128A_CACHE
			  : SPMLA_BUF_STATE_C4A_CACHE,
	     &l.state);
	view(ctx, SPMLA_BUF_INDEX_CACHE, &l.index);
	view(ctx, SPMLA_BUF_STATE_INDEX_CACHE, &l.index_state);
	return l;
}

static void
clear_pools(spmla_ctx *ctx)
{
	uint64_t bytes;
	uint32_t i;

	for (i = 0; i < sizeof pools / sizeof pools[0]; i++) {
		void *pool = spmla_view(ctx, pools[i], &bytes);

		memset(pool, 0, bytes);
	}
}

/* Fills pages with entries of `bytes`: small e4m3 numbers (or any e2m1) up to
 * `small` and bf16 behind it, then `scales` bytes per entry, as in `scale`. */
static void
fill_pages(const spmla_cache *c, uint32_t bytes, uint32_t small,
	   const uint8_t *scale, uint32_t scales, uint64_t *seed)
{
	uint32_t page, e, i;

	for (page = 0; page < c->pages; page++)
		for (e = 0; e < c->entries_per_page; e++) {
			uint8_t *base = (uint8_t *)c->base +
					page * c->page_stride_bytes;
			uint8_t *entry = base + e * bytes;

			for (i = 0; i < small; i++)
				entry[i] = (uint8_t)(rng_next(seed) & 0xbf);
			for (; i < bytes; i += 2) {
				const uint16_t x = test_bf16(rng_float(seed));

				memcpy(entry + i, &x, sizeof x);
			}
			memcpy(base + c->entries_per_page * bytes + e * scales,
			       scale, scales);
		}
}

static void
fill_states(const spmla_cache *c, uint64_t *seed)
{
	const uint64_t n = c->pages * c->page_stride_bytes / sizeof(float);
	float *x = c->base;
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = rng_float(seed);
}

/* Scales of 1. */
static void
fill_pool(const spmla_cache *c, uint64_t *seed)
{
	static const uint8_t row[8] = {127, 127, 127, 127, 127, 127, 127, 0};
	const float one = 1.0f;
	uint8_t index[4];

	memcpy(index, &one, sizeof index);
	if (c->layout == SPMLA_LAYOUT_V4_FP8)
		fill_pages(c, 576, 448, row, 8, seed);
	else if (c->layout == SPMLA_LAYOUT_INDEX_FP8)
		fill_pages(c, 128, 128, index, 4, seed);
	else if (c->layout == SPMLA_LAYOUT_INDEX_MXFP4)
		fill_pages(c, 64, 64, row, 4, seed);
	else
		fill_states(c, seed);
}

void
v4_layer_fill(spmla_ctx *ctx, uint64_t seed)
{
	spmla_cache c;
	uint32_t i, l;

	for (i = 0; i < sizeof pools / sizeof pools[0]; i++)
		for (l = 0; spmla_cache_view(ctx, pools[i], l, &c) == SPMLA_OK;
		     l++)
			fill_pool(&c, &seed);
}

void
v4_layer_open(v4_layer_rig *r, spmla_ctx *ctx, uint64_t seed)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);

	memset(r, 0, sizeof *r);
	r->tokens = plan->max_tokens;
	r->heads = plan->config.heads;
	r->layer.struct_bytes = (uint32_t)sizeof r->layer;
	fill_inputs(r, &plan->config, &seed);
	fill_outputs(r, &seed);
	r->layer = v4_layer_of(r, ctx, 4);
	clear_pools(ctx);
}

void
v4_layer_close(v4_layer_rig *r)
{
	uint32_t i;

	for (i = 0; i < r->tensor_count; i++)
		free(r->tensors[i]);
}

void
v4_layer_reset(v4_layer_rig *r, spmla_ctx *ctx)
{
	memcpy(r->layer.q, r->q_before, r->q_bytes);
	memset(r->layer.out, 0xAB, r->out_bytes);
	memset(r->layer.z, 0xAB, r->z_bytes);
	clear_pools(ctx);
}

void
v4_layer_write(spmla_ctx *ctx, uint32_t query, uint32_t len)
{
	v4_layer_write_row(ctx, 0, query, len);
}

void
v4_layer_write_row(spmla_ctx *ctx, uint32_t row, uint32_t query, uint32_t len)
{
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_request request = {row, query, len, SPMLA_REQUEST_JOIN};
	static const uint32_t owners[] = {0, 1, 2, 4, 5};
	spmla_step step = SPMLA_STEP_INIT;
	spmla_table_store stores[5];
	int32_t pages[5][64];
	uint64_t ticket;
	uint32_t i, k;

	for (i = 0; i < 5; i++) {
		const uint32_t g = owners[i], n = plan->group_columns[g];

		ck_assert_uint_le(n, 64);
		for (k = 0; k < n; k++)
			pages[i][k] = (int32_t)(k + 1);
		stores[i] = (spmla_table_store){g, row, 0, n, pages[i]};
	}
	step.request_count = 1;
	step.requests = &request;
	step.store_count = 5;
	step.stores = stores;
	v32_must(ctx, spmla_step_write(ctx, &step, &ticket, NULL));
}

void
v4_layer_begin(fixture *f, v4_layer_rig *r, const spmla_shape *shape)
{
	spmla_config config;

	v4_layer_config(&config);
	/* On every device attention is one op. */
	config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	fixture_open(f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(r, f->ctx, 1);
	v4_layer_write(f->ctx, 1, 128);
	v32_must(f->ctx,
		 spmla_step_prologue(f->ctx, shape, SPMLA_FROM_RING, NULL));
	fixture_drain(f);
}

void
v4_layer_end(fixture *f, v4_layer_rig *r)
{
	fixture_drain(f);
	v4_layer_close(r);
	fixture_close(f);
}

uint64_t
v4_layer_hash(const v4_layer_rig *r, const spmla_ctx *ctx)
{
	const spmla_v4_layer *l = &r->layer;
	uint64_t hash = 1, bytes;
	uint32_t i;

	hash = test_hash(hash, l->q, r->q_bytes);
	hash = test_hash(hash, l->out, r->out_bytes);
	hash = test_hash(hash, l->z, r->z_bytes);
	for (i = 0; i < sizeof pools / sizeof pools[0]; i++) {
		const void *pool = spmla_view(ctx, pools[i], &bytes);

		hash = test_hash(hash, pool, bytes);
	}
	return hash;
}

void
v4_layer_expect(fixture *f, v4_layer_call call, const spmla_v4_layer *layer,
		const spmla_shape *shape, uint32_t before, const char *want)
{
	spmla_graph graph;
	spmla_status s;

	fixture_drain(f);
	s = call(f->ctx, layer, shape, NULL);
	if (!want) {
		v32_must(f->ctx, s);
		return;
	}
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(f), want);
	ck_assert_uint_eq(spmla_ctx_diag(f->ctx)->status, s);
	ck_assert_uint_eq(fixture_pending(f), before);
	v32_must(f->ctx, spmla_graph_begin(f->ctx, NULL));
	ck_assert_int_eq(call(f->ctx, layer, shape, NULL), s);
	ck_assert_int_eq(spmla_graph_end(f->ctx, &graph), SPMLA_E_CAPTURE);
	v32_must(f->ctx, spmla_graph_abort(f->ctx));
}
