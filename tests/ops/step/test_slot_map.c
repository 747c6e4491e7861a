/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: the cache slot of every token, for any page size and stride; and
 * rows, columns and pages that are not there. Rings are in
 * test_slot_map_ring.c.
 */

#include "tests/harness/themes.h"
#include "tests/ops/step/slot_map_rig.h"

static slot_map_rig r;

static void
setup(void)
{
	slot_map_open(&r);
}

static void
teardown(void)
{
	slot_map_close(&r);
}

/* Runs token 0 at `position` of `row`; its slot. */
static int64_t
one(const spmla_slot_map_args *a, int32_t row, int32_t position)
{
	r.io.row[0] = row;
	r.io.position[0] = position;
	r.io.lens[0] = 77;
	r.io.lens[1] = 55;
	r.io.slot[0] = 99;
	r.io.slot[1] = 66;
	slot_map_run(&r, a);
	ck_assert_int_eq(r.io.lens[0], r.io.slot[0] < 0 ? 0 : 77);
	ck_assert_int_eq(r.io.lens[1], 55);
	ck_assert_int_eq(r.io.slot[1], 66);
	return r.io.slot[0];
}

static void
reported(uint32_t fault, uint32_t row)
{
	expect_status(&r.f, 1, fault, row, 0);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
}

