/* SPDX-License-Identifier: Apache-2.0
 *
 * A V3.2 layer in three calls gives what the operations give one by one, to
 * the bit, in every way that a layer can be set up.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/core/v32_ops.h"
#include "tests/harness/themes.h"

enum { STEPS = 36, TOPK_STRIDE = 13 };

/* How a pair of contexts is set up. Zeros are the plain case. */
typedef struct way {
	uint32_t kv_layout;
	uint32_t kv_scale_mode;
	uint32_t source;
	uint32_t heads;
	uint32_t index_heads;
	uint32_t bucket;
	uint32_t query;
	uint32_t rope_style; /* NONE: as the rig has it */
	uint32_t no_norm;
	uint32_t bf16_weights;
	uint32_t floor;
	uint32_t sink;
	uint32_t empty_lse;
	uint32_t own_topk;
	uint32_t index_layout;
} way;

typedef struct side {
	fixture f;
	v32_rig rig;
	uint16_t *weights;
	int32_t *topk;
	int32_t *lens;
} side;

static void
set_layer(side *s, const way *w)
{
	spmla_v32_layer *l = &s->rig.layer;
	uint32_t n = s->rig.tokens * s->rig.index_heads, i;

	s->rig.query = w->query ? w->query : 1;
	if (w->rope_style)
		l->rope_style = w->rope_style;
	if (w->no_norm)
		l->index_norm_weight = l->index_norm_bias = NULL;
	if (w->bf16_weights) {
		s->weights = test_alloc(n * sizeof *s->weights, 0);
		for (i = 0; i < n; i++)
			s->weights[i] = test_bf16((float)i * 0.01f);
		l->index_weights = s->weights;
		l->index_weights_dtype = SPMLA_DTYPE_BF16;
	}
	if (w->sink)
		l->attn_sink = s->rig.attn_sink;
	if (w->own_topk) {
		s->topk = test_alloc(
			s->rig.tokens * TOPK_STRIDE * sizeof *s->topk, 0xAB);
		s->lens = test_alloc(s->rig.tokens * sizeof *s->lens, 0xAB);
		l->topk_indices = s->topk;
		l->topk_lens = s->lens;
		l->topk_stride_elems = TOPK_STRIDE;
	}
	l->index_q_scale_floor = w->floor;
	l->empty_lse = w->empty_lse;
}

static void
open_side(side *s, const way *w)
{
	spmla_config config;

	memset(s, 0, sizeof *s);
	fixture_config(&config);
	config.flags = SPMLA_CONFIG_APART;
	config.kv_layout = w->kv_layout;
	config.kv_scale_mode = w->kv_scale_mode;
	config.groups[0].source = w->source;
	config.index_layout = w->index_layout;
	if (w->heads)
		config.heads = w->heads;
	if (w->index_heads)
		config.index_heads = w->index_heads;
	fixture_open(&s->f, &config, 0);
	v32_rig_open(&s->rig, s->f.ctx, 0, 77);
	set_layer(s, w);
}

static void
close_side(side *s)
{
	free(s->weights);
	free(s->topk);
	free(s->lens);
	v32_rig_close(&s->rig);
	fixture_close(&s->f);
}

/* The next step's metadata, eagerly. */
static const spmla_shape *
prologue(side *s, uint32_t n, uint32_t bucket)
{
	const spmla_shape *shape =
		&spmla_ctx_plan(s->f.ctx)->config.buckets[bucket];
	uint64_t ticket;

	v32_rig_draw(&s->rig, &s->rig.seed);
	v32_rig_write(&s->rig, s->f.ctx, n, &ticket);
	v32_must(s->f.ctx,
		 spmla_step_prologue(s->f.ctx, shape, SPMLA_FROM_RING, NULL));
	return shape;
}

/* Every buffer of the step and of its phases, which lie apart. */
static void
same_buffers(const side *a, const side *b)
{
	uint32_t i;

	for (i = 0; i < a->f.plan.row_count; i++) {
		const spmla_extent *e = &a->f.plan.extents[i];
		const spmla_buf buf = (spmla_buf)e->buf;
		const void *x = spmla_view(a->f.ctx, buf, NULL);
		const void *y = spmla_view(b->f.ctx, buf, NULL);

		if (e->memory == SPMLA_MEMORY_DEVICE)
			ck_assert_msg(memcmp(x, y, e->bytes) == 0,
				      "buffer %u differs", e->buf);
	}
}

