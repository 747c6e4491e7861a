/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: windows, lengths and gather lengths. Windows of images and padded
 * rows are in test_swa_index_image.c.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/swa_rig.h"

static swa_rig r;

static void
setup(void)
{
	swa_open(&r);
}

static void
teardown(void)
{
	swa_close(&r);
}

/* ---- By hand ------------------------------------------------------------- */

/* Position 5 with a window of 3 sees 3, 4, 5: entry 3 of page 5 (5 * 4 + 3),
 * then entries 0 and 1 of page 3. */
START_TEST(window_is_the_last_keys_of_the_token)
{
	r.pos[0] = 5;
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	r.pos[0] = 2; /* 0, 1, 2 */
	swa_expect(&r, (const int32_t[]){20, 21, 22, -1, -1}, 5, 3);
}
END_TEST

START_TEST(token_near_the_start_sees_what_there_is)
{
	r.pos[0] = 0;
	swa_expect(&r, (const int32_t[]){20, -1, -1, -1, -1}, 5, 1);
	r.pos[0] = 1;
	swa_expect(&r, (const int32_t[]){20, 21, -1, -1, -1}, 5, 2);
}
END_TEST

/* A replay from 4 on: position 5 sees 4 and 5; one from 2 on changes
 * nothing. */
START_TEST(replay_start_bounds_the_window)
{
	r.a.replay_starts = r.replay;
	r.pos[0] = 5;
	r.replay[0] = 4;
	swa_expect(&r, (const int32_t[]){12, 13, -1, -1, -1}, 5, 2);
	r.replay[0] = 5;
	swa_expect(&r, (const int32_t[]){13, -1, -1, -1, -1}, 5, 1);
	r.replay[0] = 2;
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	r.replay[0] = -9;
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
}
END_TEST

/* Two columns of 4 are 8 positions; 8 lies where 0 did, 13 in column 1. */
START_TEST(ring_takes_columns_modulo_their_number)
{
	r.a.ring = 1;
	r.pos[0] = 9; /* 7, 8, 9 */
	swa_expect(&r, (const int32_t[]){15, 20, 21, -1, -1}, 5, 3);
	r.pos[0] = 13; /* 11, 12, 13 */
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1}, 5, 3);
	r.pos[0] = 1000001; /* 999999 is 7 of 8 */
	swa_expect(&r, (const int32_t[]){15, 20, 21, -1, -1}, 5, 3);
}
END_TEST

/* Window 3: of 10 keys with 4 new ones the 2 before them are gathered too; of 5
 * with 4 the one; of a first prefill none; of 99 without a new one the last 2.
 * A replay from 5 on leaves 1 of the 6 before. */
START_TEST(gather_is_the_new_keys_and_the_window_before_them)
{
	static const int32_t starts[5] = {7, 11, 15, 15, 18};
	static const int32_t lens[4] = {10, 5, 99, 3};
	static const int32_t expected[4] = {6, 5, 2, 3};

	r.a.requests = 4;
	r.a.query_start_loc = starts;
	r.a.seq_lens = lens;
	r.a.gather_lens = r.io.gather;
	swa_check(&r);
	ck_assert_mem_eq(r.io.gather, expected, sizeof expected);
	memset(r.replay, 0, sizeof r.replay);
	memset(r.req_row, 0, sizeof r.req_row);
	r.replay[1] = 5;
	r.req_row[0] = 1;
	r.a.replay_starts = r.replay;
	r.a.req_row = r.req_row;
	swa_check(&r);
	ck_assert_int_eq(r.io.gather[0], 5);
	ck_assert_int_eq(r.io.gather[1], 5);
	ck_assert_int_eq(r.io.gather[2], 2);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int64_t none[3] = {-1, INT64_MIN, INT32_MIN};

	r.slot[0] = none[_i];
	r.pos[0] = -77;
	r.row[0] = 99; /* not looked at */
	swa_expect(&r, (const int32_t[]){-1, -1, -1, -1, -1}, 5, 0);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(row_or_position_outside_is_empty_and_reported)
{
	static const int32_t rows[5] = {2, -1, INT32_MAX, 0, 1};
	static const int32_t positions[5] = {0, 0, 0, -1, INT32_MIN};
	index_faults faults = {0};

	r.a.tokens = 2;
	r.row[1] = rows[_i];
	r.pos[1] = positions[_i];
	index_report(&faults, _i < 3 ? 1 : (uint64_t)rows[_i],
		     _i < 3 ? SPMLA_FAULT_ROW : SPMLA_FAULT_POSITION);
	swa_check(&r);
	swa_run(&r);
	index_check_faults(&r.f, &faults);
	ck_assert_int_eq(r.io.lens[1], 0);
	ck_assert_int_eq(r.io.indices[7], -1);
}
END_TEST

START_TEST(position_before_the_replay_is_empty_and_reported)
{
	r.a.replay_starts = r.replay;
	r.replay[0] = 4;
	r.pos[0] = 3;
	swa_expect(&r, (const int32_t[]){-1, -1, -1, -1, -1}, 5, 0);
	swa_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_POSITION);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
}
END_TEST

