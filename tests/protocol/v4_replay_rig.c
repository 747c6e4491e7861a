/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_replay_rig.h.
 */
#include "tests/protocol/v4_replay_rig.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/v4_sim.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* Values of tokens are windows of these. */
enum { NOISE = 1 << 17 };
static float noise[NOISE];
static uint16_t noise_bf16[NOISE];

static const uint32_t ratios[V4_LAYERS] = {1, 4, 128};

/* Groups whose tables wrap around have at most four columns. */
void
v4_replay_config(spmla_config *c, uint32_t index_layout)
{
	uint32_t g;

	v4_layer_config(c);
	c->cache_layers = V4_LAYERS;
	c->index_layout = index_layout;
	c->max_table_stores = V4_STORES;
	c->max_update_pages = V4_PAGES;
	c->buckets[2].tokens = 24; /* more than kv_compress calls few */
	if (fixture_on_gpu()) {
		c->heads = V4_MOST_HEADS;
		c->index_heads = 64;
		c->topk = 512;
		c->window_tokens = 128;
		c->max_context_tokens = 4096;
		c->groups[SPMLA_GROUP_SWA].page_tokens = 64;
		c->groups[SPMLA_GROUP_C4A].page_tokens = 256;
	}
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		if (c->groups[g].pool_pages)
			c->groups[g].pool_pages = 4 * V4_ROWS;
	for (g = SPMLA_GROUP_C4A; g <= SPMLA_GROUP_C128A; g++)
		c->groups[g].pool_pages = c->max_context_tokens /
					  c->groups[g].page_tokens * V4_ROWS;
}

static void
open_layer(v4_replay_rig *r, uint32_t l, uint64_t seed)
{
	spmla_v4_layer *layer = &r->layer[l];

	v4_layer_open(&r->rig[l], r->f.ctx, seed);
	*layer = v4_layer_of(&r->rig[l], r->f.ctx, ratios[l]);
	v32_must(r->f.ctx, spmla_cache_view(r->f.ctx, SPMLA_BUF_KV_CACHE, l,
					    &layer->swa));
	if (l == 1) {
		layer->empty_lse = SPMLA_EMPTY_LSE_MINUS_INF;
		return;
	}
	layer->attn_sink = NULL;
	layer->wo = NULL;
}

void
v4_replay_open(v4_replay_rig *r, const spmla_config *config,
	       uint32_t native_flags, uint64_t seed)
{
	uint32_t l, i;

	memset(r, 0, sizeof *r);
	fixture_open(&r->f, config, native_flags);
	ck_assert_uint_le(r->f.plan.config.heads, V4_MOST_HEADS);
	for (l = 0; l < V4_LAYERS; l++)
		open_layer(r, l, seed + l);
	v4_layer_fill(r->f.ctx, seed + V4_LAYERS);
	for (i = 0; i < NOISE; i++) {
		noise[i] = rng_float(&seed);
		noise_bf16[i] = test_bf16(noise[i]);
	}
}

void
v4_replay_close(v4_replay_rig *r)
{
	uint32_t l;

	for (l = 0; l < V4_LAYERS; l++)
		v4_layer_close(&r->rig[l]);
	fixture_close(&r->f);
}

/* ---- Steps ------------------------------------------------------------- */

/* Row `token` of a tensor of bf16; the next function: of f32. */
static void
draw_bf16(const void *tensor, uint32_t token, int64_t width, uint64_t *state)
{
	uint16_t *row = (uint16_t *)(uintptr_t)tensor + token * width;

	memcpy(row, noise_bf16 + rng_below(state, NOISE - (uint32_t)width),
	       (size_t)width * sizeof *row);
}

static void
draw_f32(const void *tensor, uint32_t token, int64_t width, uint64_t *state)
{
	float *row = (float *)(uintptr_t)tensor + token * width;

	memcpy(row, noise + rng_below(state, NOISE - (uint32_t)width),
	       (size_t)width * sizeof *row);
}

