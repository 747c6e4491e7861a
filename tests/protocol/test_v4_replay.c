/* SPDX-License-Identifier: Apache-2.0
 *
 * Replayed steps of V4, with a layer of each kind: they are eager ones, bit for
 * bit, whatever joins, grows, loses tokens, pauses and leaves.
 */
#include <stdio.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/v4_replay_rig.h"
#include "tests/protocol/v4_sim.h"

/* MXFP4 has a fourth of the steps, since only its index keys differ. A suite of
 * few steps adds as many as it takes to see everything once. */
enum { STEPS = 400, FEW_STEPS = 4, ENOUGH = 100, MOST_OF_FEW = 40 };

static v4_replay_rig replayed, eager;
static v4_sim batch;
static uint32_t steps;

static void
open_rig(v4_replay_rig *rig, uint32_t index_layout, uint32_t config_flags,
	 uint32_t native_flags)
{
	spmla_config config;

	v4_replay_config(&config, index_layout);
	config.flags |= config_flags;
	v4_replay_open(rig, &config, native_flags, test_seed());
}

static void
open_both(uint32_t index_layout, uint32_t multiprocessors)
{
	fixture_multiprocessors(multiprocessors);
	open_rig(&replayed, index_layout, SPMLA_CONFIG_APART,
		 SPMLA_NATIVE_DEFERRED);
	/* On one thread, whatever the other has. */
	fixture_lend(1, NULL);
	open_rig(&eager, index_layout, 0, 0);
	fixture_lend(0, NULL);
	v4_replay_capture(&replayed);
	v4_sim_open(&batch, &replayed.f.plan, test_seed());
	batch.near_ends = steps < ENOUGH;
}

static void
setup_fp8(void)
{
	steps = fixture_rounds(STEPS, FEW_STEPS);
	open_both(SPMLA_LAYOUT_INDEX_FP8, V4_MANY_SMS);
}

static void
setup_mxfp4(void)
{
	steps = fixture_rounds(STEPS / 4, FEW_STEPS / 2);
	open_both(SPMLA_LAYOUT_INDEX_MXFP4, V4_SOME_SMS);
}

static void
teardown(void)
{
	v4_replay_close(&replayed);
	v4_replay_close(&eager);
	fixture_multiprocessors(0);
}

static void
fill_tokens(v4_replay_rig *rig, const v4_draft *d)
{
	uint32_t i, j, t = 0;

	for (i = 0; i < d->request_count; i++) {
		const spmla_request *q = &d->requests[i];

		for (j = 0; j < q->query_tokens; j++)
			v4_replay_fill(rig, t++, batch.rows[q->row].id,
				       q->seq_len_tokens - q->query_tokens + j);
	}
	/* Padding is not read. */
	for (; t < rig->f.plan.max_tokens; t++)
		v4_replay_fill(rig, t, 0, t);
}

/* The scheduler's next step, replayed in any bucket that holds it, and run
 * eagerly. */
static void
run_step(uint64_t step)
{
	const spmla_shape *shapes = replayed.f.config.buckets;
	const uint32_t limit = rng_below(&batch.rng, V4_BUCKETS);
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	uint64_t ticket;
	uint32_t b;
	v4_draft d;

	v4_sim_draft(&batch, &shapes[limit], &d);
	fill_tokens(&replayed, &d);
	fill_tokens(&eager, &d);
	v4_replay_forget(&replayed);
	v4_replay_forget(&eager);
	ticket = v4_replay_write(&replayed, &d, &info);
	ck_assert_uint_le(info.bucket, limit);
	b = info.bucket + rng_below(&batch.rng, V4_BUCKETS - info.bucket);
	replay(&replayed.f, replayed.graph[b], ticket);
	fixture_drain(&replayed.f);
	ck_assert_uint_eq(v4_replay_write(&eager, &d, NULL), ticket);
	v32_must(eager.f.ctx,
		 v4_replay_enqueue(&eager, &shapes[b], SPMLA_FROM_RING));
	v4_replay_expect_equal(&replayed, &eager, &shapes[b], step);
}

static uint32_t
seen_all(void)
{
	return batch.joined && batch.grown && batch.rejected && batch.rounds &&
	       batch.ends[0] && batch.ends[1];
}

START_TEST(replays_equal_eager_steps_bit_for_bit)
{
	uint32_t s;

	for (s = 1; s <= steps || (s <= MOST_OF_FEW && !seen_all()); s++)
		run_step(s);
	printf("%u replays: %u joined, %u left, %u paused, %u grew; tokens: %u "
	       "rejected, %u wrap around, %u end groups of 4, %u of 128\n",
	       s - 1, batch.joined, batch.left, batch.paused, batch.grown,
	       batch.rejected, batch.rounds, batch.ends[0], batch.ends[1]);
	ck_assert(seen_all());
	if (steps >= ENOUGH) {
		ck_assert_uint_gt(batch.left, 10);
		ck_assert_uint_gt(batch.joined, batch.left);
		ck_assert_uint_gt(batch.paused, 10);
		ck_assert_uint_gt(batch.rejected, 10);
		ck_assert_uint_gt(batch.rounds, 10);
		ck_assert_uint_gt(batch.ends[0], 100);
		ck_assert_uint_gt(batch.ends[1], 2);
	}
	ck_assert_uint_eq(fixture_status(&replayed.f).count, 0);
	ck_assert_uint_eq(fixture_status(&eager.f).count, 0);
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{replays_equal_eager_steps_bit_for_bit, 1},
	};
	const theme themes[] = {
		THEME("v4 replays", setup_fp8, teardown, tests),
		THEME("v4 replays, mxfp4", setup_mxfp4, teardown, tests),
	};

	return RUN_THEMES(themes);
}
