/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of V4 behind its prologue, of each kind: insert, compress, index,
 * attend, output. Contexts end where a group of 4 and one of 128 end, so that
 * each request has keys to compress. A replay norms and rotates the queries
 * again; what is compared is one replay of the queries as they were made.
 */
#include "bench/step/cuda_v4_steps.h"

#include <stdio.h>

#include "spmla/ops/ops.h"
#include "spmla/v4.h"

enum { GROUP_HEADS = 8, INNER = GROUP_HEADS * SPMLA_V4_DIM };

static struct {
	uint32_t ratio, groups, columns; /* of an output matrix */
	const char *model;
	const twin *q, *kv, *rope, *out, *z, *wo, *wo_scales;
	const twin *values, *scores, *ape, *norm;
	const twin *index_q, *index_weights;
} vl;

static spmla_v4_layer
layer_of(side on)
{
	spmla_ctx *const ctx = on == ON_HOST ? v4.cpu.ctx : v4.gpu.ctx;
	spmla_v4_layer l;

	lib_must(ctx, spmla_v4_layer_preset(ctx, vl.ratio, 0, 0, &l),
		 "spmla_v4_layer_preset");
	l.cos_sin = vl.rope->at[on];
	l.q = vl.q->at[on];
	l.kv = vl.kv->at[on];
	l.compress_kv = l.index_kv = vl.values->at[on];
	l.compress_score = l.index_score = vl.scores->at[on];
	l.ape = l.index_ape = vl.ape->at[on];
	l.norm_weight = l.index_norm_weight = vl.norm->at[on];
	l.index_q = vl.index_q->at[on];
	l.index_weights = vl.index_weights->at[on];
	l.index_weights_dtype = SPMLA_DTYPE_F32;
	l.out = vl.out->at[on];
	l.output_quant = SPMLA_O_FP8;
	l.output_groups = vl.groups;
	l.output_columns = vl.columns;
	l.wo = vl.wo->at[on];
	l.wo_group_stride_elems = (int64_t)vl.columns * INNER;
	l.wo_row_stride_elems = INNER;
	l.wo_scales = vl.wo_scales->at[on];
	l.wo_scale_group_stride_elems = vl.columns / 128 * (INNER / 128);
	l.wo_scale_row_stride_elems = INNER / 128;
	l.z = vl.z->at[on];
	l.z_token_stride_elems = (int64_t)vl.groups * vl.columns;
	l.z_group_stride_elems = vl.columns;
	return l;
}

static void
run_layer(gpu *g)
{
	const spmla_v4_layer layer = layer_of(ON_DEVICE);

	v4_prologue(g);
	lib_must(v4.gpu.ctx,
		 spmla_v4_attn(v4.gpu.ctx, &layer, &v4.shape, NULL, g->stream),
		 "spmla_v4_attn");
}

/* Draws a planned pool, of keys or of states. */
static void
draw_pool(gpu *g, spmla_buf buf)
{
	spmla_cache host = SPMLA_CACHE_INIT, device = SPMLA_CACHE_INIT;
	twin t;

	lib_must(v4.cpu.ctx, spmla_cache_view(v4.cpu.ctx, buf, 0, &host),
		 "spmla_cache_view");
	lib_must(v4.gpu.ctx, spmla_cache_view(v4.gpu.ctx, buf, 0, &device),
		 "spmla_cache_view");
	t.at[ON_HOST] = host.base;
	t.at[ON_DEVICE] = device.base;
	t.bytes = host.pages * host.page_stride_bytes;
	if (host.layout == SPMLA_LAYOUT_V4_FP8 ||
	    host.layout == SPMLA_LAYOUT_INDEX_FP8) {
		fill_pool(g, &t, host.layout, host.entries_per_page);
		return;
	}
	fill_f32(g, t.at[ON_HOST], t.bytes / 4, -1, 1);
	twin_push(g, &t);
}

/* Draws all pools and makes the layer's tensors. */
static void
make_layers(gpu *g, uint32_t rows)
{
	const spmla_config *c = &v4.gpu.plan.config;
	static const spmla_buf pools[] = {
		SPMLA_BUF_KV_CACHE,          SPMLA_BUF_C4A_CACHE,
		SPMLA_BUF_INDEX_CACHE,       SPMLA_BUF_C128A_CACHE,
		SPMLA_BUF_STATE_C4A_CACHE,   SPMLA_BUF_STATE_INDEX_CACHE,
		SPMLA_BUF_STATE_C128A_CACHE,
	};
	const uint64_t heads = (uint64_t)rows * c->heads;
	uint64_t columns;
	uint32_t i;

	for (i = 0; i < sizeof pools / sizeof *pools; i++)
		draw_pool(g, pools[i]);
	vl.groups = c->heads / GROUP_HEADS;
	vl.columns = g->tiny ? 128 : 1024;
	columns = (uint64_t)vl.groups * vl.columns;
	vl.q = make_bf16(g, heads * SPMLA_V4_DIM, 2);
	vl.kv = make_bf16(g, (uint64_t)rows * SPMLA_V4_DIM, 2);
	vl.rope = make_f32(g, (uint64_t)c->max_context_tokens * SPMLA_MLA_ROPE,
			   -1, 1);
	vl.values = make_f32(g, (uint64_t)rows * 2 * SPMLA_V4_DIM, -1, 1);
	vl.scores = make_f32(g, (uint64_t)rows * 2 * SPMLA_V4_DIM, -1, 1);
	vl.ape = make_f32(g, UINT64_C(128) * SPMLA_V4_DIM, -1, 1);
	vl.norm = make_f32(g, SPMLA_V4_DIM, 0.5f, 1.5f);
	vl.index_q = make_bf16(
		g, (uint64_t)rows * c->index_heads * SPMLA_INDEX_DIM, 2);
	vl.index_weights = make_f32(g, (uint64_t)rows * c->index_heads, -1, 1);
	vl.out = twin_make(g, heads * SPMLA_V4_DIM * 2);
	vl.z = twin_make(g, rows * columns * 2);
	vl.wo = make_codes(g, columns * INNER);
	vl.wo_scales = make_f32(g, columns / 128 * (INNER / 128), 0.05f, 0.1f);
}

