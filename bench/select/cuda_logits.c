/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the index scores: over paged keys, whose pages lie in no order,
 * and over gathered ones.
 */
#include "bench/cuda.h"

#include <stdio.h>

#include "spmla/ops/mqa_logits.h"
#include "spmla/ops/mqa_logits_gathered.h"

enum { HEADS = 64, PAGE = 64 };

/* A token has a product of HEADS x 128 with each key. */
#define KEY_FLOP (2.0 * HEADS * SPMLA_INDEX_DIM)

/* ---- Paged -------------------------------------------------------------- */

typedef struct paged_shape {
	uint32_t batch, context, queries;
} paged_shape;

static const paged_shape paged_shapes[] = {
	{1, 8192, 1},   {1, 65536, 1},  {1, 131072, 1},
	{16, 32768, 1}, {64, 32768, 1}, {128, 32768, 1},
	{128, 8192, 1}, {256, 8192, 1}, {64, 32768, 2},
};

static const paged_shape paged_tiny[] = {{2, 150, 1}};

static struct {
	uint32_t tokens, batch, columns, row_elems;
	const twin *pool, *q, *weights, *row, *lens, *starts, *table, *logits;
} pg;

static spmla_mqa_logits_args
paged_args(side on, uint32_t first, uint32_t tokens)
{
	const size_t head = (size_t)first * HEADS;

	return (spmla_mqa_logits_args){
		.struct_bytes = (uint32_t)sizeof(spmla_mqa_logits_args),
		.tokens = tokens,
		.heads = HEADS,
		.rows = pg.batch,
		.columns = pg.columns,
		.table_stride_elems = pg.columns,
		.q = (const uint8_t *)pg.q->at[on] + head * SPMLA_INDEX_DIM,
		.weights = (const float *)pg.weights->at[on] + head,
		.token_row = (const int32_t *)pg.row->at[on] + first,
		.context_lens = (const int32_t *)pg.lens->at[on] + first,
		.row_starts = (const int64_t *)pg.starts->at[on] + first,
		.block_table = pg.table->at[on],
		.logits = pg.logits->at[on],
		.logits_elems = (uint64_t)pg.tokens * pg.row_elems,
		.cache = pool_cache(pg.pool, on, SPMLA_LAYOUT_INDEX_FP8, PAGE),
	};
}

static void
run_paged(gpu *g)
{
	const spmla_mqa_logits_args a = paged_args(ON_DEVICE, 0, pg.tokens);

	lib_must(g->ops.ctx, spmla_mqa_logits(g->ops.ctx, &a, g->stream),
		 "mqa_logits");
}

static void
make_paged(gpu *g, const paged_shape *s)
{
	uint32_t t;

	pg.batch = s->batch;
	pg.tokens = s->batch * s->queries;
	pg.columns = (s->context + PAGE - 1) / PAGE;
	pg.row_elems = (s->context + SPMLA_LOGITS_ROW_ALIGN - 1) /
		       SPMLA_LOGITS_ROW_ALIGN * SPMLA_LOGITS_ROW_ALIGN;
	for (t = 0; t < pg.tokens; t++) {
		((int32_t *)pg.row->at[ON_HOST])[t] = (int32_t)(t / s->queries);
		((int32_t *)pg.lens->at[ON_HOST])[t] =
			(int32_t)(s->context - s->queries + 1 + t % s->queries);
		((int64_t *)pg.starts->at[ON_HOST])[t] =
			(int64_t)t * pg.row_elems;
	}
	twin_push(g, pg.row);
	twin_push(g, pg.lens);
	twin_push(g, pg.starts);
}

