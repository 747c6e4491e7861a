/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: the request, row, position and context length of every token,
 * by hand, at random against a search, and for start locations and lengths
 * that no step has.
 */
#include <string.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"

#include "spmla/ops/token_map.h"

enum { B = 12, T = 40, GUARD = 0x5A5A5A5A };

static fixture f;

/* Inputs and outputs, each output with a guard behind it. */
static struct {
	int32_t start[B + 1];
	int32_t lens[B];
	int32_t row[B];
	int32_t out[4][T + 1]; /* req_id, token_row, positions, context */
} io;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_token_map_args
args(uint32_t requests, uint32_t tokens)
{
	const spmla_token_map_args a = {
		sizeof a, requests,  tokens,    0,         io.start, io.lens,
		io.row,   io.out[0], io.out[1], io.out[2], io.out[3]};

	return a;
}

static void
call(const spmla_token_map_args *a)
{
	ck_assert_int_eq(spmla_token_map(f.ctx, a, NULL), SPMLA_OK);
}

static void
run(uint32_t requests, uint32_t tokens)
{
	const spmla_token_map_args a = args(requests, tokens);
	uint32_t i;

	memset(io.out, 0x5A, sizeof io.out);
	call(&a);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(io.out[i][tokens], GUARD);
}

static void
expect(uint32_t t, int32_t req, int32_t row, int32_t position, int32_t len)
{
	ck_assert_int_eq(io.out[0][t], req);
	ck_assert_int_eq(io.out[1][t], row);
	ck_assert_int_eq(io.out[2][t], position);
	ck_assert_int_eq(io.out[3][t], len);
}

static void
set(uint32_t b, int32_t end, int32_t len, int32_t row)
{
	io.start[0] = 0;
	io.start[b + 1] = end;
	io.lens[b] = len;
	io.row[b] = row;
}

