/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of what selects keys: top-k, and the two schedules that kernels of
 * others are launched with.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <string.h>

#include "spmla/ops/indexer_schedule.h"
#include "spmla/ops/tile_sched.h"
#include "spmla/ops/topk.h"

/* ---- topk --------------------------------------------------------------- */

/* What the scores are. */
typedef enum topk_kind {
	UNIFORM,
	EQUAL,
	TWO_VALUES,
	QUARTERS, /* steps of 0.25 */
	ASCENDING,
	DESCENDING,
	TOGETHER, /* the best in every eighth 32 */
	TOPK_KINDS
} topk_kind;

static const char *const topk_kind_names[TOPK_KINDS] = {
	", random",  ", all equal", ", two values",   ", steps",
	", ascends", ", descends",  ", best together"};

typedef struct topk_shape {
	uint32_t rows, n, k;
} topk_shape;

static const topk_shape topk_shapes[] = {
	{1, 8192, 2048},   {1, 32768, 2048},   {1, 65536, 2048},
	{1, 131072, 2048}, {8, 65536, 2048},   {32, 32768, 2048},
	{64, 65536, 2048}, {128, 32768, 2048}, {128, 65536, 2048},
	{64, 32768, 512},  {128, 16384, 1024}, {256, 8192, 512},
};

/* Those that are measured with every kind of scores. */
static const topk_shape topk_hard[] = {
	{1, 8192, 2048},  {1, 131072, 2048},  {8, 65536, 2048},
	{64, 32768, 512}, {128, 32768, 2048}, {128, 65536, 2048},
	{256, 8192, 512}, {256, 8192, 2048},
};

static const topk_shape topk_tiny[] = {{2, 512, 64}};

static struct {
	const topk_shape *shape;
	const twin *logits, *starts, *lens, *indices, *counts;
} tk;

static spmla_topk_args
topk_args(side on, uint32_t first, uint32_t rows)
{
	const uint32_t k = tk.shape->k;

	return (spmla_topk_args){
		.struct_bytes = (uint32_t)sizeof(spmla_topk_args),
		.rows = rows,
		.k = k,
		.logits = tk.logits->at[on],
		.logits_elems = (uint64_t)tk.shape->rows * tk.shape->n,
		.row_starts = (const int64_t *)tk.starts->at[on] + first,
		.context_lens = (const int32_t *)tk.lens->at[on] + first,
		.indices = (int32_t *)tk.indices->at[on] + (size_t)first * k,
		.indices_stride_elems = k,
		.lens = (int32_t *)tk.counts->at[on] + first,
	};
}

static void
run_topk(gpu *g)
{
	const spmla_topk_args a = topk_args(ON_DEVICE, 0, tk.shape->rows);

	lib_must(g->ops.ctx, spmla_topk(g->ops.ctx, &a, g->stream), "topk");
}

/* The first and the last row. */
static void
check_topk(gpu *g, cuda_row *r)
{
	const uint32_t last = tk.shape->rows - 1;
	const uint64_t row_bytes = tk.shape->k * sizeof(int32_t);
	uint32_t row;

	for (row = 0; row <= last; row += last ? last : 1) {
		const spmla_topk_args a = topk_args(ON_HOST, row, 1);

		lib_must(g->cpu.ctx, spmla_topk(g->cpu.ctx, &a, NULL), "topk");
		check_bytes(g, r, tk.indices, row * row_bytes, row_bytes);
		check_bytes(g, r, tk.counts, row * sizeof(int32_t),
			    sizeof(int32_t));
	}
}

