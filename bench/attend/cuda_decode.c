/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of the attention over a cache. A decode is timed whole, each token
 * by itself, and in parts with the combine behind them, as the library shares
 * tokens, and as with the batch-invariant flag; what plans the parts runs once,
 * outside of what is timed, as in the peer's times. Each token's keys are drawn
 * in no order from rows of its own, so that no two tokens share one. Only with
 * the longest lists tokens that are 64 apart share their rows: 690 MB lie
 * between two uses. C128A's second lists have lengths, as the peer's have: two
 * queries of a request share one, and all are as long as the list may be.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <string.h>

#include "spmla/decode_parts.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/ops/tile_sched.h"

enum {
	PAGE = 64,
	WINDOW_PAGE = 256,
	TOKEN_ROWS = 8192, /* a token draws from so many */
	EXTRA_ROWS = 4096, /* the same, of V4 */
	PEAK_ROWS = 16384, /* the same, of the longest lists: all of them */
	PEAK_POOLS = 64,   /* of PEAK_ROWS */
	V32_TOKENS = 256,
	MOST_HEADS = 128,
	MOST_PARTS = 512,
	MOST_SPLITS = 4,           /* of a token, if they are fixed */
	QUERIES = 2,               /* of a request, if lists have lengths */
	WORKSPACE_BYTES = 72 << 20 /* of 256 tokens that are batch-invariant */
};

typedef struct decode_shape {
	uint32_t tokens, heads;
} decode_shape;

static const decode_shape v32_shapes[] = {
	{1, 128},   {2, 128},   {3, 128},   {4, 128},   {5, 128},   {8, 128},
	{12, 128},  {24, 128},  {32, 128},  {48, 128},  {64, 128},  {96, 128},
	{128, 128}, {140, 128}, {148, 128}, {192, 128}, {256, 128}, {1, 64},
	{2, 64},    {3, 64},    {4, 64},    {5, 64},    {8, 64},    {12, 64},
	{16, 64},   {24, 64},   {48, 64},   {96, 64},   {128, 64},  {140, 64},
	{192, 64},  {256, 64},  {1, 16},    {3, 16},    {5, 16},    {8, 16},
	{12, 16},   {24, 16},   {32, 16},   {48, 16},   {96, 16},   {128, 16},
	{140, 16},  {192, 16},  {256, 16},  {1, 8},     {3, 8},     {5, 8},
	{8, 8},     {12, 8},    {24, 8},    {48, 8},    {96, 8},    {128, 8},
	{140, 8},   {192, 8},
};
static const decode_shape peak_shapes[] = {{296, 128}};

/* A list and how many it has. */
#define LIST(of) of, sizeof of / sizeof *of

/* V3.2, and its longest lists. */
static const struct v32_set {
	const char *name;
	const decode_shape *shapes;
	uint32_t count, tokens, topk, own, pools;
} v32_sets[] = {
	{"V3.2", LIST(v32_shapes), V32_TOKENS, 2048, TOKEN_ROWS, V32_TOKENS},
	{"V3.2 k 16384", LIST(peak_shapes), 296, PEAK_ROWS, PEAK_ROWS,
	 PEAK_POOLS},
};

/* Batches of C4A, top-k 512 and 1024, and of C128A, whose pages are of 2
 * entries. */
static const uint32_t c4a[] = {1,  2,  3,  4,   5,   8,   9,   12,  16, 24,
			       48, 64, 96, 128, 140, 192, 256, 296, 512};
static const uint32_t c4a_pro[] = {2,  3,  4,   5,   8,   12, 24,
				   48, 96, 128, 140, 192, 296};
static const uint32_t c128a[] = {1,  2,  3,  4,   5,   8,   12,
				 24, 48, 96, 128, 140, 192, 256};

static const struct v4_set {
	const char *name;
	const uint32_t *batches;
	uint32_t count, tokens, heads, extra_topk, extra_page, has_lengths;
} v4_sets[] = {
	{"C4A 512", LIST(c4a), 512, 64, 512, PAGE, 0},
	{"C4A 1024", LIST(c4a_pro), 296, 128, 1024, PAGE, 0},
	{"C128A 1024", LIST(c128a), 256, 64, 1024, 2, 1},
};

static const decode_shape decode_tiny[] = {{2, 8}};

