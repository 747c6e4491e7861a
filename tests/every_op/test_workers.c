/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation on the caller's threads against the same on one thread: the
 * same bytes and the same status, of sound data and of bad, for any number of
 * workers and whatever the caller's loop does.
 */
#include "tests/every_op/op_call.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

enum { COUNTS = 4, BATCHES = 3, MOST_TOKENS = 40 };

static const uint32_t counts[COUNTS] = {1, 2, 3, 7};
static const uint32_t batches[BATCHES] = {1, 5, MOST_TOKENS};

/* One thread, and the caller's in a few ways. */
static fixture serial, parallel[LENT_WAYS];
static lent loops[LENT_WAYS];

static void
open_parallel(uint32_t i, uint32_t workers, lent_way way)
{
	spmla_config config;

	loops[i] = (lent){.way = way, .rng = 5};
	op_large_config(&config);
	config.cpu_workers = workers;
	fixture_lend(workers, &loops[i]);
	fixture_open(&parallel[i], &config, 0);
	fixture_lend(0, NULL);
}

static void
open_serial(void)
{
	spmla_config config;

	op_large_config(&config);
	config.cpu_workers = 1;
	fixture_lend(1, NULL);
	fixture_open(&serial, &config, 0);
	fixture_lend(0, NULL);
}

static void
open_both(uint32_t workers, lent_way way)
{
	open_serial();
	open_parallel(0, workers, way);
}

static void
close_all(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		fixture_close(&parallel[i]);
	fixture_close(&serial);
}

static void
compare(op_call *c, uint32_t count)
{
	op_result want = op_run(c, &serial, 0xAB);
	uint32_t i;

	for (i = 0; i < count; i++) {
		op_result got = op_run(c, &parallel[i], 0xAB);

		op_same(c, &got, &want);
		free(got.bytes);
	}
	free(want.bytes);
}

/* Batches from the first one on. The CPU alone orders tokens of one slot. */
static void
compare_all(int i, uint32_t first, uint32_t count)
{
	const uint32_t variants = op_variants(i);
	uint32_t variant, n;
	op_call c;

	for (variant = 0; variant < variants; variant++)
		for (n = 2 * first; n < 2 * BATCHES; n++) {
			op_begin(&c, i, n % 2 ? DRAW_BAD : DRAW_SOUND, variant,
				 20 * first + n);
			op_large(&c, batches[n / 2]);
			c.d.same_slots = 1;
			op_make(&c);
			compare(&c, count);
			op_free(&c);
		}
}

START_TEST(any_number_of_workers_gives_the_bits_of_one)
{
	const op_entry *op = op_entries[OPS_OF_PROTOCOL + _i];
	uint32_t n;

	open_serial();
	for (n = 0; n < COUNTS; n++)
		open_parallel(n, counts[n], LENT_THREADS);
	compare_all(_i, 0, COUNTS);
	for (n = 0; n < COUNTS; n++) {
		ck_assert_uint_eq(loops[n].calls > 0, op->is_spread && n > 0);
		ck_assert_uint_le(loops[n].most, counts[n]);
	}
	close_all(COUNTS);
}
END_TEST

START_TEST(whatever_the_loop_does_the_bits_are_those_of_one_thread)
{
	const op_entry *op = op_entries[OPS_OF_PROTOCOL + _i];
	uint32_t way;

	open_serial();
	for (way = 0; way < LENT_WAYS; way++)
		open_parallel(way, 7, (lent_way)way);
	compare_all(_i, BATCHES - 1, LENT_WAYS);
	for (way = 0; way < LENT_WAYS; way++)
		ck_assert_uint_eq(loops[way].calls > 0, op->is_spread);
	close_all(LENT_WAYS);
}
END_TEST

START_TEST(an_operation_of_many_tokens_is_spread_as_its_entry_says)
{
	const uint32_t variants = op_variants(_i);
	uint32_t variant, before;
	op_result r;
	op_call c;

	open_both(3, LENT_REVERSED);
	for (variant = 0; variant < variants; variant++) {
		op_begin(&c, _i, DRAW_SOUND, variant, 1);
		op_large(&c, MOST_TOKENS);
		op_make(&c);
		before = loops[0].calls;
		r = op_run(&c, &parallel[0], 0xAB);
		ck_assert_msg((loops[0].calls > before) == c.op->is_spread,
			      "%s", c.op->name);
		ck_assert_uint_eq(loops[0].most, c.op->is_spread ? 3 : 0);
		free(r.bytes);
		op_free(&c);
	}
	close_all(1);
}
END_TEST

