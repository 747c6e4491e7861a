/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows: prefix sums, ranges of keys, rows of a piece, and what finds no
 * room.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/prefill_rows.h"

enum { B = 6, T = 16 };

static fixture f;
static struct {
	int32_t lens[T];
	int32_t starts[B + 2];
	int32_t first[T + 1];
	int32_t end[T + 1];
	int64_t rows[T + 1];
} io;
static int32_t query[B + 1], seq[B], row[B], id[T];
static spmla_prefill_rows_args a;

static void
setup(void)
{
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	for (i = 0; i < B; i++)
		row[i] = (int32_t)(10 + i);
	a = (spmla_prefill_rows_args){sizeof a,  0,        0,      0,
				      1,         0,        256,    query,
				      seq,       row,      id,     io.lens,
				      io.starts, io.first, io.end, io.rows};
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const spmla_prefill_rows_args *args)
{
	ck_assert_int_eq(spmla_prefill_rows(f.ctx, args, NULL), SPMLA_OK);
}

/* Requests of these query tokens and lengths, tokens one behind the other. */
static void
run(uint32_t requests, const int32_t *queries, const int32_t *lens,
    uint32_t tokens, uint32_t keys)
{
	uint32_t t = 0, b;
	int32_t j;

	a.requests = requests;
	a.tokens = tokens;
	a.keys = keys;
	query[0] = 0;
	for (b = 0; b < requests; b++) {
		query[b + 1] = query[b] + queries[b];
		seq[b] = lens[b];
		for (j = 0; j < queries[b]; j++, t++) {
			id[t] = (int32_t)b;
			io.lens[t] = lens[b] - queries[b] + j + 1;
		}
	}
	for (; t < tokens; t++)
		id[t] = io.lens[t] = 0;
	call(&a);
	ck_assert_int_eq(io.starts[requests + 1], 0x5A5A5A5A);
	ck_assert_int_eq(io.first[tokens], 0x5A5A5A5A);
	ck_assert_int_eq(io.end[tokens], 0x5A5A5A5A);
	ck_assert_int_eq(io.rows[tokens], 0x5A5A5A5A5A5A5A5A);
}

static void
expect_token(uint32_t t, int32_t first, int32_t end)
{
	ck_assert_int_eq(io.first[t], first);
	ck_assert_int_eq(io.end[t], end);
	ck_assert_int_eq(io.lens[t], end - first);
}

static void
expect_fault(spmla_fault fault, uint32_t where, uint32_t count)
{
	const spmla_device_status s = fixture_status(&f);

	ck_assert_uint_eq(s.count, count);
	ck_assert_uint_eq(s.fault, fault);
	ck_assert_uint_eq(s.row, where);
}

START_TEST(requests_lie_one_behind_the_other)
{
	static const int32_t queries[4] = {2, 1, 0, 3}, lens[4] = {10, 1, 0, 5};

	a.piece_tokens = 4;
	run(4, queries, lens, 8, 16);
	ck_assert_int_eq(io.starts[0], 0);
	ck_assert_int_eq(io.starts[1], 10);
	ck_assert_int_eq(io.starts[2], 11);
	ck_assert_int_eq(io.starts[3], 11);
	ck_assert_int_eq(io.starts[4], 16);
	expect_token(0, 0, 9); /* position 8 */
	expect_token(1, 0, 10);
	expect_token(2, 10, 11);
	expect_token(3, 11, 14); /* position 2 */
	expect_token(4, 11, 15);
	expect_token(5, 11, 16);
	expect_token(6, 0, 0); /* padding */
	expect_token(7, 0, 0);
	expect_fault(SPMLA_FAULT_NONE, 0, 0);
}
END_TEST

START_TEST(rows_of_logits_begin_anew_in_every_piece)
{
	static const int32_t queries[1] = {7}, lens[1] = {7};
	uint32_t t;

	a.piece_tokens = 3;
	a.piece_stride_elems = UINT32_MAX;
	run(1, queries, lens, 8, 7);
	for (t = 0; t < 8; t++)
		ck_assert_int_eq(io.rows[t], t % 3 * (int64_t)UINT32_MAX);
}
END_TEST

