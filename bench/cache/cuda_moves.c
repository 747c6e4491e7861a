/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of what moves rows and computes little: one token or request, and
 * enough to fill the device. Their floor is by the rate of a copy.
 */
#include "bench/cuda.h"

#include <stdio.h>

#include "spmla/ops/index_map.h"
#include "spmla/ops/indexer_k_insert.h"
#include "spmla/ops/indexer_q_prep.h"
#include "spmla/ops/kv_insert.h"

enum {
	PAGE = 64,
	HEADS = 64,       /* of the indexer */
	POSITIONS = 8192, /* of the rope table */
	ROPE_ROW = 64,    /* floats: 32 cos, 32 sin */
	K_BYTES = SPMLA_INDEX_DIM * 2,
	KV_BYTES = SPMLA_MLA_DIM * 2
};

/* Arguments of the operation that is measured. */
static struct {
	uint32_t tokens, topk, columns;
	const twin *a, *b, *slots, *positions, *rope, *norm;
	const twin *out, *out2, *table;
} mv;

static void
name_row(cuda_row *r, const char *of, uint32_t batch)
{
	snprintf(r->shape, sizeof r->shape, "%u %s", batch, of);
	r->batch = batch;
}

/* ---- kv_insert ---------------------------------------------------------- */

static spmla_kv_insert_args
kv_insert_args(side on)
{
	return (spmla_kv_insert_args){
		.struct_bytes = (uint32_t)sizeof(spmla_kv_insert_args),
		.tokens = mv.tokens,
		.dtype = SPMLA_DTYPE_BF16,
		.scale_mode = SPMLA_SCALE_POW2,
		.kv_c = mv.a->at[on],
		.k_pe = mv.b->at[on],
		.kv_c_stride_elems = SPMLA_MLA_LATENT,
		.k_pe_stride_elems = SPMLA_MLA_ROPE,
		.slot_mapping = mv.slots->at[on],
		.cache = pool_cache(mv.out, on, SPMLA_LAYOUT_FP8_DS_MLA, PAGE),
	};
}

static void
run_kv_insert(gpu *g)
{
	const spmla_kv_insert_args a = kv_insert_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_kv_insert(g->ops.ctx, &a, g->stream),
		 "kv_insert");
}

static void
one_kv_insert(gpu *g, uint32_t tokens)
{
	shot s = {.op = "kv_insert", .run = run_kv_insert};
	spmla_kv_insert_args a;
	cuda_row *r;

	mv.tokens = tokens;
	mv.a = make_bf16(g, (uint64_t)tokens * SPMLA_MLA_LATENT, 2);
	mv.b = make_bf16(g, (uint64_t)tokens * SPMLA_MLA_ROPE, 2);
	mv.slots = make_slots(g, tokens);
	mv.out = make_pool(g, SPMLA_LAYOUT_FP8_DS_MLA, PAGE,
			   (tokens + PAGE - 1) / PAGE);
	s.outputs[0] = mv.out;
	r = measure(g, &s);
	name_row(r, "tokens", tokens);
	add_floor(g, r, tokens * (KV_BYTES + SPMLA_FP8_DS_MLA_BYTES + 8.0),
		  BY_COPY, 0, NO_PRODUCT);
	a = kv_insert_args(ON_HOST);
	lib_must(g->cpu.ctx, spmla_kv_insert(g->cpu.ctx, &a, NULL),
		 "kv_insert");
	check_bytes(g, r, mv.out, 0, (uint64_t)tokens * SPMLA_FP8_DS_MLA_BYTES);
	table_row(g, r);
	twins_free(g);
}

/* ---- indexer_k_insert --------------------------------------------------- */

static spmla_indexer_k_insert_args
k_insert_args(side on)
{
	return (spmla_indexer_k_insert_args){
		.struct_bytes = (uint32_t)sizeof(spmla_indexer_k_insert_args),
		.tokens = mv.tokens,
		.dtype = SPMLA_DTYPE_BF16,
		.scale_mode = SPMLA_SCALE_POW2,
		.rope_style = SPMLA_ROPE_NEOX,
		.cos_sin_rows = POSITIONS,
		.norm_eps = 1e-6f,
		.k = mv.a->at[on],
		.k_stride_elems = SPMLA_INDEX_DIM,
		.slot_mapping = mv.slots->at[on],
		.norm_weight = mv.norm->at[on],
		.norm_bias = (const float *)mv.norm->at[on] + SPMLA_INDEX_DIM,
		.positions = mv.positions->at[on],
		.cos_sin = mv.rope->at[on],
		.cache = pool_cache(mv.out, on, SPMLA_LAYOUT_INDEX_FP8, PAGE),
	};
}

