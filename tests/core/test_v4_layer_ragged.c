/* SPDX-License-Identifier: Apache-2.0
 *
 * SPMLA_CONFIG_RAGGED: the layers of both models give the bits of rows, and the
 * lists of a step are its rows, one behind the other.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/ops/indexer_schedule.h"

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

enum { STEPS = 4 };

typedef struct side {
	fixture f;
	v4_layer_rig rig;
	spmla_graph graph;
} side;

static side sides[2]; /* rows, ragged */

static void
open_side(side *s, uint32_t flags)
{
	spmla_config config;

	v4_layer_config(&config);
	config.flags = flags;
	config.max_prefill_tokens = 20;
	fixture_open(&s->f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&s->rig, s->f.ctx, 1);
	v4_layer_reset(&s->rig, s->f.ctx);
}

static void
close_sides(void)
{
	v4_layer_end(&sides[0].f, &sides[0].rig);
	v4_layer_end(&sides[1].f, &sides[1].rig);
}

static const void *
view(const side *s, spmla_buf buf)
{
	return spmla_view(s->f.ctx, buf, NULL);
}

/* The ragged lists of a step are its rows. */
static void
expect_packed(spmla_buf rows, spmla_buf lens, uint32_t width, spmla_buf indices,
	      spmla_buf indptr, uint32_t tokens)
{
	const int32_t *from = view(&sides[0], rows);
	const int32_t *n = view(&sides[0], lens);
	const int32_t *to = view(&sides[1], indices);
	const int32_t *at = view(&sides[1], indptr);
	int32_t end = 0;
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		ck_assert_int_eq(at[t], end);
		ck_assert_mem_eq(to + end, from + t * width,
				 (uint32_t)n[t] * 4);
		end += n[t];
	}
	ck_assert_int_eq(at[tokens], end);
}

/* INDEXER_SCHEDULE is what the lengths alone give. */
static void
expect_schedule(const side *s, spmla_buf lens, uint32_t tokens)
{
	const spmla_device *d = &s->f.plan.device;
	const uint32_t bytes = (d->sm_count + 1) * 8;
	spmla_indexer_schedule_args a = {.struct_bytes = sizeof a,
					 .rule = d->arch >= 100 ? 2 : 1,
					 .batch = tokens,
					 .next_n = 1,
					 .num_sms = d->sm_count,
					 .context_lens = view(s, lens),
					 .context_lens_stride_elems = 1};
	uint64_t planned;

	(void)spmla_view(s->f.ctx, SPMLA_BUF_INDEXER_SCHEDULE, &planned);
	ck_assert_uint_eq(planned, bytes);
	a.schedule = test_alloc(bytes, 0x5A);
	v32_must(s->f.ctx, spmla_indexer_schedule(s->f.ctx, &a, NULL));
	(void)fixture_run((fixture *)(uintptr_t)&s->f, UINT32_MAX);
	ck_assert_mem_eq(a.schedule, view(s, SPMLA_BUF_INDEXER_SCHEDULE),
			 bytes);
	free(a.schedule);
}

/* One step of `query` tokens of a request: its prologue and one layer of each
 * ratio, in a graph or not. */
static void
step(side *s, const spmla_shape *shape, uint32_t query, uint32_t len,
     uint32_t ratio, uint32_t graph)
{
	const spmla_v4_layer l = v4_layer_of(&s->rig, s->f.ctx, ratio);

	if (graph)
		v32_must(s->f.ctx, spmla_graph_begin(s->f.ctx, NULL));
	else
		v4_layer_write(s->f.ctx, query, len);
	v32_must(s->f.ctx,
		 spmla_step_prologue(s->f.ctx, shape, SPMLA_FROM_RING, NULL));
	v32_must(s->f.ctx, spmla_v4_attn(s->f.ctx, &l, shape, NULL, NULL));
	if (graph) {
		v32_must(s->f.ctx, spmla_graph_end(s->f.ctx, &s->graph));
		v4_layer_write(s->f.ctx, query, len);
		v32_must(s->f.ctx,
			 spmla_graph_replay(s->f.ctx, s->graph, 1, NULL));
	}
	fixture_drain(&s->f);
	ck_assert_uint_eq(fixture_status(&s->f).count, 0);
}

