/* SPDX-License-Identifier: Apache-2.0
 *
 * What the results of a request of V4 depend on, in a layer of each kind: not
 * on the bucket, the requests beside it or its place among them, if that is
 * promised. And a launch without a record that fits is empty.
 */
#include <stdio.h>
#include <string.h>

#include "tests/harness/engine.h"
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/v4_replay_rig.h"

/* Where a row may be: of 4, 4 and 8, with that many behind. */
enum { PLACES = 10 + 10 + 36 };

enum { ROW = 5 };

static v4_replay_rig r;

/* With the batch-invariant flag no step is done in parts. */
static void
setup_one(uint32_t index_layout, uint32_t config_flags, uint32_t native_flags)
{
	spmla_config config;

	fixture_multiprocessors(native_flags ? V4_SOME_SMS : V4_MANY_SMS);
	v4_replay_config(&config, index_layout);
	config.flags |= config_flags;
	v4_replay_open(&r, &config, native_flags, test_seed());
	v4_replay_capture(&r);
}

static void
setup_invariant(void)
{
	setup_one(SPMLA_LAYOUT_INDEX_FP8, SPMLA_CONFIG_BATCH_INVARIANT, 0);
}

static void
setup_invariant_mxfp4(void)
{
	setup_one(SPMLA_LAYOUT_INDEX_MXFP4, SPMLA_CONFIG_BATCH_INVARIANT, 0);
}

static void
setup_plain(void)
{
	setup_one(SPMLA_LAYOUT_INDEX_FP8, 0, 0);
}

static void
setup_deferred(void)
{
	setup_one(SPMLA_LAYOUT_INDEX_FP8, 0, SPMLA_NATIVE_DEFERRED);
}

static void
teardown(void)
{
	fixture_drain(&r.f);
	v4_replay_close(&r);
	fixture_multiprocessors(0);
}

/* What a step says of one token. */
typedef struct result {
	uint16_t out[V4_LAYERS][V4_MOST_HEADS * 512];
	float lse[V4_LAYERS][V4_MOST_HEADS];
} result;

static void
take_result(uint32_t token, result *x)
{
	uint32_t l;

	memset(x, 0, sizeof *x);
	for (l = 0; l < V4_LAYERS; l++) {
		const v4_layer_rig *v = &r.rig[l];

		memcpy(x->out[l], v->layer.out + token * v->heads * 512,
		       v->heads * 512 * sizeof **x->out);
		memcpy(x->lse[l], v->layer.lse + token * v->heads,
		       v->heads * sizeof **x->lse);
	}
}

/* The bits of a token, by kind of layer. */
static void
expect_same(const result *x, const result *want, const char *where)
{
	uint32_t l;

	for (l = 0; l < V4_LAYERS; l++) {
		if (memcmp(x->out[l], want->out[l], sizeof x->out[l]) != 0)
			ck_abort_msg("layer %u: out differs %s", l, where);
		if (memcmp(x->lse[l], want->lse[l], sizeof x->lse[l]) != 0)
			ck_abort_msg("layer %u: lse differs %s", l, where);
	}
}

static void
replay_draft(uint32_t bucket, v4_draft *d)
{
	v4_replay_forget(&r);
	replay(&r.f, r.graph[bucket], v4_replay_write(&r, d, NULL));
	fixture_drain(&r.f);
}

/* Runs the row's last token with `before` others in front of it and `after`
 * behind, whose positions go on as if all were of one request. */
static void
run_row(uint32_t bucket, uint32_t before, uint32_t after, uint32_t len,
	result *x)
{
	uint32_t row = 0, i;
	v4_draft d;

	v4_draft_clear(&d);
	for (i = 0; i < before + 1 + after; i++) {
		const uint32_t other = len - before + i;

		if (i == before) {
			v4_replay_fill(&r, i, 1000, len - 1);
			v4_replay_join(&r, &d, ROW, 1, len);
			continue;
		}
		row += row == ROW;
		v4_replay_fill(&r, i, row, other - 1);
		v4_replay_join(&r, &d, row++, 1, other);
	}
	replay_draft(bucket, &d);
	take_result(before, x);
}

static void
expect_everywhere(uint32_t len, uint32_t every)
{
	static result alone, x;
	uint32_t b, before, after, ran = 0;
	char where[80];

	run_row(0, 0, 0, len, &alone);
	for (b = 0; b < V4_BUCKETS; b++) {
		const uint32_t most = r.f.config.buckets[b].requests;

		for (before = 0; before < most; before += every)
			for (after = 0; before + 1 + after <= most;
			     after += every, ran++) {
				run_row(b, before, after, len, &x);
				snprintf(where, sizeof where,
					 "in bucket %u, %u before, %u after, "
					 "length %u",
					 b, before, after, len);
				expect_same(&x, &alone, where);
			}
	}
	if (every == 1)
		ck_assert_uint_eq(ran, PLACES);
}