/* Rows of 2^31 elements, and contexts that end at the last row there can be. */
START_TEST(long_contexts_and_rows_do_not_wrap)
{
	static const int32_t queries[3] = {1, 1, 3};
	static const int32_t lens[3] = {1 << 30, (1 << 30) - 9, 8};
	uint32_t t;

	a.piece_tokens = 5;
	a.piece_stride_elems = UINT64_C(1) << 31;
	run(3, queries, lens, 5, INT32_MAX);
	ck_assert_int_eq(io.starts[3], INT32_MAX);
	expect_token(0, 0, 1 << 30);
	expect_token(1, 1 << 30, INT32_MAX - 8);
	expect_token(4, INT32_MAX - 8, INT32_MAX);
	for (t = 0; t < 5; t++)
		ck_assert_int_eq(io.rows[t], t * (INT64_C(1) << 31));
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(a_paused_request_takes_no_rows)
{
	static const int32_t queries[3] = {1, 0, 1}, lens[3] = {3, 9, 4};

	run(3, queries, lens, 2, 7);
	ck_assert_int_eq(io.starts[1], 3);
	ck_assert_int_eq(io.starts[2], 3);
	ck_assert_int_eq(io.starts[3], 7);
	expect_token(0, 0, 3);
	expect_token(1, 3, 7);
	expect_fault(SPMLA_FAULT_NONE, 0, 0);
}
END_TEST

START_TEST(a_context_without_room_is_skipped_and_reported)
{
	static const int32_t queries[3] = {1, 2, 1}, lens[3] = {3, 5, 4};

	run(3, queries, lens, 4, 7); /* 3 + 5 > 7 */
	ck_assert_int_eq(io.starts[1], 3);
	ck_assert_int_eq(io.starts[2], 3);
	ck_assert_int_eq(io.starts[3], 7);
	expect_token(0, 0, 3);
	expect_token(1, 0, 0);
	expect_token(2, 0, 0);
	expect_token(3, 3, 7);
	expect_fault(SPMLA_FAULT_LENGTH, 11, 1);
}
END_TEST

START_TEST(bad_lengths_and_requests_give_empty_tokens)
{
	static const int32_t queries[2] = {1, 1}, lens[2] = {-4, 2};

	run(2, queries, lens, 2, 100);
	expect_token(0, 0, 0);
	expect_token(1, 0, 2);
	expect_fault(SPMLA_FAULT_LENGTH, 10, 1);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	id[0] = 2; /* of two */
	id[1] = -1;
	io.lens[0] = io.lens[1] = 1;
	call(&a);
	expect_token(0, 0, 0);
	expect_token(1, 0, 0);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	id[0] = id[1] = 1;
	io.lens[0] = 2;
	io.lens[1] = 3; /* of two rows */
	call(&a);
	expect_token(0, 0, 2);
	expect_token(1, 0, 0);
	/* The first request as before, and the second token. */
	expect_fault(SPMLA_FAULT_LENGTH, 10, 2);
}
END_TEST

START_TEST(a_step_without_requests_is_padding)
{
	run(0, NULL, NULL, 3, 0);
	ck_assert_int_eq(io.starts[0], 0);
	expect_token(0, 0, 0);
	expect_token(2, 0, 0);
	expect_fault(SPMLA_FAULT_NONE, 0, 0);
}
END_TEST

/* ---- The call ---------------------------------------------------------- */

SUITE
{
	const theme_test shape[] = {
		{requests_lie_one_behind_the_other, 1},
		{rows_of_logits_begin_anew_in_every_piece, 1},
		{long_contexts_and_rows_do_not_wrap, 1},
		{a_paused_request_takes_no_rows, 1},
		{a_step_without_requests_is_padding, 1},
	};
	const theme_test edge[] = {
		{a_context_without_room_is_skipped_and_reported, 1},
		{bad_lengths_and_requests_give_empty_tokens, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

	};

	return RUN_THEMES(themes);
}
