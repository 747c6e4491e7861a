/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole steps: the prologue alone, a layer, all layers of a model, and the same
 * live context in a plan for short and for long contexts. They are replays of
 * the library's own graphs, with a record written before each.
 */
#include "bench/step/cuda_steps.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS = 61, LONGEST = 1 << 20 /* tokens of a plan */ };

/* ---- The prologue ------------------------------------------------------- */

/* The STEP buffers: elements for n requests of one token each. */
static const struct {
	spmla_buf buf;
	uint32_t each, one_more;
} made[] = {
	{SPMLA_BUF_QUERY_START_LOC, 4, 1},   {SPMLA_BUF_SEQ_LENS, 4, 0},
	{SPMLA_BUF_REQ_ROW, 4, 0},           {SPMLA_BUF_REQ_ID_PER_TOKEN, 4, 0},
	{SPMLA_BUF_TOKEN_ROW, 4, 0},         {SPMLA_BUF_POSITIONS, 4, 0},
	{SPMLA_BUF_CONTEXT_LENS, 4, 0},      {SPMLA_BUF_SLOT_MAPPING, 8, 0},
	{SPMLA_BUF_LOGITS_ROW_STARTS, 8, 1},
};

enum { MADE = sizeof made / sizeof *made };

SPMLA_STATIC_ASSERT(sizeof made / sizeof *made <= (size_t)OUTPUTS,
		    "all of them are spoilt");

static twin
view_of(uint32_t i, uint32_t n)
{
	twin t = {{spmla_view(st.cpu.ctx, made[i].buf, NULL),
		   spmla_view(st.gpu.ctx, made[i].buf, NULL)},
		  (uint64_t)(n + made[i].one_more) * made[i].each};

	return t;
}

static void
check_prologue(gpu *g, cuda_row *r, uint32_t n)
{
	spmla_ctx *cpu = st.cpu.ctx;
	uint64_t ticket;
	uint32_t i;

	lib_must(cpu, spmla_step_write(cpu, &st.step, &ticket, NULL),
		 "spmla_step_write");
	lib_must(cpu,
		 spmla_step_prologue(cpu, &st.shape, SPMLA_FROM_RING, NULL),
		 "spmla_step_prologue");
	for (i = 0; i < MADE; i++) {
		const twin t = view_of(i, n);

		check_bytes(g, r, &t, 0, t.bytes);
	}
}

/* The same requests where the device has them. */
static void
push_step_device(gpu *g, uint32_t n)
{
	const spmla_step_device head = {.requests = n};
	const uintptr_t to =
		(uintptr_t)spmla_view(st.gpu.ctx, SPMLA_BUF_STEP_DEVICE, NULL);

	CU(g, push, (to, &head, sizeof head));
	CU(g, push, (to + 64, st.requests, n * sizeof *st.requests));
	CU(g, sync_all, ());
}

static cuda_row *
one_prologue(gpu *g, uint32_t n, spmla_source source)
{
	shot s = {.op = "step_prologue", .launch = steps_launch};
	twin views[MADE];
	cuda_row *r;
	uint32_t i;

	st.shape = (spmla_shape){n, n, 1, 0};
	st.source = source;
	st.layers = 0;
	steps_record(g, n, 0);
	steps_capture(g);
	s.nodes = st.nodes;
	if (source == SPMLA_FROM_RING)
		s.prepare = steps_prepare;
	else
		push_step_device(g, n);
	for (i = 0; i < MADE; i++) {
		views[i] = view_of(i, n);
		s.outputs[i] = &views[i];
	}
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "%u requests, %u heads, %s", n,
		 ly.heads,
		 source == SPMLA_FROM_RING ? "FROM_RING" : "FROM_DEVICE");
	if (ly.heads == HEADS)
		snprintf(r->series, sizeof r->series, "step_prologue %s",
			 source == SPMLA_FROM_RING ? "ring" : "device");
	r->batch = n;
	add_floor(g, r, n * (double)(sizeof(spmla_request) + 48), BY_READ, 0,
		  NO_PRODUCT);
	check_prologue(g, r, n);
	table_row(g, r);
	return r;
}

/* What is done in parts the prologue plans too: of 1 and 32 tokens with any
 * heads, of 192 with 64; of 256 nothing is. */
static void
bench_prologue(gpu *g, uint32_t rows, uint32_t context, uint32_t heads)
{
	static const uint32_t batches[] = {1, 32, 192, 256};
	static const spmla_source sources[] = {SPMLA_FROM_RING,
					       SPMLA_FROM_DEVICE};
	cuda_row *r = NULL;
	uint32_t i, j;

	steps_open(g, rows, context, heads);
	for (j = 0; j < 2; j++)
		for (i = 0; i < 4 && batches[i] <= rows; i++)
			if ((heads == HEADS) == (batches[i] != 192))
				r = one_prologue(g, batches[i], sources[j]);
	steps_close(g, r);
}

/* ---- Layers ------------------------------------------------------------- */

/* The first request, or two, by the CPU. */
static void
check_layer(gpu *g, cuda_row *r, uint32_t n)
{
	const spmla_v32_layer layer = layer_of(&ly, ON_HOST);
	const uint32_t some = n < 2 ? n : 2;
	const spmla_shape shape = {some, some, 1, 0};
	const uint64_t head = SPMLA_MLA_LATENT;
	spmla_step step = st.step;
	spmla_ctx *cpu = st.cpu.ctx;
	uint64_t ticket;

	step.request_count = some;
	step.store_count = 0;
	lib_must(cpu, spmla_step_write(cpu, &step, &ticket, NULL),
		 "spmla_step_write");
	lib_must(cpu, spmla_step_prologue(cpu, &shape, SPMLA_FROM_RING, NULL),
		 "spmla_step_prologue");
	lib_must(cpu, spmla_v32_attn(cpu, &layer, &shape, NULL),
		 "spmla_v32_attn");
	check_selected(g, r, ly.out, 0, some * ly.heads * head, ly.topk);
	check_f32(g, r, ly.lse, 0, some * (uint64_t)ly.heads);
}