static struct {
	uint32_t tokens, heads, topk, extra_topk, dim;
	spmla_decode_parts by; /* the library's choice; in_parts uses it */
	world *in;
	uint32_t layout, entries, extra_entries, in_parts;
	const char *model;
	const twin *q, *slots, *extra_slots, *pool, *extra_pool;
	const twin *extra_lens; /* NULL: none */
	const twin *out, *lse, *meta, *splits, *split_out, *split_lse;
	const twin *workspace;
} dc;

static spmla_sparse_decode_args
decode_args(side on, uint32_t first, uint32_t tokens)
{
	const size_t head = (size_t)first * dc.heads;
	spmla_sparse_decode_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = tokens,
		.heads = dc.heads,
		.topk = dc.topk,
		.softmax_scale = 0.0721687836f, /* 192^-0.5 */
		.q = (const uint16_t *)dc.q->at[on] + head * dc.dim,
		.q_token_stride_elems = (int64_t)dc.heads * dc.dim,
		.q_head_stride_elems = dc.dim,
		.slots = (const int32_t *)dc.slots->at[on] +
			 (size_t)first * dc.topk,
		.slots_stride_elems = dc.topk,
		.out = (uint16_t *)dc.out->at[on] + head * SPMLA_MLA_LATENT,
		.out_token_stride_elems = (int64_t)dc.heads * SPMLA_MLA_LATENT,
		.out_head_stride_elems = SPMLA_MLA_LATENT,
		.lse = (float *)dc.lse->at[on] + head,
		.lse_token_stride_elems = dc.heads,
		.lse_head_stride_elems = 1,
		.cache = pool_cache(dc.pool, on, dc.layout, dc.entries),
	};

	if (dc.extra_topk) {
		a.extra_topk = dc.extra_topk;
		a.extra_slots = (const int32_t *)dc.extra_slots->at[on] +
				(size_t)first * dc.extra_topk;
		a.extra_slots_stride_elems = dc.extra_topk;
		a.extra_cache = pool_cache(dc.extra_pool, on, dc.layout,
					   dc.extra_entries);
	}
	if (dc.extra_lens) {
		a.extra_topk_lens = (const int32_t *)dc.extra_lens->at[on] +
				    first / QUERIES;
		a.lens_tokens = QUERIES;
	}
	if (dc.in_parts && on == ON_DEVICE) {
		a.parts = dc.by.parts;
		a.tile_scheduler_metadata = dc.meta->at[on];
		a.num_splits = dc.splits->at[on];
		a.split_out = dc.split_out->at[on];
		a.split_lse = dc.split_lse->at[on];
		a.split_rows = dc.by.split_rows;
		a.whole_tokens = dc.by.whole_tokens;
		a.combine = 1;
	}
	if (on == ON_DEVICE) {
		a.workspace = dc.workspace->at[on];
		a.workspace_bytes = dc.workspace->bytes;
	}
	return a;
}

static void
plan_parts(gpu *g)
{
	/* All lengths are those of full lists: none have to be told. */
	const spmla_tile_sched_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.batch = dc.tokens - dc.by.whole_tokens,
		.parts = dc.by.parts,
		.overhead_blocks = dc.by.overhead_blocks,
		.split_blocks = dc.by.split_blocks,
		.row_format = SPMLA_TILE_ROW_NEW,
		.topk = dc.topk,
		.extra_topk = dc.extra_topk,
		.tile_scheduler_metadata = dc.meta->at[ON_DEVICE],
		.num_splits = dc.splits->at[ON_DEVICE],
	};

	lib_must(dc.in->ctx, spmla_tile_sched(dc.in->ctx, &a, g->stream),
		 "tile_sched");
}

static void
run_decode(gpu *g)
{
	const spmla_sparse_decode_args a = decode_args(ON_DEVICE, 0, dc.tokens);

	lib_must(dc.in->ctx, spmla_sparse_decode(dc.in->ctx, &a, g->stream),
		 "sparse_decode");
}

/* Draws `topk` of each token's `own` rows, all different, in no order. Token
 * t's rows are in pool t % pools. */
