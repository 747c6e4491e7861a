/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: rows and num_splits worked out by hand, and edges. Random batches
 * are in test_tile_sched_random.c, row formats in test_tile_sched_launch.c.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/step/tile_rig.h"

static tile_rig r;

static void
setup(void)
{
	tile_open(&r);
}

static void
teardown(void)
{
	tile_close(&r);
}

/* Rows as the specification prints them: without the padding. */
static void
expect_rows(const int32_t (*want)[7], uint32_t count)
{
	uint32_t p;

	for (p = 0; p < count; p++) {
		ck_assert_mem_eq(r.rows + p * 8, want[p], sizeof want[p]);
		ck_assert_int_eq(r.rows[p * 8 + 7], 0);
	}
}

static void
expect_splits(const int32_t *want, uint32_t count)
{
	ck_assert_mem_eq(r.num_splits, want, count * sizeof *want);
}

/* Payload ceil(2 * (32 + 5) / 5) + 5 = 20: 15 blocks and overhead each; the
 * third part pays 2 + 5 for the end of request 0 and 8 + 5 for a start. */
START_TEST(two_full_requests_on_five_parts)
{
	static const int32_t want[5][7] = {{0, 0, 0, 15, 0, 1, 1},
					   {0, 0, 15, 30, 1, 1, 1},
					   {0, 1, 30, 8, 2, 1, 1},
					   {1, 1, 8, 23, 1, 1, 1},
					   {1, 1, 23, 32, 2, 1, 1}};
	const spmla_tile_sched_args a = tile_args(&r, 2, 5, 5, 2048);

	tile_check(&r, &a);
	expect_rows(want, 5);
	expect_splits((const int32_t[]){0, 3, 6}, 3);
}
END_TEST

/* 1, 10 and 1 blocks: payload ceil((12 + 15) / 4) + 5 = 12. The first part has
 * 12 - 6 left, one block of request 1; the third ends with 12 - 7 left, no
 * block of request 2, which therefore is not split. */
START_TEST(a_short_a_long_and_a_short_request_on_four_parts)
{
	static const int32_t want[4][7] = {{0, 1, 0, 1, 0, 0, 1},
					   {1, 1, 1, 8, 1, 1, 1},
					   {1, 1, 8, 10, 2, 1, 1},
					   {2, 2, 0, 1, 0, 0, 0}};
	static const int32_t old[4][7] = {{0, 0, 1, 1, 0, 0, 0},
					  {1, 1, 1, 8, 1, 0, 0},
					  {1, 8, 1, 10, 2, 0, 0},
					  {2, 0, 2, 1, 0, 0, 0}};
	spmla_tile_sched_args a = tile_args(&r, 3, 4, 5, 2048);

	memcpy(r.lens, (const int32_t[]){64, 640, 1}, 12);
	a.topk_lens = r.lens;
	tile_check(&r, &a);
	expect_rows(want, 4);
	expect_splits((const int32_t[]){0, 1, 4, 5}, 4);
	a.row_format = SPMLA_TILE_ROW_OLD;
	tile_check(&r, &a);
	expect_rows(old, 4);
	expect_splits((const int32_t[]){0, 1, 4, 5}, 4);
}
END_TEST

/* Payload ceil(37 / 7) + 5 = 11: 6 blocks a part; the seventh has none. */
START_TEST(a_part_without_work_is_a_row_behind_the_last_request)
{
	static const int32_t want[7][7] = {
		{0, 0, 0, 6, 0, 1, 1},   {0, 0, 6, 12, 1, 1, 1},
		{0, 0, 12, 18, 2, 1, 1}, {0, 0, 18, 24, 3, 1, 1},
		{0, 0, 24, 30, 4, 1, 1}, {0, 0, 30, 32, 5, 1, 1},
		{1, 0, 0, 32, 0, 0, 0}};
	spmla_tile_sched_args a = tile_args(&r, 1, 7, 5, 2048);

	tile_check(&r, &a);
	expect_rows(want, 7);
	expect_splits((const int32_t[]){0, 6}, 2);
	a = tile_args(&r, 1, 1, 5, 1152);
	tile_check(&r, &a);
	expect_rows((const int32_t[1][7]){{0, 0, 0, 18, 0, 0, 0}}, 1);
	expect_splits((const int32_t[]){0, 1}, 2);
}
END_TEST

START_TEST(with_more_parts_than_blocks_most_are_idle)
{
	static const int32_t idle[8] = {3, 2, 0, 2, 0, 0, 0, 0};
	const spmla_tile_sched_args a = tile_args(&r, 3, 1000, 5, 128);
	uint32_t p;

	tile_check(&r, &a);
	expect_splits((const int32_t[]){0, 2, 4, 6}, 4);
	for (p = 6; p < 1000; p++)
		ck_assert_mem_eq(r.rows + p * 8, idle, sizeof idle);
}
END_TEST