static void
same(const side *a, const side *b)
{
	same_buffers(a, b);
	ck_assert_mem_eq(a->rig.out, b->rig.out, a->rig.out_bytes);
	ck_assert_mem_eq(a->rig.lse, b->rig.lse, a->rig.lse_bytes);
	ck_assert_mem_eq(a->rig.layer.kv.base, b->rig.layer.kv.base,
			 a->rig.kv_bytes);
	ck_assert_mem_eq(a->rig.layer.index.base, b->rig.layer.index.base,
			 a->rig.index_bytes);
	if (a->topk)
		ck_assert_mem_eq(a->topk, b->topk,
				 a->rig.tokens * TOPK_STRIDE * 4);
	ck_assert_uint_eq(fixture_status(&a->f).count, 0);
	ck_assert_uint_eq(fixture_status(&b->f).count, 0);
}

/* Steps whose attention has more keys than top-k, and more than a page. */
static uint64_t
check_way(const way *w)
{
	uint64_t hash = 0;
	side layer, ops;
	uint32_t n;

	open_side(&layer, w);
	open_side(&ops, w);
	for (n = 0; n < STEPS; n++) {
		const spmla_shape *shape = prologue(&layer, n, w->bucket);

		v32_must(layer.f.ctx,
			 spmla_v32_attn(layer.f.ctx, &layer.rig.layer, shape,
					NULL));
		(void)prologue(&ops, n, w->bucket);
		v32_by_ops(&ops.rig, ops.f.ctx, shape);
		same(&layer, &ops);
		hash = test_hash(hash, layer.rig.out, layer.rig.out_bytes);
	}
	close_side(&layer);
	close_side(&ops);
	return hash;
}

START_TEST(fp8_rows)
{
	static const way plain, raw = {.kv_scale_mode = SPMLA_SCALE_RAW};

	ck_assert_uint_ne(check_way(&plain), check_way(&raw));
}
END_TEST

START_TEST(bf16_rows)
{
	static const way plain, bf16 = {.kv_layout = SPMLA_LAYOUT_MLA_BF16};

	ck_assert_uint_ne(check_way(&plain), check_way(&bf16));
}
END_TEST

START_TEST(index_keys_of_mxfp4)
{
	static const way plain,
		mxfp4 = {.index_layout = SPMLA_LAYOUT_INDEX_MXFP4};

	/* Other scores, so other selections. */
	ck_assert_uint_ne(check_way(&plain), check_way(&mxfp4));
}
END_TEST

START_TEST(index_keys_in_tiles)
{
	static const way plain,
		tiled = {.index_layout = SPMLA_LAYOUT_INDEX_FP8_TILED};

	/* The same keys, and on the CPU the same bits. */
	ck_assert_uint_eq(check_way(&plain), check_way(&tiled));
}
END_TEST

START_TEST(the_engines_own_table)
{
	static const way plain, device = {.source = SPMLA_TABLE_DEVICE};

	/* The same pages, whoever keeps the table. */
	ck_assert_uint_eq(check_way(&plain), check_way(&device));
}
END_TEST

START_TEST(any_number_of_heads)
{
	/* 6 and 17: 1 / sqrtf(n) is not n^-0.5 rounded to f32 */
	static const uint32_t counts[][2] = {{1, 1}, {3, 6}, {8, 17}, {16, 64}};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		const way w = {.heads = counts[i][0],
			       .index_heads = counts[i][1]};

		(void)check_way(&w);
	}
}
END_TEST

START_TEST(more_than_one_token_a_request)
{
	static const way two = {.bucket = 1, .query = 2};
	static const way four = {.bucket = 2, .query = 4};

	(void)check_way(&two);
	(void)check_way(&four);
}
END_TEST

START_TEST(every_option_of_the_indexer)
{
	static const way neox = {.rope_style = SPMLA_ROPE_NEOX};
	static const way no_norm = {.no_norm = 1};
	static const way weights = {.bf16_weights = 1};
	static const way group = {.floor = SPMLA_Q_SCALE_GROUP};
	static const way own = {.own_topk = 1};
	static const way plain;
	const uint64_t hash = check_way(&plain);

	ck_assert_uint_ne(check_way(&neox), hash);
	ck_assert_uint_ne(check_way(&no_norm), hash);
	ck_assert_uint_ne(check_way(&weights), hash);
	/* Differs for rows of almost zeros only. */
	ck_assert_uint_eq(check_way(&group), hash);
	/* Where the selection lies changes nothing. */
	ck_assert_uint_eq(check_way(&own), hash);
}
END_TEST

