/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: rows of compressed entries and their lengths, against the rule
 * written out once more in 64 bits. What the call refuses and graphs are in
 * test_c128a_index_call.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cases.h"
#include "tests/support/index_rig.h"

#include "spmla/ops/c128a_index.h"

enum { TOKENS = 24, ROWS = 8, COLUMNS = 37, ROOM = 16384 };

static fixture f;
static struct {
	int32_t slots[ROOM];
	int32_t local[ROOM];
	int32_t lens[TOKENS + 1];
	int32_t local_lens[TOKENS + 1];
} io, want;
static int32_t pos[TOKENS], row[TOKENS], table[ROWS * (COLUMNS + 3)];
static int32_t cols[ROWS];
static int64_t slot[TOKENS];
static spmla_c128a_index_args a;

static void
good(void)
{
	memset(&io, 0x5A, sizeof io);
	memset(pos, 0, sizeof pos);
	memset(row, 0, sizeof row);
	memset(slot, 0, sizeof slot);
	a = (spmla_c128a_index_args){.struct_bytes = sizeof a,
				     .tokens = 2,
				     .decode_tokens = 1,
				     .ratio = 128,
				     .width = 5,
				     .rows = 2,
				     .columns = 2,
				     .table_stride_elems = 4,
				     .page_entries = 2,
				     .pool_pages = 8,
				     .positions = pos,
				     .slot_mapping = slot,
				     .token_row = row,
				     .block_table = table,
				     .decode_slots = io.slots,
				     .decode_stride_elems = 7,
				     .decode_lens = io.lens,
				     .prefill_indices = io.local,
				     .prefill_stride_elems = 6,
				     .prefill_lens = io.local_lens};
	memcpy(table, (const int32_t[]){5, 3, 0x7777, 0x7777, 2, 7, 0, 0},
	       8 * sizeof *table);
}

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	good();
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const void *args)
{
	ck_assert_int_eq(spmla_c128a_index(f.ctx, args, NULL), SPMLA_OK);
}

/* ---- The rule once more -------------------------------------------------- */

/* How many entries token t sees; *known: its row is in the table. */
static int64_t
count_of(uint32_t t, index_faults *faults)
{
	const int decode = t < a.decode_tokens;
	const int64_t r = decode ? a.token_row[t] : 0, p = a.positions[t];
	int64_t n;

	if (a.slot_mapping[t] < 0)
		return 0;
	if (decode && (r < 0 || r >= (int64_t)a.rows)) {
		index_report(faults, t, SPMLA_FAULT_ROW);
		return 0;
	}
	if (p < 0) {
		index_report(faults, decode ? (uint64_t)r : t,
			     SPMLA_FAULT_POSITION);
		return 0;
	}
	n = (p + 1) / a.ratio;
	return n < (int64_t)a.width ? n : (int64_t)a.width;
}

static void
oracle_decode(uint32_t t, index_faults *faults)
{
	const int64_t stride =
		a.page_stride_rows ? a.page_stride_rows : a.page_entries;
	const int64_t n = count_of(t, faults), r = a.token_row[t];
	int64_t e;

	want.lens[t] = (int32_t)n;
	for (e = 0; e < (int64_t)a.width; e++) {
		const int64_t col = e / a.page_entries;
		int32_t *out = &want.slots[t * a.decode_stride_elems + e];
		int64_t page = -1;

		*out = -1;
		if (e >= n)
			continue;
		if (col < (int64_t)a.columns &&
		    (!a.table_cols || col < a.table_cols[r]))
			page = a.block_table[r * a.table_stride_elems + col];
		if (page < 0 ||
		    (a.pool_pages && page >= (int64_t)a.pool_pages) ||
		    page * stride + a.page_entries > INT64_C(1) << 31) {
			if (e % a.page_entries == 0)
				index_report(faults, (uint64_t)r,
					     SPMLA_FAULT_PAGE);
			continue;
		}
		*out = (int32_t)(page * stride + e % a.page_entries);
	}
}

static void
oracle_prefill(uint32_t t, index_faults *faults)
{
	const int64_t n = count_of(t, faults);
	const uint32_t i = t - a.decode_tokens;
	int64_t e;

	if (a.prefill_lens)
		want.local_lens[i] = (int32_t)n;
	for (e = 0; e < (int64_t)a.width; e++)
		want.local[i * a.prefill_stride_elems + e] =
			e < n ? (int32_t)e : -1;
}