/* Its one block is in the plan, so every request has a split to combine. */
START_TEST(a_request_of_length_0_counts_as_one_block)
{
	static const int32_t want[1][7] = {{0, 2, 0, 2, 0, 0, 0}};
	spmla_tile_sched_args a = tile_args(&r, 3, 1, 5, 2048);

	memcpy(r.lens, (const int32_t[]){100, 0, 65}, 12);
	a.topk_lens = r.lens;
	tile_check(&r, &a);
	expect_rows(want, 1);
	expect_splits((const int32_t[]){0, 1, 2, 3}, 4);
	memset(r.lens, 0, 12);
	tile_check(&r, &a);
	ck_assert_int_eq(r.rows[3], 1);
}
END_TEST

/* 1 key is rounded up to 64, so 1 + 1 keys of two caches are 2 blocks; 64 + 0
 * is one. */
START_TEST(keys_of_the_second_cache_start_a_block)
{
	spmla_tile_sched_args a = tile_args(&r, 2, 1, 5, 64);

	a.extra_topk = 512;
	a.topk_lens = r.lens;
	a.extra_topk_lens = r.extra_lens;
	memcpy(r.lens, (const int32_t[]){0, 1}, 8);
	memcpy(r.extra_lens, (const int32_t[]){0, 1}, 8);
	tile_check(&r, &a);
	ck_assert_int_eq(r.rows[3], 2);
	a.extra_topk_lens = NULL; /* 64 + 512 */
	tile_check(&r, &a);
	ck_assert_int_eq(r.rows[3], 9);
	a.extra_topk = 0; /* then extra lengths are not read */
	a.extra_topk_lens = r.extra_lens;
	memset(r.extra_lens, 0x80, 8);
	tile_check(&r, &a);
	ck_assert_int_eq(r.rows[3], 1);
}
END_TEST

START_TEST(lengths_out_of_bounds_are_clamped_and_reported)
{
	spmla_tile_sched_args a = tile_args(&r, 4, 2, 5, 2048);
	spmla_device_status status;

	memcpy(r.lens, (const int32_t[]){2048, 2049, -1, INT32_MIN}, 16);
	a.topk_lens = r.lens;
	tile_check(&r, &a);
	ck_assert_int_eq(spmla_tile_sched(r.f.ctx, &a, NULL), SPMLA_OK);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(status.row, 1);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	a.extra_topk = 64;
	a.extra_topk_lens = r.extra_lens;
	memcpy(r.extra_lens, (const int32_t[]){65, 0, -7, 3}, 16);
	tile_check(&r, &a); /* a request is reported once */
}
END_TEST

START_TEST(a_batch_of_no_requests_leaves_every_part_idle)
{
	static const int32_t want[3][7] = {{0, -1, 0, 0, 0, 0, 0},
					   {0, -1, 0, 0, 0, 0, 0},
					   {0, -1, 0, 0, 0, 0, 0}};
	const spmla_tile_sched_args a = tile_args(&r, 0, 3, 5, 2048);

	tile_check(&r, &a);
	expect_rows(want, 3);
	ck_assert_int_eq(r.num_splits[0], 0);
}
END_TEST

/* 300 requests of 2^26 blocks are 2 * 10^10, past 32 bits. */
START_TEST(sums_do_not_wrap)
{
	spmla_tile_sched_args a = tile_args(&r, 300, 300, 0, INT32_MAX);

	a.extra_topk = INT32_MAX;
	tile_check(&r, &a);
	ck_assert_int_eq(r.rows[299 * 8], 299);
	ck_assert_int_eq(r.rows[299 * 8 + 3], 1 << 26);
	ck_assert_int_eq(r.num_splits[300], 300);
	a.overhead_blocks = 1 << 20;
	tile_check(&r, &a);
}
END_TEST

/* 2 lists of 3 + 1, 0 + 0, 1 + 2, 3 + 2 and 12 + 0 blocks, in splits of 2 or,
 * of the last request, 2, 2 and the rest. A list without keys has a block. */