START_TEST(slots_of_a_table_worked_out_by_hand)
{
	const spmla_slot_map_args a = slot_map_args(&r, 1);

	/* row 0: pages 3, 13, 23, ..; row 2 starts at entry 18: 183, 193 */
	ck_assert_int_eq(one(&a, 0, 0), 3 * 64);
	ck_assert_int_eq(one(&a, 0, 63), 3 * 64 + 63);
	ck_assert_int_eq(one(&a, 0, 64), 13 * 64);
	ck_assert_int_eq(one(&a, 2, 130), 203 * 64 + 2);
	ck_assert_int_eq(one(&a, 4, 383), 413 * 64 + 63);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(padding_has_no_slot_and_is_not_looked_up)
{
	const spmla_slot_map_args a = slot_map_args(&r, 3);

	r.io.row[0] = 9999;
	r.io.position[0] = -5;
	r.io.lens[0] = 0;
	r.io.row[1] = -1;
	r.io.lens[1] = -4;
	r.io.row[2] = 1;
	r.io.lens[2] = 1;
	ck_assert_int_eq(spmla_slot_map(r.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(r.io.slot[0], -1);
	ck_assert_int_eq(r.io.slot[1], -1);
	ck_assert_int_eq(r.io.slot[2], 93 * 64);
	ck_assert_int_eq(r.io.lens[0], 0);
	ck_assert_int_eq(r.io.lens[1], 0);
	ck_assert_int_eq(r.io.lens[2], 1);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(rows_outside_the_table_are_skipped_and_reported)
{
	const spmla_slot_map_args a = slot_map_args(&r, 1);

	ck_assert_int_eq(one(&a, SLOT_ROWS, 0), -1);
	reported(SPMLA_FAULT_ROW, SLOT_ROWS);
	ck_assert_int_eq(one(&a, -1, 0), -1);
	reported(SPMLA_FAULT_ROW, UINT32_MAX);
	ck_assert_int_eq(one(&a, INT32_MAX, 0), -1);
	reported(SPMLA_FAULT_ROW, INT32_MAX);
}
END_TEST

START_TEST(columns_that_are_not_there_are_skipped_and_reported)
{
	spmla_slot_map_args a = slot_map_args(&r, 1);

	ck_assert_int_eq(one(&a, 1, 384), -1); /* column 6 of 6 */
	reported(SPMLA_FAULT_PAGE, 1);
	ck_assert_int_eq(one(&a, 1, -1), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	ck_assert_int_eq(one(&a, 1, INT32_MAX), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	r.io.cols[1] = 2;
	ck_assert_int_eq(one(&a, 1, 127), 103 * 64 + 63);
	ck_assert_int_eq(one(&a, 1, 128), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	r.io.cols[1] = -1;
	ck_assert_int_eq(one(&a, 1, 0), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	r.io.cols[1] = INT32_MAX; /* more than the table has */
	ck_assert_int_eq(one(&a, 1, 384), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	r.io.cols[1] = 0;
	a.table_cols = NULL; /* all columns are written */
	ck_assert_int_eq(one(&a, 1, 383), 143 * 64 + 63);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* Six columns of 2^30 tokens are more than 2^31: as numbers without a sign, -1
 * is in column 3 and -2^31 in column 2. */
START_TEST(position_below_zero_has_no_page_however_wide_the_table)
{
	spmla_slot_map_args a = slot_map_args(&r, 1);

	a.page_tokens = 1 << 30;
	ck_assert_int_eq(one(&a, 1, INT32_MAX), (INT64_C(104) << 30) - 1);
	ck_assert_int_eq(one(&a, 1, -1), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	ck_assert_int_eq(one(&a, 1, INT32_MIN), -1);
	reported(SPMLA_FAULT_PAGE, 1);
	a.compress_ratio = 4; /* -1 would end a group */
	ck_assert_int_eq(one(&a, 1, -1), -1);
	reported(SPMLA_FAULT_PAGE, 1);
}
END_TEST

START_TEST(pages_outside_the_pool_are_skipped_and_reported)
{
	static const int32_t bad[4] = {-1, SLOT_POOL, INT32_MAX, INT32_MIN};
	const spmla_slot_map_args a = slot_map_args(&r, 1);
	uint32_t i;

	for (i = 0; i < 4; i++) {
		r.io.table[3 * SLOT_STRIDE + 1] = bad[i];
		ck_assert_int_eq(one(&a, 3, 64), -1);
		reported(SPMLA_FAULT_PAGE, 3);
	}
	r.io.table[3 * SLOT_STRIDE + 1] = SLOT_POOL - 1;
	ck_assert_int_eq(one(&a, 3, 64), (SLOT_POOL - 1) * 64);
	r.io.table[3 * SLOT_STRIDE + 1] = 0;
	ck_assert_int_eq(one(&a, 3, 64), 0);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

START_TEST(slots_may_need_more_than_32_bits)
{
	spmla_slot_map_args a = slot_map_args(&r, 1);

	a.page_tokens = 4096;
	a.pool_pages = UINT32_MAX;
	r.io.table[0] = INT32_MAX;
	ck_assert_int_eq(one(&a, 0, 4095), INT64_C(0x7fffffff) * 4096 + 4095);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* Ratio 128, pages of 256 tokens and 2 keys, row [7, 9]: position 127 ends key
 * 0, 7 * 2 + 0 = 14; 255 key 1, 15; 383 key 2, 9 * 2 + 0 = 18. Ratio 4, 64 keys
 * a page, row [5, 7]: of positions 240 .. 279 ten end a key, 60 .. 69: slots 5
 * * 64 + 60 .. 63, then 7 * 64 + 0 .. 5. */
START_TEST(slots_of_compressed_keys_worked_out_by_hand)
{
	spmla_slot_map_args a = slot_map_args(&r, 1);
	int32_t pos;

	a.page_tokens = 256;
	a.compress_ratio = 128;
	r.io.table[SLOT_STRIDE] = 7;
	r.io.table[SLOT_STRIDE + 1] = 9;
	for (pos = 0; pos < 384; pos++) {
		r.io.row[0] = 1;
		r.io.position[0] = pos;
		r.io.lens[0] = pos + 1;
		slot_map_run(&r, &a);
		ck_assert_int_eq(r.io.slot[0], pos == 127   ? 14
					       : pos == 255 ? 15
					       : pos == 383 ? 18
							    : -1);
		ck_assert_int_eq(r.io.lens[0], pos + 1);
	}
	a.compress_ratio = 4;
	r.io.table[SLOT_STRIDE] = 5;
	r.io.table[SLOT_STRIDE + 1] = 7;
	for (pos = 240; pos < 280; pos++) {
		const int32_t key = pos / 4;
		const int64_t slot = key < 64 ? 320 + key : 448 + key - 64;

		r.io.position[0] = pos;
		r.io.lens[0] = pos + 1;
		slot_map_run(&r, &a);
		ck_assert_int_eq(r.io.slot[0], pos % 4 == 3 ? slot : -1);
	}
	a.compress_ratio = 1; /* none */
	ck_assert_int_eq(one(&a, 1, 258), 7 * 256 + 2);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* Rows, columns and pages count for tokens that end a group alone; a position
 * below 0 is bad data anywhere. */
START_TEST(tokens_inside_a_group_are_not_looked_up_and_keep_their_context)
{
	spmla_slot_map_args a = slot_map_args(&r, 4);
	static const int32_t positions[4] = {62, 63, 64, -2};
	uint32_t t;

	a.page_tokens = 64;
	a.compress_ratio = 4;
	for (t = 0; t < 4; t++) {
		r.io.row[t] = t == 3 ? 2 : SLOT_ROWS;
		r.io.position[t] = positions[t];
		r.io.lens[t] = 70;
	}
	slot_map_run(&r, &a);
	for (t = 0; t < 4; t++) {
		ck_assert_int_eq(r.io.slot[t], -1);
		ck_assert_int_eq(r.io.lens[t], t % 2 ? 0 : 70);
	}
	expect_status(&r.f, 2, SPMLA_FAULT_PAGE, 2, 0);
}
END_TEST

/* Draws sizes, a table and its copy in the reference, and tokens. */
static spmla_slot_map_args
random_tokens(uint64_t *rng, ref_table *table)
{
	spmla_slot_map_args a =
		slot_map_args(&r, 1 + rng_below(rng, SLOT_TOKENS));
	uint32_t t, i;

	a.compress_ratio = rng_below(rng, 6);
	a.page_tokens = (1 + rng_below(rng, 80)) *
			(a.compress_ratio ? a.compress_ratio : 1);
	a.pool_pages = 1 + rng_below(rng, 20);
	ck_assert(ref_table_open(table, SLOT_ROWS, SLOT_COLUMNS, a.page_tokens,
				 a.pool_pages));
	for (i = 0; i < SLOT_ROWS * SLOT_STRIDE; i++)
		r.io.table[i] = (int32_t)rng_below(rng, 23) - 1;
	for (i = 0; i < SLOT_ROWS; i++) {
		r.io.cols[i] = (int32_t)rng_below(rng, SLOT_COLUMNS + 1);
		ck_assert(ref_table_store(table, i, 0, (uint32_t)r.io.cols[i],
					  r.io.table + i * SLOT_STRIDE));
	}
	for (t = 0; t < a.tokens; t++) {
		r.io.row[t] = (int32_t)rng_below(rng, SLOT_ROWS + 1);
		r.io.position[t] = (int32_t)rng_below(rng, 7 * a.page_tokens);
		r.io.lens[t] = (int32_t)rng_below(rng, 4);
	}
	return a;
}

/* Wants the reference's slot of token t; returns whether it has no page. */
static uint32_t
check_token(const spmla_slot_map_args *a, const ref_table *table, uint32_t t)
{
	const uint32_t ratio = a->compress_ratio ? a->compress_ratio : 1;
	const uint32_t p = (uint32_t)r.io.position[t];
	const int64_t slot = ref_table_slot(table, (uint32_t)r.io.row[t], p);
	const int64_t keys = a->page_tokens / ratio;
	const int64_t want =
		slot < 0 || (p + 1) % ratio
			? -1
			: slot / a->page_tokens * keys + p / ratio % keys;

	if (r.io.lens[t] > 0)
		ck_assert_int_eq(r.io.slot[t], want);
	else
		ck_assert_int_eq(r.io.slot[t], -1);
	return slot < 0;
}

START_TEST(random_tokens_equal_the_reference_table)
{
	const uint32_t rounds = fixture_rounds(400, 400);
	uint64_t rng = test_seed();
	uint32_t round, t;
	ref_table table;

	for (round = 0; round < rounds; round++) {
		const spmla_slot_map_args a = random_tokens(&rng, &table);
		uint32_t faults = 0;

		slot_map_run(&r, &a);
		for (t = 0; t < a.tokens; t++)
			faults += check_token(&a, &table, t);
		ck_assert_uint_le(fixture_status(&r.f).count, faults);
		ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
		ref_table_close(&table);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{slots_of_a_table_worked_out_by_hand, 1},
		{slots_of_compressed_keys_worked_out_by_hand, 1},
		{slots_may_need_more_than_32_bits, 1},
		{random_tokens_equal_the_reference_table, 1},
	};
	const theme_test edge[] = {
		{padding_has_no_slot_and_is_not_looked_up, 1},
		{tokens_inside_a_group_are_not_looked_up_and_keep_their_context,
		 1},
		{rows_outside_the_table_are_skipped_and_reported, 1},
		{columns_that_are_not_there_are_skipped_and_reported, 1},
		{position_below_zero_has_no_page_however_wide_the_table, 1},
		{pages_outside_the_pool_are_skipped_and_reported, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
	};

	return RUN_THEMES(themes);
}