static void
run_k_insert(gpu *g)
{
	const spmla_indexer_k_insert_args a = k_insert_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_indexer_k_insert(g->ops.ctx, &a, g->stream),
		 "indexer_k_insert");
}

/* A page's codes lie before its scales: of one token, the two apart. */
static void
one_k_insert(gpu *g, uint32_t tokens)
{
	shot s = {.op = "indexer_k_insert", .run = run_k_insert};
	const uint32_t pages = (tokens + PAGE - 1) / PAGE;
	spmla_indexer_k_insert_args a;
	cuda_row *r;

	mv.tokens = tokens;
	mv.a = make_bf16(g, (uint64_t)tokens * SPMLA_INDEX_DIM, 2);
	mv.norm = make_f32(g, 2 * SPMLA_INDEX_DIM, 0.5f, 1.5f);
	mv.rope = make_f32(g, POSITIONS * ROPE_ROW, -1, 1);
	mv.positions = make_draw(g, tokens, POSITIONS);
	mv.slots = make_slots(g, tokens);
	mv.out = make_pool(g, SPMLA_LAYOUT_INDEX_FP8, PAGE, pages);
	s.outputs[0] = mv.out;
	r = measure(g, &s);
	name_row(r, "tokens", tokens);
	add_floor(g, r,
		  tokens * (K_BYTES + SPMLA_INDEX_FP8_BYTES + ROPE_ROW * 4.0 +
			    12),
		  BY_COPY, 0, NO_PRODUCT);
	a = k_insert_args(ON_HOST);
	lib_must(g->cpu.ctx, spmla_indexer_k_insert(g->cpu.ctx, &a, NULL),
		 "indexer_k_insert");
	if (tokens % PAGE == 0)
		check_bytes(g, r, mv.out, 0, mv.out->bytes);
	else
		check_bytes(g, r, mv.out, 0, SPMLA_INDEX_DIM);
	check_bytes(g, r, mv.out, PAGE * SPMLA_INDEX_DIM, sizeof(float));
	table_row(g, r);
	twins_free(g);
}

/* ---- indexer_q_prep ----------------------------------------------------- */

static spmla_indexer_q_prep_args
q_prep_args(side on)
{
	return (spmla_indexer_q_prep_args){
		.struct_bytes = (uint32_t)sizeof(spmla_indexer_q_prep_args),
		.tokens = mv.tokens,
		.heads = HEADS,
		.rope_style = SPMLA_ROPE_NEOX,
		.weights_dtype = SPMLA_DTYPE_F32,
		.cos_sin_rows = POSITIONS,
		.softmax_scale = SPMLA_INDEX_SOFTMAX_SCALE,
		.head_scale = 0.125f,
		.q = mv.a->at[on],
		.q_token_stride_elems = HEADS * SPMLA_INDEX_DIM,
		.q_head_stride_elems = SPMLA_INDEX_DIM,
		.weights = mv.b->at[on],
		.weights_stride_elems = HEADS,
		.positions = mv.positions->at[on],
		.cos_sin = mv.rope->at[on],
		.q_out = mv.out->at[on],
		.weights_out = mv.out2->at[on],
	};
}

static void
run_q_prep(gpu *g)
{
	const spmla_indexer_q_prep_args a = q_prep_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_indexer_q_prep(g->ops.ctx, &a, g->stream),
		 "indexer_q_prep");
}

static void
one_q_prep(gpu *g, uint32_t tokens)
{
	const uint64_t heads = (uint64_t)tokens * HEADS;
	shot s = {.op = "indexer_q_prep", .run = run_q_prep};
	spmla_indexer_q_prep_args a;
	cuda_row *r;

	mv.tokens = tokens;
	mv.a = make_bf16(g, heads * SPMLA_INDEX_DIM, 2);
	mv.b = make_f32(g, heads, -1, 1);
	mv.rope = make_f32(g, POSITIONS * ROPE_ROW, -1, 1);
	mv.positions = make_draw(g, tokens, POSITIONS);
	mv.out = twin_make(g, heads * SPMLA_INDEX_DIM);
	mv.out2 = twin_make(g, heads * 4);
	s.outputs[0] = mv.out, s.outputs[1] = mv.out2;
	r = measure(g, &s);
	name_row(r, "tokens, 64 heads", tokens);
	add_floor(g, r,
		  (double)heads * (K_BYTES + SPMLA_INDEX_DIM + 8) +
			  tokens * (ROPE_ROW * 4.0 + 4),
		  BY_COPY, 0, NO_PRODUCT);
	a = q_prep_args(ON_HOST);
	lib_must(g->cpu.ctx, spmla_indexer_q_prep(g->cpu.ctx, &a, NULL),
		 "indexer_q_prep");
	check_bytes(g, r, mv.out, 0, mv.out->bytes);
	check_bytes(g, r, mv.out2, 0, mv.out2->bytes);
	table_row(g, r);
	twins_free(g);
}