START_TEST(fixed_splits_follow_from_a_request_alone)
{
	static const int32_t want[15][7] = {
		{0, 0, 0, 2, 0, 1, 1},  {0, 0, 2, 4, 1, 1, 1},
		{1, 1, 0, 1, 0, 0, 0},  {2, 2, 0, 2, 0, 1, 1},
		{2, 2, 2, 3, 1, 1, 1},  {3, 3, 0, 2, 0, 1, 1},
		{3, 3, 2, 4, 1, 1, 1},  {3, 3, 4, 5, 2, 1, 1},
		{4, 4, 0, 2, 0, 1, 1},  {4, 4, 2, 4, 1, 1, 1},
		{4, 4, 4, 12, 2, 1, 1}, {5, 4, 0, 12, 0, 0, 0},
		{5, 4, 0, 12, 0, 0, 0}, {5, 4, 0, 12, 0, 0, 0},
		{5, 4, 0, 12, 0, 0, 0}};
	static const int32_t splits[6] = {0, 2, 3, 5, 8, 11};
	spmla_tile_sched_args a = tile_args(&r, 5, 15, 5, 2048);
	uint32_t p;

	memcpy(r.lens, (const int32_t[]){129, 0, 64, 192, 768}, 20);
	memcpy(r.extra_lens, (const int32_t[]){64, 0, 65, 65, -1}, 20);
	a.topk_lens = r.lens;
	a.extra_topk = 128;
	a.extra_topk_lens = r.extra_lens;
	a.split_blocks = 2;
	memset(r.rows, 0x5A, sizeof r.rows);
	ck_assert_int_eq(spmla_tile_sched(r.f.ctx, &a, NULL), SPMLA_OK);
	expect_rows(want, 15);
	expect_splits(splits, 6);
	ck_assert_int_eq(r.rows[15 * 8], 0x5A5A5A5A);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
	/* A request by itself, and with others than before. */
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	a.row_format = SPMLA_TILE_ROW_OLD;
	a.batch = 1;
	a.parts = 3;
	ck_assert_int_eq(spmla_tile_sched(r.f.ctx, &a, NULL), SPMLA_OK);
	for (p = 0; p < 3; p++) {
		static const int32_t old[3][7] = {{0, 0, 0, 2, 0, 0, 0},
						  {0, 2, 0, 4, 1, 0, 0},
						  {1, 0, 0, 4, 0, 0, 0}};

		ck_assert_mem_eq(r.rows + p * 8, old[p], sizeof old[p]);
	}
	expect_splits((const int32_t[]){0, 2}, 2);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* More requests than threads, of one split or two each: the second pass of the
 * threads goes on behind the splits of the first. */
START_TEST(fixed_splits_of_many_requests_count_all_before)
{
	const int32_t batch = 1400, parts = 2 * batch, each = 3;
	spmla_tile_sched_args a =
		tile_args(&r, (uint32_t)batch, (uint32_t)parts, 0, 2048);
	int32_t at = 0, i, k;

	for (i = 0; i < batch; i++)
		r.lens[i] = 1 + i * 37 % 2000;
	a.topk_lens = r.lens;
	a.split_blocks = (uint32_t)each;
	ck_assert_int_eq(spmla_tile_sched(r.f.ctx, &a, NULL), SPMLA_OK);
	for (i = 0; i < batch; i++) {
		const int32_t blocks = (r.lens[i] + 63) / 64;
		const int32_t splits = blocks > each ? 2 : 1;

		ck_assert_int_eq(r.num_splits[i], at);
		/* The second one has all that is left. */
		for (k = 0; k < splits; k++, at++) {
			const int32_t *row = r.rows + 8 * at;
			const int32_t last = k + 1 == splits;

			ck_assert_int_eq(row[0], i);
			ck_assert_int_eq(row[2], k * each);
			ck_assert_int_eq(row[3], last ? blocks : each);
			ck_assert_int_eq(row[4], k);
		}
	}
	ck_assert_int_eq(r.num_splits[batch], at);
	ck_assert(at > batch && at < parts);
	for (; at < parts; at++)
		ck_assert_int_eq(r.rows[8 * at], batch);
	a.parts = (uint32_t)batch + 1;
	ck_assert_int_eq(spmla_tile_sched(r.f.ctx, &a, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&r.f),
			 "SPMLA_E_RANGE: tile_sched.parts: got 1401, want a "
			 "multiple of 1400");
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{two_full_requests_on_five_parts, 1},
		{a_short_a_long_and_a_short_request_on_four_parts, 1},
	};
	const theme_test edge[] = {
		{a_part_without_work_is_a_row_behind_the_last_request, 1},
		{with_more_parts_than_blocks_most_are_idle, 1},
		{a_request_of_length_0_counts_as_one_block, 1},
		{keys_of_the_second_cache_start_a_block, 1},
		{lengths_out_of_bounds_are_clamped_and_reported, 1},
		{a_batch_of_no_requests_leaves_every_part_idle, 1},
		{sums_do_not_wrap, 1},
		{fixed_splits_follow_from_a_request_alone, 1},
		{fixed_splits_of_many_requests_count_all_before, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
	};

	return RUN_THEMES(themes);
}