void
v4_replay_fill(v4_replay_rig *r, uint32_t token, uint32_t request,
	       uint32_t position)
{
	uint64_t state = (uint64_t)request << 32 | position;
	uint32_t l;

	for (l = 0; l < V4_LAYERS; l++) {
		const spmla_v4_layer *a = &r->layer[l];

		draw_bf16(a->q, token, a->q_token_stride_elems, &state);
		draw_bf16(a->kv, token, a->kv_stride_elems, &state);
		draw_f32(a->compress_kv, token, a->compress_kv_stride_elems,
			 &state);
		draw_f32(a->compress_score, token,
			 a->compress_score_stride_elems, &state);
		draw_f32(a->index_kv, token, a->index_kv_stride_elems, &state);
		draw_f32(a->index_score, token, a->index_score_stride_elems,
			 &state);
		draw_bf16(a->index_q, token, a->index_q_token_stride_elems,
			  &state);
		draw_f32(a->index_weights, token, a->index_weights_stride_elems,
			 &state);
	}
}

spmla_status
v4_replay_enqueue(v4_replay_rig *r, const spmla_shape *shape,
		  spmla_source source)
{
	spmla_status s = spmla_step_prologue(r->f.ctx, shape, source, NULL);
	uint32_t l;

	for (l = 0; s == SPMLA_OK && l < V4_LAYERS; l++)
		s = spmla_v4_attn(r->f.ctx, &r->layer[l], shape, NULL, NULL);
	return s;
}

void
v4_replay_capture(v4_replay_rig *r)
{
	spmla_ctx *ctx = r->f.ctx;
	uint32_t b;

	for (b = 0; b < V4_BUCKETS; b++) {
		v32_must(ctx, spmla_graph_begin(ctx, NULL));
		v32_must(ctx, v4_replay_enqueue(r, &r->f.config.buckets[b],
						SPMLA_FROM_RING));
		v32_must(ctx, spmla_graph_end(ctx, &r->graph[b]));
	}
}

void
v4_replay_join(const v4_replay_rig *r, v4_draft *d, uint32_t row,
	       uint32_t query, uint32_t len)
{
	int32_t pages[V4_SIM_COLUMNS];
	uint32_t i, k;

	v4_draft_request(d, row, query, len, SPMLA_REQUEST_JOIN);
	for (i = 0; i < V4_SIM_TABLES; i++) {
		const uint32_t g = v4_sim_groups[i];
		const uint32_t n = r->f.plan.group_columns[g];

		for (k = 0; k < n; k++)
			pages[k] = (int32_t)(row + k * V4_ROWS);
		v4_draft_store(d, g, row, 0, n, pages);
	}
}

uint64_t
v4_replay_write(v4_replay_rig *r, v4_draft *d, spmla_step_info *info)
{
	uint64_t ticket = 0;

	v32_must(r->f.ctx,
		 spmla_step_write(r->f.ctx, v4_draft_step(d), &ticket, info));
	return ticket;
}

/* ---- Results ----------------------------------------------------------- */

static uint64_t
lse_bytes(const v4_layer_rig *r)
{
	return (uint64_t)r->tokens * r->heads * sizeof(float);
}

void
v4_replay_forget(v4_replay_rig *r)
{
	uint32_t l;

	for (l = 0; l < V4_LAYERS; l++) {
		const v4_layer_rig *v = &r->rig[l];

		memset(v->layer.out, 0xAB, v->out_bytes);
		memset(v->layer.lse, 0xAB, lse_bytes(v));
		memset(v->layer.z, 0xAB, v->z_bytes);
	}
	memset(spmla_view(r->f.ctx, SPMLA_BUF_TOPK_LENS, NULL), 0xAB,
	       r->f.plan.max_tokens * sizeof(int32_t));
	memset(spmla_view(r->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL), 0xAB,
	       (uint64_t)r->f.plan.max_tokens * r->f.plan.config.topk *
		       sizeof(int32_t));
}

static void
equal(const void *a, const void *b, uint64_t bytes, uint64_t step, uint32_t l,
      const char *what)
{
	if (memcmp(a, b, (size_t)bytes) != 0)
		ck_abort_msg("step %llu, layer %u: %s differs",
			     (unsigned long long)step, l, what);
}