/* ---- index_map ---------------------------------------------------------- */

static spmla_index_map_args
map_args(side on)
{
	return (spmla_index_map_args){
		.struct_bytes = (uint32_t)sizeof(spmla_index_map_args),
		.tokens = mv.tokens,
		.k = mv.topk,
		.rows = mv.tokens,
		.columns = mv.columns,
		.table_stride_elems = mv.columns,
		.page_tokens = PAGE,
		.pool_pages = mv.tokens * mv.columns,
		.token_row = mv.b->at[on],
		.block_table = mv.table->at[on],
		.indices = mv.a->at[on],
		.indices_stride_elems = mv.topk,
		.slots = mv.out->at[on],
		.slots_stride_elems = mv.topk,
		.valid_counts = mv.out2->at[on],
	};
}

static void
run_map(gpu *g)
{
	const spmla_index_map_args a = map_args(ON_DEVICE);

	lib_must(g->ops.ctx, spmla_index_map(g->ops.ctx, &a, g->stream),
		 "index_map");
}

/* Contexts of 8192; indices as top-k gives them, in order. */
static void
one_map(gpu *g, uint32_t tokens, uint32_t topk)
{
	shot s = {.op = "index_map", .run = run_map};
	twin *rows = twin_make(g, tokens * 4);
	twin *indices = twin_make(g, (uint64_t)tokens * topk * 4);
	twin *table;
	spmla_index_map_args a;
	cuda_row *r;
	uint32_t i;

	mv.tokens = tokens, mv.topk = topk, mv.columns = 128;
	table = twin_make(g, (uint64_t)tokens * mv.columns * 4);
	fill_order(g, rows->at[ON_HOST], tokens);
	fill_order(g, table->at[ON_HOST], tokens * mv.columns);
	for (i = 0; i < tokens * topk; i++)
		((int32_t *)indices->at[ON_HOST])[i] =
			(int32_t)(i % topk * 4 + next_random(g) % 4);
	twin_push(g, rows);
	twin_push(g, indices);
	twin_push(g, table);
	mv.a = indices, mv.b = rows, mv.table = table;
	mv.out = twin_make(g, indices->bytes);
	mv.out2 = twin_make(g, tokens * 4);
	s.outputs[0] = mv.out, s.outputs[1] = mv.out2;
	r = measure(g, &s);
	name_row(r, topk == 2048 ? "tokens x 2048" : "tokens", tokens);
	add_floor(g, r, 2.0 * (double)indices->bytes + (double)table->bytes,
		  BY_COPY, 0, NO_PRODUCT);
	a = map_args(ON_HOST);
	lib_must(g->cpu.ctx, spmla_index_map(g->cpu.ctx, &a, NULL),
		 "index_map");
	check_bytes(g, r, mv.out, 0, mv.out->bytes);
	check_bytes(g, r, mv.out2, 0, mv.out2->bytes);
	table_row(g, r);
	twins_free(g);
}

void
bench_moves(gpu *g)
{
	if (wanted(g, "kv_insert")) {
		one_kv_insert(g, 1);
		one_kv_insert(g, g->tiny ? 64 : 8192);
	}
	if (wanted(g, "indexer_k_insert")) {
		one_k_insert(g, 1);
		one_k_insert(g, g->tiny ? 64 : 8192);
		if (!g->tiny) /* 128 bytes a token: large is more of them */
			one_k_insert(g, 65536);
	}
	if (wanted(g, "indexer_q_prep")) {
		one_q_prep(g, 1);
		one_q_prep(g, g->tiny ? 4 : 1024);
	}
	if (wanted(g, "index_map")) {
		one_map(g, 1, g->tiny ? 64 : 2048);
		one_map(g, g->tiny ? 4 : 256, g->tiny ? 64 : 2048);
	}
}
