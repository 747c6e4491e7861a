/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of V4's compressors, with paged states. Every token of a row ends
 * a group, as in a step where all requests do; each has a row of states of its
 * own. The scores of a column are equal, so that the keys are the CPU's to the
 * bit: see kv_compress.h.
 */
#include "bench/cuda.h"

#include <string.h>

#include "spmla/ops/compress_state_save.h"
#include "spmla/ops/kv_compress.h"

enum { PAGE = 64, ROPE_ROWS = 128, ROPE_ROW = 64 };

/* One of the three compressors. */
typedef struct compressor {
	const char *name;
	uint32_t state, ratio, width, dim, cache, state_page;
} compressor;

static const compressor kinds[] = {
	{"tokens, C4 main", SPMLA_LAYOUT_STATE_1024, 4, 1024, SPMLA_V4_DIM,
	 SPMLA_LAYOUT_V4_FP8, 4},
	{"tokens, C4 indexer", SPMLA_LAYOUT_STATE_256, 4, 256, SPMLA_INDEX_DIM,
	 SPMLA_LAYOUT_INDEX_FP8, 4},
	{"tokens, C128", SPMLA_LAYOUT_STATE_512, 128, 512, SPMLA_V4_DIM,
	 SPMLA_LAYOUT_V4_FP8, 8},
};

static struct {
	const compressor *kind;
	uint32_t tokens, columns; /* pages of a row of states */
	const twin *kv, *score, *ape, *positions, *slots, *rows, *table;
	const twin *norm, *rope, *state, *cache;
	const twin *split_keys, *split_counts; /* of ratio 128 */
} cp;

/* Rows of a group. */
static uint32_t
group_rows(void)
{
	return cp.kind->ratio == SPMLA_COMPRESS_OVERLAP ? 8 : cp.kind->ratio;
}

static spmla_status
save(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_compress_state_save_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = cp.tokens,
		.ratio = cp.kind->ratio,
		.form = SPMLA_STATE_PAGED,
		.kv = cp.kv->at[on],
		.score = cp.score->at[on],
		.kv_stride_elems = cp.kind->width,
		.score_stride_elems = cp.kind->width,
		.ape = cp.ape->at[on],
		.positions = cp.positions->at[on],
		.slot_mapping = cp.slots->at[on],
		.state = pool_cache(cp.state, on, cp.kind->state,
				    cp.kind->state_page),
	};

	return spmla_compress_state_save(ctx, &a, stream);
}

static void
one_save(gpu *g, const compressor *kind, uint32_t tokens)
{
	op_case c = {
		.op = "compress_state_save", .call = save, .rate = BY_COPY};
	const uint64_t n = (uint64_t)tokens * kind->width;
	const uint32_t pages =
		(tokens + kind->state_page - 1) / kind->state_page;

	cp.kind = kind;
	cp.tokens = tokens;
	cp.kv = make_f32(g, n, -1, 1);
	cp.score = make_f32(g, n, -1, 1);
	cp.ape = make_f32(g, (uint64_t)kind->ratio * kind->width, -1, 1);
	cp.positions = make_draw(g, tokens, 8192);
	cp.slots = make_slots(g, tokens);
	cp.state = c.outputs[0] =
		twin_make(g, pages * spmla_layout_page_bytes(kind->state,
							     kind->state_page));
	/* Each token reads a row of ape; there are `ratio` of them. */
	c.bytes = 16 * (double)n +
		  4 * (double)kind->width *
			  (tokens < kind->ratio ? tokens : kind->ratio);
	op_row(g, &c, tokens, kind->name);
}

static spmla_status
compress(spmla_ctx *ctx, side on, spmla_stream stream)
{
	const spmla_kv_compress_args a = {
		.struct_bytes = (uint32_t)sizeof a,
		.tokens = cp.tokens,
		.ratio = cp.kind->ratio,
		.form = SPMLA_STATE_PAGED,
		.rows = cp.tokens,
		.columns = cp.columns,
		.table_stride_elems = cp.columns,
		.cos_sin_rows = ROPE_ROWS,
		.norm_eps = 1e-6f,
		.positions = cp.positions->at[on],
		.slot_mapping = cp.slots->at[on],
		.token_row = cp.rows->at[on],
		.block_table = cp.table->at[on],
		.norm_weight = cp.norm->at[on],
		.cos_sin = cp.rope->at[on],
		.state = pool_cache(cp.state, on, cp.kind->state,
				    cp.kind->state_page),
		.cache = pool_cache(cp.cache, on, cp.kind->cache, PAGE),
		.split_keys = cp.split_keys ? cp.split_keys->at[on] : NULL,
		.split_counts =
			cp.split_counts ? cp.split_counts->at[on] : NULL,
	};

	return spmla_kv_compress(ctx, &a, stream);
}

/* Entries of kv, then of scores. */
static void
make_state(gpu *g, uint32_t entries)
{
	const uint32_t width = cp.kind->width;
	twin *t = make_f32(g, (uint64_t)entries * 2 * width, -1, 1);
	float *at = t->at[ON_HOST];
	uint32_t i, j;

	for (i = 0; i < entries; i++)
		for (j = 0; j < width; j++)
			at[((size_t)i * 2 + 1) * width + j] = 0.25f;
	twin_push(g, t);
	cp.state = t;
}

static void
one_compress(gpu *g, const compressor *kind, uint32_t tokens)
{
	op_case c = {.op = "kv_compress", .call = compress};
	const uint32_t pages = (tokens + PAGE - 1) / PAGE;
	uint32_t rows;

	cp.kind = kind;
	cp.tokens = tokens;
	rows = group_rows();
	cp.columns = rows / kind->state_page;
	cp.positions = make_steps(g, tokens, (int32_t)rows - 1, 0);
	cp.slots = make_slots(g, tokens);
	cp.rows = make_order(g, tokens);
	cp.table = make_order(g, tokens * cp.columns);
	cp.norm = make_f32(g, kind->dim, 0.5f, 1.5f);
	cp.rope = make_f32(g, ROPE_ROWS * ROPE_ROW, -1, 1);
	make_state(g, tokens * rows);
	cp.split_keys = cp.split_counts = NULL;
	if (kind->ratio == SPMLA_COMPRESS_MOST) {
		cp.split_keys = make_f32(g, tokens * SPMLA_V4_DIM, 0, 0);
		cp.split_counts = make_f32(g, tokens, 0, 0); /* all bits 0 */
	}
	cp.cache = c.outputs[0] = twin_make(
		g, pages * spmla_layout_page_bytes(kind->cache, PAGE));
	c.bytes = (double)tokens * rows * kind->dim * 8 +
		  (double)tokens * spmla_layout_entry_bytes(kind->cache);
	op_row(g, &c, tokens, kind->name);
}

void
bench_v4_compress(gpu *g)
{
	const uint32_t count = sizeof kinds / sizeof *kinds;
	uint32_t i;

	for (i = 0; i < count && wanted(g, "compress_state_save"); i++) {
		one_save(g, &kinds[i], 1);
		one_save(g, &kinds[i], g->tiny ? 8 : 4096);
	}
	for (i = 0; i < count && wanted(g, "kv_compress"); i++) {
		one_compress(g, &kinds[i], 1);
		one_compress(g, &kinds[i],
			     g->tiny               ? 2
			     : kinds[i].ratio == 4 ? 1024
						   : 128);
		/* 1024 of these are few bytes. */
		if (kinds[i].dim == SPMLA_INDEX_DIM && !g->tiny)
			one_compress(g, &kinds[i], 8192);
	}
}