static void
draw_slots(gpu *g, const twin *slots, uint32_t tokens, uint32_t topk,
	   uint32_t own, uint32_t pools)
{
	static int32_t order[PEAK_ROWS];
	int32_t *to = slots->at[ON_HOST];
	uint32_t t, i;

	for (t = 0; t < tokens; t++) {
		fill_order(g, order, own);
		for (i = 0; i < topk; i++)
			*to++ = (int32_t)(t % pools * own) + order[i];
	}
	twin_push(g, slots);
}

static void
check_decode(gpu *g, cuda_row *r)
{
	const uint32_t last = dc.tokens - 1;
	uint32_t t;

	for (t = 0; t <= last; t += last ? last : 1) {
		const spmla_sparse_decode_args a = decode_args(ON_HOST, t, 1);
		const uint64_t head = (uint64_t)t * dc.heads;

		lib_must(g->cpu.ctx, spmla_sparse_decode(g->cpu.ctx, &a, NULL),
			 "sparse_decode");
		check_bf16(g, r, dc.out, head * SPMLA_MLA_LATENT,
			   (uint64_t)dc.heads * SPMLA_MLA_LATENT);
		check_f32(g, r, dc.lse, head, dc.heads);
	}
}

static cuda_row *
time_decode(gpu *g, uint32_t in_parts)
{
	const shot s = {.op = "sparse_decode",
			.run = run_decode,
			.outputs = {dc.out, dc.lse}};
	const double keys = (double)dc.tokens * (dc.topk + dc.extra_topk);
	const double heads = (double)dc.tokens * dc.heads;
	const double row =
		dc.extra_topk ? SPMLA_V4_FP8_BYTES : SPMLA_FP8_DS_MLA_BYTES;
	char how[32] = "whole";
	cuda_row *r;

	dc.in_parts = in_parts;
	r = measure(g, &s);
	if (in_parts && dc.by.whole_tokens)
		snprintf(how, sizeof how, "%u whole, %u parts",
			 dc.by.whole_tokens, dc.by.parts);
	else if (in_parts)
		snprintf(how, sizeof how,
			 dc.by.split_blocks ? "%u fixed splits" : "%u parts",
			 dc.by.parts);
	else if (dc.in == &g->fixed)
		snprintf(how, sizeof how, "whole, batch-invariant");
	snprintf(r->shape, sizeof r->shape, "%s, %u heads, batch %u, %s",
		 dc.model, dc.heads, dc.tokens, how);
	snprintf(r->series, sizeof r->series, "sparse_decode %s %u%s", dc.model,
		 dc.heads,
		 dc.in == &g->fixed ? " fixed"
		 : in_parts         ? " in parts"
				    : "");
	r->batch = dc.tokens;
	add_floor(g, r,
		  keys * (row + 4) +
			  heads * 2 * (dc.dim + SPMLA_MLA_LATENT + 2),
		  BY_READ, 2 * keys * dc.heads * (dc.dim + SPMLA_MLA_LATENT),
		  BF16);
	check_decode(g, r);
	return r;
}

/* The library's choice in a context. */
static void
choose(world *in)
{
	spmla_sparse_decode_args a;

	dc.in = in;
	dc.in_parts = 0;
	a = decode_args(ON_DEVICE, 0, dc.tokens);
	dc.by = (spmla_decode_parts)SPMLA_DECODE_PARTS_INIT;
	lib_must(in->ctx, spmla_decode_parts_choose(in->ctx, &a, &dc.by),
		 "decode_parts_choose");
}

/* Whole, in parts if the library would take parts, and with the batch-invariant
 * flag; the slots are there. */
static void
one_decode(gpu *g, const decode_shape *s)
{
	cuda_row *whole;

	dc.tokens = s->tokens;
	dc.heads = s->heads;
	choose(&g->ops);
	whole = time_decode(g, 0);
	if (dc.by.parts) {
		plan_parts(g);
		table_pair(g, whole, time_decode(g, 1));
	} else {
		whole->best = 1;
		table_row(g, whole);
	}
	choose(&g->fixed);
	if (dc.by.parts)
		plan_parts(g);
	table_row(g, time_decode(g, dc.by.parts > 0));
}

