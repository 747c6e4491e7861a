/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole steps on the caller's threads against the same on one thread: recorded
 * and replayed decode, at once or through the deferred queue, with bad data in
 * the step; and prefill of prompts.
 */
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/prompt_rig.h"
#include "tests/harness/themes.h"

enum { COUNTS = 4, STEPS = 20 };

static const uint32_t counts[COUNTS] = {1, 2, 3, 7};

static attn_inputs inputs;
static attn_rig one, many;
static lent loop;

static void
open_rigs(uint32_t workers, uint32_t native_flags)
{
	spmla_config config;

	attn_inputs_open(&inputs);
	attn_config(&config, 4);
	config.cpu_workers = 1;
	fixture_lend(1, NULL);
	attn_open(&one, &config, &inputs, 0);
	config.cpu_workers = workers;
	loop = (lent){.way = LENT_THREADS};
	fixture_lend(workers, &loop);
	attn_open(&many, &config, &inputs, native_flags);
	fixture_lend(0, NULL);
	attn_capture(&one);
	attn_capture(&many);
}

static void
close_rigs(void)
{
	attn_close(&one);
	attn_close(&many);
	attn_inputs_close(&inputs);
}

/* The record of both contexts, and the step of its bucket. */
static void
run_step(draft *d, uint32_t bucket, uint64_t step)
{
	const uint64_t ticket = draft_write(&one.f, d);

	ck_assert_uint_eq(draft_write(&many.f, d), ticket);
	attn_fill_step(&inputs, step);
	attn_forget(&one);
	attn_forget(&many);
	replay(&one.f, one.graph[bucket], ticket);
	replay(&many.f, many.graph[bucket], ticket);
	fixture_drain(&many.f);
	attn_expect_equal(&many, &one, &rig_shapes[bucket], step);
}

static void
expect_same_status(void)
{
	const spmla_device_status a = fixture_status(&one.f);
	const spmla_device_status b = fixture_status(&many.f);

	ck_assert_mem_eq(&a, &b, sizeof a);
}

START_TEST(replayed_steps_have_the_bits_of_one_thread)
{
	draft d;
	sim s;
	uint64_t n;

	open_rigs(counts[_i % COUNTS], _i < COUNTS ? 0 : SPMLA_NATIVE_DEFERRED);
	sim_open(&s, &one.f.plan, test_seed());
	for (n = 1; n <= STEPS; n++) {
		const uint32_t bucket = (uint32_t)(n % 3);

		sim_draft(&s, &rig_shapes[bucket], &d);
		run_step(&d, bucket, n);
	}
	expect_same_status();
	ck_assert_uint_eq(loop.calls > 0, counts[_i % COUNTS] > 1);
	close_rigs();
}
END_TEST

/* Column 1 of a row leads outside of the pool. */
static void
spoil(fixture *f, uint32_t row)
{
	int32_t *table = spmla_view(f->ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL);

	table[row * f->plan.columns + 1] = INT32_MAX;
}

/* Requests of five rows; three of them lack pages of their keys. */
START_TEST(bad_rows_of_a_step_give_one_status_whoever_meets_them)
{
	static const uint32_t rows[5] = {6, 2, 7, 0, 4};
	draft d;
	uint32_t b;

	open_rigs(counts[_i], 0);
	draft_clear(&d);
	for (b = 0; b < 5; b++) {
		const int32_t pages[3] = {(int32_t)(3 * b),
					  (int32_t)(3 * b + 1),
					  (int32_t)(3 * b + 2)};

		draft_request(&d, rows[b], 1, 40 + b, SPMLA_REQUEST_JOIN);
		draft_store(&d, rows[b], 0, 3, pages);
	}
	run_step(&d, 2, 1);
	ck_assert_uint_eq(fixture_status(&many.f).count, 0);
	draft_clear(&d);
	for (b = 0; b < 5; b++) {
		draft_request(&d, rows[b], 1, 41 + b, 0);
		if (b % 2 == 0) {
			spoil(&one.f, rows[b]);
			spoil(&many.f, rows[b]);
		}
	}
	run_step(&d, 2, 2);
	ck_assert_uint_gt(fixture_status(&many.f).count, 3);
	ck_assert_uint_eq(fixture_status(&many.f).row, 4);
	expect_same_status();
	close_rigs();
}
END_TEST

static const uint32_t none[PROMPTS];
static const uint32_t whole[PROMPTS] = {70, 33, 5, 90};

static void
open_prompts(prompt_rig *r, uint32_t workers, lent_way way)
{
	spmla_config config;

	prompt_config(&config, 64, 0, 5000);
	config.cpu_workers = workers;
	loop = (lent){.way = way, .rng = 4};
	fixture_lend(workers, workers > 1 ? &loop : NULL);
	prompt_open(r, &config, 0);
	fixture_lend(0, NULL);
}

static void
expect_same_prompts(const prompt_rig *a, const prompt_rig *b)
{
	ck_assert_uint_eq(fixture_status(&a->f).count, 0);
	ck_assert_uint_eq(fixture_status(&b->f).count, 0);
	ck_assert_mem_eq(a->stage.layer.kv.base, b->stage.layer.kv.base,
			 a->stage.kv_bytes);
	ck_assert_mem_eq(a->stage.layer.index.base, b->stage.layer.index.base,
			 a->stage.index_bytes);
	ck_assert_mem_eq(a->topk, b->topk, PROMPT_TOKENS * PROMPT_TOPK * 4);
	ck_assert_mem_eq(a->lens, b->lens, PROMPT_TOKENS * 4);
	ck_assert_mem_eq(a->out, b->out, PROMPT_TOKENS * PROMPT_OUT * 2);
	ck_assert_mem_eq(a->lse, b->lse, PROMPT_TOKENS * PROMPT_HEADS * 4);
}

START_TEST(prefilled_prompts_have_the_bits_of_one_thread)
{
	static const struct {
		uint32_t workers;
		lent_way way;
	} ways[5] = {{2, LENT_THREADS},
		     {3, LENT_THREADS},
		     {7, LENT_THREADS},
		     {7, LENT_TWICE},
		     {7, LENT_SHUFFLED}};
	prompt_rig a, b;

	fixture_lend(1, NULL);
	(void)prompt_source();
	open_prompts(&a, 1, LENT_THREADS);
	open_prompts(&b, ways[_i].workers, ways[_i].way);
	prompt_run(&a, none, whole);
	prompt_run(&b, none, whole);
	ck_assert_uint_gt(b.prefills, 1);
	ck_assert_uint_gt(loop.calls, 0);
	expect_same_prompts(&a, &b);
	prompt_close(&a);
	prompt_close(&b);
	prompt_source_close();
}
END_TEST

SUITE
{
	const theme_test decode[] = {
		{replayed_steps_have_the_bits_of_one_thread, 2 * COUNTS},
		{bad_rows_of_a_step_give_one_status_whoever_meets_them, COUNTS},
	};
	const theme_test prefill[] = {
		{prefilled_prompts_have_the_bits_of_one_thread, 5},
	};
	const theme themes[] = {
		THEME("decode", NULL, NULL, decode),
		THEME("prefill", NULL, NULL, prefill),
	};

	return RUN_THEMES(themes);
}