START_TEST(layers_of_v4_have_the_bits_of_rows)
{
	static const spmla_shape shapes[3] = {
		{4, 4, 1, 0}, {16, 8, 4, 0}, {20, 8, 20, 0}};
	static const uint32_t query[3] = {1, 4, 18}, len[3] = {301, 512, 200};
	static const uint32_t ratios[3] = {1, 4, 128};
	const spmla_shape *shape = &shapes[_i % 3];
	const uint32_t graph = _i >= 9;
	/* Then a layer's own lists outlive it; else phases share bytes. */
	const uint32_t apart = graph ? 0 : SPMLA_CONFIG_APART;
	uint32_t i;

	open_side(&sides[0], apart);
	open_side(&sides[1], SPMLA_CONFIG_RAGGED | apart);
	for (i = 0; i < 2; i++)
		step(&sides[i], shape, query[_i % 3], len[_i % 3],
		     ratios[_i / 3 % 3], graph && _i % 3 < 2);
	ck_assert(v4_layer_hash(&sides[0].rig, sides[0].f.ctx) ==
		  v4_layer_hash(&sides[1].rig, sides[1].f.ctx));
	expect_packed(SPMLA_BUF_SWA_INDICES, SPMLA_BUF_SWA_LENS,
		      sides[0].f.plan.config.window_tokens,
		      SPMLA_BUF_RAGGED_INDICES_SWA, SPMLA_BUF_RAGGED_INDPTR_SWA,
		      shape->tokens);
	expect_packed(SPMLA_BUF_C128A_INDICES, SPMLA_BUF_C128A_LENS, 128,
		      SPMLA_BUF_RAGGED_INDICES_C128A,
		      SPMLA_BUF_RAGGED_INDPTR_C128A, shape->tokens);
	if (ratios[_i / 3 % 3] == 4 && apart)
		expect_packed(SPMLA_BUF_SWA_INDICES, SPMLA_BUF_C4A_SWA_LENS,
			      sides[0].f.plan.config.window_tokens,
			      SPMLA_BUF_RAGGED_INDICES_C4A_SWA,
			      SPMLA_BUF_RAGGED_INDPTR_C4A_SWA, shape->tokens);
	expect_schedule(&sides[1], SPMLA_BUF_COMPRESSED_LENS, shape->tokens);
	ck_assert_ptr_null(view(&sides[1], SPMLA_BUF_TOPK_SLOTS));
	ck_assert_ptr_null(view(&sides[1], SPMLA_BUF_C4A_LENS));
	ck_assert_ptr_null(view(&sides[0], SPMLA_BUF_RAGGED_INDICES));
	close_sides();
}
END_TEST

START_TEST(layers_of_v32_have_the_bits_of_rows)
{
	uint64_t hash[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		const spmla_shape *shape;
		spmla_config config;
		v32_rig rig;

		fixture_config(&config);
		config.flags = i ? SPMLA_CONFIG_RAGGED : 0;
		config.kv_layout = _i ? SPMLA_LAYOUT_MLA_BF16 : 0;
		fixture_open(&sides[i].f, &config, 0);
		v32_rig_open(&rig, sides[i].f.ctx, 0, 9);
		shape = &sides[i].f.plan.config.buckets[0];
		hash[i] = v32_rig_decode(&rig, sides[i].f.ctx, STEPS);
		ck_assert_uint_eq(fixture_status(&sides[i].f).count, 0);
		if (i)
			expect_schedule(&sides[i], SPMLA_BUF_CONTEXT_LENS,
					shape->tokens);
		v32_rig_close(&rig);
		fixture_close(&sides[i].f);
	}
	ck_assert(hash[0] == hash[1]);
}
END_TEST

/* 2^31 - 1 entries are the most that an indptr counts. The plan stays as it was. */
START_TEST(lists_that_an_indptr_cannot_count_are_refused)
{
	spmla_config config;
	spmla_device device = SPMLA_DEVICE_INIT;
	static spmla_plan plan, before;
	spmla_diag diag = SPMLA_DIAG_INIT;

	memset(&plan, 0x11, sizeof plan);
	before = plan;
	fixture_config(&config);
	config.flags = SPMLA_CONFIG_RAGGED;
	config.topk = 65536;
	config.buckets[2].tokens = 65536;
	v32_must(NULL, spmla_backend_query(&spmla_cpu, NULL, &device, &diag));
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, &diag),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_RANGE: tokens of a piece (config.flags has "
			 "RAGGED): got 65536, want at most 32767");
	ck_assert_mem_eq(&plan, &before, sizeof plan);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{layers_of_v4_have_the_bits_of_rows, 18},
		{layers_of_v32_have_the_bits_of_rows, 2},
	};
	const theme_test error[] = {
		{lists_that_an_indptr_cannot_count_are_refused, 1},
	};
	const theme themes[] = {
		THEME("determinism", NULL, NULL, determinism),
		THEME("error", NULL, NULL, error),
	};

	return RUN_THEMES(themes);
}