static void
check(void)
{
	index_faults faults = {0};
	uint32_t t;

	memset(&io, 0x5A, sizeof io);
	memset(&want, 0x5A, sizeof want);
	for (t = 0; t < a.tokens; t++)
		if (t < a.decode_tokens)
			oracle_decode(t, &faults);
		else
			oracle_prefill(t, &faults);
	fixture_twice(&f, call, &a, &io, sizeof io);
	ck_assert_mem_eq(&io, &want, sizeof io);
	index_check_faults(&f, &faults);
}

/* The decode token's row and the prefill token's, both at the same position. */
static void
expect(int32_t position, const int32_t *slots, const int32_t *local, int32_t n)
{
	pos[0] = pos[1] = position;
	call(&a);
	ck_assert_mem_eq(io.slots, slots, 5 * sizeof *slots);
	ck_assert_mem_eq(io.local, local, 5 * sizeof *local);
	ck_assert_int_eq(io.slots[5], 0x5A5A5A5A);
	ck_assert_int_eq(io.local[5], 0x5A5A5A5A);
	ck_assert_int_eq(io.lens[0], n);
	ck_assert_int_eq(io.local_lens[0], n);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	check();
}

/* ---- By hand ------------------------------------------------------------- */

/* Position 126 completes no entry, 127 the first: entry 0 of page 5 is slot 10;
 * 383 the third, which is entry 0 of page 3. */