START_TEST(a_sink_takes_its_part_of_the_weight)
{
	static const way sink = {.sink = 1}, plain;

	ck_assert_uint_ne(check_way(&sink), check_way(&plain));
}
END_TEST

/* The three calls, with room for the engine's own work in between. */
START_TEST(the_three_calls_are_the_one)
{
	static const way plain;
	side one, three;
	uint32_t n;

	open_side(&one, &plain);
	open_side(&three, &plain);
	for (n = 0; n < STEPS; n++) {
		const spmla_shape *shape = prologue(&one, n, 0);
		spmla_v32_layer part = three.rig.layer;
		spmla_ctx *ctx = three.f.ctx;

		v32_must(one.f.ctx, spmla_v32_attn(one.f.ctx, &one.rig.layer,
						   shape, NULL));
		(void)prologue(&three, n, 0);
		/* Each looks at its own part only. */
		part.q = NULL;
		part.out = NULL;
		part.index_q = NULL;
		v32_must(ctx, spmla_v32_insert(ctx, &part, shape, NULL));
		part = three.rig.layer;
		part.index_k = part.kv_c = part.k_pe = part.q = NULL;
		memset(&part.kv, 0, sizeof part.kv);
		v32_must(ctx, spmla_v32_index(ctx, &part, shape, NULL));
		part = three.rig.layer;
		part.index_k = part.kv_c = part.k_pe = part.index_q = NULL;
		memset(&part.index, 0, sizeof part.index);
		v32_must(ctx, spmla_v32_attend(ctx, &part, shape, NULL));
		same(&one, &three);
	}
	close_side(&one);
	close_side(&three);
}
END_TEST

/* The second layer has no indexer: its own keys, the first one's selection. */
static void
share(uint32_t own_topk)
{
	const way w = {.own_topk = own_topk};
	spmla_cache index[2];
	side s[2];
	v32_rig rig[2];
	uint32_t n, i;

	for (i = 0; i < 2; i++) {
		spmla_v32_layer *l = &rig[i].layer;

		open_side(&s[i], &w);
		v32_rig_open(&rig[i], s[i].f.ctx, 0, 5);
		index[i] = l->index;
		memset(&l->index, 0, sizeof l->index);
		l->index_k = l->index_q = NULL;
		l->topk_indices = s[i].topk;
		l->topk_lens = s[i].lens;
		l->topk_stride_elems = own_topk ? TOPK_STRIDE : 0;
	}
	for (n = 0; n < STEPS; n++) {
		const spmla_shape *shape = prologue(&s[0], n, 0);

		v32_must(s[0].f.ctx, spmla_v32_attn(s[0].f.ctx, &s[0].rig.layer,
						    shape, NULL));
		v32_must(s[0].f.ctx, spmla_v32_attn(s[0].f.ctx, &rig[0].layer,
						    shape, NULL));
		(void)prologue(&s[1], n, 0);
		v32_by_ops(&s[1].rig, s[1].f.ctx, shape);
		v32_by_ops(&rig[1], s[1].f.ctx, shape);
		same(&s[0], &s[1]);
		ck_assert_mem_eq(rig[0].out, rig[1].out, rig[0].out_bytes);
		ck_assert_mem_eq(rig[0].layer.kv.base, rig[1].layer.kv.base,
				 rig[0].kv_bytes);
		ck_assert_mem_ne(rig[0].out, s[0].rig.out, 512);
	}
	for (i = 0; i < 2; i++) {
		rig[i].layer.index = index[i];
		v32_rig_close(&rig[i]);
		close_side(&s[i]);
	}
}

START_TEST(a_layer_may_use_the_selection_of_another)
{
	share(0);
	share(1);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{fp8_rows, 1},
		{bf16_rows, 1},
		{index_keys_of_mxfp4, 1},
		{index_keys_in_tiles, 1},
		{the_engines_own_table, 1},
		{any_number_of_heads, 1},
		{more_than_one_token_a_request, 1},
		{every_option_of_the_indexer, 1},
		{a_sink_takes_its_part_of_the_weight, 1},
		{the_three_calls_are_the_one, 1},
		{a_layer_may_use_the_selection_of_another, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
