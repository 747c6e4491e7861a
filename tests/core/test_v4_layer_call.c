/* SPDX-License-Identifier: Apache-2.0
 *
 * What every call of a V4 layer refuses before anything else: its context,
 * layer, ratio, shape, and a plan of another model; and how many ops the whole
 * layer is.
 */
#include <stdio.h>
#include <string.h>

#include "spmla/internal/backend.h"
#include "spmla/internal/gpu_sizes.h"
#include "spmla/platform/gpu/launch.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

#define COUNT(a)  ((uint32_t)(sizeof(a) / sizeof((a)[0])))
#define NUL(name) "SPMLA_E_NULL: " name ": got NULL, want a pointer"
#define R         "SPMLA_E_RANGE: "

typedef v4_layer_call call;

static fixture f;
static v4_layer_rig rig;
static const spmla_shape shape = {4, 4, 1, 0};

static void
setup(void)
{
	v4_layer_begin(&f, &rig, &shape);
}

static void
teardown(void)
{
	v4_layer_end(&f, &rig);
}

static spmla_status
attn(spmla_ctx *ctx, const spmla_v4_layer *layer, const spmla_shape *sh,
     spmla_stream stream)
{
	return spmla_v4_attn(ctx, layer, sh, NULL, stream);
}

static const call calls[] = {spmla_v4_insert, spmla_v4_compress, spmla_v4_index,
			     spmla_v4_attend, spmla_v4_output,   attn};

/* Alone, and in a capture, which it must spoil. */
static void
expect(call fn, const spmla_v4_layer *layer, const spmla_shape *sh,
       uint32_t before, const char *want)
{
	v4_layer_expect(&f, fn, layer, sh, before, want);
}

START_TEST(every_call_wants_a_context_a_layer_and_a_shape)
{
	uint32_t i;

	for (i = 0; i < COUNT(calls); i++) {
		spmla_v4_layer layer = rig.layer;

		ck_assert_int_eq(calls[i](NULL, &layer, &shape, NULL),
				 SPMLA_E_NULL);
		expect(calls[i], NULL, &shape, 0, NUL("v4_layer"));
		expect(calls[i], &layer, NULL, 0, NUL("shape"));
		layer.struct_bytes = 568;
		expect(calls[i], &layer, &shape, 0,
		       "SPMLA_E_STRUCT_SIZE: v4_layer: got 568, want 584");
	}
}
END_TEST

START_TEST(a_ratio_that_no_layer_has_is_refused)
{
	static const uint32_t wrong[] = {0, 2, 3, 5, 64, 127, 129, UINT32_MAX};
	char text[100];
	uint32_t i, k;

	for (i = 0; i < COUNT(wrong); i++) {
		spmla_v4_layer layer = rig.layer;

		layer.ratio = wrong[i];
		snprintf(text, sizeof text,
			 R "v4_layer.ratio: got %u, want 1, 4 or 128",
			 wrong[i]);
		for (k = 0; k < COUNT(calls); k++)
			expect(calls[k], &layer, &shape, 0, text);
	}
}
END_TEST

START_TEST(a_shape_larger_than_every_bucket_is_refused)
{
	static const struct {
		spmla_shape shape;
		const char *text;
	} cases[] = {
		{{0, 4, 1, 0}, R "shape.tokens: got 0, want at least 1"},
		{{17, 4, 1, 0}, R "shape.tokens: got 17, want at most 16"},
		{{4, 0, 1, 0}, R "shape.requests: got 0, want at least 1"},
		{{4, 9, 1, 0}, R "shape.requests: got 9, want at most 8"},
		{{4, 4, 0, 0}, R "shape.next_n: got 0, want at least 1"},
		{{4, 4, 5, 0}, R "shape.next_n: got 5, want at most 4"},
		{{8, 4, 2, 0},
		 "SPMLA_E_STATE: shape.tokens (of the last prologue): got 8, "
		 "want at most 4"},
	};
	uint32_t i, k;

	for (k = 0; k < COUNT(calls); k++)
		for (i = 0; i < COUNT(cases); i++)
			expect(calls[k], &rig.layer, &cases[i].shape, 0,
			       cases[i].text);
}
END_TEST

/* Before a prologue there is no step to be called for; a bad prologue is none.
 */
START_TEST(a_call_before_the_first_prologue_is_refused)
{
	spmla_config config;
	uint32_t k;
	fixture g;

	v4_layer_config(&config);
	fixture_open(&g, &config, SPMLA_NATIVE_DEFERRED);
	for (k = 0; k < COUNT(calls); k++)
		v4_layer_expect(&g, calls[k], &rig.layer, &shape, 0,
				"SPMLA_E_STATE: shape.tokens (of the last "
				"prologue): got 4, want at most 0");
	fixture_close(&g);
}
END_TEST

