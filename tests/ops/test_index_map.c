/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: the slots, against the rule written out once more in 64 bits.
 * Every check runs the op twice on one context over different poison, and then
 * in place. Refusals and graphs are in test_index_map_call.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"

#include "spmla/ops/index_map.h"

enum { MAX = 4096, NO_SLOT = -100 };

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* A slot, minus the fault, or NO_SLOT where -1 is no error. */
static int64_t
oracle_slot(const spmla_index_map_args *a, uint32_t t, int64_t index)
{
	const int64_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	const int64_t row = a->token_row[t], col = index / a->page_tokens;
	int64_t page, slot;

	if (index >= 0 && a->context_lens && index >= a->context_lens[t])
		return -SPMLA_FAULT_INDEX;
	if (index < 0 || col >= (int64_t)a->columns)
		return NO_SLOT;
	if (a->workspace_ids && a->workspace_ids[t] >= 0) {
		if (a->workspace_ids[t] >= (int64_t)a->workspaces)
			return -SPMLA_FAULT_ROW;
		slot = a->workspace_starts[a->workspace_ids[t]] + index;
	} else {
		if (row < 0 || row >= (int64_t)a->rows)
			return -SPMLA_FAULT_ROW;
		if (a->table_cols && col >= a->table_cols[row])
			return -SPMLA_FAULT_PAGE;
		page = a->block_table[row * a->table_stride_elems + col];
		if (page < 0 || (a->pool_pages && page >= a->pool_pages))
			return -SPMLA_FAULT_PAGE;
		slot = page * stride + index % a->page_tokens;
	}
	return slot < 0 || slot > INT32_MAX ? -SPMLA_FAULT_INDEX : slot;
}

/* want[] for the whole output, poison between rows. */
static uint32_t
oracle(const spmla_index_map_args *a, uint8_t poison, int32_t *want,
       int32_t *counts)
{
	uint32_t t, j, faults = 0;

	memset(want, poison, MAX * sizeof *want);
	for (t = 0; t < a->tokens; t++) {
		const int32_t *in = a->indices + t * a->indices_stride_elems;
		int32_t *out = want + t * a->slots_stride_elems;

		counts[t] = 0;
		for (j = 0; j < a->k; j++)
			out[j] = -1;
		for (j = 0; j < a->k; j++) {
			int64_t slot = NO_SLOT;

			if ((!a->lens || (int64_t)j < a->lens[t]) &&
			    (!a->slot_mapping || a->slot_mapping[t] >= 0))
				slot = oracle_slot(a, t, in[j]);
			faults += slot < 0 && slot != NO_SLOT;
			if (slot >= 0)
				out[a->compact ? (uint32_t)counts[t] : j] =
					(int32_t)slot;
			counts[t] += slot >= 0;
		}
	}
	return faults;
}

/* args but for slots, its stride and valid_counts. */
static void
check_map(const spmla_index_map_args *given, uint32_t want_faults)
{
	static int32_t want[MAX], got[MAX];
	int32_t counts[64], got_counts[64];
	spmla_index_map_args a = *given;
	uint32_t pass, t, faults;
	uint8_t poison;

	a.valid_counts = got_counts;
	for (pass = 0; pass < 3; pass++) {
		poison = (uint8_t)(0x5A + pass);
		a.slots_stride_elems = (int64_t)a.k + 3;
		a.slots = got;
		memset(got, poison, sizeof got);
		if (pass == 2) { /* in place */
			memcpy(got, given->indices,
			       a.tokens * (size_t)a.indices_stride_elems * 4);
			a.slots_stride_elems = a.indices_stride_elems;
		}
		faults = oracle(&a, poison, want, counts);
		if (pass == 2)
			a.indices = got;
		memset(got_counts, poison, sizeof got_counts);
		ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
		if (pass < 2)
			ck_assert_mem_eq(got, want, sizeof want);
		for (t = 0; pass == 2 && t < a.tokens; t++)
			ck_assert_mem_eq(got + t * a.slots_stride_elems,
					 want + t * a.slots_stride_elems,
					 a.k * 4);
		ck_assert_mem_eq(got_counts, counts, a.tokens * 4);
		ck_assert_uint_eq(faults, want_faults);
		ck_assert_uint_eq(!fixture_status(&f).count, !want_faults);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	}
}

/* One token of row 0: table {5, 3}, pages of 4, pool of 8. */
static int32_t table[8] = {5, 3, 0x7777, 0x7777, 2, 7, 0x7777, 0x7777};
static int32_t row_of[64];