/* The first request, or two, by the CPU. Not their output: where results
 * differ in the last place, some have another e4m3. */
static void
check_layer(gpu *g, cuda_row *r, uint32_t n)
{
	const uint32_t some = n < 2 ? n : 2;
	const spmla_shape shape = {some, some, 1, 0};
	const spmla_v4_layer layer = layer_of(ON_HOST);
	const uint64_t heads = v4.cpu.plan.config.heads;

	twin_push(g, vl.q);
	v4_prepare(g);
	v4_launch(g);
	CU(g, stream_sync, (g->stream));
	v4_host_step(some);
	lib_must(v4.cpu.ctx,
		 spmla_v4_attn(v4.cpu.ctx, &layer, &shape, NULL, NULL),
		 "spmla_v4_attn");
	if (vl.ratio == 4)
		check_selected(g, r, vl.out, 0, some * heads * SPMLA_V4_DIM,
			       WINDOW + v4.cpu.plan.config.topk);
	else
		check_bf16(g, r, vl.out, 0, some * heads * SPMLA_V4_DIM);
	v4_status(g, r);
}

static void
layer_floor(gpu *g, cuda_row *r, uint32_t n, uint32_t len)
{
	const spmla_config *c = &v4.gpu.plan.config;
	const double keys = vl.ratio > 1 ? (double)n * (len / vl.ratio) : 0;
	const double most = vl.ratio == 4 ? (double)n * c->topk : keys;
	const double picked = n * (double)WINDOW + (keys < most ? keys : most);
	const double heads = (double)n * c->heads;
	/* Rows of a group's state, the others' part of it at ratio 4 twice. */
	const double state = vl.ratio == 4     ? 8 * 4096 + 8 * 1024
			     : vl.ratio == 128 ? 128 * 4096
					       : 0;

	add_floor(g, r, heads * 4 * SPMLA_V4_DIM + n * (1024.0 + state),
		  BY_COPY, 0, NO_PRODUCT);
	if (vl.ratio == 4)
		add_floor(g, r,
			  keys * SPMLA_INDEX_FP8_BYTES +
				  (double)n * c->index_heads * 256,
			  BY_READ, keys * c->index_heads * SPMLA_INDEX_DIM * 2,
			  E4M3);
	add_floor(g, r,
		  picked * (SPMLA_V4_VALUE_BYTES + SPMLA_V4_SCALE_BYTES) +
			  heads * 4 * SPMLA_V4_DIM,
		  BY_READ, 2 * picked * c->heads * 2 * SPMLA_V4_DIM, BF16);
	add_floor(g, r, (double)vl.wo->bytes + heads * SPMLA_V4_DIM, BY_READ,
		  2 * heads * SPMLA_V4_DIM * vl.columns, E4M3);
}

static void
one_layer(gpu *g, uint32_t n, uint32_t len)
{
	shot s = {.op = "v4_attn", .prepare = v4_prepare, .launch = v4_launch};
	cuda_row *r;
	uint32_t i;

	for (i = 0; i < n; i++)
		v4.requests[i] = (spmla_request){i, 1, len, 0};
	v4.source = SPMLA_FROM_RING;
	v4_record(g, n, run_layer);
	s.nodes = v4.nodes;
	s.outputs[0] = vl.out, s.outputs[1] = vl.z;
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "V4-%s, ratio %u, %u x %u tokens",
		 vl.model, vl.ratio, n, len);
	r->batch = n;
	layer_floor(g, r, n, len);
	check_layer(g, r, n);
	table_row(g, r);
}

/* The pools of the largest take 1.5 GB of either side. */
void
bench_v4_layers(gpu *g)
{
	static const struct {
		spmla_model model;
		const char *name;
	} models[] = {{SPMLA_MODEL_V4_FLASH, "Flash"},
		      {SPMLA_MODEL_V4_PRO, "Pro"}};
	static const uint32_t ratios[] = {1, 4, 128};
	const uint32_t many = g->tiny ? 2 : 64;
	const uint32_t len = g->tiny ? 1024 : 131072;
	uint32_t i, j;

	for (i = 0; i < (g->tiny ? 1 : 2) && wanted(g, "v4_attn"); i++) {
		v4_open(g, models[i].model, many, len, 1);
		make_layers(g, many);
		vl.model = models[i].name;
		for (j = 0; j < 3; j++) {
			vl.ratio = ratios[j];
			one_layer(g, 1, len);
			one_layer(g, many, len);
		}
		v4_close(g);
		twins_free(g);
	}
}