START_TEST(tokens_of_a_batch_worked_out_by_hand)
{
	uint32_t t;

	set(0, 2, 10, 7); /* positions 8, 9 */
	set(1, 2, 90, 5); /* no tokens */
	set(2, 5, 3, 0);  /* positions 0, 1, 2 */
	set(3, 6, 0, 3);  /* skipped */
	set(4, 7, 1, 4);
	run(5, 10);
	expect(0, 0, 7, 8, 9);
	expect(1, 0, 7, 9, 10);
	expect(2, 2, 0, 0, 1);
	expect(3, 2, 0, 1, 2);
	expect(4, 2, 0, 2, 3);
	expect(5, 3, 3, 0, 0);
	expect(6, 4, 4, 0, 1);
	for (t = 7; t < 10; t++)
		expect(t, 0, 0, 0, 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* vLLM's flattened decode: lengths 12 and 7, queries of 3 and 1, of a graph of
 * 6: 12 - 3 + 0 + 1 = 10, 11, 12; 7 - 1 + 0 + 1 = 7; two of padding. */
START_TEST(rows_of_a_flattened_decode)
{
	static const int32_t req[6] = {0, 0, 0, 1, 0, 0};
	static const int32_t lens[6] = {10, 11, 12, 7, 0, 0};

	set(0, 3, 12, 0);
	set(1, 4, 7, 1);
	run(2, 6);
	ck_assert_mem_eq(io.out[0], req, sizeof req);
	ck_assert_mem_eq(io.out[1], req, sizeof req); /* row = request */
	ck_assert_mem_eq(io.out[3], lens, sizeof lens);
}
END_TEST

/* Position 999999 and the longest context that a plan may have, 2^24. */
START_TEST(positions_of_a_million_tokens_are_counted)
{
	set(0, 1, 1000000, 3);
	set(1, 3, 1 << 24, 0);
	run(2, 3);
	expect(0, 0, 3, 999999, 1000000);
	expect(1, 1, 0, (1 << 24) - 2, (1 << 24) - 1);
	expect(2, 1, 0, (1 << 24) - 1, 1 << 24);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(requests_without_tokens_are_passed_over_anywhere)
{
	set(0, 0, 4, 1);
	set(1, 0, 0, 2);
	set(2, 1, 5, 3);
	set(3, 1, 6, 4);
	set(4, 1, 7, 5);
	run(5, 2);
	expect(0, 2, 3, 4, 5);
	expect(1, 0, 0, 0, 0);
}
END_TEST

START_TEST(no_requests_is_all_padding)
{
	spmla_token_map_args a = args(0, 3);
	uint32_t t;

	run(0, 3);
	for (t = 0; t < 3; t++)
		expect(t, 0, 0, 0, 0);
	a.query_start_loc = a.seq_lens = a.req_row = NULL;
	ck_assert_int_eq(spmla_token_map(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

START_TEST(a_length_below_the_query_or_zero_is_reported_and_empty)
{
	static const int32_t bad[] = {2, 1, -1, INT32_MIN};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		set(0, 3, bad[i], 6);
		set(1, 4, 8, 2);
		run(2, 5);
		expect(0, 0, 6, 0, 0);
		expect(2, 0, 6, 0, 0);
		expect(3, 1, 2, 7, 8);
		expect_status(&f, 1, SPMLA_FAULT_LENGTH, 6, 0);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	}
	set(0, 0, -5, 6); /* no token has that length */
	set(1, 1, 0, 6);  /* 0 is "skipped" and no news */
	run(2, 1);
	expect(0, 1, 6, 0, 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(start_locations_are_clamped_into_the_outputs)
{
	set(0, 2, 30, 1);
	set(1, -7, 30, 2); /* goes back: nothing */
	set(2, 1, 30, 3);  /* and again */
	set(3, INT32_MAX, 30, 4);
	set(4, 3, 30, 5);
	io.start[0] = INT32_MIN; /* not looked at */
	run(5, 6);
	expect(0, 0, 1, 28, 29);
	expect(1, 0, 1, 29, 30);
	expect(2, 3, 4, 26, 27);
	expect(5, 3, 4, 29, 30);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(random_batches_equal_a_search_by_token)
{
	const uint32_t rounds = fixture_rounds(3000, 3000);
	uint64_t rng = test_seed();
	uint32_t round, b, t;

	for (round = 0; round < rounds; round++) {
		const uint32_t requests = rng_below(&rng, B + 1);
		const uint32_t tokens = 1 + rng_below(&rng, T);
		int32_t end = 0;

		for (b = 0; b < requests; b++) {
			end += (int32_t)rng_below(&rng, 5);
			end = end < (int32_t)tokens ? end : (int32_t)tokens;
			set(b, end, 4 + (int32_t)rng_below(&rng, 1000),
			    (int32_t)rng_below(&rng, 8));
		}
		io.start[0] = 0;
		run(requests, tokens);
		for (t = 0; t < tokens; t++) {
			const int32_t at = (int32_t)t;
			int32_t p;

			for (b = 0; b < requests && io.start[b + 1] <= at; b++)
				;
			if (b == requests) {
				expect(t, 0, 0, 0, 0);
				continue;
			}
			p = io.lens[b] - io.start[b + 1] + at;
			expect(t, (int32_t)b, io.row[b], p, p + 1);
		}
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(hostile_inputs_stay_inside_the_outputs)
{
	const uint32_t rounds = fixture_rounds(3000, 3000);
	uint64_t rng = test_seed() + 1;
	uint32_t round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < B; i++) {
			io.start[i + 1] =
				(int32_t)rng_next(&rng) >> rng_below(&rng, 32);
			io.lens[i] =
				(int32_t)rng_next(&rng) >> rng_below(&rng, 32);
			io.row[i] = (int32_t)rng_next(&rng);
		}
		run(B, 1 + rng_below(&rng, T));
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{tokens_of_a_batch_worked_out_by_hand, 1},
		{rows_of_a_flattened_decode, 1},
		{positions_of_a_million_tokens_are_counted, 1},
		{requests_without_tokens_are_passed_over_anywhere, 1},
		{random_batches_equal_a_search_by_token, 1},
	};
	const theme_test edge[] = {
		{no_requests_is_all_padding, 1},
		{a_length_below_the_query_or_zero_is_reported_and_empty, 1},
		{start_locations_are_clamped_into_the_outputs, 1},
		{hostile_inputs_stay_inside_the_outputs, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

	};

	return RUN_THEMES(themes);
}