/* The keys of a page that is not there are -1 and counted; one report a
 * page. */
START_TEST(page_outside_the_pool_is_minus_one_and_reported_once)
{
	static const int32_t bad[5] = {8, -1, INT32_MAX, INT32_MIN, 1 << 30};

	r.table[1] = bad[_i];
	r.pos[0] = 5;
	swa_expect(&r, (const int32_t[]){23, -1, -1, -1, -1}, 5, 3);
	swa_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
}
END_TEST

START_TEST(column_not_written_or_not_there_is_reported)
{
	static const int32_t written[2] = {1, 2};

	r.a.table_cols = written;
	r.pos[0] = 4; /* 2, 3 of page 5, 4 of a column not written */
	swa_expect(&r, (const int32_t[]){22, 23, -1, -1, -1}, 5, 3);
	r.a.table_cols = NULL;
	r.pos[0] = 8; /* 8 is column 2 of 2 */
	swa_expect(&r, (const int32_t[]){14, 15, -1, -1, -1}, 5, 3);
	swa_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
}
END_TEST

/* Page 2^29 - 1 of 4 has the slots up to 2^31 - 1; page 2^29 none that fit. */
START_TEST(slots_that_do_not_fit_are_minus_one)
{
	r.a.pool_pages = 0;
	r.table[0] = (1 << 29) - 1;
	r.table[1] = 1 << 29;
	r.pos[0] = 3;
	swa_expect(&r,
		   (const int32_t[]){INT32_MAX - 2, INT32_MAX - 1, INT32_MAX,
				     -1, -1},
		   5, 3);
	r.pos[0] = 5;
	swa_expect(&r, (const int32_t[]){INT32_MAX, -1, -1, -1, -1}, 5, 3);
}
END_TEST

/* Lengths below the query tokens, or below where the replay starts. */
START_TEST(bad_lengths_gather_nothing_and_are_reported)
{
	static const int32_t starts[4] = {0, 5, 2, 3};
	static const int32_t lens[3] = {4, 10, INT32_MIN};
	index_faults faults = {0};

	memset(r.replay, 0, sizeof r.replay);
	r.a.requests = 3;
	r.a.query_start_loc = starts;
	r.a.seq_lens = lens;
	r.a.gather_lens = r.io.gather;
	swa_check(&r);
	swa_run(&r);
	index_report(&faults, 0, SPMLA_FAULT_LENGTH);
	index_report(&faults, 2, SPMLA_FAULT_LENGTH);
	index_check_faults(&r.f, &faults);
	r.a.replay_starts = r.replay; /* row 2 is none of 2 */
	swa_check(&r);
	swa_run(&r);
	memset(&faults, 0, sizeof faults);
	index_report(&faults, 0, SPMLA_FAULT_LENGTH);
	index_report(&faults, 2, SPMLA_FAULT_ROW);
	index_check_faults(&r.f, &faults);
}
END_TEST

START_TEST(no_tokens_and_no_requests_need_nothing)
{
	spmla_swa_index_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_swa_index(r.f.ctx, &none, NULL), SPMLA_OK);
	r.a.requests = 2;
	r.a.tokens = 0;
	r.a.query_start_loc = r.query;
	r.a.seq_lens = r.seq;
	r.a.gather_lens = r.io.gather;
	r.a.positions = NULL;
	r.a.indices = NULL;
	r.query[0] = r.query[1] = r.query[2] = 0;
	swa_run(&r);
	ck_assert_int_eq(r.io.gather[0], 0);
	ck_assert_int_eq(r.io.gather[1], 0);
	ck_assert_int_eq(r.io.gather[2], 0x5A5A5A5A);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	r.a.page_stride_rows = 9;
	r.pos[0] = 5;
	swa_expect(&r, (const int32_t[]){5 * 9 + 3, 27, 28, -1, -1}, 5, 3);
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
	r.row[0] = 1;
	r.pos[0] = 1000000;
	r.a.columns = 15626;
	r.a.table_stride_elems = WIDE;
	r.a.page_tokens = 64;
	r.a.pool_pages = 33000001;
	r.a.block_table = wide;
	swa_expect(&r, (const int32_t[]){2112000062, 2112000063, 576, -1, -1},
		   5, 3);
	free(wide);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

