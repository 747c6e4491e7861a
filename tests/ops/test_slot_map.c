/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: the cache slot of every token, for any page size and stride; and
 * rows, columns and pages that are not there.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/step_rig.h"
#include "tests/support/themes.h"

#include "spmla/ops/slot_map.h"

enum { T = 24, ROWS = 5, COLUMNS = 6, STRIDE = 9, POOL = 1000 };

static fixture f;

static struct {
	int32_t row[T];
	int32_t position[T];
	int32_t lens[T + 1];
	int64_t slot[T + 1];
	int32_t cols[ROWS];
	int32_t table[ROWS * STRIDE];
} io;

static void
setup(void)
{
	uint32_t i;

	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0, sizeof io);
	for (i = 0; i < ROWS * STRIDE; i++)
		io.table[i] = i % STRIDE < COLUMNS ? (int32_t)(10 * i + 3) : 1;
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
				       64,       POOL,        STRIDE,   0,
				       io.row,   io.position, io.table, io.cols,
				       io.lens,  io.slot};

	return a;
}

static void
call(const void *a)
{
	ck_assert_int_eq(spmla_slot_map(f.ctx, a, NULL), SPMLA_OK);
}

/* Runs token 0 at `position` of `row`; its slot. */
static int64_t
one(const spmla_slot_map_args *a, int32_t row, int32_t position)
{
	io.row[0] = row;
	io.position[0] = position;
	io.lens[0] = 77;
	io.lens[1] = 55;
	io.slot[0] = 99;
	io.slot[1] = 66;
	fixture_twice(&f, call, a, &io, sizeof io);
	ck_assert_int_eq(io.lens[0], io.slot[0] < 0 ? 0 : 77);
	ck_assert_int_eq(io.lens[1], 55);
	ck_assert_int_eq(io.slot[1], 66);
	return io.slot[0];
}

