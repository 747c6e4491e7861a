/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: windows, lengths and gather lengths, against the rule written out
 * once more in 64 bits. What the call refuses and graphs are in
 * test_swa_index_call.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cases.h"
#include "tests/support/index_rig.h"

#include "spmla/ops/swa_index.h"

enum { TOKENS = 40, ROWS = 12, COLUMNS = 9, REQUESTS = 10, ROOM = 8192 };

static fixture f;
static struct {
	int32_t indices[ROOM];
	int32_t lens[TOKENS + 1];
	int32_t gather[REQUESTS + 1];
} io, want;
static int32_t pos[TOKENS], row[TOKENS], table[ROWS * (COLUMNS + 2)];
static int32_t cols[ROWS], replay[ROWS], query[REQUESTS + 1], seq[REQUESTS];
static int32_t req_row[REQUESTS];
static int64_t slot[TOKENS];
static spmla_swa_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	memset(pos, 0, sizeof pos);
	memset(row, 0, sizeof row);
	memset(slot, 0, sizeof slot);
	a = (spmla_swa_index_args){.struct_bytes = sizeof a,
				   .tokens = 1,
				   .window = 3,
				   .width = 5,
				   .rows = 2,
				   .columns = 2,
				   .table_stride_elems = 4,
				   .page_tokens = 4,
				   .pool_pages = 8,
				   .positions = pos,
				   .token_row = row,
				   .slot_mapping = slot,
				   .block_table = table,
				   .indices = io.indices,
				   .indices_stride_elems = 7,
				   .lens = io.lens};
	memcpy(table, (const int32_t[]){5, 3, 0x7777, 0x7777, 2, 7, 0, 0},
	       8 * sizeof *table);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const void *args)
{
	ck_assert_int_eq(spmla_swa_index(f.ctx, args, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

static int64_t
replay_of(int64_t r)
{
	return a.replay_starts && a.replay_starts[r] > 0 ? a.replay_starts[r]
							 : 0;
}

/* The slot of position p, or -1. */
static int64_t
slot_of(int64_t r, int64_t p)
{
	const int64_t stride =
		a.page_stride_rows ? a.page_stride_rows : a.page_tokens;
	int64_t col = p / a.page_tokens, page;

	if (a.ring)
		col %= a.columns;
	if (col >= (int64_t)a.columns ||
	    (a.table_cols && col >= a.table_cols[r]))
		return -1;
	page = a.block_table[r * a.table_stride_elems + col];
	if (page < 0 || (a.pool_pages && page >= (int64_t)a.pool_pages) ||
	    page * stride + a.page_tokens > INT64_C(1) << 31)
		return -1;
	return page * stride + p % a.page_tokens;
}

static void
oracle_token(uint32_t t, index_faults *faults)
{
	int32_t *out = want.indices + t * a.indices_stride_elems;
	const int64_t r = a.token_row[t], p = a.positions[t];
	const int known = r >= 0 && r < (int64_t)a.rows;
	int64_t start, k;

	for (k = 0; k < (int64_t)a.width; k++)
		out[k] = -1;
	want.lens[t] = 0;
	if (a.slot_mapping[t] < 0)
		return;
	if (!known) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return;
	}
	start = p - (int64_t)a.window + 1;
	if (start < replay_of(r))
		start = replay_of(r);
	if (p < 0 || start > p) {
		index_report(faults, (uint64_t)r, SPMLA_FAULT_POSITION);
		return;
	}
	want.lens[t] = (int32_t)(p + 1 - start);
	for (k = start; k <= p; k++) {
		out[k - start] = (int32_t)slot_of(r, k);
		if (out[k - start] < 0 &&
		    (k == start || k % a.page_tokens == 0))
			index_report(faults, (uint64_t)r, SPMLA_FAULT_PAGE);
	}
}

static void
oracle_request(uint32_t b, index_faults *faults)
{
	const int64_t q =
		(int64_t)a.query_start_loc[b + 1] - a.query_start_loc[b];
	const uint32_t r = a.req_row ? (uint32_t)a.req_row[b] : b;
	int64_t before = a.seq_lens[b] - q;

	want.gather[b] = 0;
	if (q <= 0)
		return;
	if (a.replay_starts && r >= a.rows) {
		index_report(faults, b, SPMLA_FAULT_ROW);
		return;
	}
	before -= a.replay_starts ? replay_of(r) : 0;
	if (before < 0) {
		index_report(faults, r, SPMLA_FAULT_LENGTH);
		return;
	}
	if (before > (int64_t)a.window - 1)
		before = (int64_t)a.window - 1;
	want.gather[b] = (int32_t)(q + before);
}

static void
check(void)
{
	index_faults faults = {0};
	uint32_t i;

	memset(&io, 0x5A, sizeof io);
	memset(&want, 0x5A, sizeof want);
	for (i = 0; i < a.tokens; i++)
		oracle_token(i, &faults);
	for (i = 0; i < a.requests; i++)
		oracle_request(i, &faults);
	fixture_twice(&f, call, &a, &io, sizeof io);
	ck_assert_mem_eq(&io, &want, sizeof io);
	index_check_faults(&f, &faults);
}

static void
expect(const int32_t *indices, uint32_t n, int32_t len)
{
	call(&a);
	ck_assert_mem_eq(io.indices, indices, n * sizeof *indices);
	ck_assert_int_eq(io.indices[n], 0x5A5A5A5A);
	ck_assert_int_eq(io.lens[0], len);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	check();
}

/* ---- By hand ------------------------------------------------------------- */

/* Position 5 with a window of 3 sees 3, 4, 5: entry 3 of page 5 (5 * 4 + 3),
 * then entries 0 and 1 of page 3. */
START_TEST(window_is_the_last_keys_of_the_token)
{
	pos[0] = 5;
	expect((const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	pos[0] = 2; /* 0, 1, 2 */
	expect((const int32_t[]){20, 21, 22, -1, -1}, 5, 3);
}
END_TEST

START_TEST(token_near_the_start_sees_what_there_is)
{
	pos[0] = 0;
	expect((const int32_t[]){20, -1, -1, -1, -1}, 5, 1);
	pos[0] = 1;
	expect((const int32_t[]){20, 21, -1, -1, -1}, 5, 2);
}
END_TEST

/* A replay from 4 on: position 5 sees 4 and 5; one from 2 on changes
 * nothing. */
START_TEST(replay_start_bounds_the_window)
{
	a.replay_starts = replay;
	pos[0] = 5;
	replay[0] = 4;
	expect((const int32_t[]){12, 13, -1, -1, -1}, 5, 2);
	replay[0] = 5;
	expect((const int32_t[]){13, -1, -1, -1, -1}, 5, 1);
	replay[0] = 2;
	expect((const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	replay[0] = -9;
	expect((const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
}
END_TEST

/* Two columns of 4 are 8 positions; 8 lies where 0 did, 13 in column 1. */
START_TEST(ring_takes_columns_modulo_their_number)
{
	a.ring = 1;
	pos[0] = 9; /* 7, 8, 9 */
	expect((const int32_t[]){15, 20, 21, -1, -1}, 5, 3);
	pos[0] = 13; /* 11, 12, 13 */
	expect((const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	pos[0] = 1000001; /* 999999 is 7 of 8 */
	expect((const int32_t[]){15, 20, 21, -1, -1}, 5, 3);
}
END_TEST

/* Window 3: of 10 keys with 4 new ones the 2 before them are gathered too; of 5
 * with 4 the one; of a first prefill none. A replay from 5 on leaves 1 of the 6
 * before. */
START_TEST(gather_is_the_new_keys_and_the_window_before_them)
{
	static const int32_t starts[5] = {7, 11, 15, 15, 18};
	static const int32_t lens[4] = {10, 5, 99, 3};
	static const int32_t expected[4] = {6, 5, 0, 3};

	a.requests = 4;
	a.query_start_loc = starts;
	a.seq_lens = lens;
	a.gather_lens = io.gather;
	check();
	ck_assert_mem_eq(io.gather, expected, sizeof expected);
	memset(replay, 0, sizeof replay);
	memset(req_row, 0, sizeof req_row);
	replay[1] = 5;
	req_row[0] = 1;
	a.replay_starts = replay;
	a.req_row = req_row;
	check();
	ck_assert_int_eq(io.gather[0], 5);
	ck_assert_int_eq(io.gather[1], 5);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int64_t none[3] = {-1, INT64_MIN, INT32_MIN};

	slot[0] = none[_i];
	pos[0] = -77;
	row[0] = 99; /* not looked at */
	expect((const int32_t[]){-1, -1, -1, -1, -1}, 5, 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(row_or_position_outside_is_empty_and_reported)
{
	static const int32_t rows[5] = {2, -1, INT32_MAX, 0, 1};
	static const int32_t positions[5] = {0, 0, 0, -1, INT32_MIN};
	index_faults faults = {0};

	a.tokens = 2;
	row[1] = rows[_i];
	pos[1] = positions[_i];
	index_report(&faults, _i < 3 ? 1 : (uint64_t)rows[_i],
		     _i < 3 ? SPMLA_FAULT_ROW : SPMLA_FAULT_POSITION);
	check();
	call(&a);
	index_check_faults(&f, &faults);
	ck_assert_int_eq(io.lens[1], 0);
	ck_assert_int_eq(io.indices[7], -1);
}
END_TEST

START_TEST(position_before_the_replay_is_empty_and_reported)
{
	a.replay_starts = replay;
	replay[0] = 4;
	pos[0] = 3;
	expect((const int32_t[]){-1, -1, -1, -1, -1}, 5, 0);
	call(&a);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_POSITION);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
}
END_TEST

/* The keys of a page that is not there are -1 and counted; one report a
 * page. */
START_TEST(page_outside_the_pool_is_minus_one_and_reported_once)
{
	static const int32_t bad[5] = {8, -1, INT32_MAX, INT32_MIN, 1 << 30};

	table[1] = bad[_i];
	pos[0] = 5;
	expect((const int32_t[]){23, -1, -1, -1, -1}, 5, 3);
	call(&a);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
}
END_TEST

START_TEST(column_not_written_or_not_there_is_reported)
{
	static const int32_t written[2] = {1, 2};

	a.table_cols = written;
	pos[0] = 4; /* 2, 3 of page 5, 4 of a column not written */
	expect((const int32_t[]){22, 23, -1, -1, -1}, 5, 3);
	a.table_cols = NULL;
	pos[0] = 8; /* 8 is column 2 of 2 */
	expect((const int32_t[]){14, 15, -1, -1, -1}, 5, 3);
	call(&a);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
}
END_TEST

/* Page 2^29 - 1 of 4 has the slots up to 2^31 - 1; page 2^29 none that fit. */
START_TEST(slots_that_do_not_fit_are_minus_one)
{
	a.pool_pages = 0;
	table[0] = (1 << 29) - 1;
	table[1] = 1 << 29;
	pos[0] = 3;
	expect((const int32_t[]){INT32_MAX - 2, INT32_MAX - 1, INT32_MAX, -1,
				 -1},
	       5, 3);
	pos[0] = 5;
	expect((const int32_t[]){INT32_MAX, -1, -1, -1, -1}, 5, 3);
}
END_TEST

/* Lengths below the query tokens, or below where the replay starts. */
START_TEST(bad_lengths_gather_nothing_and_are_reported)
{
	static const int32_t starts[4] = {0, 5, 2, 3};
	static const int32_t lens[3] = {4, 10, INT32_MIN};
	index_faults faults = {0};

	memset(replay, 0, sizeof replay);
	a.requests = 3;
	a.query_start_loc = starts;
	a.seq_lens = lens;
	a.gather_lens = io.gather;
	check();
	call(&a);
	index_report(&faults, 0, SPMLA_FAULT_LENGTH);
	index_report(&faults, 2, SPMLA_FAULT_LENGTH);
	index_check_faults(&f, &faults);
	a.replay_starts = replay; /* row 2 is none of 2 */
	check();
	call(&a);
	memset(&faults, 0, sizeof faults);
	index_report(&faults, 0, SPMLA_FAULT_LENGTH);
	index_report(&faults, 2, SPMLA_FAULT_ROW);
	index_check_faults(&f, &faults);
}
END_TEST

START_TEST(no_tokens_and_no_requests_need_nothing)
{
	spmla_swa_index_args none = {.struct_bytes = sizeof none};

	call(&none);
	a.requests = 2;
	a.tokens = 0;
	a.query_start_loc = query;
	a.seq_lens = seq;
	a.gather_lens = io.gather;
	a.positions = NULL;
	a.indices = NULL;
	query[0] = query[1] = query[2] = 0;
	call(&a);
	ck_assert_int_eq(io.gather[0], 0);
	ck_assert_int_eq(io.gather[1], 0);
	ck_assert_int_eq(io.gather[2], 0x5A5A5A5A);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	a.page_stride_rows = 9;
	pos[0] = 5;
	expect((const int32_t[]){5 * 9 + 3, 27, 28, -1, -1}, 5, 3);
}
END_TEST

/* Pages of 64: position 1000000 is entry 0 of column 15625. Page 33000000 has
 * the slots from 2112000000 on. */
START_TEST(positions_of_a_million_tokens_are_found)
{
	enum { WIDE = 15700 };
	int32_t *wide = test_alloc(2 * WIDE * sizeof *wide, 0xFF);

	wide[WIDE + 15624] = 33000000;
	wide[WIDE + 15625] = 9;
	row[0] = 1;
	pos[0] = 1000000;
	a.columns = 15626;
	a.table_stride_elems = WIDE;
	a.page_tokens = 64;
	a.pool_pages = 33000001;
	a.block_table = wide;
	expect((const int32_t[]){2112000062, 2112000063, 576, -1, -1}, 5, 3);
	free(wide);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

START_TEST(random_windows_equal_the_rule)
{
	static const uint32_t windows[6] = {1, 2, 17, 63, 64, 130};
	static const uint32_t pages[4] = {64, 1, 16, 61};
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t page = pages[_i % 4], hostile = _i % 3 == 2;
	uint32_t i;

	a.ring = (uint32_t)_i / 2 % 2;
	a.window = windows[_i % 6];
	if (page * (COLUMNS - 2) < a.window)
		a.window = page * (COLUMNS - 2);
	a.width = a.window + (uint32_t)_i % 5 * 3;
	a.indices_stride_elems = a.width + 3;
	a.tokens =
		ROOM / (a.width + 3) < TOKENS ? ROOM / (a.width + 3) : TOKENS;
	a.rows = ROWS;
	a.columns = COLUMNS;
	a.table_stride_elems = COLUMNS + 2;
	a.page_tokens = page;
	a.page_stride_rows = _i % 5 ? page + (uint32_t)_i % 5 : 0;
	a.pool_pages = 1000;
	a.table_cols = _i & 1 ? cols : NULL;
	a.replay_starts = _i & 4 ? replay : NULL;
	a.requests = REQUESTS;
	a.query_start_loc = query;
	a.seq_lens = seq;
	a.req_row = _i & 8 ? req_row : NULL;
	a.gather_lens = io.gather;
	index_random(&rng, table, ROWS * (COLUMNS + 2), 1000 + hostile * 99);
	index_random(&rng, row, TOKENS, ROWS + hostile);
	index_random(&rng, req_row, REQUESTS, ROWS + hostile);
	index_random(&rng, pos, TOKENS, page * (COLUMNS + a.ring * 100));
	for (i = 0; i < ROWS; i++) {
		cols[i] = hostile ? (int32_t)rng_below(&rng, 12) - 1 : 99;
		replay[i] = (int32_t)rng_below(&rng, hostile ? 99 : 2) - 1;
	}
	for (i = 0; i < TOKENS; i++) {
		slot[i] = (int64_t)rng_below(&rng, 8) - 1;
		if (hostile && rng_below(&rng, 9) == 0)
			pos[i] = -(int32_t)rng_below(&rng, 9);
	}
	query[0] = (int32_t)rng_below(&rng, 50);
	for (i = 0; i < REQUESTS; i++) {
		const int32_t q = (int32_t)rng_below(&rng, 9);

		query[i + 1] = query[i] + q;
		seq[i] = q + (int32_t)rng_below(&rng, 200) - 9 * (int)hostile;
	}
	check();
}
END_TEST

int
main(void)
{
	const case_test shape[] = {
		{window_is_the_last_keys_of_the_token, 1},
		{token_near_the_start_sees_what_there_is, 1},
		{replay_start_bounds_the_window, 1},
		{ring_takes_columns_modulo_their_number, 1},
		{gather_is_the_new_keys_and_the_window_before_them, 1},
	};
	const case_test edge[] = {
		{token_without_a_slot_has_an_empty_row, 3},
		{row_or_position_outside_is_empty_and_reported, 5},
		{position_before_the_replay_is_empty_and_reported, 1},
		{page_outside_the_pool_is_minus_one_and_reported_once, 5},
		{column_not_written_or_not_there_is_reported, 1},
		{slots_that_do_not_fit_are_minus_one, 1},
		{bad_lengths_gather_nothing_and_are_reported, 1},
		{no_tokens_and_no_requests_need_nothing, 1},
	};
	const case_test layout[] = {
		{pages_apart_multiply_by_their_own_stride, 1},
		{positions_of_a_million_tokens_are_found, 1},
	};
	const case_test determinism[] = {
		{random_windows_equal_the_rule, 48},
	};
	const case_group groups[] = {
		CASES("shape", shape),
		CASES("edge", edge),
		CASES("layout", layout),
		CASES("determinism", determinism),
	};

	return RUN_CASES("swa_index", setup, teardown, groups);
}
