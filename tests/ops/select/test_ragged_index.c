/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: packed rows, against the rule written out once more in 64 bits.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/index_rig.h"

#include "spmla/ops/ragged_index.h"

enum { TOKENS = 700, ROOM = 40000 };

static fixture f;
static struct {
	int32_t indptr[TOKENS + 2];
	int32_t indices[ROOM];
} io, want;
static int32_t dense[ROOM], lens[TOKENS + 1];
static spmla_ragged_index_args a;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(&io, 0x5A, sizeof io);
	a = (spmla_ragged_index_args){.struct_bytes = sizeof a,
				      .tokens = 4,
				      .width = 3,
				      .capacity_elems = 16,
				      .indices = dense,
				      .indices_stride_elems = 4,
				      .lens = lens,
				      .ragged_indptr = io.indptr,
				      .ragged_indices = io.indices};
	memcpy(dense,
	       (const int32_t[]){10, 11, 12, 99, 20, -1, 22, 99, 30, 31, 32, 99,
				 40, 41, 42, 99},
	       16 * sizeof *dense);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static void
call(const spmla_ragged_index_args *args)
{
	ck_assert_int_eq(spmla_ragged_index(f.ctx, args, NULL), SPMLA_OK);
}

/* The rule once more: rows one by one. */
static void
check(void)
{
	const int64_t room = (int64_t)a.capacity_elems;
	index_faults faults = {0};
	int64_t end = 0, k;
	uint32_t t;

	memset(&io, 0x5A, sizeof io);
	memset(&want, 0x5A, sizeof want);
	want.indptr[0] = 0;
	for (t = 0; t < a.tokens; t++) {
		const int64_t start = end;
		int64_t n = a.lens ? a.lens[t] : (int64_t)a.width;

		n = n < 0 ? 0 : n > (int64_t)a.width ? (int64_t)a.width : n;
		end += n;
		if (end > room && n > 0)
			index_report(&faults, t, SPMLA_FAULT_LENGTH);
		for (k = start; k < end && k < room; k++) {
			int64_t x = a.indices[t * a.indices_stride_elems + k -
					      start];

			if (end > room ||
			    (a.num_slots &&
			     (x < 0 || x >= (int64_t)a.num_slots)))
				x = -1;
			want.indices[k] = (int32_t)x;
		}
		want.indptr[t + 1] = (int32_t)(end < room ? end : room);
	}
	call(&a);
	ck_assert_mem_eq(&io, &want, sizeof io);
	index_check_faults(&f, &faults);
}

static void
expect(const int32_t *lengths, const int32_t *indptr, const int32_t *indices,
       uint32_t n, uint32_t faults)
{
	memcpy(lens, lengths, 4 * sizeof *lens);
	memset(&io, 0x5A, sizeof io);
	call(&a);
	ck_assert_mem_eq(io.indptr, indptr, 5 * sizeof *indptr);
	ck_assert_mem_eq(io.indices, indices, n * sizeof *indices);
	ck_assert_int_eq(io.indices[n], 0x5A5A5A5A);
	ck_assert_uint_eq(fixture_status(&f).count, faults);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	check();
}

/* ---- By hand ------------------------------------------------------------- */

START_TEST(rows_lie_one_behind_the_other)
{
	expect((const int32_t[]){2, 0, 3, 1}, (const int32_t[]){0, 2, 2, 5, 6},
	       (const int32_t[]){10, 11, 30, 31, 32, 40}, 6, 0);
}
END_TEST

START_TEST(lengths_are_clamped_to_the_row)
{
	expect((const int32_t[]){-1, 4, INT32_MIN, INT32_MAX},
	       (const int32_t[]){0, 0, 3, 3, 6},
	       (const int32_t[]){20, -1, 22, 40, 41, 42}, 6, 0);
}
END_TEST

START_TEST(without_lengths_rows_are_whole)
{
	a.lens = NULL;
	expect((const int32_t[]){0, 0, 0, 0}, (const int32_t[]){0, 3, 6, 9, 12},
	       (const int32_t[]){10, 11, 12, 20, -1, 22, 30, 31, 32, 40, 41,
				 42},
	       12, 0);
}
END_TEST

