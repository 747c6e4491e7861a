/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of the bench is made of: contexts, tables, the record, the graph
 * and a layer's tensors. All layers of a graph have the same ones: their caches
 * are larger than the L2 together, so none finds the other's keys there.
 */
#include "bench/step/cuda_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOST_REPEATS = 200 };

step_bench st;
layer_twins ly;

/* ---- Contexts ----------------------------------------------------------- */

static void
write_tables(gpu *g, const world *w, uint32_t rows)
{
	void *const stream = w->on == ON_DEVICE ? g->stream : NULL;
	int32_t *staged = spmla_view(w->ctx, SPMLA_BUF_TABLE_STAGING, NULL);
	uint32_t row;

	for (row = 0; row < rows; row++) {
		memcpy(staged + (size_t)row * w->plan.columns,
		       st.pages + (size_t)row * st.row_pages,
		       st.row_pages * sizeof *staged);
		lib_must(w->ctx,
			 spmla_table_write(w->ctx, SPMLA_GROUP_MAIN, row, 0,
					   st.row_pages, stream),
			 "spmla_table_write");
	}
	CU(g, stream_sync, (g->stream));
}

void
steps_open(gpu *g, uint32_t rows, uint32_t context, uint32_t heads)
{
	static const uint32_t sizes[] = {1, 32, 192, 256};
	spmla_config config;
	uint32_t i;

	lib_must(NULL, spmla_config_preset(&config, SPMLA_MODEL_V32),
		 "spmla_config_preset");
	config.heads = ly.heads = heads;
	config.topk = ly.topk = g->tiny ? 64 : 2048;
	ly.index_heads = config.index_heads;
	config.max_rows = rows;
	config.max_context_tokens = context;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = st.pool_pages;
	config.max_graphs = 16;
	for (i = 0; i < 4 && sizes[i] <= rows; i++)
		config.buckets[config.bucket_count++] =
			(spmla_shape){sizes[i], sizes[i], 1, 0};
	if (sizes[i - 1] < rows)
		config.buckets[config.bucket_count++] =
			(spmla_shape){rows, rows, 1, 0};
	world_open(g, &st.gpu, &config, ON_DEVICE);
	world_open(g, &st.cpu, &config, ON_HOST);
	write_tables(g, &st.gpu, rows);
	write_tables(g, &st.cpu, rows);
}

void
steps_close(gpu *g, cuda_row *r)
{
	spmla_device_status s = SPMLA_DEVICE_STATUS_INIT;

	CU(g, sync_all, ());
	lib_must(st.gpu.ctx, spmla_status_read(st.gpu.ctx, &s),
		 "spmla_status_read");
	if (s.count) {
		g->wrong++;
		printf("\nWRONG: %s, %s: %u faults, the first %s of row %u\n",
		       r->op, r->shape, s.count, spmla_fault_name(s.fault),
		       s.row);
	}
	world_close(g, &st.gpu);
	world_close(g, &st.cpu);
}

/* ---- The record and the graph ------------------------------------------- */

void
steps_record(gpu *g, uint32_t n, uint32_t len)
{
	const uint32_t most = st.row_pages * PAGE;
	uint32_t i;

	for (i = 0; i < n; i++)
		st.requests[i] = (spmla_request){
			i, 1, len ? len : 1 + (uint32_t)(next_random(g) % most),
			0};
	/* Pages that are there already, as a record for a page that a request
	 * has grown into would name it. */
	for (i = 0; i < STORES && i < n; i++)
		st.stores[i] = (spmla_table_store){
			SPMLA_GROUP_MAIN, i, st.row_pages - 1, 1,
			st.pages + (size_t)(i + 1) * st.row_pages - 1};
	st.step = (spmla_step){
		(uint32_t)sizeof st.step, 0, n, i, st.requests, st.stores};
}

static void
run_step(gpu *g)
{
	const spmla_v32_layer layer = layer_of(&ly, ON_DEVICE);
	spmla_ctx *ctx = st.gpu.ctx;
	uint32_t i;

	lib_must(ctx, spmla_step_prologue(ctx, &st.shape, st.source, g->stream),
		 "spmla_step_prologue");
	for (i = 0; i < st.layers; i++)
		lib_must(ctx, spmla_v32_attn(ctx, &layer, &st.shape, g->stream),
			 "spmla_v32_attn");
}

void
steps_capture(gpu *g)
{
	spmla_ctx *ctx = st.gpu.ctx;

	st.nodes = count_nodes(g, run_step);
	lib_must(ctx, spmla_graph_begin(ctx, g->stream), "spmla_graph_begin");
	run_step(g);
	lib_must(ctx, spmla_graph_end(ctx, &st.graph), "spmla_graph_end");
}

void
steps_prepare(gpu *g)
{
	(void)g;
	lib_must(st.gpu.ctx,
		 spmla_step_write(st.gpu.ctx, &st.step, &st.ticket, NULL),
		 "spmla_step_write");
}

void
steps_launch(gpu *g)
{
	const uint64_t ticket = st.source == SPMLA_FROM_RING ? st.ticket : 0;

	lib_must(st.gpu.ctx,
		 spmla_graph_replay(st.gpu.ctx, st.graph, ticket, g->stream),
		 "spmla_graph_replay");
}

/* ---- A layer ------------------------------------------------------------ */

