/* SPDX-License-Identifier: Apache-2.0
 *
 * ADVANCE with a layer of V4 of each kind: steps whose lengths move on the
 * device equal the steps that records give, bit for bit. They pass ends of
 * groups of 4 and 128, tables that wrap around, tokens that are rejected and a
 * row that leaves its bounds. Where lengths move, lists may be ragged: each
 * step packs them anew, in place.
 */

#include "tests/harness/engine.h"
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/v4_replay_rig.h"

enum {
	REQUESTS = 4,
	DEPTH = 3, /* steps of one graph */
	STEPS = 150,
	FEW_STEPS = 3 /* in two of one token the last row leaves its bounds */
};

static v4_replay_rig advanced, written;
static uint32_t lens[REQUESTS]; /* 0: it has left them */

static void
setup_with(uint32_t native_flags, uint32_t config_flags,
	   uint32_t multiprocessors)
{
	spmla_config config;

	fixture_multiprocessors(multiprocessors);
	v4_replay_config(&config, SPMLA_LAYOUT_INDEX_FP8);
	/* On one thread, whatever the other has. */
	fixture_lend(1, NULL);
	v4_replay_open(&written, &config, 0, test_seed());
	fixture_lend(0, NULL);
	config.flags |= config_flags;
	v4_replay_open(&advanced, &config, native_flags, test_seed());
}

static void
setup(void)
{
	setup_with(0, 0, V4_MANY_SMS);
}

static void
setup_deferred(void)
{
	setup_with(SPMLA_NATIVE_DEFERRED, 0, V4_SOME_SMS);
}

static void
setup_ragged(void)
{
	setup_with(0, SPMLA_CONFIG_RAGGED, V4_SOME_SMS);
}

static void
teardown(void)
{
	fixture_drain(&advanced.f);
	v4_replay_close(&advanced);
	v4_replay_close(&written);
	fixture_multiprocessors(0);
}

/* The values of the step's tokens. A row that is gone may have any values; they
 * are not read. */
static void
fill(v4_replay_rig *r, uint32_t query)
{
	uint32_t b, j;

	for (b = 0; b < REQUESTS; b++)
		for (j = 0; j < query; j++)
			v4_replay_fill(r, b * query + j, b,
				       lens[b] - query + j);
}

static uint64_t
write_step(v4_replay_rig *r, uint32_t query, uint32_t is_first)
{
	uint32_t b;
	v4_draft d;

	v4_draft_clear(&d);
	for (b = 0; b < REQUESTS; b++)
		if (is_first)
			v4_replay_join(r, &d, b, query, lens[b]);
		else
			v4_draft_request(&d, b, lens[b] ? query : 0, lens[b],
					 0);
	return v4_replay_write(r, &d, NULL);
}

static void
run_written(uint32_t query, const spmla_shape *shape, uint32_t is_first)
{
	(void)write_step(&written, query, is_first);
	v32_must(written.f.ctx,
		 v4_replay_enqueue(&written, shape, SPMLA_FROM_RING));
}

/* The first step, which is run where records are written and has a ticket where
 * lengths move. Two rows end a group of 4 and one of 128 soon; the last has `left`
 * tokens up to its bounds. */
static uint64_t
begin(uint32_t query, const spmla_shape *shape, uint32_t left)
{
	const uint32_t most = advanced.f.plan.config.max_context_tokens;

	lens[0] = query;
	lens[1] = 126;
	lens[2] = most / 2 + 30;
	lens[3] = most - left;
	fill(&advanced, query);
	fill(&written, query);
	run_written(query, shape, 1);
	return write_step(&advanced, query, 1);
}

/* The device moves the lengths by by[b], and so does the model. The length of
 * a row that is gone stays, whatever is asked for. */
static void
move(const int32_t *by)
{
	int32_t *to = spmla_view(advanced.f.ctx, SPMLA_BUF_ADVANCE_BY, NULL);
	uint32_t b;

	for (b = 0; b < REQUESTS; b++) {
		to[b] = by[b];
		if (lens[b])
			lens[b] += (uint32_t)by[b];
		if (lens[b] > advanced.f.plan.config.max_context_tokens)
			lens[b] = 0;
	}
}

static void
expect_equal(const spmla_shape *shape, uint64_t step)
{
	fixture_drain(&advanced.f);
	fixture_drain(&written.f);
	v4_replay_expect_equal(&advanced, &written, shape, step);
}