START_TEST(entry_counts_from_its_last_position_on)
{
	expect(126, (const int32_t[]){-1, -1, -1, -1, -1},
	       (const int32_t[]){-1, -1, -1, -1, -1}, 0);
	expect(127, (const int32_t[]){10, -1, -1, -1, -1},
	       (const int32_t[]){0, -1, -1, -1, -1}, 1);
	expect(254, (const int32_t[]){10, -1, -1, -1, -1},
	       (const int32_t[]){0, -1, -1, -1, -1}, 1);
	expect(255, (const int32_t[]){10, 11, -1, -1, -1},
	       (const int32_t[]){0, 1, -1, -1, -1}, 2);
	expect(383, (const int32_t[]){10, 11, 6, -1, -1},
	       (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

START_TEST(entries_past_the_width_are_dropped)
{
	a.width = 2;
	pos[0] = pos[1] = 100000;
	check();
	ck_assert_int_eq(io.lens[0], 2);
	ck_assert_int_eq(io.slots[1], 11);
	ck_assert_int_eq(io.slots[2], 0x5A5A5A5A);
	ck_assert_int_eq(io.local[2], 0x5A5A5A5A);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

START_TEST(any_ratio_and_page_size_count_alike)
{
	a.ratio = 4;
	a.page_entries = 3; /* entry 3 is the first of page 3: 9 */
	expect(17, (const int32_t[]){15, 16, 17, 9, -1},
	       (const int32_t[]){0, 1, 2, 3, -1}, 4);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int64_t none[3] = {-1, INT64_MIN, INT32_MIN};

	slot[0] = slot[1] = none[_i];
	row[0] = -3; /* not looked at */
	expect(_i ? 500 : -500, (const int32_t[]){-1, -1, -1, -1, -1},
	       (const int32_t[]){-1, -1, -1, -1, -1}, 0);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

/* The prefill token has no row, and reports its number. */
START_TEST(row_or_position_outside_is_empty_and_reported)
{
	static const int32_t rows[4] = {2, -1, 1, 0};
	static const int32_t positions[4] = {127, 127, -1, INT32_MIN};
	index_faults faults = {0};

	row[0] = rows[_i];
	pos[0] = pos[1] = positions[_i];
	check();
	call(&a);
	ck_assert_int_eq(io.lens[0], 0);
	ck_assert_int_eq(io.slots[0], -1);
	ck_assert_int_eq(io.local[0], _i < 2 ? 0 : -1);
	if (_i < 2) {
		index_report(&faults, 0, SPMLA_FAULT_ROW);
	} else {
		index_report(&faults, (uint64_t)rows[_i], SPMLA_FAULT_POSITION);
		index_report(&faults, 1, SPMLA_FAULT_POSITION);
	}
	index_check_faults(&f, &faults);
}
END_TEST

START_TEST(page_outside_the_pool_is_minus_one_and_reported_once)
{
	static const int32_t bad[5] = {8, -1, INT32_MAX, INT32_MIN, 1 << 30};

	table[0] = bad[_i];
	expect(511, (const int32_t[]){-1, -1, 6, 7, -1},
	       (const int32_t[]){0, 1, 2, 3, -1}, 4);
	call(&a);
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
}
END_TEST

START_TEST(column_not_written_or_not_there_is_reported)
{
	static const int32_t written[2] = {1, 2};

	expect(639, (const int32_t[]){10, 11, 6, 7, -1},
	       (const int32_t[]){0, 1, 2, 3, 4}, 5);
	call(&a); /* entry 4 is in column 2 of 2 */
	ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	a.table_cols = written;
	expect(383, (const int32_t[]){10, 11, -1, -1, -1},
	       (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

/* Page 2^30 - 1 of 2 has the slots up to 2^31 - 1; page 2^30 none that fit. */
START_TEST(slots_that_do_not_fit_are_minus_one)
{
	a.pool_pages = 0;
	table[0] = (1 << 30) - 1;
	table[1] = 1 << 30;
	expect(383, (const int32_t[]){INT32_MAX - 1, INT32_MAX, -1, -1, -1},
	       (const int32_t[]){0, 1, 2, -1, -1}, 3);
}
END_TEST

START_TEST(decode_or_prefill_may_be_missing)
{
	spmla_c128a_index_args none = {.struct_bytes = sizeof none};

	call(&none);
	pos[0] = pos[1] = 300;
	a.decode_tokens = 2;
	a.prefill_indices = NULL;
	a.prefill_stride_elems = 0;
	check();
	good();
	a.decode_tokens = 0;
	a.rows = a.page_entries = 0;
	a.decode_slots = a.decode_lens = a.prefill_lens = NULL;
	a.token_row = a.block_table = NULL;
	pos[0] = pos[1] = 300;
	check();
	ck_assert_int_eq(io.local[1], 1);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	a.page_stride_rows = 9;
	expect(383, (const int32_t[]){45, 46, 27, -1, -1},
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
	pos[0] = (1 << 20) - 1;
	a.tokens = 1;
	a.width = WIDE;
	a.rows = 1;
	a.columns = a.table_stride_elems = WIDE / 2;
	a.pool_pages = 1000001;
	a.block_table = wide;
	a.decode_slots = out;
	a.decode_stride_elems = WIDE;
	call(&a);
	ck_assert_int_eq(io.lens[0], WIDE);
	for (e = 0; e < WIDE; e++)
		ck_assert_int_eq(out[e], 2 * (1000000 - e / 2) + e % 2);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
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

	a.ratio = _i & 1 ? 128 : 4;
	a.width = widths[_i / 2 % 4];
	a.decode_stride_elems = a.width + 4;
	a.prefill_stride_elems = a.width;
	a.tokens = TOKENS;
	a.decode_tokens = rng_below(&rng, TOKENS + 1);
	a.rows = ROWS;
	a.columns = COLUMNS;
	a.table_stride_elems = COLUMNS + 3;
	a.page_entries = pages[_i % 4];
	a.page_stride_rows = _i % 5 ? a.page_entries + (uint32_t)_i % 5 : 0;
	a.pool_pages = 1000;
	a.table_cols = _i & 4 ? cols : NULL;
	index_random(&rng, table, ROWS * (COLUMNS + 3), 1000 + hostile * 99);
	index_random(&rng, row, TOKENS, ROWS + hostile);
	index_random(&rng, pos, TOKENS,
		     a.ratio * a.page_entries * (COLUMNS + 3 * hostile));
	for (i = 0; i < ROWS; i++)
		cols[i] = hostile ? (int32_t)rng_below(&rng, 40) - 1 : 99;
	for (i = 0; i < TOKENS; i++) {
		slot[i] = (int64_t)rng_below(&rng, 8) - 1;
		if (hostile && rng_below(&rng, 9) == 0)
			pos[i] = -(int32_t)rng_below(&rng, 9);
	}
	check();
}
END_TEST

int
main(void)
{
	const case_test shape[] = {
		{entry_counts_from_its_last_position_on, 1},
		{entries_past_the_width_are_dropped, 1},
		{any_ratio_and_page_size_count_alike, 1},
	};
	const case_test edge[] = {
		{token_without_a_slot_has_an_empty_row, 3},
		{row_or_position_outside_is_empty_and_reported, 4},
		{page_outside_the_pool_is_minus_one_and_reported_once, 5},
		{column_not_written_or_not_there_is_reported, 1},
		{slots_that_do_not_fit_are_minus_one, 1},
		{decode_or_prefill_may_be_missing, 1},
	};
	const case_test layout[] = {
		{pages_apart_multiply_by_their_own_stride, 1},
		{positions_of_a_million_tokens_are_found, 1},
	};
	const case_test determinism[] = {
		{random_rows_equal_the_rule, 24},
	};
	const case_group groups[] = {
		CASES("shape", shape),
		CASES("edge", edge),
		CASES("layout", layout),
		CASES("determinism", determinism),
	};

	return RUN_CASES("c128a_index", setup, teardown, groups);
}