/* The entries of TOPK_INDICES are set up to the length. */
static void
equal_selection(const v4_replay_rig *a, const v4_replay_rig *b,
		const spmla_shape *shape, uint64_t step)
{
	const uint32_t topk = a->f.plan.config.topk;
	const int32_t *lens[2] = {
		spmla_view(a->f.ctx, SPMLA_BUF_TOPK_LENS, NULL),
		spmla_view(b->f.ctx, SPMLA_BUF_TOPK_LENS, NULL)};
	const int32_t *indices[2] = {
		spmla_view(a->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL),
		spmla_view(b->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL)};

	equal(lens[0], lens[1], shape->tokens * sizeof **lens, step, 1,
	      "the selections' length");
	equal(indices[0], indices[1],
	      (uint64_t)shape->tokens * topk * sizeof **indices, step, 1,
	      "the selection");
}

static const spmla_buf caches[] = {
	SPMLA_BUF_KV_CACHE,          SPMLA_BUF_INDEX_CACHE,
	SPMLA_BUF_C4A_CACHE,         SPMLA_BUF_STATE_C4A_CACHE,
	SPMLA_BUF_STATE_INDEX_CACHE, SPMLA_BUF_C128A_CACHE,
	SPMLA_BUF_STATE_C128A_CACHE};

void
v4_replay_expect_equal(const v4_replay_rig *a, const v4_replay_rig *b,
		       const spmla_shape *shape, uint64_t step)
{
	uint64_t bytes;
	uint32_t i;

	for (i = 0; i < V4_LAYERS; i++) {
		const v4_layer_rig *x = &a->rig[i], *y = &b->rig[i];

		equal(x->layer.out, y->layer.out, x->out_bytes, step, i, "out");
		equal(x->layer.lse, y->layer.lse, lse_bytes(x), step, i, "lse");
		equal(x->layer.z, y->layer.z, x->z_bytes, step, i, "z");
		equal(x->layer.q, y->layer.q, x->q_bytes, step, i, "q");
	}
	equal_selection(a, b, shape, step);
	for (i = 0; i < sizeof caches / sizeof caches[0]; i++) {
		const void *x = spmla_view(a->f.ctx, caches[i], &bytes);

		equal(x, spmla_view(b->f.ctx, caches[i], NULL), bytes, step, i,
		      "a cache");
	}
}

static void
expect_none(const v4_replay_rig *r, uint32_t token)
{
	const uint32_t topk = r->f.plan.config.topk;
	const int32_t *lens = spmla_view(r->f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
	const int32_t *indices =
		spmla_view(r->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
	uint32_t i;

	ck_assert_int_eq(lens[token], 0);
	for (i = 0; i < topk; i++)
		ck_assert_int_eq(indices[token * topk + i], -1);
}

void
v4_replay_expect_empty(const v4_replay_rig *r, uint32_t token)
{
	const uint32_t columns = (uint32_t)r->layer[1].z_token_stride_elems;
	const uint16_t *z = r->layer[1].z;
	uint32_t l, i;

	for (l = 0; l < V4_LAYERS; l++) {
		const v4_layer_rig *v = &r->rig[l];
		const uint16_t *out = v->layer.out + token * v->heads * 512;

		for (i = 0; i < v->heads * 512; i++)
			ck_assert_uint_eq(out[i], 0);
		for (i = 0; i < v->heads; i++)
			ck_assert(v->layer.lse[token * v->heads + i] ==
				  (l == 1 ? -INFINITY : INFINITY));
	}
	for (i = 0; i < columns; i++)
		ck_assert_uint_eq(z[token * columns + i], 0);
	expect_none(r, token);
}

uint64_t
v4_replay_cache_hash(const v4_replay_rig *r)
{
	uint64_t hash = 1, bytes;
	uint32_t i;

	for (i = 0; i < sizeof caches / sizeof caches[0]; i++) {
		const void *at = spmla_view(r->f.ctx, caches[i], &bytes);

		hash = test_hash(hash, at, bytes);
	}
	return hash;
}