static void
one_paged(gpu *g, const paged_shape *s)
{
	const shot s0 = {
		.op = "mqa_logits", .run = run_paged, .outputs = {pg.logits}};
	const double keys = (double)s->batch * s->context;
	cuda_row *r;
	uint32_t t;

	make_paged(g, s);
	r = measure(g, &s0);
	snprintf(r->shape, sizeof r->shape, "%u x %u%s", s->batch, s->context,
		 s->queries > 1 ? ", 2 queries" : "");
	if (s->queries == 1)
		snprintf(r->series, sizeof r->series, "mqa_logits %u keys",
			 s->context);
	r->batch = s->batch;
	add_floor(g, r,
		  keys * SPMLA_INDEX_FP8_BYTES + keys * s->queries * 4 +
			  pg.tokens * HEADS * (SPMLA_INDEX_DIM + 4.0),
		  BY_READ, keys * s->queries * KEY_FLOP, E4M3);
	for (t = 0; t<pg.tokens; t += pg.tokens> 1 ? pg.tokens - 1 : 1) {
		const spmla_mqa_logits_args a = paged_args(ON_HOST, t, 1);

		lib_must(g->cpu.ctx, spmla_mqa_logits(g->cpu.ctx, &a, NULL),
			 "mqa_logits");
		check_f32(g, r, pg.logits, (uint64_t)t * pg.row_elems,
			  s->context - s->queries + 1 + t % s->queries);
	}
	table_row(g, r);
}

static void
bench_paged(gpu *g)
{
	const paged_shape *shapes = g->tiny ? paged_tiny : paged_shapes;
	const uint32_t count =
		g->tiny ? 1 : sizeof paged_shapes / sizeof *paged_shapes;
	const uint32_t pages = g->tiny ? 8 : 128 * 32768 / PAGE;
	const uint32_t tokens = g->tiny ? 2 : 256;
	twin *t;
	uint32_t i;

	pg.pool = make_pool(g, SPMLA_LAYOUT_INDEX_FP8, PAGE, pages);
	t = twin_make(g, (uint64_t)tokens * HEADS * SPMLA_INDEX_DIM);
	fill_e4m3(g, t->at[ON_HOST], t->bytes);
	twin_push(g, t);
	pg.q = t;
	t = twin_make(g, (uint64_t)tokens * HEADS * 4);
	fill_f32(g, t->at[ON_HOST], tokens * HEADS, -1, 1);
	twin_push(g, t);
	pg.weights = t;
	t = twin_make(g, (uint64_t)pages * 4);
	fill_order(g, t->at[ON_HOST], pages);
	twin_push(g, t);
	pg.table = t;
	pg.row = twin_make(g, tokens * 4);
	pg.lens = twin_make(g, tokens * 4);
	pg.starts = twin_make(g, tokens * 8);
	pg.logits = twin_make(g, (uint64_t)pages * PAGE * 4 +
					 tokens * 4 * SPMLA_LOGITS_ROW_ALIGN);
	for (i = 0; i < count; i++)
		one_paged(g, &shapes[i]);
	twins_free(g);
}

/* ---- Gathered ----------------------------------------------------------- */

static struct {
	uint32_t tokens, keys;
	const twin *q, *weights, *k, *scales, *starts, *ends, *logits;
} ga;

static spmla_mqa_logits_gathered_args
gathered_args(side on, uint32_t first, uint32_t tokens)
{
	const size_t head = (size_t)first * HEADS;

	return (spmla_mqa_logits_gathered_args){
		.struct_bytes =
			(uint32_t)sizeof(spmla_mqa_logits_gathered_args),
		.tokens = tokens,
		.heads = HEADS,
		.keys = ga.keys,
		.columns = ga.keys,
		.q = (const uint8_t *)ga.q->at[on] + head * SPMLA_INDEX_DIM,
		.weights = (const float *)ga.weights->at[on] + head,
		.weights_stride_elems = HEADS,
		.k = ga.k->at[on],
		.k_scales = ga.scales->at[on],
		.starts = (const int32_t *)ga.starts->at[on] + first,
		.ends = (const int32_t *)ga.ends->at[on] + first,
		.logits = (float *)ga.logits->at[on] + (size_t)first * ga.keys,
		.logits_stride_elems = ga.keys,
	};
}

