/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thousand replays cost and give: the bits of an eager run and of a
 * second run, not a byte of the device's memory, not a byte beside the plan's
 * buffers, and one call of the driver each. On a device the layers are as wide
 * as a model's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/cuda_count.h"
#include "tests/harness/cuda_world.h"
#include "tests/harness/red_zone.h"
#include "tests/harness/themes.h"

enum { STEPS = 1000, FEW_STEPS = 6, ENOUGH = 40, BUCKETS = 3 };

static const spmla_shape shapes[BUCKETS] = {
	{4, 4, 1, 0}, {8, 8, 1, 0}, {16, 8, 2, 0}};

typedef struct run {
	attn_rig replayed;
	attn_rig eager;
	attn_inputs in;
	spmla_graph graph[BUCKETS];
	sim sim;
	uint64_t rng;
	uint64_t hash;
	/* What the batches were like. */
	uint32_t joined, paused, grown, pairs, replays[BUCKETS];
} run;

static run r;

static void
open_rig(attn_rig *rig, uint32_t config_flags, uint32_t native_flags)
{
	spmla_config config;

	attn_config_size(&config, 4, &r.in.size);
	memcpy(config.buckets, shapes, sizeof shapes);
	config.flags |= config_flags;
	attn_open(rig, &config, &r.in, native_flags);
}

static void
open_run(uint64_t seed)
{
	static const attn_size small = {ATTN_HEADS, ATTN_INDEX_HEADS,
					ATTN_TOPK},
			       wide = {64, 64, 256};
	uint32_t b;

	memset(&r, 0, sizeof r);
	r.rng = seed;
	attn_inputs_open_size(&r.in, fixture_on_gpu() ? &wide : &small);
	open_rig(&r.replayed, SPMLA_CONFIG_APART, SPMLA_NATIVE_DEFERRED);
	open_rig(&r.eager, 0, 0);
	sim_open(&r.sim, &r.replayed.f.plan, seed);
	for (b = 0; b < BUCKETS; b++) {
		spmla_ctx *ctx = r.replayed.f.ctx;

		ck_assert_int_eq(spmla_graph_begin(ctx, NULL), SPMLA_OK);
		ck_assert_int_eq(
			attn_enqueue(&r.replayed, &shapes[b], SPMLA_FROM_RING),
			SPMLA_OK);
		ck_assert_int_eq(spmla_graph_end(ctx, &r.graph[b]), SPMLA_OK);
	}
}

static void
close_run(void)
{
	ck_assert_uint_eq(fixture_status(&r.replayed.f).count, 0);
	ck_assert_uint_eq(fixture_status(&r.eager.f).count, 0);
	attn_close(&r.replayed);
	attn_close(&r.eager);
	attn_inputs_close(&r.in);
}

static void
note(const draft *d, uint32_t bucket)
{
	uint32_t i;

	for (i = 0; i < d->request_count; i++) {
		const spmla_request *q = &d->requests[i];

		r.joined += q->flags & SPMLA_REQUEST_JOIN ? 1 : 0;
		r.paused += q->query_tokens == 0 && q->seq_len_tokens > 0;
		r.grown += q->query_tokens && !(q->flags & SPMLA_REQUEST_JOIN);
		r.pairs += q->query_tokens == 2;
	}
	r.replays[bucket]++;
}

/* The scheduler's next step, replayed in any bucket that holds it, and run
 * eagerly. */
static void
run_step(uint64_t step)
{
	const uint32_t limit = rng_below(&r.rng, BUCKETS);
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	uint64_t ticket = 0;
	uint32_t b;
	draft d;

	sim_draft(&r.sim, &shapes[limit], &d);
	attn_fill_step(&r.in, step);
	attn_forget(&r.replayed);
	attn_forget(&r.eager);
	if (spmla_step_write(r.replayed.f.ctx, draft_step(&d), &ticket,
			     &info) != SPMLA_OK)
		ck_abort_msg("write: %s", fixture_diag(&r.replayed.f));
	ck_assert_uint_le(info.bucket, limit);
	b = info.bucket + rng_below(&r.rng, BUCKETS - info.bucket);
	replay(&r.replayed.f, r.graph[b], ticket);
	fixture_drain(&r.replayed.f);
	ck_assert_uint_eq(draft_write(&r.eager.f, &d), ticket);
	ck_assert_int_eq(attn_enqueue(&r.eager, &shapes[b], SPMLA_FROM_RING),
			 SPMLA_OK);
	attn_expect_equal(&r.replayed, &r.eager, &shapes[b], step);
	r.hash = attn_hash(&r.replayed, &shapes[b], r.hash);
	note(&d, b);
}

/* The bytes of that region that are in one of the plan's buffers. */
static void
mark_extents(const spmla_plan *plan, uint32_t memory, uint8_t *taken)
{
	uint32_t i;

	for (i = 0; i < plan->row_count; i++)
		if (plan->extents[i].memory == memory)
			memset(taken + plan->extents[i].offset_bytes, 1,
			       (size_t)plan->extents[i].bytes);
}

