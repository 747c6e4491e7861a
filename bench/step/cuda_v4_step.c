/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and graphs of a V4 step, and the prologue alone, with all metadata of
 * the three kinds of layers: replays of the library's own graph, with a record
 * written before each that has pages for some requests, as in the steps of V3.2.
 */
#include "bench/step/cuda_v4_steps.h"

#include <stdio.h>
#include <string.h>

v4_bench v4;

/* The STEP buffers: bytes of a token, and elements beyond the tokens. Rows of
 * the window are full, as no context is shorter. */
static const struct {
	spmla_buf buf;
	uint32_t each, more;
} made[] = {
	{SPMLA_BUF_CONTEXT_LENS, 4, 0},
	{SPMLA_BUF_SLOT_MAPPING, 8, 0},
	{SPMLA_BUF_LOGITS_ROW_STARTS, 8, 1},
	{SPMLA_BUF_COMPRESSED_LENS, 4, 0},
	{SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A, 8, 0},
	{SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A, 8, 0},
	{SPMLA_BUF_SWA_INDICES, 4 * WINDOW, 0},
	{SPMLA_BUF_SWA_LENS, 4, 0},
	{SPMLA_BUF_C128A_LENS, 4, 0},
};

enum { MADE = sizeof made / sizeof *made };

SPMLA_STATIC_ASSERT(sizeof made / sizeof *made < (size_t)OUTPUTS,
		    "all of them are spoilt, and C128A_INDICES");

/* Row r of a group has the pages from r * columns on. */
static void
write_tables(gpu *g, const world *w)
{
	static const struct {
		uint32_t group;
		spmla_buf staging;
	} tables[] = {
		{SPMLA_GROUP_SWA, SPMLA_BUF_TABLE_STAGING},
		{SPMLA_GROUP_C4A, SPMLA_BUF_TABLE_STAGING_C4A},
		{SPMLA_GROUP_C128A, SPMLA_BUF_TABLE_STAGING_C128A},
		{SPMLA_GROUP_STATE_C4A, SPMLA_BUF_TABLE_STAGING_STATE_C4A},
		{SPMLA_GROUP_STATE_C128A, SPMLA_BUF_TABLE_STAGING_STATE_C128A},
	};
	void *const stream = w->on == ON_DEVICE ? g->stream : NULL;
	uint32_t i, row, c;

	for (i = 0; i < sizeof tables / sizeof *tables; i++) {
		const uint32_t columns = w->plan.group_columns[tables[i].group];
		int32_t *staged = spmla_view(w->ctx, tables[i].staging, NULL);

		for (row = 0; row < w->plan.config.max_rows; row++) {
			for (c = 0; c < columns; c++)
				staged[(size_t)row * columns + c] =
					(int32_t)(row * columns + c);
			lib_must(w->ctx,
				 spmla_table_write(w->ctx, tables[i].group, row,
						   0, columns, stream),
				 "spmla_table_write");
		}
	}
	CU(g, stream_sync, (g->stream));
}

void
v4_open(gpu *g, spmla_model model, uint32_t rows, uint32_t context,
	uint32_t layers)
{
	spmla_config config;
	uint32_t i;

	lib_must(NULL, spmla_config_preset(&config, model),
		 "spmla_config_preset");
	if (g->tiny)
		config.heads = 8;
	config.cache_layers = config.c4a_layers = config.c128a_layers = layers;
	config.max_graphs = 16;
	config.max_rows = rows;
	config.max_context_tokens = context;
	for (i = 0; i < SPMLA_V4_GROUPS; i++)
		config.groups[i].pool_pages = rows * (context / 256 + 8);
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){rows, rows, 1, 0};
	v4.most = rows;
	v4.growing = STORES;
	world_open(g, &v4.gpu, &config, ON_DEVICE);
	world_open(g, &v4.cpu, &config, ON_HOST);
	write_tables(g, &v4.gpu);
	write_tables(g, &v4.cpu);
}

void
v4_close(gpu *g)
{
	CU(g, sync_all, ());
	world_close(g, &v4.gpu);
	world_close(g, &v4.cpu);
}

/* The record's stores are pages that the requests have. */
static void
make_record(uint32_t n)
{
	const uint32_t columns = v4.gpu.plan.group_columns[SPMLA_GROUP_C4A];
	uint32_t i;

	for (i = 0; i < v4.growing && i < n; i++) {
		v4.pages[i] = (int32_t)(i * columns);
		v4.stores[i] = (spmla_table_store){SPMLA_GROUP_C4A, i, 0, 1,
						   &v4.pages[i]};
	}
	v4.step = (spmla_step){
		(uint32_t)sizeof v4.step, 0, n, i, v4.requests, v4.stores};
}

void
v4_prologue(gpu *g)
{
	lib_must(v4.gpu.ctx,
		 spmla_step_prologue(v4.gpu.ctx, &v4.shape, v4.source,
				     g->stream),
		 "spmla_step_prologue");
}

void
v4_record(gpu *g, uint32_t n, void (*run)(gpu *g))
{
	v4.shape = (spmla_shape){n, n, 1, 0};
	make_record(n);
	v4.nodes = count_nodes(g, run);
	lib_must(v4.gpu.ctx, spmla_graph_begin(v4.gpu.ctx, g->stream),
		 "spmla_graph_begin");
	run(g);
	lib_must(v4.gpu.ctx, spmla_graph_end(v4.gpu.ctx, &v4.graph),
		 "spmla_graph_end");
}

void
v4_prepare(gpu *g)
{
	(void)g;
	lib_must(v4.gpu.ctx,
		 spmla_step_write(v4.gpu.ctx, &v4.step, &v4.ticket, NULL),
		 "spmla_step_write");
}

