/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that are spread over the caller's threads against the same on one
 * thread: the same bytes and the same status, for any number of workers and
 * whatever the caller's loop does.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/parallel_world.h"
#include "tests/harness/themes.h"

enum { COUNTS = 4, BATCHES = 3 };

static const uint32_t counts[COUNTS] = {1, 2, 3, 7};
static const uint32_t batches[BATCHES] = {1, 5, PAR_MAX_TOKENS};

static fixture serial, parallel;
static par_world w;

static void
open_both(uint32_t workers, lent *loop)
{
	spmla_config config;

	par_config(&config);
	config.cpu_workers = 1;
	fixture_lend(1, NULL);
	fixture_open(&serial, &config, 0);
	config.cpu_workers = workers;
	fixture_lend(workers, loop);
	fixture_open(&parallel, &config, 0);
	fixture_lend(0, NULL);
}

static void
close_both(void)
{
	fixture_close(&serial);
	fixture_close(&parallel);
}

static void
compare_all(uint64_t seed)
{
	uint32_t batch, bad, op;

	for (batch = 0; batch < BATCHES; batch++)
		for (bad = 0; bad < 2; bad++) {
			par_open(&w, batches[batch], bad, seed++);
			for (op = 0; op < PAR_OPS; op++)
				par_compare(&serial, &parallel, &w, (par_op)op);
			par_close(&w);
		}
}

START_TEST(any_number_of_workers_gives_the_bits_of_one)
{
	lent loop = {.way = LENT_THREADS};

	open_both(counts[_i], &loop);
	compare_all(test_seed());
	ck_assert_uint_eq(loop.calls > 0, counts[_i] > 1);
	ck_assert_uint_le(loop.most, counts[_i]);
	close_both();
}
END_TEST

START_TEST(whatever_the_loop_does_the_bits_are_those_of_one_thread)
{
	lent loop = {.way = (lent_way)_i, .rng = 5};

	open_both(7, &loop);
	compare_all(test_seed() + 100);
	ck_assert_uint_gt(loop.calls, 0);
	ck_assert_uint_eq(loop.most, 7);
	close_both();
}
END_TEST

START_TEST(every_operation_of_many_tokens_is_spread)
{
	lent loop = {.way = LENT_REVERSED};
	uint32_t op, before;

	open_both(3, &loop);
	par_open(&w, PAR_MAX_TOKENS, 0, 1);
	for (op = 0; op < PAR_OPS; op++) {
		before = loop.calls;
		par_run(&parallel, &w, (par_op)op);
		ck_assert_msg(loop.calls == before + 1, "%s",
			      par_name((par_op)op));
	}
	ck_assert_uint_eq(loop.most, 3);
	par_close(&w);
	close_both();
}
END_TEST

/* The keys of one token, and its heads. */
START_TEST(one_token_keeps_several_workers_busy)
{
	lent loop = {.way = LENT_REVERSED};

	open_both(3, &loop);
	par_open(&w, 1, 0, 2);
	par_run(&parallel, &w, PAR_MQA_LOGITS);
	ck_assert_uint_eq(loop.most, 3);
	loop.most = 0;
	par_run(&parallel, &w, PAR_SPARSE_DECODE);
	ck_assert_uint_eq(loop.most, 3);
	par_close(&w);
	close_both();
}
END_TEST

/* Rows that overlap would race: they run in order. */
START_TEST(rows_of_logits_that_overlap_are_as_on_one_thread)
{
	lent loop = {.way = LENT_THREADS};
	int64_t *starts;
	uint32_t t, round;

	open_both(7, &loop);
	for (round = 0; round < 4; round++) {
		par_open(&w, PAR_MAX_TOKENS, round % 2, round);
		starts = (int64_t *)(void *)w.in +
			 ((const uint8_t *)w.logits.row_starts - w.in) / 8;
		for (t = 1; t < w.tokens; t++)
			starts[t] = round < 2 ? starts[t - 1] / 2
					      : 7 * (w.tokens - t);
		loop.calls = 0;
		par_compare(&serial, &parallel, &w, PAR_MQA_LOGITS);
		ck_assert_uint_eq(loop.calls, 0);
		par_close(&w);
	}
	close_both();
}
END_TEST

static void
compare_parts(uint32_t parts)
{
	const spmla_sparse_decode_args before = w.parts;

	w.parts.parts = parts;
	par_compare(&serial, &parallel, &w, PAR_SPARSE_DECODE_PARTS);
	w.parts = before;
}

/* The second part does what the first one did, or a part of it. */
START_TEST(parts_that_write_the_same_rows_are_as_on_one_thread)
{
	static const int32_t again[4][8] = {{0, 4, 0, 1, 0},
					    {2, 2, 1, 2, 0},
					    {3, 3, 0, 1, 0},
					    {4, 4, 0, 1, 0}};
	lent loop = {.way = LENT_THREADS};
	int32_t parts[16] = {0, 4, 0, 1, 0}, splits[6] = {0, 1, 2, 3, 4, 5};

	open_both(3, &loop);
	par_open(&w, 5, 0, 9);
	w.bad = 1; /* blocks that a token has not may be named */
	w.parts.tile_scheduler_metadata = parts;
	w.parts.num_splits = splits;
	memcpy(parts + 8, again[_i], sizeof again[_i]);
	compare_parts(2);
	ck_assert_uint_eq(loop.calls, 0);
	/* one behind the other */
	parts[1] = 1;
	memcpy(parts + 8, (const int32_t[5]){2, 4, 0, 1, 0}, 20);
	compare_parts(2);
	ck_assert_uint_eq(loop.calls, 1);
	/* rows of splits that overlap */
	splits[3] = 1;
	compare_parts(2);
	ck_assert_uint_eq(loop.calls, 1);
	par_close(&w);
	close_both();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_operation_of_many_tokens_is_spread, 1},
		{one_token_keeps_several_workers_busy, 1},
	};
	const theme_test edge[] = {
		{rows_of_logits_that_overlap_are_as_on_one_thread, 1},
		{parts_that_write_the_same_rows_are_as_on_one_thread, 4},
	};
	const theme_test determinism[] = {
		{any_number_of_workers_gives_the_bits_of_one, COUNTS},
		{whatever_the_loop_does_the_bits_are_those_of_one_thread,
		 LENT_WAYS},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