void
layer_make(gpu *g, layer_twins *l, uint32_t positions, uint32_t pages)
{
	const uint64_t t = l->tokens;
	uint64_t heads;

	l->heads = g->tiny ? 8 : HEADS;
	l->index_heads = 64;
	heads = t * l->heads;
	l->kv_c = make_bf16(g, t * SPMLA_MLA_LATENT, 2);
	l->k_pe = make_bf16(g, t * SPMLA_MLA_ROPE, 2);
	l->index_k = make_bf16(g, t * SPMLA_INDEX_DIM, 2);
	l->norm = make_f32(g, 2 * SPMLA_INDEX_DIM, 0.5f, 1.5f);
	l->rope = make_f32(g, (uint64_t)positions * SPMLA_INDEX_ROPE, -1, 1);
	l->index_q = make_bf16(g, t * l->index_heads * SPMLA_INDEX_DIM, 2);
	l->weights = make_f32(g, t * l->index_heads, -1, 1);
	l->q = make_bf16(g, heads * SPMLA_MLA_DIM, 7);
	l->out = twin_make(g, heads * SPMLA_MLA_LATENT * 2);
	l->lse = twin_make(g, heads * 4);
	l->kv = make_pool(g, SPMLA_LAYOUT_FP8_DS_MLA, PAGE, pages);
	l->index = make_pool(g, SPMLA_LAYOUT_INDEX_FP8, PAGE, pages);
}

spmla_v32_layer
layer_of(const layer_twins *l, side on)
{
	spmla_v32_layer v = {.struct_bytes = (uint32_t)sizeof v};

	if (!l->q)
		return v; /* a prologue alone */
	v.rope_style = SPMLA_ROPE_NEOX;
	v.cos_sin_rows = (uint32_t)(l->rope->bytes / (SPMLA_INDEX_ROPE * 4));
	v.norm_eps = 1e-6f;
	v.kv_c = l->kv_c->at[on];
	v.k_pe = l->k_pe->at[on];
	v.kv_c_stride_elems = SPMLA_MLA_LATENT;
	v.k_pe_stride_elems = SPMLA_MLA_ROPE;
	v.index_k = l->index_k->at[on];
	v.index_k_stride_elems = SPMLA_INDEX_DIM;
	v.index_norm_weight = l->norm->at[on];
	v.index_norm_bias = (const float *)l->norm->at[on] + SPMLA_INDEX_DIM;
	v.cos_sin = l->rope->at[on];
	v.index_q = l->index_q->at[on];
	v.index_q_token_stride_elems =
		(int64_t)l->index_heads * SPMLA_INDEX_DIM;
	v.index_q_head_stride_elems = SPMLA_INDEX_DIM;
	v.index_weights = l->weights->at[on];
	v.index_weights_stride_elems = l->index_heads;
	v.index_weights_dtype = SPMLA_DTYPE_F32;
	v.q = l->q->at[on];
	v.q_token_stride_elems = (int64_t)l->heads * SPMLA_MLA_DIM;
	v.q_head_stride_elems = SPMLA_MLA_DIM;
	v.out = l->out->at[on];
	v.out_token_stride_elems = (int64_t)l->heads * SPMLA_MLA_LATENT;
	v.out_head_stride_elems = SPMLA_MLA_LATENT;
	v.lse = l->lse->at[on];
	v.lse_token_stride_elems = l->heads;
	v.lse_head_stride_elems = 1;
	v.kv = pool_cache(l->kv, on, SPMLA_LAYOUT_FP8_DS_MLA, PAGE);
	v.index = pool_cache(l->index, on, SPMLA_LAYOUT_INDEX_FP8, PAGE);
	return v;
}

/* ---- The host's part ---------------------------------------------------- */

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int
in_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
host_head(void)
{
	printf("\nThe host's part of a step (CLOCK_MONOTONIC, %u replays, %d "
	       "pages of updates each); `empty`: to launch a graph of one "
	       "empty "
	       "kernel, as long after the launch before:\n\n"
	       "| graph | nodes | write us | launch us | both us | p99 us | "
	       "empty us | device, cold us |\n"
	       "|---|---|---|---|---|---|---|---|\n",
	       HOST_REPEATS, STORES);
}

/* What a launch costs on this machine, whatever it launches: 0 if there is no
 * empty kernel. */
static double
empty_launch(gpu *g, uint32_t n)
{
	static double times[HOST_REPEATS];
	void *const exec = empty_graph(g);
	uint32_t i;

	if (!exec)
		return 0;
	for (i = 0; i < n; i++) {
		double from;

		steps_prepare(g);
		steps_launch(g);
		CU(g, stream_sync, (g->stream));
		from = now_us();
		CU(g, graph_launch, (exec, g->stream));
		times[i] = now_us() - from;
		CU(g, stream_sync, (g->stream));
	}
	CU(g, exec_destroy, (exec));
	qsort(times, n, sizeof *times, in_order);
	return times[n / 2];
}

void
host_row(gpu *g, const char *what, double device_us)
{
	static double write[HOST_REPEATS], launch[HOST_REPEATS];
	static double both[HOST_REPEATS];
	const uint32_t n = g->tiny ? 3 : HOST_REPEATS;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const double from = now_us();
		double written;

		steps_prepare(g);
		written = now_us();
		steps_launch(g);
		both[i] = now_us() - from;
		write[i] = written - from;
		launch[i] = both[i] - write[i];
		CU(g, stream_sync, (g->stream));
	}
	qsort(write, n, sizeof *write, in_order);
	qsort(launch, n, sizeof *launch, in_order);
	qsort(both, n, sizeof *both, in_order);
	printf("| %u requests, %s | %u | %.2f | %.2f | %.2f | %.2f | %.2f | "
	       "%.1f |\n",
	       st.step.request_count, what, st.nodes, write[n / 2],
	       launch[n / 2], both[n / 2], both[(n - 1) * 99 / 100],
	       empty_launch(g, (n + 3) / 4), device_us);
}