/* ---- What is particular to one ------------------------------------------- */

static void
begin_large(op_call *c, spmla_op op, draw_kind kind, uint32_t variant,
	    uint32_t tokens, uint64_t seed)
{
	op_begin(c, (int)op - OPS_OF_PROTOCOL, kind, variant, seed);
	op_large(c, tokens);
	op_make(c);
}

/* The keys of one token, and its heads. */
START_TEST(one_token_keeps_several_workers_busy)
{
	static const spmla_op ops[2] = {SPMLA_OP_mqa_logits,
					SPMLA_OP_sparse_decode};
	op_result r;
	op_call c;

	open_both(3, LENT_REVERSED);
	begin_large(&c, ops[_i], DRAW_EXAMPLE, 0, 1, 2);
	r = op_run(&c, &parallel[0], 0xAB);
	ck_assert_uint_eq(loops[0].most, 3);
	free(r.bytes);
	op_free(&c);
	close_all(1);
}
END_TEST

/* Rows that overlap would race: they run in order. */
START_TEST(rows_of_logits_that_overlap_are_as_on_one_thread)
{
	spmla_mqa_logits_args *a;
	int64_t *starts;
	op_call c;
	uint32_t t;

	open_both(7, LENT_THREADS);
	begin_large(&c, SPMLA_OP_mqa_logits, _i % 2 ? DRAW_BAD : DRAW_SOUND, 0,
		    MOST_TOKENS, (uint64_t)_i);
	a = &c.args.mqa_logits;
	starts = (int64_t *)(uintptr_t)a->row_starts;
	for (t = 1; t < a->tokens; t++)
		starts[t] = _i < 2 ? starts[t - 1] / 2 : 7 * (a->tokens - t);
	loops[0].calls = 0;
	compare(&c, 1);
	ck_assert_uint_eq(loops[0].calls, 0);
	op_free(&c);
	close_all(1);
}
END_TEST

/* The second part does what the first one did, or a part of it. */
START_TEST(parts_that_write_the_same_rows_are_as_on_one_thread)
{
	static const int32_t again[4][8] = {{0, 4, 0, 1, 0},
					    {2, 2, 1, 2, 0},
					    {3, 3, 0, 1, 0},
					    {4, 4, 0, 1, 0}};
	int32_t parts[16] = {0, 4, 0, 1, 0}, splits[6] = {0, 1, 2, 3, 4, 5};
	spmla_sparse_decode_args *a;
	op_call c;

	open_both(3, LENT_THREADS);
	begin_large(&c, SPMLA_OP_sparse_decode, DRAW_EXAMPLE, 2, 5, 9);
	c.d.kind = DRAW_BAD; /* blocks that a token has not may be named */
	a = &c.args.sparse_decode;
	a->parts = 2;
	a->tile_scheduler_metadata = parts;
	a->num_splits = splits;
	memcpy(parts + 8, again[_i], sizeof again[_i]);
	compare(&c, 1);
	ck_assert_uint_eq(loops[0].calls, 0);
	/* one behind the other */
	parts[1] = 1;
	memcpy(parts + 8, (const int32_t[5]){2, 4, 0, 1, 0}, 20);
	compare(&c, 1);
	ck_assert_uint_eq(loops[0].calls, 1);
	/* rows of splits that overlap */
	splits[3] = 1;
	compare(&c, 1);
	ck_assert_uint_eq(loops[0].calls, 1);
	op_free(&c);
	close_all(1);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{an_operation_of_many_tokens_is_spread_as_its_entry_says,
		 EVERY_OP},
		{one_token_keeps_several_workers_busy, 2},
	};
	const theme_test edge[] = {
		{rows_of_logits_that_overlap_are_as_on_one_thread, 4},
		{parts_that_write_the_same_rows_are_as_on_one_thread, 4},
	};
	const theme_test determinism[] = {
		{any_number_of_workers_gives_the_bits_of_one, EVERY_OP},
		{whatever_the_loop_does_the_bits_are_those_of_one_thread,
		 EVERY_OP},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	if (!fixture_on_cpu())
		return SKIP_SUITE("loops of the CPU");
	return RUN_THEMES(themes);
}