static void
reported(uint32_t fault, uint32_t row)
{
	expect_status(&f, 1, fault, row, 0);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

START_TEST(slots_of_a_table_worked_out_by_hand)
{
	const spmla_slot_map_args a = args(1);

	/* row 0: pages 3, 13, 23, ..; row 2 starts at entry 18: 183, 193 */
	ck_assert_int_eq(one(&a, 0, 0), 3 * 64);
	ck_assert_int_eq(one(&a, 0, 63), 3 * 64 + 63);
	ck_assert_int_eq(one(&a, 0, 64), 13 * 64);
	ck_assert_int_eq(one(&a, 2, 130), 203 * 64 + 2);
	ck_assert_int_eq(one(&a, 4, 383), 413 * 64 + 63);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(padding_has_no_slot_and_is_not_looked_up)
{
	const spmla_slot_map_args a = args(3);

	io.row[0] = 9999;
	io.position[0] = -5;
	io.lens[0] = 0;
	io.row[1] = -1;
	io.lens[1] = -4;
	io.row[2] = 1;
	io.lens[2] = 1;
	ck_assert_int_eq(spmla_slot_map(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(io.slot[0], -1);
	ck_assert_int_eq(io.slot[1], -1);
	ck_assert_int_eq(io.slot[2], 93 * 64);
	ck_assert_int_eq(io.lens[0], 0);
	ck_assert_int_eq(io.lens[1], 0);
	ck_assert_int_eq(io.lens[2], 1);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(rows_outside_the_table_are_skipped_and_reported)
{
	const spmla_slot_map_args a = args(1);

	ck_assert_int_eq(one(&a, ROWS, 0), -1);
	reported(SPMLA_FAULT_ROW, ROWS);
	ck_assert_int_eq(one(&a, -1, 0), -1);
	reported(SPMLA_FAULT_ROW, UINT32_MAX);
	ck_assert_int_eq(one(&a, INT32_MAX, 0), -1);
	reported(SPMLA_FAULT_ROW, INT32_MAX);
}
END_TEST

START_TEST(columns_that_are_not_there_are_skipped_and_reported)
{
	spmla_slot_map_args a = args(1);

	ck_assert_int_eq(one(&a, 1, 384), -1); /* column 6 of 6 */
	reported(SPMLA_FAULT_PAGE, 1);
	ck_assert_int_eq(one(&a, 1, -1), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	ck_assert_int_eq(one(&a, 1, INT32_MAX), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	io.cols[1] = 2;
	ck_assert_int_eq(one(&a, 1, 127), 103 * 64 + 63);
	ck_assert_int_eq(one(&a, 1, 128), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	io.cols[1] = -1;
	ck_assert_int_eq(one(&a, 1, 0), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	io.cols[1] = INT32_MAX; /* more than the table has */
	ck_assert_int_eq(one(&a, 1, 384), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	io.cols[1] = 0;
	a.table_cols = NULL; /* all columns are written */
	ck_assert_int_eq(one(&a, 1, 383), 143 * 64 + 63);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(pages_outside_the_pool_are_skipped_and_reported)
{
	static const int32_t bad[4] = {-1, POOL, INT32_MAX, INT32_MIN};
	const spmla_slot_map_args a = args(1);
	uint32_t i;

	for (i = 0; i < 4; i++) {
		io.table[3 * STRIDE + 1] = bad[i];
		ck_assert_int_eq(one(&a, 3, 64), -1);
		reported(SPMLA_FAULT_PAGE, 3);
	}
	io.table[3 * STRIDE + 1] = POOL - 1;
	ck_assert_int_eq(one(&a, 3, 64), (POOL - 1) * 64);
	io.table[3 * STRIDE + 1] = 0;
	ck_assert_int_eq(one(&a, 3, 64), 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(slots_may_need_more_than_32_bits)
{
	spmla_slot_map_args a = args(1);

	a.page_tokens = 4096;
	a.pool_pages = UINT32_MAX;
	io.table[0] = INT32_MAX;
	ck_assert_int_eq(one(&a, 0, 4095), INT64_C(0x7fffffff) * 4096 + 4095);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* Ratio 128, pages of 256 tokens and 2 keys, row [7, 9]: position 127 ends key
 * 0, 7 * 2 + 0 = 14; 255 key 1, 15; 383 key 2, 9 * 2 + 0 = 18. Ratio 4, 64 keys
 * a page, row [5, 7]: of positions 240 .. 279 ten end a key, 60 .. 69: slots 5
 * * 64 + 60 .. 63, then 7 * 64 + 0 .. 5. */
START_TEST(slots_of_compressed_keys_worked_out_by_hand)
{
	spmla_slot_map_args a = args(1);
	int32_t pos;

	a.page_tokens = 256;
	a.compress_ratio = 128;
	io.table[STRIDE] = 7;
	io.table[STRIDE + 1] = 9;
	for (pos = 0; pos < 384; pos++) {
		io.row[0] = 1;
		io.position[0] = pos;
		io.lens[0] = pos + 1;
		call(&a);
		fixture_drain(&f);
		ck_assert_int_eq(io.slot[0], pos == 127   ? 14
					     : pos == 255 ? 15
					     : pos == 383 ? 18
							  : -1);
		ck_assert_int_eq(io.lens[0], pos + 1);
	}
	a.compress_ratio = 4;
	io.table[STRIDE] = 5;
	io.table[STRIDE + 1] = 7;
	for (pos = 240; pos < 280; pos++) {
		const int32_t key = pos / 4;
		const int64_t slot = key < 64 ? 320 + key : 448 + key - 64;

		io.position[0] = pos;
		io.lens[0] = pos + 1;
		call(&a);
		fixture_drain(&f);
		ck_assert_int_eq(io.slot[0], pos % 4 == 3 ? slot : -1);
	}
	a.compress_ratio = 1; /* none */
	ck_assert_int_eq(one(&a, 1, 258), 7 * 256 + 2);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* Rows, columns and pages count for tokens that end a group alone; a position
 * below 0 is bad data anywhere. */
START_TEST(tokens_inside_a_group_are_not_looked_up_and_keep_their_context)
{
	spmla_slot_map_args a = args(4);
	static const int32_t positions[4] = {62, 63, 64, -2};
	uint32_t t;

	a.page_tokens = 64;
	a.compress_ratio = 4;
	for (t = 0; t < 4; t++) {
		io.row[t] = t == 3 ? 2 : ROWS;
		io.position[t] = positions[t];
		io.lens[t] = 70;
	}
	fixture_twice(&f, call, &a, &io, sizeof io);
	for (t = 0; t < 4; t++) {
		ck_assert_int_eq(io.slot[t], -1);
		ck_assert_int_eq(io.lens[t], t % 2 ? 0 : 70);
	}
	expect_status(&f, 2, SPMLA_FAULT_PAGE, 2, 0);
}
END_TEST

START_TEST(random_tokens_equal_the_reference_table)
{
	uint64_t rng = test_seed();
	uint32_t round, t, i;
	ref_table table;

	for (round = 0; round < 400; round++) {
		spmla_slot_map_args a = args(1 + rng_below(&rng, T));
		uint32_t faults = 0;

		a.compress_ratio = rng_below(&rng, 6);
		a.page_tokens = (1 + rng_below(&rng, 80)) *
				(a.compress_ratio ? a.compress_ratio : 1);
		a.pool_pages = 1 + rng_below(&rng, 20);
		ck_assert(ref_table_open(&table, ROWS, COLUMNS, a.page_tokens,
					 a.pool_pages));
		for (i = 0; i < ROWS * STRIDE; i++)
			io.table[i] = (int32_t)rng_below(&rng, 23) - 1;
		for (i = 0; i < ROWS; i++) {
			io.cols[i] = (int32_t)rng_below(&rng, COLUMNS + 1);
			ck_assert(ref_table_store(&table, i, 0,
						  (uint32_t)io.cols[i],
						  io.table + i * STRIDE));
		}
		for (t = 0; t < a.tokens; t++) {
			io.row[t] = (int32_t)rng_below(&rng, ROWS + 1);
			io.position[t] =
				(int32_t)rng_below(&rng, 7 * a.page_tokens);
			io.lens[t] = (int32_t)rng_below(&rng, 4);
		}
		fixture_twice(&f, call, &a, &io, sizeof io);
		for (t = 0; t < a.tokens; t++) {
			const uint32_t r =
				a.compress_ratio ? a.compress_ratio : 1;
			const uint32_t p = (uint32_t)io.position[t];
			const int64_t slot =
				ref_table_slot(&table, (uint32_t)io.row[t], p);
			/* page * keys of a page + key in it */
			const int64_t want =
				slot < 0 || (p + 1) % r
					? -1
					: slot / a.page_tokens *
							  (a.page_tokens / r) +
						  p / r % (a.page_tokens / r);

			if (io.lens[t] > 0)
				ck_assert_int_eq(io.slot[t], want);
			else
				ck_assert_int_eq(io.slot[t], -1);
			faults += slot < 0;
		}
		ck_assert_uint_le(fixture_status(&f).count, faults);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		ref_table_close(&table);
	}
}
END_TEST

START_TEST(a_recorded_call_reads_what_is_there_at_each_replay)
{
	const spmla_slot_map_args a = args(1);
	spmla_graph graph;
	int32_t k;

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_slot_map(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	for (k = 0; k < 3; k++) {
		io.row[0] = 1;
		io.position[0] = 70 + k;
		io.lens[0] = 71 + k;
		io.table[STRIDE + 1] = 40 + k;
		replay(&f, graph, 0);
		ck_assert_int_eq(io.slot[0], (40 + k) * 64 + 6 + k);
		ck_assert_int_eq(io.lens[0], 71 + k);
	}
}
END_TEST

START_TEST(every_argument_that_is_wrong_is_named)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *text;
	} numbers[] = {
		{offsetof(spmla_slot_map_args, rows), 0,
		 "SPMLA_E_RANGE: slot_map.rows: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, columns), 0,
		 "SPMLA_E_RANGE: slot_map.columns: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, page_tokens), 0,
		 "SPMLA_E_RANGE: slot_map.page_tokens: got 0, want at least "
		 "1"},
		{offsetof(spmla_slot_map_args, pool_pages), 0,
		 "SPMLA_E_RANGE: slot_map.pool_pages: got 0, want at least 1"},
		{offsetof(spmla_slot_map_args, table_stride_elems), 5,
		 "SPMLA_E_RANGE: slot_map.table_stride_elems: got 5, want at "
		 "least 6"},
		{offsetof(spmla_slot_map_args, compress_ratio), 5,
		 "SPMLA_E_RANGE: slot_map.page_tokens: got 64, want a multiple "
		 "of 5"},
		{offsetof(spmla_slot_map_args, struct_bytes), 1,
		 "SPMLA_E_STRUCT_SIZE: slot_map: got 1, want 80"},
	};
	spmla_slot_map_args a = args(1);
	uint32_t i;

	ck_assert_int_eq(spmla_slot_map(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(&f, spmla_slot_map(f.ctx, NULL, NULL),
		     "SPMLA_E_NULL: slot_map: got NULL, want a pointer");
	for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		a = args(1);
		memcpy((uint8_t *)&a + numbers[i].at, &numbers[i].value, 4);
		expect_error(&f, spmla_slot_map(f.ctx, &a, NULL),
			     numbers[i].text);
	}
	for (i = 0; i < 6; i++) {
		a = args(1);
		memset((uint8_t *)&a +
			       offsetof(spmla_slot_map_args, token_row) +
			       i * sizeof(void *),
		       0, sizeof(void *));
		ck_assert_int_eq(spmla_slot_map(f.ctx, &a, NULL),
				 i == 3 ? SPMLA_OK : SPMLA_E_NULL);
	}
	memset(&a, 0, sizeof a);
	a.struct_bytes = sizeof a;
	ck_assert_int_eq(spmla_slot_map(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

int
main(void)
{
	const TTest *const shape[] = {
		slots_of_a_table_worked_out_by_hand,
		slots_of_compressed_keys_worked_out_by_hand,
		slots_may_need_more_than_32_bits,
		random_tokens_equal_the_reference_table,
	};
	const TTest *const edge[] = {
		padding_has_no_slot_and_is_not_looked_up,
		tokens_inside_a_group_are_not_looked_up_and_keep_their_context,
		rows_outside_the_table_are_skipped_and_reported,
		columns_that_are_not_there_are_skipped_and_reported,
		pages_outside_the_pool_are_skipped_and_reported,
	};
	const TTest *const graph[] = {
		a_recorded_call_reads_what_is_there_at_each_replay,
	};
	const TTest *const error[] = {
		every_argument_that_is_wrong_is_named,
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("graph", setup, teardown, graph),
		THEME("error", setup, teardown, error),
	};

	return RUN_THEMES("slot_map", themes);
}