/* A token that ends groups, and one that does not. */
START_TEST(a_request_has_the_same_bits_in_every_bucket_and_place)
{
	/* On the emulator few of them. */
	const uint32_t every = fixture_rounds(PLACES, 12) < PLACES ? 6 : 1;
	const uint32_t most = r.f.plan.config.max_context_tokens;

	expect_everywhere(most / 4 * 3, every);
	if (every == 1)
		expect_everywhere(most / 2 + 45, every);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* The second of four tokens ends groups, the others see their keys or not. */
START_TEST(query_tokens_together_have_the_bits_of_one_at_a_time)
{
	static result together[4], x;
	const uint32_t first = r.f.plan.config.max_context_tokens / 4 * 3 - 1;
	uint32_t j;
	v4_draft d;

	v4_draft_clear(&d);
	v4_replay_join(&r, &d, 2, 4, first + 3);
	for (j = 0; j < 4; j++)
		v4_replay_fill(&r, j, 1, first - 1 + j);
	replay_draft(2, &d);
	for (j = 0; j < 4; j++)
		take_result(j, &together[j]);
	for (j = 0; j < 4; j++) {
		v4_draft_clear(&d);
		v4_replay_join(&r, &d, 2, 1, first + j);
		v4_replay_fill(&r, 0, 1, first - 1 + j);
		replay_draft(0, &d);
		take_result(0, &x);
		expect_same(&x, &together[j], "alone");
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* ---- Empty steps ------------------------------------------------------- */

/* The step wrote of each token of the shape that it is empty, and no key. */
static void
expect_empty(uint32_t bucket, uint64_t caches)
{
	uint32_t t;

	for (t = 0; t < r.f.config.buckets[bucket].tokens; t++)
		v4_replay_expect_empty(&r, t);
	ck_assert_uint_eq(v4_replay_cache_hash(&r), caches);
}

/* Paused rows and rows of length 0. */
START_TEST(padding_is_written_and_writes_no_cache)
{
	const uint64_t caches = v4_replay_cache_hash(&r);
	uint32_t b, t;
	v4_draft d;

	for (t = 0; t < r.f.plan.max_tokens; t++)
		v4_replay_fill(&r, t, 3, t);
	for (b = 0; b < V4_BUCKETS; b++) {
		v4_draft_clear(&d);
		v4_replay_join(&r, &d, 3, 0, 130);
		v4_draft_request(&d, 4, 0, 0, 0);
		replay_draft(b, &d);
		expect_empty(b, caches);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* A step behind it is as if it had not been. */
START_TEST(a_launch_without_a_record_is_empty)
{
	static result first, again;
	engine_list list;
	uint64_t caches;

	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	v32_must(r.f.ctx, v4_replay_enqueue(&r, &r.f.config.buckets[2],
					    SPMLA_FROM_RING));
	ck_assert_int_eq(engine_capture_end(r.f.ctx, &list), SPMLA_OK);
	run_row(1, 1, 2, 256, &first);
	caches = v4_replay_cache_hash(&r);
	v4_replay_forget(&r);
	ck_assert_int_eq(engine_launch(r.f.ctx, list), SPMLA_OK);
	fixture_drain(&r.f);
	expect_empty(2, caches);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 2);
	v32_must(r.f.ctx, spmla_status_clear(r.f.ctx));
	run_row(1, 1, 2, 256, &again);
	expect_same(&again, &first, "afterwards");
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* Five requests, of a bucket of eight, in the graph of four. */
START_TEST(a_record_larger_than_its_graph_is_refused)
{
	const uint64_t caches = v4_replay_cache_hash(&r);
	static result x;
	uint64_t ticket;
	uint32_t i;
	v4_draft d;

	v4_draft_clear(&d);
	for (i = 0; i < 5; i++) {
		v4_replay_fill(&r, i, i, 127);
		v4_replay_join(&r, &d, i, 1, 128);
	}
	ticket = v4_replay_write(&r, &d, NULL);
	ck_assert_int_eq(spmla_graph_replay(r.f.ctx, r.graph[0], ticket, NULL),
			 SPMLA_E_RANGE);
	fixture_drain(&r.f);
	ck_assert_uint_eq(v4_replay_cache_hash(&r), caches);
	v32_must(r.f.ctx, spmla_step_undo(r.f.ctx, ticket));
	run_row(0, 0, 0, 256, &x);
	ck_assert_uint_ne(v4_replay_cache_hash(&r), caches);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

SUITE
{
	const theme_test batch[] = {
		{a_request_has_the_same_bits_in_every_bucket_and_place, 1},
		{query_tokens_together_have_the_bits_of_one_at_a_time, 1},
	};
	const theme_test places[] = {
		{a_request_has_the_same_bits_in_every_bucket_and_place, 1},
	};
	const theme_test empty[] = {
		{padding_is_written_and_writes_no_cache, 1},
		{a_launch_without_a_record_is_empty, 1},
		{a_record_larger_than_its_graph_is_refused, 1},
	};
	const theme themes[] = {
		THEME("v4 batch invariance", setup_invariant, teardown, batch),
		THEME("v4 batch invariance, mxfp4", setup_invariant_mxfp4,
		      teardown, places),
		THEME("v4 empty", setup_plain, teardown, empty),
		THEME("v4 empty, queued", setup_deferred, teardown, empty),
	};

	return RUN_THEMES(themes);
}