/* What lies between the buffers is as it was when the region was handed over.
 * Returns how many bytes that are. */
static uint64_t
expect_red_zones(const fixture *f, uint32_t memory)
{
	const uint64_t bytes = f->plan.region_bytes[memory];
	const uint8_t *base = f->memory[memory];
	uint8_t *taken = test_alloc(bytes, 0);
	uint64_t i, zones = 0;

	mark_extents(&f->plan, memory, taken);
	for (i = 0; i < bytes; i++) {
		if (taken[i])
			continue;
		zones++;
		if (base[i] != 0xAB)
			ck_abort_msg("memory %u: byte %" PRIu64 " is written",
				     memory, i);
	}
	free(taken);
	return zones;
}

static void
expect_all_red_zones(void)
{
	const fixture *f = &r.replayed.f;

	if (f->guarded || red_zone_is_seen())
		return; /* a write there ends the program */
	ck_assert_uint_ge(expect_red_zones(f, SPMLA_MEMORY_DEVICE), 256 * 10);
	(void)expect_red_zones(f, SPMLA_MEMORY_CACHE);
	(void)expect_red_zones(f, SPMLA_MEMORY_PINNED);
}

static uint64_t
run_all(uint64_t seed, uint32_t steps)
{
	uint64_t hash, s;

	open_run(seed);
	for (s = 1; s <= steps; s++)
		run_step(s);
	hash = r.hash;
	if (steps >= ENOUGH) {
		ck_assert_uint_gt(r.joined, 0);
		ck_assert_uint_gt(r.paused, 0);
		ck_assert_uint_gt(r.grown, 0);
		ck_assert_uint_gt(r.pairs, 0);
		ck_assert_uint_gt(r.replays[0], 0);
		ck_assert_uint_gt(r.replays[1], 0);
		ck_assert_uint_gt(r.replays[2], 0);
	}
	printf("%u replays: %u joins, %u pauses, %u pairs of tokens, hash "
	       "%016" PRIx64 "\n",
	       steps, r.joined, r.paused, r.pairs, hash);
	expect_all_red_zones();
	close_run();
	return hash;
}

/* And nothing is written beside the buffers of the plan. */
START_TEST(replays_equal_an_eager_run_and_a_second_run_bit_for_bit)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	const uint64_t first = run_all(test_seed(), steps);

	ck_assert_uint_eq(run_all(test_seed(), steps), first);
	ck_assert_uint_ne(run_all(test_seed() + 1, 2), first);
}
END_TEST

/* The steps of a run, without the eager ones. */
static void
replay_step(uint64_t step, uint32_t bucket)
{
	uint64_t ticket;
	draft d;

	sim_draft(&r.sim, &shapes[bucket], &d);
	attn_fill_step(&r.in, step);
	ticket = draft_write(&r.replayed.f, &d);
	replay(&r.replayed.f, r.graph[bucket], ticket);
	fixture_drain(&r.replayed.f);
}

START_TEST(replays_take_no_memory_of_the_device)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	uint64_t before, s;

	open_run(test_seed() + 3);
	before = cuda_world_free_bytes();
	for (s = 1; s <= steps; s++)
		replay_step(s, (uint32_t)s % BUCKETS);
	printf("free bytes: %" PRIu64 " before, %" PRIu64 " after\n", before,
	       cuda_world_free_bytes());
	ck_assert_uint_eq(cuda_world_free_bytes(), before);
	close_run();
}
END_TEST

START_TEST(a_replayed_step_is_one_launch_of_a_graph_and_nothing_else)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	uint64_t s;

	open_run(test_seed() + 4);
	ck_assert(cuda_count_begin(r.replayed.f.ctx));
	for (s = 1; s <= steps; s++) {
		memset(&counted, 0, sizeof counted);
		replay_step(s, (uint32_t)s % BUCKETS);
		ck_assert_uint_eq(counted.calls[CUDA_FAKE_graph_launch], 1);
		/* Asking whether the stream captures enqueues nothing. */
		ck_assert_uint_eq(counted.calls[CUDA_FAKE_stream_capturing], 1);
		ck_assert_uint_eq(counted.total, 2);
	}
	cuda_count_end(r.replayed.f.ctx);
	close_run();
}
END_TEST

SUITE
{
	const theme_test bits[] = {
		{replays_equal_an_eager_run_and_a_second_run_bit_for_bit, 1},
	};
	const theme_test cost[] = {
		{replays_take_no_memory_of_the_device, 1},
		{a_replayed_step_is_one_launch_of_a_graph_and_nothing_else, 1},
	};
	const theme themes[] = {
		THEME("bits", NULL, NULL, bits),
		THEME("cost", NULL, NULL, cost),
	};

	/* core/test_level_zero sees what one costs there. */
	if (fixture_on_gpu() && !getenv("SPMLA_TEST_LEVEL_ZERO"))
		return RUN_THEMES(themes);
	puts("SKIPPED: what a replay costs; no device");
	return run_themes(__FILE__, themes, 1);
}