static void
run_gathered(gpu *g)
{
	const spmla_mqa_logits_gathered_args a =
		gathered_args(ON_DEVICE, 0, ga.tokens);

	lib_must(g->ops.ctx,
		 spmla_mqa_logits_gathered(g->ops.ctx, &a, g->stream),
		 "mqa_logits_gathered");
}

/* The tokens are the last ones of the keys: each sees those up to itself. */
static double
make_gathered(gpu *g, uint32_t tokens, uint32_t keys)
{
	twin *q = twin_make(g, (uint64_t)tokens * HEADS * SPMLA_INDEX_DIM);
	twin *weights = twin_make(g, (uint64_t)tokens * HEADS * 4);
	twin *k = twin_make(g, (uint64_t)keys * SPMLA_INDEX_DIM);
	twin *scales = twin_make(g, (uint64_t)keys * 4);
	twin *starts = twin_make(g, (uint64_t)tokens * 4);
	twin *ends = twin_make(g, (uint64_t)tokens * 4);
	double seen = 0;
	uint32_t t;

	fill_e4m3(g, q->at[ON_HOST], q->bytes);
	fill_f32(g, weights->at[ON_HOST], (uint64_t)tokens * HEADS, -1, 1);
	fill_e4m3(g, k->at[ON_HOST], k->bytes);
	fill_f32(g, scales->at[ON_HOST], keys, 0.005f, 0.02f);
	for (t = 0; t < tokens; t++) {
		((int32_t *)starts->at[ON_HOST])[t] = 0;
		((int32_t *)ends->at[ON_HOST])[t] =
			(int32_t)(keys - tokens + t + 1);
		seen += keys - tokens + t + 1;
	}
	ga.tokens = tokens, ga.keys = keys;
	ga.q = q, ga.weights = weights, ga.k = k, ga.scales = scales;
	ga.starts = starts, ga.ends = ends;
	ga.logits = twin_make(g, (uint64_t)tokens * keys * 4);
	twin_push(g, q);
	twin_push(g, weights);
	twin_push(g, k);
	twin_push(g, scales);
	twin_push(g, starts);
	twin_push(g, ends);
	return seen;
}

static void
one_gathered(gpu *g, uint32_t tokens, uint32_t keys)
{
	const double seen = make_gathered(g, tokens, keys);
	const shot s0 = {.op = "mqa_logits_gathered",
			 .run = run_gathered,
			 .outputs = {ga.logits}};
	cuda_row *r = measure(g, &s0);
	uint32_t t;

	snprintf(r->shape, sizeof r->shape, "%u x %u, causal", tokens, keys);
	r->batch = tokens;
	add_floor(g, r,
		  tokens * HEADS * (SPMLA_INDEX_DIM + 4.0) +
			  keys * (double)SPMLA_INDEX_FP8_BYTES + seen * 4,
		  BY_READ, seen * KEY_FLOP, E4M3);
	for (t = 0; t < tokens; t += tokens - 1) {
		const spmla_mqa_logits_gathered_args a =
			gathered_args(ON_HOST, t, 1);

		lib_must(g->cpu.ctx,
			 spmla_mqa_logits_gathered(g->cpu.ctx, &a, NULL),
			 "mqa_logits_gathered");
		check_f32(g, r, ga.logits, (uint64_t)t * keys,
			  keys - tokens + t + 1);
	}
	table_row(g, r);
	twins_free(g);
}

void
bench_logits(gpu *g)
{
	if (wanted(g, "mqa_logits"))
		bench_paged(g);
	if (!wanted(g, "mqa_logits_gathered"))
		return;
	if (g->tiny) {
		one_gathered(g, 4, 96);
		return;
	}
	one_gathered(g, 2048, 8192);
	if (g->longer)
		one_gathered(g, 4096, 65536);
}