/* Steps of up to `query` accepted tokens a request, each a launch. */
static void
launch_steps(uint32_t bucket, uint32_t query)
{
	const uint32_t rounds = fixture_rounds(STEPS, FEW_STEPS);
	const uint32_t steps = rounds < FEW_STEPS ? FEW_STEPS : rounds;
	const spmla_shape *shape = &advanced.f.config.buckets[bucket];
	uint64_t rng = test_seed() + bucket;
	spmla_device_status status;
	engine_list list;
	uint32_t s, b;

	ck_assert_int_eq(engine_capture_begin(advanced.f.ctx), SPMLA_OK);
	v32_must(advanced.f.ctx,
		 v4_replay_enqueue(&advanced, shape, SPMLA_ADVANCE));
	ck_assert_int_eq(engine_capture_end(advanced.f.ctx, &list), SPMLA_OK);
	(void)begin(query, shape, 1);
	v32_must(advanced.f.ctx,
		 v4_replay_enqueue(&advanced, shape, SPMLA_FROM_RING));
	expect_equal(shape, 0);
	for (s = 1; s <= steps; s++) {
		int32_t by[REQUESTS];

		for (b = 0; b < REQUESTS; b++)
			by[b] = 1 + (int32_t)rng_below(&rng, query);
		move(by);
		fill(&advanced, query);
		fill(&written, query);
		v4_replay_forget(&advanced);
		v4_replay_forget(&written);
		ck_assert_int_eq(engine_launch(advanced.f.ctx, list), SPMLA_OK);
		run_written(query, shape, 0);
		expect_equal(shape, s);
	}
	ck_assert_uint_gt(lens[1], 128);
	ck_assert_uint_ge(lens[0], 4);
	ck_assert_uint_eq(lens[3], 0);
	ck_assert_uint_eq(fixture_status(&written.f).count, 0);
	status = fixture_status(&advanced.f);
	ck_assert_uint_gt(status.count, 0);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(status.row, 3);
}

START_TEST(launches_that_advance_equal_written_steps)
{
	launch_steps(0, 1);
}
END_TEST

START_TEST(launches_that_advance_past_rejected_tokens_equal_written_steps)
{
	launch_steps(1, 2);
}
END_TEST

/* All steps of a graph have the same values, as nothing writes them between. */
START_TEST(a_graph_of_several_steps_equals_written_steps)
{
	static const int32_t by[REQUESTS] = {1, 1, 1, 1};
	const spmla_shape *shape = &advanced.f.config.buckets[0];
	spmla_ctx *ctx = advanced.f.ctx;
	spmla_graph graph;
	uint64_t ticket;
	uint32_t s;

	v32_must(ctx, spmla_graph_begin(ctx, NULL));
	v32_must(ctx, v4_replay_enqueue(&advanced, shape, SPMLA_FROM_RING));
	for (s = 1; s < DEPTH; s++)
		v32_must(ctx,
			 v4_replay_enqueue(&advanced, shape, SPMLA_ADVANCE));
	v32_must(ctx, spmla_graph_end(ctx, &graph));
	ticket = begin(1, shape, DEPTH - 1);
	for (s = 1; s < DEPTH; s++) {
		move(by);
		run_written(1, shape, 0);
	}
	replay(&advanced.f, graph, ticket);
	expect_equal(shape, DEPTH);
	ck_assert_uint_gt(lens[1], 127);
	ck_assert_uint_eq(fixture_status(&advanced.f).count, 0);
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{launches_that_advance_equal_written_steps, 1},
		{launches_that_advance_past_rejected_tokens_equal_written_steps,
		 1},
	};
	const theme_test ragged[] = {
		{launches_that_advance_past_rejected_tokens_equal_written_steps,
		 1},
		{a_graph_of_several_steps_equals_written_steps, 1},
	};
	const theme_test graphs[] = {
		{a_graph_of_several_steps_equals_written_steps, 1},
	};
	const theme themes[] = {
		THEME("v4 advance", setup, teardown, tests),
		THEME("v4 advance, ragged", setup_ragged, teardown, ragged),
		THEME("v4 advance, queued", setup_deferred, teardown, graphs),
	};

	return RUN_THEMES(themes);
}
