/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: rows of compressed entries and their lengths.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/c128a_rig.h"

static c128a_rig r;

static void
setup(void)
{
	c128a_open(&r);
}

static void
teardown(void)
{
	c128a_close(&r);
}

/* ---- By hand ------------------------------------------------------------- */

/* Position 126 completes no entry, 127 the first: entry 0 of page 5 is slot 10;
 * 383 the third, which is entry 0 of page 3. */
START_TEST(entry_counts_from_its_last_position_on)
{
	c128a_expect(&r, 126, (const int32_t[]){-1, -1, -1, -1, -1},
		     (const int32_t[]){-1, -1, -1, -1, -1}, 0);
	c128a_expect(&r, 127, (const int32_t[]){10, -1, -1, -1, -1},
		     (const int32_t[]){0, -1, -1, -1, -1}, 1);
	c128a_expect(&r, 254, (const int32_t[]){10, -1, -1, -1, -1},
		     (const int32_t[]){0, -1, -1, -1, -1}, 1);
	c128a_expect(&r, 255, (const int32_t[]){10, 11, -1, -1, -1},
		     (const int32_t[]){0, 1, -1, -1, -1}, 2);
	c128a_expect(&r, 383, (const int32_t[]){10, 11, 6, -1, -1},
		     (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

START_TEST(entries_past_the_width_are_dropped)
{
	r.a.width = 2;
	r.pos[0] = r.pos[1] = 100000;
	c128a_check(&r);
	ck_assert_int_eq(r.io.lens[0], 2);
	ck_assert_int_eq(r.io.slots[1], 11);
	ck_assert_int_eq(r.io.slots[2], 0x5A5A5A5A);
	ck_assert_int_eq(r.io.local[2], 0x5A5A5A5A);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* Whatever position, slot and sign: decode sees 2 entries, prefill none. */
START_TEST(entries_that_are_given_count_instead_of_positions)
{
	static const int32_t two[5] = {10, 11, -1, -1, -1};
	int32_t entries[2] = {2, -7};
	uint32_t i;

	r.a.entries = entries;
	r.a.entries_before = 3;
	r.pos[0] = r.pos[1] = 383;
	r.slot[0] = -1;
	for (i = 0; i < 3; i++) {
		memset(&r.io, 0x5A, sizeof r.io);
		c128a_run(&r);
		ck_assert_mem_eq(r.io.slots, two, sizeof two);
		ck_assert_int_eq(r.io.local[0], -1);
		ck_assert_int_eq(r.io.lens[0],
				 r.a.decode_lens ? 5 : 0x5A5A5A5A);
		ck_assert_int_eq(r.io.local_lens[0], 0);
		if (i == 0)
			r.a.decode_lens = NULL;
		r.a.positions = NULL;
		r.a.slot_mapping = NULL;
	}
	entries[0] = 100; /* row 0 has two pages of two */
	r.a.width = 3;
	r.a.decode_lens = r.io.lens;
	c128a_run(&r);
	ck_assert_int_eq(r.io.lens[0], 6);
	ck_assert_int_eq(r.io.slots[2], 6);
	ck_assert_int_eq(r.io.slots[3], -1); /* as it was */
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(any_ratio_and_page_size_count_alike)
{
	r.a.ratio = 4;
	r.a.page_entries = 3; /* entry 3 is the first of page 3: 9 */
	c128a_expect(&r, 17, (const int32_t[]){15, 16, 17, 9, -1},
		     (const int32_t[]){0, 1, 2, 3, -1}, 4);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int64_t none[3] = {-1, INT64_MIN, INT32_MIN};

	r.slot[0] = r.slot[1] = none[_i];
	r.row[0] = -3; /* not looked at */
	c128a_expect(&r, _i ? 500 : -500, (const int32_t[]){-1, -1, -1, -1, -1},
		     (const int32_t[]){-1, -1, -1, -1, -1}, 0);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* The prefill token has no row, and reports its number. */
START_TEST(row_or_position_outside_is_empty_and_reported)
{
	static const int32_t rows[4] = {2, -1, 1, 0};
	static const int32_t positions[4] = {127, 127, -1, INT32_MIN};
	index_faults faults = {0};

	r.row[0] = rows[_i];
	r.pos[0] = r.pos[1] = positions[_i];
	c128a_check(&r);
	c128a_run(&r);
	ck_assert_int_eq(r.io.lens[0], 0);
	ck_assert_int_eq(r.io.slots[0], -1);
	ck_assert_int_eq(r.io.local[0], _i < 2 ? 0 : -1);
	if (_i < 2) {
		index_report(&faults, 0, SPMLA_FAULT_ROW);
	} else {
		index_report(&faults, (uint64_t)rows[_i], SPMLA_FAULT_POSITION);
		index_report(&faults, 1, SPMLA_FAULT_POSITION);
	}
	index_check_faults(&r.f, &faults);
}
END_TEST

START_TEST(page_outside_the_pool_is_minus_one_and_reported_once)
{
	static const int32_t bad[5] = {8, -1, INT32_MAX, INT32_MIN, 1 << 30};

	r.table[0] = bad[_i];
	c128a_expect(&r, 511, (const int32_t[]){-1, -1, 6, 7, -1},
		     (const int32_t[]){0, 1, 2, 3, -1}, 4);
	c128a_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
}
END_TEST

START_TEST(column_not_written_or_not_there_is_reported)
{
	static const int32_t written[2] = {1, 2};

	c128a_expect(&r, 639, (const int32_t[]){10, 11, 6, 7, -1},
		     (const int32_t[]){0, 1, 2, 3, 4}, 5);
	c128a_run(&r); /* entry 4 is in column 2 of 2 */
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	r.a.table_cols = written;
	c128a_expect(&r, 383, (const int32_t[]){10, 11, -1, -1, -1},
		     (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

/* Page 2^30 - 1 of 2 has the slots up to 2^31 - 1; page 2^30 none that fit. */
START_TEST(slots_that_do_not_fit_are_minus_one)
{
	r.a.pool_pages = 0;
	r.table[0] = (1 << 30) - 1;
	r.table[1] = 1 << 30;
	c128a_expect(&r, 383,
		     (const int32_t[]){INT32_MAX - 1, INT32_MAX, -1, -1, -1},
		     (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

START_TEST(decode_or_prefill_may_be_missing)
{
	spmla_c128a_index_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_c128a_index(r.f.ctx, &none, NULL), SPMLA_OK);
	r.pos[0] = r.pos[1] = 300;
	r.a.decode_tokens = 2;
	r.a.prefill_indices = NULL;
	r.a.prefill_stride_elems = 0;
	c128a_check(&r);
	c128a_good(&r);
	r.a.decode_tokens = 0;
	r.a.rows = r.a.page_entries = 0;
	r.a.decode_slots = r.a.decode_lens = r.a.prefill_lens = NULL;
	r.a.token_row = r.a.block_table = NULL;
	r.pos[0] = r.pos[1] = 300;
	c128a_check(&r);
	ck_assert_int_eq(r.io.local[1], 1);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	r.a.page_stride_rows = 9;
	c128a_expect(&r, 383, (const int32_t[]){45, 46, 27, -1, -1},
		     (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

/* A million tokens are 8192 entries: position 2^20 - 1 completes the last. */
START_TEST(positions_of_a_million_tokens_are_found)
{
	enum { WIDE = 8192 };
	int32_t *wide = test_alloc((WIDE / 2 + WIDE) * sizeof *wide, 0);
	int32_t *out = wide + WIDE / 2, e;

	for (e = 0; e < WIDE / 2; e++)
		wide[e] = 1000000 - e;
	r.pos[0] = (1 << 20) - 1;
	r.a.tokens = 1;
	r.a.width = WIDE;
	r.a.rows = 1;
	r.a.columns = r.a.table_stride_elems = WIDE / 2;
	r.a.pool_pages = 1000001;
	r.a.block_table = wide;
	r.a.decode_slots = out;
	r.a.decode_stride_elems = WIDE;
	c128a_run(&r);
	ck_assert_int_eq(r.io.lens[0], WIDE);
	for (e = 0; e < WIDE; e++)
		ck_assert_int_eq(out[e], 2 * (1000000 - e / 2) + e % 2);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	free(wide);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

START_TEST(random_rows_equal_the_rule)
{
	static const uint32_t widths[4] = {1, 33, 128, 300};
	static const uint32_t pages[4] = {2, 1, 64, 7};
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t hostile = _i % 3 == 2;
	uint32_t i;

	r.a.ratio = _i & 1 ? 128 : 4;
	r.a.width = widths[_i / 2 % 4];
	r.a.decode_stride_elems = r.a.width + 4;
	r.a.prefill_stride_elems = r.a.width;
	r.a.tokens = C128A_TOKENS;
	r.a.decode_tokens = rng_below(&rng, C128A_TOKENS + 1);
	r.a.rows = C128A_ROWS;
	r.a.columns = C128A_COLUMNS;
	r.a.table_stride_elems = C128A_COLUMNS + 3;
	r.a.page_entries = pages[_i % 4];
	r.a.page_stride_rows = _i % 5 ? r.a.page_entries + (uint32_t)_i % 5 : 0;
	r.a.pool_pages = 1000;
	r.a.table_cols = _i & 4 ? r.cols : NULL;
	index_random(&rng, r.table, C128A_ROWS * (C128A_COLUMNS + 3),
		     1000 + hostile * 99);
	index_random(&rng, r.row, C128A_TOKENS, C128A_ROWS + hostile);
	index_random(&rng, r.pos, C128A_TOKENS,
		     r.a.ratio * r.a.page_entries *
			     (C128A_COLUMNS + 3 * hostile));
	for (i = 0; i < C128A_ROWS; i++)
		r.cols[i] = hostile ? (int32_t)rng_below(&rng, 40) - 1 : 99;
	for (i = 0; i < C128A_TOKENS; i++) {
		r.slot[i] = (int64_t)rng_below(&rng, 8) - 1;
		if (hostile && rng_below(&rng, 9) == 0)
			r.pos[i] = -(int32_t)rng_below(&rng, 9);
	}
	c128a_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{entry_counts_from_its_last_position_on, 1},
		{entries_that_are_given_count_instead_of_positions, 1},
		{entries_past_the_width_are_dropped, 1},
		{any_ratio_and_page_size_count_alike, 1},
	};
	const theme_test edge[] = {
		{token_without_a_slot_has_an_empty_row, 3},
		{row_or_position_outside_is_empty_and_reported, 4},
		{page_outside_the_pool_is_minus_one_and_reported_once, 5},
		{column_not_written_or_not_there_is_reported, 1},
		{slots_that_do_not_fit_are_minus_one, 1},
		{decode_or_prefill_may_be_missing, 1},
	};
	const theme_test layout[] = {
		{pages_apart_multiply_by_their_own_stride, 1},
		{positions_of_a_million_tokens_are_found, 1},
	};
	const theme_test determinism[] = {
		{random_rows_equal_the_rule, 24},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