void
v4_launch(gpu *g)
{
	const uint64_t ticket = v4.source == SPMLA_FROM_RING ? v4.ticket : 0;

	lib_must(v4.gpu.ctx,
		 spmla_graph_replay(v4.gpu.ctx, v4.graph, ticket, g->stream),
		 "spmla_graph_replay");
}

static twin
view_of(uint32_t i, uint32_t n)
{
	twin t = {{spmla_view(v4.cpu.ctx, made[i].buf, NULL),
		   spmla_view(v4.gpu.ctx, made[i].buf, NULL)},
		  (uint64_t)(n + made[i].more) * made[i].each};

	return t;
}

static twin
c128a_rows(void)
{
	twin t;

	t.at[ON_HOST] =
		spmla_view(v4.cpu.ctx, SPMLA_BUF_C128A_INDICES, &t.bytes);
	t.at[ON_DEVICE] = spmla_view(v4.gpu.ctx, SPMLA_BUF_C128A_INDICES, NULL);
	return t;
}

/* What is behind a row's keys is nobody's. */
static void
check_c128a(gpu *g, cuda_row *r, uint32_t n)
{
	const int32_t *lens =
		spmla_view(v4.cpu.ctx, SPMLA_BUF_C128A_LENS, NULL);
	const twin rows = c128a_rows();
	uint32_t t;

	for (t = 0; t < n; t++)
		if (lens[t])
			check_bytes(g, r, &rows, t * (rows.bytes / v4.most),
				    4 * (uint64_t)lens[t]);
}

void
v4_status(gpu *g, const cuda_row *r)
{
	spmla_device_status s = SPMLA_DEVICE_STATUS_INIT;

	lib_must(v4.gpu.ctx, spmla_status_read(v4.gpu.ctx, &s),
		 "spmla_status_read");
	if (s.count) {
		g->wrong++;
		printf("\nWRONG: %s: %u faults, the first %s of row %u\n",
		       r->shape, s.count, spmla_fault_name(s.fault), s.row);
	}
}

void
v4_host_step(uint32_t n)
{
	const spmla_shape shape = {n, n, 1, 0};
	spmla_ctx *cpu = v4.cpu.ctx;
	spmla_step step = v4.step;
	uint64_t ticket;

	step.request_count = n;
	step.store_count = 0;
	lib_must(cpu, spmla_step_write(cpu, &step, &ticket, NULL),
		 "spmla_step_write");
	lib_must(cpu, spmla_step_prologue(cpu, &shape, SPMLA_FROM_RING, NULL),
		 "spmla_step_prologue");
}

static void
check(gpu *g, cuda_row *r, uint32_t n)
{
	uint32_t i;

	v4_host_step(n);
	for (i = 0; i < MADE; i++) {
		const twin t = view_of(i, n);

		check_bytes(g, r, &t, 0, t.bytes);
	}
	check_c128a(g, r, n);
	v4_status(g, r);
}

static void
one_prologue(gpu *g, uint32_t n, uint32_t context, uint32_t growing,
	     spmla_source source)
{
	shot s = {.op = "step_prologue", .launch = v4_launch};
	twin views[MADE], rows = c128a_rows();
	uint32_t i;
	cuda_row *r;

	v4.source = source;
	v4.growing = growing;
	for (i = 0; i < n; i++) /* of `context` tokens in the mean */
		v4.requests[i] = (spmla_request){
			i, 1,
			WINDOW + (uint32_t)(next_random(g) %
					    (2 * (context - WINDOW))),
			0};
	v4_record(g, n, v4_prologue);
	s.nodes = v4.nodes;
	if (source == SPMLA_FROM_RING) {
		s.prepare = v4_prepare;
	} else {
		const spmla_step_device head = {.requests = n};
		const uintptr_t to = (uintptr_t)spmla_view(
			v4.gpu.ctx, SPMLA_BUF_STEP_DEVICE, NULL);

		CU(g, push, (to, &head, sizeof head));
		CU(g, push, (to + 64, v4.requests, n * sizeof *v4.requests));
		CU(g, sync_all, ());
	}
	for (i = 0; i < MADE; i++) {
		views[i] = view_of(i, n);
		s.outputs[i] = &views[i];
	}
	s.outputs[MADE] = &rows;
	r = measure(g, &s);
	snprintf(r->shape, sizeof r->shape, "V4, %u requests of %uk, %s%s", n,
		 context / 1024, growing > STORES ? "a page each, " : "",
		 source == SPMLA_FROM_RING ? "FROM_RING" : "FROM_DEVICE");
	r->batch = n;
	add_floor(g, r,
		  n * (double)(sizeof(spmla_request) + 80 + 8 * WINDOW +
			       context / 32),
		  BY_COPY, 0, NO_PRODUCT);
	check(g, r, n);
	table_row(g, r);
}

void
bench_v4_steps(gpu *g)
{
	const uint32_t most = g->tiny ? 4 : V4_MOST;
	const uint32_t contexts[2] = {g->tiny ? 512 : 8192, 131072};
	uint32_t i;

	if (!wanted(g, "step_prologue"))
		return;
	for (i = 0; i < (g->tiny ? 1u : 2u); i++) {
		v4_open(g, SPMLA_MODEL_V4_PRO, most, 2 * contexts[i], 0);
		one_prologue(g, 1, contexts[i], STORES, SPMLA_FROM_RING);
		one_prologue(g, most, contexts[i], STORES, SPMLA_FROM_RING);
		one_prologue(g, most, contexts[i], STORES, SPMLA_FROM_DEVICE);
		if (i == 0 && most > STORES)
			one_prologue(g, most, contexts[i], most,
				     SPMLA_FROM_RING);
		v4_close(g);
	}
}
