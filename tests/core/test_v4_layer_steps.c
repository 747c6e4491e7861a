/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a V4 layer belong to the step of the last prologue, alone or in
 * a graph; and requests of that step that are skipped.
 */
#include <string.h>

#include "spmla/internal/few.h"
#include "spmla/internal/splits.h"

#include "tests/harness/engine.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

static const spmla_shape one = {4, 4, 1, 0}, most = {16, 8, 4, 0};
static const spmla_shape prompt = {20, 8, 20, 0};

static fixture f;
static v4_layer_rig rig;

static void
open_with(const spmla_config *config)
{
	fixture_open(&f, config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
}

static void
setup(void)
{
	spmla_config config;

	v4_layer_config(&config);
	config.max_prefill_tokens = 20;
	open_with(&config);
}

static void
teardown(void)
{
	v4_layer_end(&f, &rig);
}

static void
prologue(const spmla_shape *shape, spmla_source source)
{
	v32_must(f.ctx, spmla_step_prologue(f.ctx, shape, source, NULL));
}

/* A graph of one prologue. */
static spmla_graph
capture(const spmla_shape *shape)
{
	spmla_graph graph;

	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	prologue(shape, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_graph_end(f.ctx, &graph));
	return graph;
}

START_TEST(a_replay_begins_the_step_of_its_graph)
{
	const spmla_graph large = capture(&most), small = capture(&one);
	const char *none = "SPMLA_E_STATE: shape.tokens (of the last "
			   "prologue): got 16, want at most 0";
	const char *text = "SPMLA_E_STATE: shape.tokens (of the last "
			   "prologue): got 16, want at most 4";

	/* A capture runs nothing. */
	v4_layer_expect(&f, spmla_v4_insert, &rig.layer, &most, 0, none);
	v32_must(f.ctx, spmla_graph_replay(f.ctx, large, 0, NULL));
	v4_layer_expect(&f, spmla_v4_insert, &rig.layer, &most, 1, NULL);
	v32_must(f.ctx, spmla_graph_replay(f.ctx, small, 0, NULL));
	v4_layer_expect(&f, spmla_v4_insert, &rig.layer, &most, 0, text);
}
END_TEST

/* A step may be in several graphs. */
START_TEST(a_capture_goes_on_with_the_step_of_the_last_one)
{
	const spmla_graph first = capture(&most);
	spmla_graph graph;

	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	v32_must(f.ctx, spmla_v4_insert(f.ctx, &rig.layer, &most, NULL));
	v32_must(f.ctx, spmla_graph_end(f.ctx, &graph));
	/* A step that began since counts more. */
	prologue(&one, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	ck_assert_int_eq(spmla_v4_insert(f.ctx, &rig.layer, &most, NULL),
			 SPMLA_E_STATE);
	v32_must(f.ctx, spmla_graph_abort(f.ctx));
	v32_must(f.ctx, spmla_graph_replay(f.ctx, first, 0, NULL));
	v32_must(f.ctx, spmla_graph_replay(f.ctx, graph, 0, NULL));
	fixture_drain(&f);
}
END_TEST

/* A prologue that was thrown away is not the last one for the next capture. */
START_TEST(an_aborted_capture_leaves_the_step_that_was_recorded)
{
	spmla_graph graph;

	capture(&most);
	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	prologue(&one, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_graph_abort(f.ctx));
	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	v32_must(f.ctx, spmla_v4_insert(f.ctx, &rig.layer, &most, NULL));
	v32_must(f.ctx, spmla_graph_end(f.ctx, &graph));
}
END_TEST

/* A graph of one call, which belongs to the step that was recorded last. */
static spmla_graph
capture_call(v4_layer_call call, const spmla_shape *shape)
{
	spmla_graph graph;

	v32_must(f.ctx, spmla_graph_begin(f.ctx, NULL));
	v32_must(f.ctx, call(f.ctx, &rig.layer, shape, NULL));
	v32_must(f.ctx, spmla_graph_end(f.ctx, &graph));
	return graph;
}

/* A replay that is refused with this text, and queues nothing. */
static void
replay_refused(spmla_graph graph, const char *text)
{
	const uint32_t pending = fixture_pending(&f);

	ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
			 SPMLA_E_STATE);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_uint_eq(fixture_pending(&f), pending);
}

START_TEST(a_replay_without_a_prologue_wants_a_step_as_large)
{
	const char *few = "SPMLA_E_STATE: graph: shape.tokens (of the last "
			  "prologue): got 4, want at least 16";
	const char *pieces = "SPMLA_E_STATE: graph: tokens a piece (of the "
			     "last prologue): got 20, want 0";
	const spmla_graph first = capture(&most);
	const spmla_graph calls = capture_call(spmla_v4_insert, &most);

	/* No step has begun: its requests would be anyone's. */
	replay_refused(calls, "SPMLA_E_STATE: graph: shape.tokens (of the last "
			      "prologue): got 0, want at least 16");
	prologue(&one, SPMLA_FROM_DEVICE);
	replay_refused(calls, few);
	prologue(&prompt, SPMLA_FROM_DEVICE);
	replay_refused(calls, pieces);
	v32_must(f.ctx, spmla_graph_replay(f.ctx, first, 0, NULL));
	v32_must(f.ctx, spmla_graph_replay(f.ctx, calls, 0, NULL));
	fixture_drain(&f);
}
END_TEST

/* A smaller step's calls fit, unless they are done by the prologue's
 * metadata. */
START_TEST(a_replay_in_parts_wants_the_tokens_that_it_was_recorded_with)
{
	const spmla_config *c = &f.plan.config;
	const uint32_t few =
		spmla_i_few_choose(&f.plan.device, c->kv_layout, one.tokens,
				   c->heads, c->window_tokens + c->topk);
	const uint32_t parts =
		few == SPMLA_I_FEW_COUNT
			? spmla_i_step_cut(&f.plan, one.tokens).parts
			: 0;
	spmla_graph insert, attend;

	(void)capture(&one);
	insert = capture_call(spmla_v4_insert, &one);
	attend = capture_call(spmla_v4_attend, &one);
	prologue(&most, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_graph_replay(f.ctx, insert, 0, NULL));
	if (parts)
		replay_refused(attend,
			       "SPMLA_E_STATE: graph: shape.tokens (of the "
			       "last prologue): got 16, want 4");
	else
		v32_must(f.ctx, spmla_graph_replay(f.ctx, attend, 0, NULL));
	prologue(&one, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_graph_replay(f.ctx, attend, 0, NULL));
	fixture_drain(&f);
}
END_TEST

START_TEST(a_capture_of_the_engines_runs_nothing_either)
{
	engine_list list;

	prologue(&one, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, engine_capture_begin(f.ctx));
	ck_assert_int_eq(spmla_v4_insert(f.ctx, &rig.layer, &most, NULL),
			 SPMLA_E_STATE);
	prologue(&most, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_v4_insert(f.ctx, &rig.layer, &most, NULL));
	v32_must(f.ctx, engine_capture_end(f.ctx, &list));
	ck_assert_int_eq(spmla_v4_insert(f.ctx, &rig.layer, &most, NULL),
			 SPMLA_E_STATE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_STATE: shape.tokens (of the last prologue): "
			 "got 16, want at most 4");
	v32_must(f.ctx, spmla_v4_insert(f.ctx, &rig.layer, &one, NULL));
	/* It goes on in the next capture. */
	v32_must(f.ctx, engine_capture_begin(f.ctx));
	v32_must(f.ctx, spmla_v4_insert(f.ctx, &rig.layer, &most, NULL));
	v32_must(f.ctx, engine_capture_end(f.ctx, &list));
	fixture_drain(&f);
}
END_TEST

START_TEST(a_call_of_decode_after_the_prologue_of_a_prefill_is_refused)
{
	static const v4_layer_call calls[] = {spmla_v4_insert,
					      spmla_v4_compress, spmla_v4_index,
					      spmla_v4_attend, spmla_v4_output};
	const spmla_graph graph = capture(&one);
	uint32_t i;

	prologue(&prompt, SPMLA_FROM_DEVICE);
	for (i = 0; i < sizeof calls / sizeof *calls; i++) {
		v4_layer_expect(&f, calls[i], &rig.layer, &one, 0,
				"SPMLA_E_STATE: shape (the last prologue began "
				"a prefill): got 1, want 0");
		v4_layer_expect(&f, calls[i], &rig.layer, &prompt, 1, NULL);
	}
	v32_must(f.ctx, spmla_graph_replay(f.ctx, graph, 0, NULL));
	v4_layer_expect(&f, spmla_v4_index, &rig.layer, &one, 3, NULL);
}
END_TEST

/* Up to 3 tokens make no compressed key to select. */
START_TEST(a_context_without_a_compressed_key_is_attended_to)
{
	spmla_config config;
	uint32_t ratio;

	teardown();
	v4_layer_config(&config);
	config.max_context_tokens = (uint32_t)_i + 1;
	open_with(&config);
	v4_layer_write(f.ctx, 1, (uint32_t)_i + 1);
	prologue(&one, SPMLA_FROM_RING);
	for (ratio = 1; ratio <= 128; ratio *= ratio == 1 ? 4 : 32) {
		const spmla_v4_layer l = v4_layer_of(&rig, f.ctx, ratio);

		v32_must(f.ctx, spmla_v4_attn(f.ctx, &l, &one, NULL, NULL));
		fixture_drain(&f);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	ck_assert(rig.layer.lse[0] < 1e30f);
	ck_assert(rig.layer.lse[rig.heads] > 1e30f); /* padding */
}
END_TEST

/* Keys of 4 after a step in which row 0 has its tokens 1 .. 3 behind a request
 * of `row`, which has no pages: skipped, it says row 0 and position 0. */
static uint64_t
keys_behind(uint32_t row)
{
	const spmla_shape shape = {8, 4, 3, 0};
	spmla_v4_layer first = rig.layer;
	spmla_step_device *step;
	spmla_request *requests;
	const void *keys;
	uint64_t bytes;

	v4_layer_reset(&rig, f.ctx);
	v4_layer_write(f.ctx, 1, 1);
	prologue(&one, SPMLA_FROM_RING);
	first.compress_kv = (const float *)first.compress_kv +
			    5 * first.compress_kv_stride_elems;
	first.compress_score = (const float *)first.compress_score +
			       5 * first.compress_score_stride_elems;
	v32_must(f.ctx, spmla_v4_compress(f.ctx, &first, &one, NULL));
	fixture_drain(&f);
	step = spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, &bytes);
	memset(step, 0, bytes);
	step->requests = 2;
	requests = (spmla_request *)(void *)(step + 1);
	requests[0] = (spmla_request){row, 1, 1, 0};
	requests[1] = (spmla_request){0, 3, 4, 0};
	prologue(&shape, SPMLA_FROM_DEVICE);
	v32_must(f.ctx, spmla_v4_compress(f.ctx, &rig.layer, &shape, NULL));
	fixture_drain(&f);
	ck_assert_uint_gt(fixture_status(&f).count, 0);
	keys = spmla_view(f.ctx, SPMLA_BUF_C4A_CACHE, &bytes);
	return test_hash(1, keys, bytes);
}

START_TEST(a_request_without_a_row_is_in_no_key)
{
	ck_assert(keys_behind(5) == keys_behind(9999));
}
END_TEST

SUITE
{
	const theme_test steps[] = {
		{a_replay_begins_the_step_of_its_graph, 1},
		{a_capture_goes_on_with_the_step_of_the_last_one, 1},
		{an_aborted_capture_leaves_the_step_that_was_recorded, 1},
		{a_replay_without_a_prologue_wants_a_step_as_large, 1},
		{a_replay_in_parts_wants_the_tokens_that_it_was_recorded_with,
		 1},
		{a_capture_of_the_engines_runs_nothing_either, 1},
		{a_call_of_decode_after_the_prologue_of_a_prefill_is_refused,
		 1},
		{a_context_without_a_compressed_key_is_attended_to, 4},
		{a_request_without_a_row_is_in_no_key, 1},
	};
	const theme themes[] = {THEME("steps", setup, teardown, steps)};

	return RUN_THEMES(themes);
}