static void
layer_floor(gpu *g, cuda_row *r, uint32_t n, uint32_t len)
{
	const double keys = (double)n * len * st.layers;
	const double picked =
		(double)n * st.layers * (len < ly.topk ? len : ly.topk);
	const double heads = (double)n * ly.heads * st.layers;
	const double dims = SPMLA_MLA_DIM + SPMLA_MLA_LATENT;

	add_floor(g, r, (double)n * st.layers * (1152 + 656 + 256 + 132),
		  BY_COPY, 0, NO_PRODUCT);
	add_floor(g, r,
		  keys * SPMLA_INDEX_FP8_BYTES +
			  (double)n * st.layers * ly.index_heads * 256,
		  BY_READ, keys * ly.index_heads * SPMLA_INDEX_DIM * 2, E4M3);
	add_floor(g, r, picked * SPMLA_FP8_DS_MLA_BYTES + heads * dims * 2,
		  BY_READ, 2 * picked * ly.heads * dims, BF16);
}

static cuda_row *
one_step(gpu *g, uint32_t n, uint32_t len, uint32_t layers, const char *what)
{
	shot s = {.op = "v32_attn",
		  .prepare = steps_prepare,
		  .launch = steps_launch};
	cuda_row *r;

	st.shape = (spmla_shape){n, n, 1, 0};
	st.source = SPMLA_FROM_RING;
	st.layers = layers;
	steps_record(g, n, len);
	steps_capture(g);
	s.nodes = st.nodes;
	s.outputs[0] = ly.out, s.outputs[1] = ly.lse;
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "%u x %u tokens, %s", n, len, what);
	r->batch = n;
	layer_floor(g, r, n, len);
	check_layer(g, r, n);
	table_row(g, r);
	return r;
}

/* The same step in plans of two contexts. */
static void
bench_live(gpu *g, double us[2])
{
	static const uint32_t contexts[2] = {4096, LONGEST};
	static const char *const names[2] = {"plan of 4k", "plan of 1M"};
	const uint32_t n = g->tiny ? 2 : 32;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		cuda_row *r;

		steps_open(g, n, contexts[i], g->tiny ? 8 : HEADS);
		r = one_step(g, n, g->tiny ? 200 : 2048, 1, names[i]);
		steps_close(g, r);
		us[i] = r->cold;
	}
}

/* Pages for that many requests of `len` tokens, in random order. */
static void
set_pages(gpu *g, uint32_t rows, uint32_t len)
{
	twin *order;

	st.row_pages = len / PAGE;
	st.pool_pages = rows * st.row_pages;
	order = twin_make(g, st.pool_pages * (uint64_t)4);
	fill_order(g, order->at[ON_HOST], st.pool_pages);
	st.pages = order->at[ON_HOST];
}

/* A layer by itself. The pools of the largest take 6.6 GB of either side. */
static void
bench_layers(gpu *g, uint32_t len)
{
	static const uint32_t batches[3] = {1, 32, 128};
	const uint32_t many = len == 8192 || g->longer ? 3 : 2;
	const uint32_t count = g->tiny ? 1 : many, rows = batches[count - 1];
	cuda_row *r = NULL;
	uint32_t i;

	set_pages(g, rows, len);
	ly.tokens = rows;
	layer_make(g, &ly, 131072, st.pool_pages);
	steps_open(g, rows, 131072, g->tiny ? 8 : HEADS);
	for (i = 0; i < count; i++)
		r = one_step(g, batches[i], len, 1, "1 layer");
	steps_close(g, r);
	twins_free(g);
}

void
bench_steps(gpu *g)
{
	const uint32_t most = g->tiny ? 2 : MOST_REQUESTS;
	const uint32_t context = g->tiny ? 4096 : 131072;
	const uint32_t len = g->tiny ? 256 : 4096;
	double live[2], one, all;
	cuda_row *r;

	set_pages(g, MOST_REQUESTS, len);
	if (wanted(g, "step_prologue")) {
		bench_prologue(g, most, context, HEADS);
		if (!g->tiny)
			bench_prologue(g, most, context, 64);
	}
	if (wanted(g, "v32_attn")) {
		ly.tokens = most;
		layer_make(g, &ly, LONGEST, st.pool_pages);
		bench_live(g, live);
		steps_open(g, most, context, g->tiny ? 8 : HEADS);
		one = one_step(g, most, len, 1, "1 layer")->cold;
		r = one_step(g, most, len, g->tiny ? 2 : LAYERS,
			     g->tiny ? "2 layers" : "61 layers");
		all = r->cold;
		printf("\nLive length: %.1f us in a plan of 4k, %.1f us in one "
		       "of 1M: %.3f of it%s.\n",
		       live[0], live[1], live[1] / live[0],
		       live[1] > 1.1 * live[0] ? ", MORE THAN 10 %" : "");
		host_head();
		host_row(g, g->tiny ? "2 layers" : "61 layers", all);
		st.layers = 1;
		steps_capture(g);
		host_row(g, "1 layer", one);
		steps_close(g, r);
	}
	twins_free(g);
	if (wanted(g, "v32_attn")) {
		table_head(g);
		bench_layers(g, g->tiny ? 512 : 8192);
		if (!g->tiny)
			bench_layers(g, 65536);
	}
}
