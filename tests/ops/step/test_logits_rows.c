/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: the prefix sum of rounded lengths, and rows that find no room.
 */
#include <string.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"

#include "spmla/ops/logits_rows.h"

enum { T = 32 };

static fixture f;
static struct {
	int32_t lens[T + 1];
	int32_t rows[T];
	int64_t starts[T + 2];
} io;

static void
setup(void)
{
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(io.starts, 0x5A, sizeof io.starts);
	for (i = 0; i < T; i++)
		io.rows[i] = (int32_t)(100 + i);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const spmla_logits_rows_args *a)
{
	ck_assert_int_eq(spmla_logits_rows(f.ctx, a, NULL), SPMLA_OK);
}

static void
run(uint32_t tokens, uint64_t capacity, const int32_t *token_row)
{
	const spmla_logits_rows_args a = {sizeof a,  tokens,  capacity,
					  token_row, io.lens, io.starts};

	io.lens[tokens] = 0x5A5A;
	io.starts[tokens + 1] = 0x5A5A;
	call(&a);
	ck_assert_int_eq(io.lens[tokens], 0x5A5A);
	ck_assert_int_eq(io.starts[tokens + 1], 0x5A5A);
}

static void
expect_row(uint32_t t, int64_t start, int32_t len)
{
	ck_assert_int_eq(io.starts[t], start);
	ck_assert_int_eq(io.lens[t], len);
}

START_TEST(rows_start_at_multiples_of_256)
{
	static const int32_t in[7] = {1, 256, 0, 257, -3, 255, 512};

	memcpy(io.lens, in, sizeof in);
	run(7, 10000, io.rows);
	expect_row(0, 0, 1);
	expect_row(1, 256, 256);
	expect_row(2, 512, 0);
	expect_row(3, 512, 257);
	ck_assert_int_eq(io.starts[4], 1024);
	expect_row(5, 1024, 255);
	expect_row(6, 1280, 512);
	ck_assert_int_eq(io.starts[7], 1792);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* 2^31 - 1 elements take 2^31; three rows end at 3 * 2^31, past 32 bits. */
START_TEST(starts_of_long_rows_do_not_wrap)
{
	const int64_t room = INT64_C(1) << 31;
	uint32_t t;

	for (t = 0; t < 3; t++)
		io.lens[t] = INT32_MAX;
	run(3, UINT64_C(3) << 31, io.rows);
	for (t = 0; t < 3; t++)
		expect_row(t, t * room, INT32_MAX);
	ck_assert_int_eq(io.starts[3], 3 * room);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(no_lengths_take_no_room)
{
	memset(io.lens, 0, sizeof io.lens);
	run(5, 0, NULL);
	ck_assert_int_eq(io.starts[0], 0);
	ck_assert_int_eq(io.starts[5], 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(the_last_row_needs_room_for_its_length_only)
{
	io.lens[0] = 300;
	io.lens[1] = 100;
	run(2, 612, io.rows); /* 512 + 100 */
	expect_row(0, 0, 300);
	expect_row(1, 512, 100);
	ck_assert_int_eq(io.starts[2], 612);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	run(2, 611, io.rows);
	expect_row(1, 512, 0);
	ck_assert_int_eq(io.starts[2], 512);
	expect_status(&f, 1, SPMLA_FAULT_LOGITS, 101, 0);
}
END_TEST

START_TEST(a_row_without_room_is_named_and_later_ones_that_fit_are_kept)
{
	static const int32_t in[6] = {500, 600, 256, INT32_MAX, 200, 1};

	memcpy(io.lens, in, sizeof in);
	run(6, 1000, io.rows);
	expect_row(0, 0, 500);
	expect_row(1, 512, 0);
	expect_row(2, 512, 256);
	expect_row(3, 768, 0);
	expect_row(4, 768, 200); /* its padding ends at 1000 */
	expect_row(5, 1000, 0);
	ck_assert_int_eq(io.starts[6], 1000);
	expect_status(&f, 3, SPMLA_FAULT_LOGITS, 101, 0);
}
END_TEST

START_TEST(without_rows_the_token_is_named)
{
	io.lens[0] = 1;
	io.lens[1] = 9;
	run(2, 256 + 8, NULL);
	expect_status(&f, 1, SPMLA_FAULT_LOGITS, 1, 0);
}
END_TEST

START_TEST(random_rows_never_overlap_or_leave_the_buffer)
{
	const uint32_t rounds = fixture_rounds(3000, 3000);
	uint64_t rng = test_seed();
	uint32_t round, t;

	for (round = 0; round < rounds; round++) {
		const uint32_t tokens = 1 + rng_below(&rng, T);
		const uint64_t capacity = rng_below(&rng, 9000);
		int64_t end = 0;
		int32_t in[T];

		for (t = 0; t < tokens; t++)
			in[t] = io.lens[t] =
				(int32_t)rng_below(&rng, 1100) - 50;
		run(tokens, capacity, io.rows);
		for (t = 0; t < tokens; t++) {
			const int32_t len = io.lens[t] > 0 ? io.lens[t] : 0;

			ck_assert_int_eq(io.starts[t], end);
			if (len == 0 && in[t] > 0)
				ck_assert_int_gt(end + in[t],
						 (int64_t)capacity);
			else
				ck_assert_int_eq(io.lens[t], in[t]);
			end += (len + 255) / 256 * 256;
			if (end > (int64_t)capacity)
				end = (int64_t)capacity;
			ck_assert_int_le(io.starts[t] + len, (int64_t)capacity);
		}
		ck_assert_int_eq(io.starts[tokens], end);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_start_at_multiples_of_256, 1},
		{starts_of_long_rows_do_not_wrap, 1},
		{random_rows_never_overlap_or_leave_the_buffer, 1},
	};
	const theme_test edge[] = {
		{no_lengths_take_no_room, 1},
		{the_last_row_needs_room_for_its_length_only, 1},
		{a_row_without_room_is_named_and_later_ones_that_fit_are_kept,
		 1},
		{without_rows_the_token_is_named, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),

	};

	return RUN_THEMES(themes);
}
