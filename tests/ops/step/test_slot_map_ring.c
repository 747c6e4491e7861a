/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map over tables whose columns wrap around: position p has the slot of p
 * modulo the positions that the row holds, wherever the sequence is.
 */
#include <string.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"

#include "spmla/ops/slot_map.h"

enum { T = 16, ROWS = 4, COLUMNS = 5, STRIDE = 7, PAGE = 12, POOL = 500 };

static fixture f;

static struct {
	int32_t row[T];
	int32_t position[T];
	int32_t lens[T];
	int64_t slot[T];
	int32_t cols[ROWS];
	int32_t table[ROWS * STRIDE];
} io;

static void
setup(void)
{
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0, sizeof io);
	for (i = 0; i < ROWS * STRIDE; i++)
		io.table[i] = i % STRIDE < COLUMNS ? (int32_t)(10 * i + 1) : 2;
	for (i = 0; i < ROWS; i++)
		io.cols[i] = COLUMNS;
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_slot_map_args
args(uint32_t tokens)
{
	const spmla_slot_map_args a = {sizeof a, tokens,      ROWS,     COLUMNS,
				       PAGE,     POOL,        STRIDE,   0,
				       io.row,   io.position, io.table, io.cols,
				       io.lens,  io.slot,     1,        0,
				       0,        0,           0,        0};

	return a;
}

static void
call(const spmla_slot_map_args *a)
{
	ck_assert_int_eq(spmla_slot_map(f.ctx, a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

static int64_t
one(const spmla_slot_map_args *a, int32_t row, int32_t position)
{
	io.row[0] = row;
	io.position[0] = position;
	io.lens[0] = 77;
	call(a);
	ck_assert_int_eq(io.lens[0], io.slot[0] < 0 ? 0 : 77);
	return io.slot[0];
}

static void
reported(uint32_t fault, uint32_t row)
{
	expect_status(&f, 1, fault, row, 0);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

/* 5 columns of 12 hold 60. Row 1 is entries 7 .. 11: pages 71, 81, .. 111; 60
 * is where 0 was, 2^31 - 1 = 60 * 35791394 + 7 where 7 was. */
START_TEST(positions_come_round_by_hand)
{
	spmla_slot_map_args a = args(1);

	ck_assert_int_eq(one(&a, 1, 0), 71 * 12);
	ck_assert_int_eq(one(&a, 1, 59), 111 * 12 + 11);
	ck_assert_int_eq(one(&a, 1, 60), 71 * 12);
	ck_assert_int_eq(one(&a, 1, 61), 71 * 12 + 1);
	ck_assert_int_eq(one(&a, 1, 72), 81 * 12);
	ck_assert_int_eq(one(&a, 0, 600 + 35), 21 * 12 + 11);
	ck_assert_int_eq(one(&a, 1, INT32_MAX), 71 * 12 + 7);
	a.ring = 0;
	ck_assert_int_eq(one(&a, 1, 60), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	a.ring = 1;
	a.columns = 1;
	ck_assert_int_eq(one(&a, 3, 1000), 211 * 12 + 4); /* 1000 % 12 */
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(columns_and_pages_that_are_not_there_are_reported_each_time_round)
{
	static const int32_t bad[3] = {-1, POOL, INT32_MIN};
	const spmla_slot_map_args a = args(1);
	int32_t k;

	io.cols[2] = 3;
	for (k = 0; k < 4; k++) {
		ck_assert_int_eq(one(&a, 2, 60 * k + 35), 161 * 12 + 11);
		ck_assert_int_eq(one(&a, 2, 60 * k + 36), -1);
		reported(SPMLA_FAULT_PAGE, 2);
		ck_assert_int_eq(one(&a, 2, 60 * k + 59), -1);
		reported(SPMLA_FAULT_PAGE, 2);
	}
	for (k = 0; k < 3; k++) {
		io.table[STRIDE + 4] = bad[k];
		ck_assert_int_eq(one(&a, 1, 60 * k + 48), -1);
		reported(SPMLA_FAULT_PAGE, 1);
	}
	ck_assert_int_eq(one(&a, ROWS, 3), -1);
	reported(SPMLA_FAULT_ROW, ROWS);
}
END_TEST

/* Modulo the columns every number has a page: that must not make one of a
 * position below 0. */
START_TEST(a_position_below_0_has_no_page)
{
	static const int32_t below[4] = {-1, -12, -60, INT32_MIN};
	spmla_slot_map_args a = args(1);
	uint32_t i;

	for (i = 0; i < 8; i++) {
		a.compress_ratio = i < 4 ? 0 : 4;
		ck_assert_int_eq(one(&a, 1, below[i % 4]), -1);
		reported(SPMLA_FAULT_PAGE, 1);
	}
}
END_TEST

/* Against the same table written out as a long one. */
START_TEST(random_positions_equal_a_long_table_of_the_same_pages)
{
	enum { ROUNDS = 9 };
	uint64_t rng = test_seed() + 5;
	uint32_t round, t, i;
	ref_table table;

	for (round = 0; round < fixture_rounds(400, 20); round++) {
		const uint32_t r = rng_below(&rng, 2) ? 4 : 1;
		spmla_slot_map_args a = args(1 + rng_below(&rng, T));

		a.columns = 1 + rng_below(&rng, COLUMNS);
		a.page_tokens = r * (1 + rng_below(&rng, 9));
		a.pool_pages = 1 + rng_below(&rng, 20);
		a.compress_ratio = r;
		ck_assert(ref_table_open(&table, ROWS, a.columns * ROUNDS,
					 a.page_tokens, a.pool_pages));
		for (i = 0; i < ROWS * STRIDE; i++)
			io.table[i] = (int32_t)rng_below(&rng, 22) - 1;
		for (i = 0; i < ROWS * ROUNDS; i++) {
			const uint32_t row = i / ROUNDS;

			io.cols[row] =
				i % ROUNDS ? io.cols[row]
					   : (int32_t)rng_below(&rng,
								a.columns + 1);
			ck_assert(ref_table_store(&table, row,
						  i % ROUNDS * a.columns,
						  (uint32_t)io.cols[row],
						  io.table + row * STRIDE));
		}
		for (t = 0; t < a.tokens; t++) {
			io.row[t] = (int32_t)rng_below(&rng, ROWS);
			io.position[t] = (int32_t)rng_below(
				&rng, ROUNDS * a.columns * a.page_tokens);
			io.lens[t] = (int32_t)rng_below(&rng, 4);
		}
		call(&a);
		for (t = 0; t < a.tokens; t++) {
			const uint32_t p = (uint32_t)io.position[t];
			const int64_t slot =
				ref_table_slot(&table, (uint32_t)io.row[t], p);
			const int64_t none =
				slot < 0 || (p + 1) % r || io.lens[t] == 0;

			/* lens is 0 where there is no page, too */
			ck_assert_int_eq(io.slot[t], none ? -1 : slot / r);
		}
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		ref_table_close(&table);
	}
}
END_TEST

SUITE
{
	const theme_test ring[] = {
		{positions_come_round_by_hand, 1},
		{random_positions_equal_a_long_table_of_the_same_pages, 1},
		{columns_and_pages_that_are_not_there_are_reported_each_time_round,
		 1},
		{a_position_below_0_has_no_page, 1},
	};
	const theme themes[] = {THEME("ring", setup, teardown, ring)};

	return RUN_THEMES(themes);
}