/* Case i's sizes, and which of the optional arrays it has. */
static void
random_sizes(uint32_t i)
{
	static const uint32_t windows[6] = {1, 2, 17, 63, 64, 130};
	static const uint32_t pages[4] = {64, 1, 16, 61};
	const uint32_t page = pages[i % 4];

	r.a.ring = i / 2 % 2;
	r.a.window = windows[i % 6];
	if (page * (SWA_COLUMNS - 2) < r.a.window)
		r.a.window = page * (SWA_COLUMNS - 2);
	r.a.width = r.a.window + i % 5 * 3;
	r.a.indices_stride_elems = r.a.width + 3;
	r.a.tokens = SWA_ROOM / (r.a.width + 3) < SWA_TOKENS
			     ? SWA_ROOM / (r.a.width + 3)
			     : SWA_TOKENS;
	r.a.rows = SWA_ROWS;
	r.a.columns = SWA_COLUMNS;
	r.a.table_stride_elems = SWA_COLUMNS + 2;
	r.a.page_tokens = page;
	r.a.page_stride_rows = i % 5 ? page + i % 5 : 0;
	r.a.pool_pages = 1000;
	r.a.table_cols = i & 1 ? r.cols : NULL;
	r.a.replay_starts = i & 4 ? r.replay : NULL;
	r.a.requests = SWA_REQUESTS;
	r.a.query_start_loc = r.query;
	r.a.seq_lens = r.seq;
	r.a.req_row = i & 8 ? r.req_row : NULL;
	r.a.gather_lens = r.io.gather;
}

/* Tables, tokens and requests; hostile: some are bad data. */
static void
random_data(uint64_t *rng, uint32_t hostile)
{
	uint32_t i;

	index_random(rng, r.table, SWA_ROWS * (SWA_COLUMNS + 2),
		     1000 + hostile * 99);
	index_random(rng, r.row, SWA_TOKENS, SWA_ROWS + hostile);
	index_random(rng, r.req_row, SWA_REQUESTS, SWA_ROWS + hostile);
	index_random(rng, r.pos, SWA_TOKENS,
		     r.a.page_tokens * (SWA_COLUMNS + r.a.ring * 100));
	for (i = 0; i < SWA_ROWS; i++) {
		r.cols[i] = hostile ? (int32_t)rng_below(rng, 12) - 1 : 99;
		r.replay[i] = (int32_t)rng_below(rng, hostile ? 99 : 2) - 1;
	}
	for (i = 0; i < SWA_TOKENS; i++) {
		r.slot[i] = (int64_t)rng_below(rng, 8) - 1;
		if (hostile && rng_below(rng, 9) == 0)
			r.pos[i] = -(int32_t)rng_below(rng, 9);
	}
	r.query[0] = (int32_t)rng_below(rng, 50);
	for (i = 0; i < SWA_REQUESTS; i++) {
		const int32_t q = (int32_t)rng_below(rng, 9);

		r.query[i + 1] = r.query[i] + q;
		r.seq[i] = q + (int32_t)rng_below(rng, 200) - 9 * (int)hostile;
	}
}

START_TEST(random_windows_equal_the_rule)
{
	uint64_t rng = test_seed() + (uint64_t)_i;

	random_sizes((uint32_t)_i);
	random_data(&rng, _i % 3 == 2);
	swa_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{window_is_the_last_keys_of_the_token, 1},
		{token_near_the_start_sees_what_there_is, 1},
		{replay_start_bounds_the_window, 1},
		{ring_takes_columns_modulo_their_number, 1},
		{gather_is_the_new_keys_and_the_window_before_them, 1},
	};
	const theme_test edge[] = {
		{token_without_a_slot_has_an_empty_row, 3},
		{row_or_position_outside_is_empty_and_reported, 5},
		{position_before_the_replay_is_empty_and_reported, 1},
		{page_outside_the_pool_is_minus_one_and_reported_once, 5},
		{column_not_written_or_not_there_is_reported, 1},
		{slots_that_do_not_fit_are_minus_one, 1},
		{bad_lengths_gather_nothing_and_are_reported, 1},
		{no_tokens_and_no_requests_need_nothing, 1},
	};
	const theme_test layout[] = {
		{pages_apart_multiply_by_their_own_stride, 1},
		{positions_of_a_million_tokens_are_found, 1},
	};
	const theme_test determinism[] = {
		{random_windows_equal_the_rule, 48},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