START_TEST(entries_past_the_slots_become_minus_one_silently)
{
	a.num_slots = 31;
	dense[4] = INT32_MIN;
	expect((const int32_t[]){1, 3, 3, 1}, (const int32_t[]){0, 1, 4, 7, 8},
	       (const int32_t[]){10, -1, -1, 22, 30, -1, -1, -1}, 8, 0);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

/* 2 + 3 fit into 5 and into 6; of the third row of 2 the first 1 entry of room
 * holds none, and the last row has no place either. */
START_TEST(row_without_room_is_empty_and_reported)
{
	static const int32_t lengths[4] = {2, 3, 2, 1};

	a.capacity_elems = 8;
	expect(lengths, (const int32_t[]){0, 2, 5, 7, 8},
	       (const int32_t[]){10, 11, 20, -1, 22, 30, 31, 40}, 8, 0);
	a.capacity_elems = 7;
	expect(lengths, (const int32_t[]){0, 2, 5, 7, 7},
	       (const int32_t[]){10, 11, 20, -1, 22, 30, 31}, 7, 1);
	a.capacity_elems = 6;
	expect(lengths, (const int32_t[]){0, 2, 5, 6, 6},
	       (const int32_t[]){10, 11, 20, -1, 22, -1}, 6, 2);
	a.capacity_elems = 5;
	expect(lengths, (const int32_t[]){0, 2, 5, 5, 5},
	       (const int32_t[]){10, 11, 20, -1, 22}, 5, 2);
	a.capacity_elems = 0;
	expect((const int32_t[]){2, 0, 0, 1}, (const int32_t[]){0, 0, 0, 0, 0},
	       dense, 0, 2);
}
END_TEST

START_TEST(no_tokens_have_an_indptr_of_zero)
{
	a.tokens = 0;
	a.indices = NULL;
	a.ragged_indices = NULL;
	a.lens = NULL;
	call(&a);
	ck_assert_int_eq(io.indptr[0], 0);
	ck_assert_int_eq(io.indptr[1], 0x5A5A5A5A);
}
END_TEST

START_TEST(rows_of_nothing_are_nothing)
{
	expect((const int32_t[]){0, 0, -7, 0}, (const int32_t[]){0, 0, 0, 0, 0},
	       dense, 0, 0);
	a.width = 0;
	a.lens = NULL;
	expect((const int32_t[]){0, 0, 0, 0}, (const int32_t[]){0, 0, 0, 0, 0},
	       dense, 0, 0);
}
END_TEST

/* 3 rows of 2^31 - 1 entries; none is read. Sums are above 2^32. */
START_TEST(sums_do_not_wrap)
{
	a.tokens = 3;
	a.width = INT32_MAX;
	a.indices_stride_elems = INT32_MAX;
	a.capacity_elems = 5;
	expect((const int32_t[]){INT32_MAX, INT32_MAX, INT32_MAX, 0},
	       (const int32_t[]){0, 5, 5, 5, 0x5A5A5A5A},
	       (const int32_t[]){-1, -1, -1, -1, -1}, 5, 3);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

/* The third row begins 8 GiB behind the first. */
START_TEST(rows_may_be_gibibytes_apart)
{
	const int64_t apart = INT64_C(1) << 30;
	const uint64_t bytes = (uint64_t)apart * 8 + 64;
	int32_t *far = test_map(bytes);

	far[0] = 7;
	far[2 * apart] = 8;
	far[2 * apart + 1] = 9;
	a.tokens = 3;
	a.indices = far;
	a.indices_stride_elems = apart;
	expect((const int32_t[]){1, 0, 2, 0},
	       (const int32_t[]){0, 1, 1, 3, 0x5A5A5A5A},
	       (const int32_t[]){7, 8, 9}, 3, 0);
	ck_assert_int_eq(munmap(far, bytes), 0);
}
END_TEST

/* ---- Random -------------------------------------------------------------- */

START_TEST(random_rows_equal_the_rule)
{
	static const uint32_t counts[9] = {1,   63,  64,  65,    255,
					   256, 257, 513, TOKENS};
	uint64_t rng = test_seed() + (uint64_t)_i;
	uint32_t i;

	a.tokens = counts[_i % 9];
	/* Rows that a block reads at once, and longer ones. */
	a.width = 1 + rng_below(&rng, ROOM / a.tokens - 3 < 6000
					      ? ROOM / a.tokens - 3
					      : 6000);
	a.indices_stride_elems = a.width + (uint32_t)_i % 3;
	a.num_slots = _i % 4 == 1 ? 500 : 0;
	a.lens = _i % 8 == 7 ? NULL : lens + _i / 9 % 2;
	for (i = 0; i < ROOM; i++)
		dense[i] = (int32_t)rng_below(&rng, 1000) - 10;
	for (i = 0; i <= a.tokens; i++)
		lens[i] = (int32_t)rng_below(&rng, a.width + 6) - 3;
	a.capacity_elems = a.tokens * a.width;
	if (_i % 3 == 2)
		a.capacity_elems = rng_below(&rng, a.capacity_elems + 1);
	check();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{rows_lie_one_behind_the_other, 1},
		{lengths_are_clamped_to_the_row, 1},
		{without_lengths_rows_are_whole, 1},
		{entries_past_the_slots_become_minus_one_silently, 1},
	};
	const theme_test edge[] = {
		{row_without_room_is_empty_and_reported, 1},
		{no_tokens_have_an_indptr_of_zero, 1},
		{rows_of_nothing_are_nothing, 1},
		{sums_do_not_wrap, 1},
	};
	const theme_test layout[] = {
		{rows_may_be_gibibytes_apart, 1},
	};
	const theme_test determinism[] = {
		{random_rows_equal_the_rule, 54},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