static void
one_topk(gpu *g, const topk_shape *s, const char *kind)
{
	const shot s0 = {.op = "topk",
			 .run = run_topk,
			 .outputs = {tk.indices, tk.counts}};
	int64_t *starts = tk.starts->at[ON_HOST];
	int32_t *lens = tk.lens->at[ON_HOST];
	cuda_row *r;
	uint32_t i;

	tk.shape = s;
	for (i = 0; i < s->rows; i++) {
		starts[i] = (int64_t)i * s->n;
		lens[i] = (int32_t)s->n;
	}
	twin_push(g, tk.starts);
	twin_push(g, tk.lens);
	r = measure(g, &s0);
	snprintf(r->shape, sizeof r->shape, "%u x %u, k %u%s", s->rows, s->n,
		 s->k, kind);
	if (kind[0] == 0)
		snprintf(r->series, sizeof r->series, "topk %u of %u", s->k,
			 s->n);
	r->batch = s->rows;
	add_floor(g, r, (double)s->rows * (s->n + s->k) * 4, BY_READ, 0,
		  NO_PRODUCT);
	check_topk(g, r);
	table_row(g, r);
}

/* Scores of a kind, for rows of n. */
static void
fill_topk(gpu *g, float *to, uint64_t elems, uint32_t n, topk_kind kind)
{
	uint64_t i;

	fill_f32(g, to, elems, -4, 4);
	for (i = 0; i < elems && kind != UNIFORM; i++) {
		const uint32_t at = (uint32_t)(i % n);

		if (kind == EQUAL)
			to[i] = 1;
		else if (kind == TWO_VALUES)
			to[i] = to[i] > 0 ? 1.0f : 0.0f;
		else if (kind == QUARTERS)
			to[i] = (float)(int)(to[i] * 4) / 4;
		else if (kind == ASCENDING)
			to[i] = (float)at;
		else if (kind == DESCENDING)
			to[i] = -(float)at;
		else
			to[i] += at / 32 % 8 == 3 ? 16.0f : 0.0f;
	}
	twin_push(g, tk.logits);
}

void
bench_topk(gpu *g)
{
	const topk_shape *shapes = g->tiny ? topk_tiny : topk_shapes;
	const uint32_t count =
		g->tiny ? 1 : sizeof topk_shapes / sizeof *topk_shapes;
	const uint32_t hard =
		g->tiny ? 1 : sizeof topk_hard / sizeof *topk_hard;
	const uint64_t elems = g->tiny ? 1024 : 128u * 65536;
	twin *logits;
	uint32_t i, kind;

	if (!wanted(g, "topk"))
		return;
	logits = twin_make(g, elems * sizeof(float));
	tk.logits = logits;
	tk.starts = twin_make(g, 256 * sizeof(int64_t));
	tk.lens = twin_make(g, 256 * sizeof(int32_t));
	tk.indices = twin_make(g, 256 * 2048 * sizeof(int32_t));
	tk.counts = twin_make(g, 256 * sizeof(int32_t));
	fill_topk(g, logits->at[ON_HOST], elems, 1, UNIFORM);
	for (i = 0; i < count; i++)
		one_topk(g, &shapes[i], "");
	for (i = 0; i < hard; i++)
		for (kind = UNIFORM; kind < TOPK_KINDS; kind++) {
			const topk_shape *s = g->tiny ? shapes : &topk_hard[i];

			fill_topk(g, logits->at[ON_HOST], elems, s->n,
				  (topk_kind)kind);
			one_topk(g, s, topk_kind_names[kind]);
		}
	twins_free(g);
}

/* ---- Schedules ---------------------------------------------------------- */

enum { SCHED_PARTS = 132, MOST_BATCH = 256, MOST_SMS = 1024 };

static struct {
	uint32_t batch;
	const twin *lens, *meta, *splits, *contexts, *schedule;
} sc;

static spmla_tile_sched_args
sched_args(side on)
{
	return (spmla_tile_sched_args){
		.struct_bytes = (uint32_t)sizeof(spmla_tile_sched_args),
		.batch = sc.batch,
		.parts = SCHED_PARTS,
		.overhead_blocks = 5,
		.row_format = SPMLA_TILE_ROW_NEW,
		.topk = 2048,
		.topk_lens = sc.lens->at[on],
		.tile_scheduler_metadata = sc.meta->at[on],
		.num_splits = sc.splits->at[on],
	};
}

static void
run_sched(gpu *g)
{
	const spmla_tile_sched_args a = sched_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_tile_sched(g->ops.ctx, &a, g->stream),
		 "tile_sched");
}