static void
make_decode(gpu *g, uint32_t tokens, uint32_t heads)
{
	const uint64_t all = (uint64_t)tokens * heads;
	/* Room for tokens + parts rows, or for MOST_SPLITS of each token. */
	const uint64_t split =
		(uint64_t)(tokens * MOST_SPLITS + MOST_PARTS) * heads;
	twin *q = twin_make(g, all * dc.dim * 2);

	fill_bf16(g, q->at[ON_HOST], all * dc.dim, 7);
	twin_push(g, q);
	dc.q = q;
	dc.out = twin_make(g, all * SPMLA_MLA_LATENT * 2);
	dc.lse = twin_make(g, all * 4);
	dc.meta = twin_make(g, (uint64_t)(tokens * MOST_SPLITS + MOST_PARTS) *
				       SPMLA_TILE_ROW_ELEMS * 4);
	dc.splits = twin_make(g, (tokens + 1) * 4);
	dc.split_out = twin_make(g, split * SPMLA_MLA_LATENT * 4);
	dc.split_lse = twin_make(g, split * 4);
	dc.workspace = twin_make(g, WORKSPACE_BYTES);
	memset(dc.workspace->at[ON_HOST], 0, WORKSPACE_BYTES);
	twin_push(g, dc.workspace);
}

static void
bench_v32(gpu *g, const struct v32_set *v)
{
	const uint32_t tokens = g->tiny ? 2 : v->tokens;
	const uint32_t own = g->tiny ? 256 : v->own;
	const uint32_t pools = g->tiny ? 2 : v->pools;
	const uint32_t count = g->tiny ? 1 : v->count;
	uint32_t i;

	memset(&dc, 0, sizeof dc);
	dc.model = v->name;
	dc.dim = SPMLA_MLA_DIM;
	dc.topk = g->tiny ? 160 : v->topk;
	dc.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	dc.entries = PAGE;
	make_decode(g, tokens, g->tiny ? 8 : MOST_HEADS);
	dc.pool = make_pool(g, dc.layout, PAGE, pools * own / PAGE);
	dc.slots = twin_make(g, (uint64_t)tokens * dc.topk * 4);
	draw_slots(g, dc.slots, tokens, dc.topk, own, pools);
	for (i = 0; i < count; i++)
		one_decode(g, g->tiny ? decode_tiny : &v->shapes[i]);
	twins_free(g);
}

static void
bench_v4(gpu *g, const struct v4_set *v)
{
	const uint32_t tokens = g->tiny ? 2 : v->tokens;
	const uint32_t own = g->tiny ? 128 : EXTRA_ROWS;
	const uint32_t count = g->tiny ? 1 : v->count;
	char model[32];
	uint32_t i;

	memset(&dc, 0, sizeof dc);
	snprintf(model, sizeof model, "V4 %s", v->name);
	dc.model = model;
	dc.dim = SPMLA_V4_DIM;
	dc.topk = 128;
	dc.extra_topk = g->tiny ? 100 : v->extra_topk;
	dc.layout = SPMLA_LAYOUT_V4_FP8;
	dc.entries = WINDOW_PAGE;
	dc.extra_entries = v->extra_page;
	make_decode(g, tokens, g->tiny ? 8 : v->heads);
	dc.pool = make_pool(g, dc.layout, WINDOW_PAGE, tokens);
	dc.extra_pool = make_pool(g, dc.layout, v->extra_page,
				  tokens * own / v->extra_page);
	dc.slots = twin_make(g, (uint64_t)tokens * dc.topk * 4);
	dc.extra_slots = twin_make(g, (uint64_t)tokens * dc.extra_topk * 4);
	draw_slots(g, dc.slots, tokens, dc.topk, WINDOW_PAGE, tokens);
	draw_slots(g, dc.extra_slots, tokens, dc.extra_topk, own, tokens);
	if (v->has_lengths)
		dc.extra_lens = make_steps(g, tokens / QUERIES,
					   (int32_t)dc.extra_topk, 0);
	for (i = 0; i < count; i++) {
		const decode_shape s = {v->batches[i], v->heads};

		one_decode(g, g->tiny ? decode_tiny : &s);
	}
	twins_free(g);
}

void
bench_decode(gpu *g)
{
	uint32_t i;

	if (!wanted(g, "sparse_decode"))
		return;
	for (i = 0; i < (g->longer ? 2u : 1u); i++)
		bench_v32(g, &v32_sets[i]);
	for (i = 0; i < sizeof v4_sets / sizeof *v4_sets; i++)
		bench_v4(g, &v4_sets[i]);
}