START_TEST(a_layer_of_v4_on_a_plan_of_v32_is_refused)
{
	spmla_config config;
	uint32_t k;
	fixture g;

	fixture_config(&config);
	fixture_open(&g, &config, SPMLA_NATIVE_DEFERRED);
	v32_must(g.ctx,
		 spmla_step_prologue(g.ctx, &shape, SPMLA_FROM_DEVICE, NULL));
	for (k = 0; k < COUNT(calls); k++)
		v4_layer_expect(&g, calls[k], &rig.layer, &shape, 0,
				"SPMLA_E_UNSUPPORTED: plan.config.model: got "
				"1, want 2 or 3");
	fixture_close(&g);
}
END_TEST

START_TEST(a_layer_of_v32_on_a_plan_of_v4_is_refused)
{
	static spmla_status (*const v32[])(
		spmla_ctx *, const spmla_v32_layer *, const spmla_shape *,
		spmla_stream) = {spmla_v32_insert, spmla_v32_index,
				 spmla_v32_attend, spmla_v32_attn};
	spmla_v32_layer layer;
	uint32_t k;

	memset(&layer, 0, sizeof layer);
	layer.struct_bytes = (uint32_t)sizeof layer;
	for (k = 0; k < COUNT(v32); k++) {
		ck_assert_int_eq(v32[k](f.ctx, &layer, &shape, NULL),
				 SPMLA_E_UNSUPPORTED);
		ck_assert_str_eq(fixture_diag(&f),
				 "SPMLA_E_UNSUPPORTED: plan.config.model: got "
				 "2, want 1");
		ck_assert_uint_eq(fixture_pending(&f), 0);
	}
	ck_assert_int_eq(spmla_v32_prefill(f.ctx, &layer, &shape, NULL),
			 SPMLA_E_UNSUPPORTED);
}
END_TEST

/* Whether index_map is a launch of its own: on GPUs that are not Hopper's. Only
 * the emulator counts launches; a device's queue counts calls. */
static uint32_t
maps_apart(void)
{
	const spmla_i_gpu_state *state = f.ctx->buf[SPMLA_BUF_BACKEND_STATE];

	return !fixture_on_cpu() && !fixture_on_gpu() &&
	       !state->resident_blocks[SPMLA_KERNEL_topk_map_by_1];
}

/* insert, compress, index queries and selection, which maps what it selects,
 * attend, output. */
START_TEST(attn_enqueues_what_the_layer_has)
{
	static const struct {
		uint32_t ratio, index_kv, index_q, wo, ops;
	} cases[] = {
		{1, 1, 1, 1, 1 + 0 + 0 + 1 + 2},
		{1, 1, 1, 0, 1 + 0 + 0 + 1},
		{4, 1, 1, 1, 1 + 4 + 3 + 1 + 2},
		{4, 0, 1, 1, 1 + 2 + 3 + 1 + 2},
		{4, 0, 0, 0, 1 + 2 + 0 + 2},
		{4, 1, 0, 1, 1 + 4 + 0 + 2 + 2},
		{128, 1, 1, 1, 1 + 2 + 0 + 1 + 2},
		{128, 0, 0, 0, 1 + 2 + 0 + 1},
	};
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		spmla_v4_layer l = v4_layer_of(&rig, f.ctx, cases[i].ratio);

		l.index_kv = cases[i].index_kv ? l.index_kv : NULL;
		l.index_q = cases[i].index_q ? l.index_q : NULL;
		l.wo = cases[i].wo ? l.wo : NULL;
		fixture_drain(&f);
		v32_must(f.ctx, attn(f.ctx, &l, &shape, NULL));
		ck_assert_uint_eq(fixture_pending(&f),
				  cases[i].ops +
					  (l.index_q && cases[i].ratio == 4
						   ? maps_apart()
						   : 0));
	}
}
END_TEST

/* Whether the backend has branches or not, what they are does not matter where
 * it has none. */
START_TEST(a_backend_of_one_timeline_takes_no_branches)
{
	spmla_v4_branches branches = SPMLA_V4_BRANCHES_INIT;

	ck_assert(!f.ctx->backend->order);
	v32_must(f.ctx,
		 spmla_v4_attn(f.ctx, &rig.layer, &shape, &branches, NULL));
	ck_assert_uint_eq(fixture_pending(&f), 11 + maps_apart());
}
END_TEST

SUITE
{
	const theme_test all[] = {
		{every_call_wants_a_context_a_layer_and_a_shape, 1},
		{a_ratio_that_no_layer_has_is_refused, 1},
		{a_shape_larger_than_every_bucket_is_refused, 1},
		{a_call_before_the_first_prologue_is_refused, 1},
		{a_layer_of_v4_on_a_plan_of_v32_is_refused, 1},
		{a_layer_of_v32_on_a_plan_of_v4_is_refused, 1},
	};
	const theme_test whole[] = {
		{attn_enqueues_what_the_layer_has, 1},
		{a_backend_of_one_timeline_takes_no_branches, 1},
	};
	const theme themes[] = {
		THEME("all", setup, teardown, all),
		THEME("attn", setup, teardown, whole),
	};

	return RUN_THEMES(themes);
}