static void
one_sched(gpu *g)
{
	const shot s = {.op = "tile_sched",
			.run = run_sched,
			.outputs = {sc.meta, sc.splits}};
	const spmla_tile_sched_args a = sched_args(ON_HOST);
	cuda_row *r = measure(g, &s);

	snprintf(r->shape, sizeof r->shape, "%u requests, %d parts", sc.batch,
		 SCHED_PARTS);
	snprintf(r->series, sizeof r->series, "tile_sched");
	r->batch = sc.batch;
	add_floor(g, r, SCHED_PARTS * 32.0 + sc.batch * 8.0, BY_READ, 0,
		  NO_PRODUCT);
	lib_must(g->cpu.ctx, spmla_tile_sched(g->cpu.ctx, &a, NULL),
		 "tile_sched");
	check_bytes(g, r, sc.meta, 0, SCHED_PARTS * 32);
	check_bytes(g, r, sc.splits, 0, (sc.batch + 1) * 4);
	table_row(g, r);
}

static spmla_indexer_schedule_args
schedule_args(const gpu *g, side on)
{
	return (spmla_indexer_schedule_args){
		.struct_bytes = (uint32_t)sizeof(spmla_indexer_schedule_args),
		.rule = SPMLA_INDEXER_SCHEDULE_SM90,
		.batch = sc.batch,
		.next_n = 1,
		.num_sms = (uint32_t)g->sm_count,
		.context_lens = sc.contexts->at[on],
		.context_lens_stride_elems = 1,
		.schedule = sc.schedule->at[on],
	};
}

static void
run_schedule(gpu *g)
{
	const spmla_indexer_schedule_args a = schedule_args(g, ON_DEVICE);

	lib_must(g->ops.ctx, spmla_indexer_schedule(g->ops.ctx, &a, g->stream),
		 "indexer_schedule");
}

static void
one_schedule(gpu *g)
{
	const shot s = {.op = "indexer_schedule",
			.run = run_schedule,
			.outputs = {sc.schedule}};
	const spmla_indexer_schedule_args a = schedule_args(g, ON_HOST);
	cuda_row *r = measure(g, &s);

	snprintf(r->shape, sizeof r->shape, "%u requests, %u SMs", sc.batch,
		 a.num_sms);
	snprintf(r->series, sizeof r->series, "indexer_schedule");
	r->batch = sc.batch;
	add_floor(g, r, sc.batch * 4.0 + (a.num_sms + 1) * 8.0, BY_READ, 0,
		  NO_PRODUCT);
	lib_must(g->cpu.ctx, spmla_indexer_schedule(g->cpu.ctx, &a, NULL),
		 "indexer_schedule");
	check_bytes(g, r, sc.schedule, 0, (a.num_sms + 1) * 8);
	table_row(g, r);
}

void
bench_schedules(gpu *g)
{
	static const uint32_t batches[] = {1, 32, 256};
	twin *lens = twin_make(g, MOST_BATCH * 4);
	twin *contexts = twin_make(g, MOST_BATCH * 4);
	uint32_t i;

	for (i = 0; i < MOST_BATCH; i++) {
		((int32_t *)lens->at[ON_HOST])[i] = 2048;
		((int32_t *)contexts->at[ON_HOST])[i] =
			(int32_t)(1 + next_random(g) % 65536);
	}
	twin_push(g, lens);
	twin_push(g, contexts);
	sc.lens = lens;
	sc.contexts = contexts;
	sc.meta = twin_make(g, SCHED_PARTS * 32);
	sc.splits = twin_make(g, (MOST_BATCH + 1) * 4);
	sc.schedule = twin_make(g, (MOST_SMS + 1) * 8);
	for (i = 0; i < (g->tiny ? 1 : 3); i++) {
		sc.batch = batches[i];
		if (wanted(g, "tile_sched"))
			one_sched(g);
	}
	for (i = 0; i < (g->tiny ? 1 : 3); i++) {
		sc.batch = batches[i];
		if (wanted(g, "indexer_schedule"))
			one_schedule(g);
	}
	twins_free(g);
}