static spmla_index_map_args
small(const int32_t *indices, uint32_t k)
{
	const spmla_index_map_args a = {.struct_bytes = sizeof a,
					.tokens = 1,
					.k = k,
					.rows = 2,
					.columns = 2,
					.table_stride_elems = 4,
					.page_tokens = 4,
					.pool_pages = 8,
					.token_row = row_of,
					.block_table = table,
					.indices = indices,
					.indices_stride_elems = k};

	row_of[0] = 0;
	row_of[1] = 1;
	table[0] = 5;
	table[1] = 3;
	return a;
}

static void
expect(const spmla_index_map_args *given, const int32_t *want, uint32_t fault,
       uint32_t row)
{
	spmla_index_map_args a = *given;
	int32_t got[16];

	a.slots = got;
	a.slots_stride_elems = a.k;
	ck_assert_int_eq(spmla_index_map(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got, want, a.tokens * a.k * 4);
	ck_assert_str_eq(spmla_fault_name(fixture_status(&f).fault),
			 spmla_fault_name(fault));
	ck_assert_uint_eq(fixture_status(&f).row, row);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

/* 0 is entry 0 of page 5: 5 * 4; 7 is entry 3 of page 3: 3 * 4 + 3. */
START_TEST(index_becomes_page_times_page_size_plus_offset)
{
	static const int32_t indices[6] = {0, 7, -1, 4, 3, INT32_MIN};
	static const int32_t want[6] = {20, 15, -1, 12, 23, -1};
	spmla_index_map_args a = small(indices, 6);

	expect(&a, want, 0, 0);
	check_map(&a, 0);
}
END_TEST

START_TEST(pages_apart_multiply_by_their_own_stride)
{
	static const int32_t indices[2] = {1, 7};
	static const int32_t want[2] = {5 * 9 + 1, 3 * 9 + 3};
	spmla_index_map_args a = small(indices, 2);

	a.page_stride_rows = 9;
	expect(&a, want, 0, 0);
	check_map(&a, 0);
}
END_TEST

START_TEST(index_past_the_table_is_minus_one_and_no_error)
{
	static const int32_t indices[4] = {8, 7, INT32_MAX, 1 << 30};
	static const int32_t want[4] = {-1, 15, -1, -1};
	spmla_index_map_args a = small(indices, 4);

	expect(&a, want, 0, 0);
	check_map(&a, 0);
}
END_TEST

START_TEST(entries_at_and_past_the_length_are_not_read)
{
	static const int32_t indices[4] = {1, INT32_MAX, 6, 0x5A5A5A5A};
	static const int32_t lens[4] = {0, 1, 3, 99};
	static const int32_t want[4][4] = {{-1, -1, -1, -1},
					   {21, -1, -1, -1},
					   {21, -1, 14, -1},
					   {21, -1, 14, -1}};
	spmla_index_map_args a = small(indices, 4);

	a.lens = &lens[_i];
	expect(&a, want[_i], 0, 0);
	check_map(&a, 0);
}
END_TEST

START_TEST(page_outside_the_pool_is_minus_one_and_reported)
{
	static const int32_t pages[6] = {8,         -1,      INT32_MAX,
					 INT32_MIN, 1 << 30, -2};
	static const int32_t indices[3] = {4, 0, -1};
	static const int32_t want[3] = {-1, 20, -1};
	spmla_index_map_args a = small(indices, 3);

	table[1] = pages[_i];
	expect(&a, want, SPMLA_FAULT_PAGE, 0);
	check_map(&a, 1);
}
END_TEST

START_TEST(without_a_pool_size_any_page_from_zero_on_is_valid)
{
	static const int32_t indices[3] = {7, 0, 3};
	static const int32_t want[3] = {INT32_MAX, -1, -1};
	spmla_index_map_args a = small(indices, 3);

	a.pool_pages = 0;
	table[0] = (INT32_MAX >> 2) + 1; /* slots from 2^31 on */
	table[1] = INT32_MAX >> 2;
	expect(&a, want, SPMLA_FAULT_INDEX, 0);
	table[0] = 1 << 30; /* 2^32 */
	expect(&a, want, SPMLA_FAULT_INDEX, 0);
	check_map(&a, 2);
	table[0] = -3;
	expect(&a, want, SPMLA_FAULT_PAGE, 0);
}
END_TEST

START_TEST(column_not_written_is_minus_one_and_reported)
{
	static const int32_t cols[3][2] = {{1, 2}, {0, 2}, {-5, 2}};
	static const int32_t indices[2] = {0, 4};
	static const int32_t want[3][2] = {{20, -1}, {-1, -1}, {-1, -1}};
	spmla_index_map_args a = small(indices, 2);

	a.table_cols = cols[_i];
	expect(&a, want[_i], SPMLA_FAULT_PAGE, 0);
	check_map(&a, _i ? 2 : 1);
}
END_TEST

START_TEST(row_outside_the_table_is_minus_one_and_reported)
{
	static const int32_t rows[4] = {2, -1, INT32_MAX, INT32_MIN};
	static const int32_t indices[4] = {1, -1, 6, 1};
	static const int32_t want[4] = {21, -1, -1, -1};
	spmla_index_map_args a = small(indices, 2);

	a.tokens = 2;
	row_of[1] = rows[_i];
	expect(&a, want, SPMLA_FAULT_ROW, 1);
	check_map(&a, 2);
}
END_TEST

START_TEST(token_of_a_workspace_adds_the_start)
{
	static const int32_t ids[2] = {-1, 1}, starts[2] = {1000, 100};
	static const int32_t indices[6] = {1, 8, -1, 7, 0, 8};
	static const int32_t want[6] = {21, -1, -1, 107, 100, -1};
	spmla_index_map_args a = small(indices, 3);

	row_of[1] = -77; /* not looked at */
	a.tokens = a.workspaces = 2;
	a.workspace_ids = ids;
	a.workspace_starts = starts;
	check_map(&a, 0);
	expect(&a, want, 0, 0);
}
END_TEST

START_TEST(workspace_that_does_not_exist_or_overflows_is_reported)
{
	static const int32_t ids[4] = {2, INT32_MAX, 0, 1};
	static const int32_t starts[2] = {INT32_MAX - 5, -10};
	static const int32_t indices[2] = {6, -1};
	static const int32_t want[2] = {-1, -1};
	spmla_index_map_args a = small(indices, 2);

	a.workspaces = 2;
	a.workspace_ids = &ids[_i];
	a.workspace_starts = starts;
	expect(&a, want, _i < 2 ? SPMLA_FAULT_ROW : SPMLA_FAULT_INDEX, 0);
	check_map(&a, 1);
}
END_TEST

/* Both tokens have a context of 5: of the paged one 4 is its last position, in
 * page 3, of the one with a workspace 104; 5 would be row 105, which is the
 * next request's. 8 is past the columns too, -1 is none and no mistake. */
START_TEST(index_at_or_past_the_context_is_minus_one_and_reported)
{
	static const int32_t ids[2] = {-1, 0}, starts[1] = {100};
	static const int32_t contexts[2] = {5, 5};
	static const int32_t indices[8] = {4, 5, -1, 8, 4, 5, -1, INT32_MAX};
	static const int32_t want[8] = {12, -1, -1, -1, 104, -1, -1, -1};
	spmla_index_map_args a = small(indices, 4);

	a.tokens = 2;
	a.workspaces = 1;
	a.workspace_ids = ids;
	a.workspace_starts = starts;
	a.context_lens = contexts;
	expect(&a, want, SPMLA_FAULT_INDEX, 0);
	check_map(&a, 4);
	a.tokens = 1;
	a.indices += 4;
	a.workspace_ids++;
	row_of[0] = -7; /* in no table: the report names the token */
	expect(&a, want + 4, SPMLA_FAULT_INDEX, 0);
	check_map(&a, 2);
}
END_TEST

/* Entries past the length are not looked at. */
START_TEST(context_that_is_empty_or_negative_has_no_index)
{
	static const int32_t contexts[3] = {0, -1, INT32_MIN};
	static const int32_t indices[4] = {0, -1, INT32_MIN, 1}, len = 3;
	static const int32_t want[4] = {-1, -1, -1, -1};
	spmla_index_map_args a = small(indices, 4);

	a.lens = &len;
	a.context_lens = &contexts[_i];
	expect(&a, want, SPMLA_FAULT_INDEX, 0);
	check_map(&a, 1);
}
END_TEST

/* Of 0, -1, 7, a page outside the pool and 3 the slots 20, 15 and 23 are left;
 * the bad page is still reported. */
START_TEST(compact_rows_begin_with_their_slots_in_order)
{
	static const int32_t indices[6] = {0, -1, 7, 9, -5, 3};
	static const int32_t want[6] = {20, 15, 23, -1, -1, -1};
	static const int32_t lens[3] = {6, 3, 0};
	static const int32_t cut[6] = {20, 15, -1, -1, -1, -1};
	static const int32_t none[6] = {-1, -1, -1, -1, -1, -1};
	spmla_index_map_args a = small(indices, 6);

	a.compact = 1;
	expect(&a, want, 0, 0); /* 9 is past the columns */
	check_map(&a, 0);
	a.columns = 3; /* and here in page 0x7777 */
	expect(&a, want, SPMLA_FAULT_PAGE, 0);
	check_map(&a, 1);
	a.lens = &lens[1];
	expect(&a, cut, 0, 0);
	a.lens = &lens[2];
	expect(&a, none, 0, 0);
	check_map(&a, 0);
}
END_TEST

/* Its row of the table, context and indices are those of nobody. */
START_TEST(token_without_a_slot_has_an_empty_row)
{
	static const int32_t indices[4] = {0, 4, 0, 4}, contexts[2] = {5, -3};
	static const int64_t slots[2] = {7, -1};
	static const int32_t want[4] = {20, 12, -1, -1};
	spmla_index_map_args a = small(indices, 2);

	a.tokens = 2;
	a.compact = (uint32_t)_i;
	a.slot_mapping = slots;
	a.context_lens = contexts;
	row_of[1] = -9;
	expect(&a, want, 0, 0);
	check_map(&a, 0);
}
END_TEST

START_TEST(random_rows_of_any_k_equal_the_rule)
{
	static const uint32_t ks[7] = {1, 7, 48, 127, 129, 200, 500};
	static const uint32_t sizes[4] = {1, 2, 61, 64};
	static int32_t indices[MAX], pages[16 * 13];
	uint64_t rng = test_seed() + (uint64_t)_i;
	const uint32_t k = ks[_i % 7], size = sizes[_i % 4];
	int32_t lens[8], ids[8], cols[16], starts[3] = {0, 100, 1 << 20};
	int32_t contexts[8];
	int64_t valid[8];
	spmla_index_map_args a = small(indices, k);
	uint32_t i;

	a.tokens = 8;
	a.rows = 16;
	a.columns = 11;
	a.table_stride_elems = 13;
	a.page_tokens = size;
	a.page_stride_rows = _i % 3 ? size + (uint32_t)_i % 3 : 0;
	a.pool_pages = 1000;
	a.block_table = pages;
	a.indices_stride_elems = k + 2;
	a.lens = _i & 1 ? lens : NULL;
	a.table_cols = _i & 2 ? cols : NULL;
	a.workspaces = 3;
	a.workspace_ids = _i & 4 ? ids : NULL;
	a.workspace_starts = starts;
	for (i = 0; i < 16 * 13; i++)
		pages[i] = (int32_t)rng_below(&rng, 1000);
	for (i = 0; i < MAX; i++)
		indices[i] = (int32_t)rng_below(&rng, size * 12) - 3;
	for (i = 0; i < 16; i++)
		cols[i] = 11 + (int32_t)rng_below(&rng, 3);
	for (i = 0; i < 8; i++) {
		row_of[i] = (int32_t)rng_below(&rng, 16);
		lens[i] = (int32_t)rng_below(&rng, k + 2) - 1;
		ids[i] = (int32_t)rng_below(&rng, 4) - 1;
		contexts[i] = (int32_t)size * 12; /* above all of them */
		valid[i] = (int64_t)rng_below(&rng, 4) - 1;
	}
	a.compact = (uint32_t)_i / 16 % 2;
	a.slot_mapping = _i & 32 ? valid : NULL;
	a.context_lens = _i & 8 ? contexts : NULL;
	check_map(&a, 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("index_map");
	TCase *shape = tcase_create("shape");
	TCase *edge = tcase_create("edge");
	TCase *layout = tcase_create("layout");

	tcase_add_checked_fixture(shape, setup, teardown);
	tcase_add_test(shape, index_becomes_page_times_page_size_plus_offset);
	tcase_add_test(shape, token_of_a_workspace_adds_the_start);
	tcase_add_test(shape, compact_rows_begin_with_their_slots_in_order);
	tcase_add_loop_test(shape, random_rows_of_any_k_equal_the_rule, 0, 64);
	tcase_add_checked_fixture(edge, setup, teardown);
	tcase_add_test(edge, index_past_the_table_is_minus_one_and_no_error);
	tcase_add_loop_test(edge, token_without_a_slot_has_an_empty_row, 0, 2);
	tcase_add_loop_test(edge, entries_at_and_past_the_length_are_not_read,
			    0, 4);
	tcase_add_loop_test(
		edge, page_outside_the_pool_is_minus_one_and_reported, 0, 6);
	tcase_add_test(edge,
		       without_a_pool_size_any_page_from_zero_on_is_valid);
	tcase_add_loop_test(edge, column_not_written_is_minus_one_and_reported,
			    0, 3);
	tcase_add_loop_test(
		edge, row_outside_the_table_is_minus_one_and_reported, 0, 4);
	tcase_add_loop_test(
		edge, workspace_that_does_not_exist_or_overflows_is_reported, 0,
		4);
	tcase_add_test(edge,
		       index_at_or_past_the_context_is_minus_one_and_reported);
	tcase_add_loop_test(
		edge, context_that_is_empty_or_negative_has_no_index, 0, 3);
	tcase_add_checked_fixture(layout, setup, teardown);
	tcase_add_test(layout, pages_apart_multiply_by_their_own_stride);
	suite_add_tcase(s, shape);
	suite_add_tcase(s, edge);
	suite_add_tcase(s, layout);
	return s;
}

int
main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
