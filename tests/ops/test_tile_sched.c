/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: rows and num_splits against the planner's serial walk
 * (tile_walk.h), on random and on chosen batches, and
 * against vectors worked out by hand. Every check runs the op twice on one
 * context over different poison and compares every byte, red zones included.
 * Refusals, row formats and graphs are in test_tile_sched_call.c.
 */
#include <check.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/narrow_ref.h"
#include "tests/support/themes.h"
#include "tests/support/tile_walk.h"

#include "spmla/ops/tile_sched.h"

enum { MAX_BATCH = TILE_MAX_BATCH, MAX_PARTS = 3000, RED_ZONE = 8 };

static fixture f;
static int32_t lens[MAX_BATCH];
static int32_t extra_lens[MAX_BATCH];
static int32_t rows[(MAX_PARTS + RED_ZONE) * 8];
static int32_t num_splits[MAX_BATCH + RED_ZONE];

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

static spmla_tile_sched_args
args_of(uint32_t batch, uint32_t parts, uint32_t overhead, uint32_t topk)
{
	const spmla_tile_sched_args a = {
		sizeof a, batch, parts, overhead, SPMLA_TILE_ROW_NEW, topk, 0,
		0,        NULL,  NULL,  rows,     num_splits};

	return a;
}

static void
check_sched(const spmla_tile_sched_args *a)
{
	static int32_t want[(MAX_PARTS + RED_ZONE) * 8];
	static int32_t want_splits[MAX_BATCH + RED_ZONE];
	const size_t row_bytes = (a->parts + 1) * 8 * sizeof *want;
	const size_t split_bytes = (a->batch + 3) * sizeof *want;
	uint32_t run, faults;

	ck_assert(a->batch <= MAX_BATCH && a->parts <= MAX_PARTS);
	for (run = 0; run < 2; run++) {
		memset(want, 0x5A + (int)run, row_bytes);
		memset(want_splits, 0x5A + (int)run, split_bytes);
		memcpy(rows, want, row_bytes);
		memcpy(num_splits, want_splits, split_bytes);
		faults = tile_walk(a, want, want_splits);
		ck_assert_int_eq(spmla_tile_sched(f.ctx, a, NULL), SPMLA_OK);
		ck_assert_mem_eq(num_splits, want_splits, split_bytes);
		ck_assert_mem_eq(rows, want, row_bytes);
		ck_assert_uint_eq(fixture_status(&f).count, faults);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	}
}

/* Rows as the specification prints them: without the padding. */
static void
expect_rows(const int32_t (*want)[7], uint32_t count)
{
	uint32_t p;

	for (p = 0; p < count; p++) {
		ck_assert_mem_eq(rows + p * 8, want[p], sizeof want[p]);
		ck_assert_int_eq(rows[p * 8 + 7], 0);
	}
}

static void
expect_splits(const int32_t *want, uint32_t count)
{
	ck_assert_mem_eq(num_splits, want, count * sizeof *want);
}

static uint32_t
pick(uint64_t *rng, const uint32_t *from, uint32_t count)
{
	return from[rng_below(rng, count)];
}

/* 0, most, or anything between, each often. */
static void
fill_lens(uint64_t *rng, int32_t *out, uint32_t n, uint32_t most)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t kind = rng_below(rng, 4);

		out[i] = (int32_t)(kind == 0   ? 0
				   : kind == 1 ? most
					       : rng_below(rng, most + 1));
	}
}

static void
random_case(uint64_t *rng, uint32_t max_batch, const uint32_t *topks,
	    uint32_t topk_count)
{
	static const uint32_t overheads[6] = {5, 5, 3, 0, 1, 40};
	static const uint32_t part_counts[8] = {1, 2, 3, 7, 33, 66, 132, 0};
	uint32_t parts = pick(rng, part_counts, 8);
	spmla_tile_sched_args a;

	if (parts == 0)
		parts = 1 + rng_below(rng, 200);
	a = args_of(1 + rng_below(rng, max_batch), parts,
		    pick(rng, overheads, 6), pick(rng, topks, topk_count));
	a.row_format = rng_below(rng, 2);
	if (rng_below(rng, 3))
		a.topk_lens = lens;
	if (rng_below(rng, 3) == 0)
		a.extra_topk = pick(rng, topks, topk_count);
	if (rng_below(rng, 2))
		a.extra_topk_lens = extra_lens;
	fill_lens(rng, lens, a.batch, a.topk);
	fill_lens(rng, extra_lens, a.batch, a.extra_topk);
	check_sched(&a);
}

START_TEST(random_batches_equal_the_serial_walk)
{
	static const uint32_t topks[8] = {2048, 2048, 1,   64,
					  65,   128,  640, 10000};
	uint64_t rng = test_seed() + 11;
	uint32_t i;

	for (i = 0; i < 20000; i++)
		random_case(&rng, i % 4 ? 9 : 70, topks, 8);
}
END_TEST

START_TEST(random_huge_batches_equal_the_serial_walk)
{
	static const uint32_t topks[5] = {INT32_MAX, 1u << 30, INT32_MAX - 64,
					  2048, 1};
	uint64_t rng = test_seed() + 12;
	uint32_t i;

	for (i = 0; i < 4000; i++)
		random_case(&rng, 20, topks, 5);
	for (i = 0; i < 12; i++)
		random_case(&rng, MAX_BATCH, topks, 5);
}
END_TEST

/* Payload ceil(2 * (32 + 5) / 5) + 5 = 20: 15 blocks and overhead each; the
 * third part pays 2 + 5 for the end of request 0 and 8 + 5 for a start. */
START_TEST(two_full_requests_on_five_parts)
{
	static const int32_t want[5][7] = {{0, 0, 0, 15, 0, 1, 1},
					   {0, 0, 15, 30, 1, 1, 1},
					   {0, 1, 30, 8, 2, 1, 1},
					   {1, 1, 8, 23, 1, 1, 1},
					   {1, 1, 23, 32, 2, 1, 1}};
	const spmla_tile_sched_args a = args_of(2, 5, 5, 2048);

	check_sched(&a);
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
	spmla_tile_sched_args a = args_of(3, 4, 5, 2048);

	memcpy(lens, (const int32_t[]){64, 640, 1}, 12);
	a.topk_lens = lens;
	check_sched(&a);
	expect_rows(want, 4);
	expect_splits((const int32_t[]){0, 1, 4, 5}, 4);
	a.row_format = SPMLA_TILE_ROW_OLD;
	check_sched(&a);
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
	spmla_tile_sched_args a = args_of(1, 7, 5, 2048);

	check_sched(&a);
	expect_rows(want, 7);
	expect_splits((const int32_t[]){0, 6}, 2);
	a = args_of(1, 1, 5, 1152);
	check_sched(&a);
	expect_rows((const int32_t[1][7]){{0, 0, 0, 18, 0, 0, 0}}, 1);
	expect_splits((const int32_t[]){0, 1}, 2);
}
END_TEST

START_TEST(with_more_parts_than_blocks_most_are_idle)
{
	static const int32_t idle[8] = {3, 2, 0, 2, 0, 0, 0, 0};
	const spmla_tile_sched_args a = args_of(3, 1000, 5, 128);
	uint32_t p;

	check_sched(&a);
	expect_splits((const int32_t[]){0, 2, 4, 6}, 4);
	for (p = 6; p < 1000; p++)
		ck_assert_mem_eq(rows + p * 8, idle, sizeof idle);
}
END_TEST

/* Its one block is in the plan, so every request has a split to combine. */
START_TEST(a_request_of_length_0_counts_as_one_block)
{
	static const int32_t want[1][7] = {{0, 2, 0, 2, 0, 0, 0}};
	spmla_tile_sched_args a = args_of(3, 1, 5, 2048);

	memcpy(lens, (const int32_t[]){100, 0, 65}, 12);
	a.topk_lens = lens;
	check_sched(&a);
	expect_rows(want, 1);
	expect_splits((const int32_t[]){0, 1, 2, 3}, 4);
	memset(lens, 0, 12);
	check_sched(&a);
	ck_assert_int_eq(rows[3], 1);
}
END_TEST

/* 1 key is rounded up to 64, so 1 + 1 keys of two caches are 2 blocks; 64 + 0
 * is one. */
START_TEST(keys_of_the_second_cache_start_a_block)
{
	spmla_tile_sched_args a = args_of(2, 1, 5, 64);

	a.extra_topk = 512;
	a.topk_lens = lens;
	a.extra_topk_lens = extra_lens;
	memcpy(lens, (const int32_t[]){0, 1}, 8);
	memcpy(extra_lens, (const int32_t[]){0, 1}, 8);
	check_sched(&a);
	ck_assert_int_eq(rows[3], 2);
	a.extra_topk_lens = NULL; /* 64 + 512 */
	check_sched(&a);
	ck_assert_int_eq(rows[3], 9);
	a.extra_topk = 0; /* then extra lengths are not read */
	a.extra_topk_lens = extra_lens;
	memset(extra_lens, 0x80, 8);
	check_sched(&a);
	ck_assert_int_eq(rows[3], 1);
}
END_TEST

START_TEST(lengths_out_of_bounds_are_clamped_and_reported)
{
	spmla_tile_sched_args a = args_of(4, 2, 5, 2048);
	spmla_device_status status;

	memcpy(lens, (const int32_t[]){2048, 2049, -1, INT32_MIN}, 16);
	a.topk_lens = lens;
	check_sched(&a);
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(status.row, 1);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	a.extra_topk = 64;
	a.extra_topk_lens = extra_lens;
	memcpy(extra_lens, (const int32_t[]){65, 0, -7, 3}, 16);
	check_sched(&a); /* a request is reported once */
}
END_TEST

START_TEST(a_batch_of_no_requests_leaves_every_part_idle)
{
	static const int32_t want[3][7] = {{0, -1, 0, 0, 0, 0, 0},
					   {0, -1, 0, 0, 0, 0, 0},
					   {0, -1, 0, 0, 0, 0, 0}};
	const spmla_tile_sched_args a = args_of(0, 3, 5, 2048);

	check_sched(&a);
	expect_rows(want, 3);
	ck_assert_int_eq(num_splits[0], 0);
}
END_TEST

/* 300 requests of 2^26 blocks are 2 * 10^10, past 32 bits. */
START_TEST(sums_do_not_wrap)
{
	spmla_tile_sched_args a = args_of(300, 300, 0, INT32_MAX);

	a.extra_topk = INT32_MAX;
	check_sched(&a);
	ck_assert_int_eq(rows[299 * 8], 299);
	ck_assert_int_eq(rows[299 * 8 + 3], 1 << 26);
	ck_assert_int_eq(num_splits[300], 300);
	a.overhead_blocks = 1 << 20;
	check_sched(&a);
}
END_TEST

/* Requests of one cost, and the same but for one of them. */
START_TEST(even_and_almost_even_batches_equal_the_serial_walk)
{
	static const uint32_t overheads[5] = {5, 3, 0, 1, 17};
	uint64_t rng = test_seed() + 13;
	uint32_t i, j;

	for (i = 0; i < 3000; i++) {
		const uint32_t most = i % 100 ? 40 : 1200;
		spmla_tile_sched_args a = args_of(
			1 + rng_below(&rng, most), 1 + rng_below(&rng, 300),
			pick(&rng, overheads, 5), 1 + rng_below(&rng, 4096));

		check_sched(&a);
		if (i % 4)
			continue;
		for (j = 0; j < a.batch; j++)
			lens[j] = (int32_t)a.topk;
		lens[rng_below(&rng, a.batch)] = 1;
		a.topk_lens = lens;
		check_sched(&a);
	}
}
END_TEST

/* What is left up to the end of a request when a part that follows whole
 * payloads from the last fresh start would end: at most `overhead` makes the
 * request's end a fresh start. */
enum {
	LEFT_NOTHING,
	LEFT_OVERHEAD,
	LEFT_ONE_MORE,
	LEFT_ALL_BUT_ONE,
	LEFT_ANY_OF_THESE,
	LEFT_LITTLE,
	LEFT_MUCH,
	LEFT_MUCH_BUT_SELDOM,
	LEFT_KINDS
};

static uint32_t
pick_left(uint64_t *rng, uint32_t kind, uint32_t share, uint32_t overhead)
{
	if (kind == LEFT_ANY_OF_THESE)
		kind = rng_below(rng, LEFT_ANY_OF_THESE);
	if (kind == LEFT_MUCH_BUT_SELDOM && rng_below(rng, 50) == 0)
		kind = LEFT_LITTLE;
	switch (kind) {
	case LEFT_NOTHING:
		return 0;
	case LEFT_OVERHEAD:
		return overhead;
	case LEFT_ONE_MORE:
		return overhead + 1;
	case LEFT_ALL_BUT_ONE:
		return share - 1;
	case LEFT_LITTLE:
		return rng_below(rng, overhead + 1);
	default:
		return overhead + 1 + rng_below(rng, share - overhead - 1);
	}
}

/* Requests for `parts` parts of share + overhead blocks, of the kind; each of
 * at most `more` shares beyond what it must have. */
static spmla_tile_sched_args
chain(uint64_t *rng, uint32_t kind, uint32_t parts, uint32_t share,
      uint32_t overhead, uint32_t more)
{
	spmla_tile_sched_args a = args_of(0, parts, overhead, 1);
	uint32_t fresh = 0, all = 0;

	while (all <= (parts - 1) * share && a.batch < MAX_BATCH) {
		const uint32_t left = pick_left(rng, kind, share, overhead);
		uint32_t cost = left + share - (all - fresh) % share;

		cost %= share;
		while (cost <= overhead)
			cost += share;
		cost += share * rng_below(rng, more + 1);
		if (all + cost > parts * share) /* the last one */
			cost = parts * share - all;
		if (cost <= overhead)
			break;
		all += cost;
		if (left <= overhead)
			fresh = all;
		lens[a.batch++] = (int32_t)((cost - overhead) * 64);
		if ((uint32_t)lens[a.batch - 1] > a.topk)
			a.topk = (uint32_t)lens[a.batch - 1];
	}
	a.topk_lens = lens;
	return a;
}

START_TEST(chains_of_fresh_starts_equal_the_serial_walk)
{
	static const uint32_t overheads[5] = {5, 3, 0, 1, 17};
	uint64_t rng = test_seed() + 15;
	uint32_t i;

	for (i = 0; i < 4000; i++) {
		const uint32_t overhead = pick(&rng, overheads, 5);
		const uint32_t share = overhead + 2 + rng_below(&rng, 70);
		const uint32_t large = i % 200 == 0;
		spmla_tile_sched_args a =
			chain(&rng, rng_below(&rng, LEFT_KINDS),
			      1 + rng_below(&rng, large ? MAX_PARTS - 1 : 150),
			      share, overhead, i % 3 * rng_below(&rng, 6));

		check_sched(&a);
	}
}
END_TEST

/* The payload of few parts is past 32 bits, and so is what a part has left. */
START_TEST(payloads_do_not_wrap)
{
	uint64_t rng = test_seed() + 14;
	uint32_t parts, i;

	for (parts = 1; parts <= 9; parts++) {
		spmla_tile_sched_args a = args_of(700, parts, 5, INT32_MAX);

		for (i = 0; i < 700; i++)
			lens[i] = (int32_t)(INT32_MAX - rng_below(&rng, 9999));
		a.topk_lens = lens;
		a.extra_topk = INT32_MAX;
		check_sched(&a);
	}
}
END_TEST

/* Requests of 2^26 blocks, the last of one fewer: a share is of some number of
 * them, and 64 of them are 2^32, so that low words repeat. */
START_TEST(shares_past_32_bits_are_not_taken_for_others)
{
	spmla_tile_sched_args a = args_of(0, 3, 0, INT32_MAX);
	uint32_t each, i;

	a.topk_lens = lens;
	a.extra_topk = INT32_MAX;
	for (each = 65; each < 140; each += 3) {
		a.batch = a.parts * each;
		for (i = 0; i + 1 < a.batch; i++)
			lens[i] = INT32_MAX;
		lens[i] = INT32_MAX - 64;
		check_sched(&a);
		ck_assert_int_eq(rows[8], (int32_t)each);
	}
}
END_TEST

int
main(void)
{
	const TTest *const shape[] = {
		two_full_requests_on_five_parts,
		a_short_a_long_and_a_short_request_on_four_parts,
		random_batches_equal_the_serial_walk,
		random_huge_batches_equal_the_serial_walk,
		even_and_almost_even_batches_equal_the_serial_walk,
		chains_of_fresh_starts_equal_the_serial_walk,
	};
	const TTest *const edge[] = {
		a_part_without_work_is_a_row_behind_the_last_request,
		with_more_parts_than_blocks_most_are_idle,
		a_request_of_length_0_counts_as_one_block,
		keys_of_the_second_cache_start_a_block,
		lengths_out_of_bounds_are_clamped_and_reported,
		a_batch_of_no_requests_leaves_every_part_idle,
		sums_do_not_wrap,
		payloads_do_not_wrap,
		shares_past_32_bits_are_not_taken_for_others,
	};
	const theme themes[] = {THEME("shape", setup, teardown, shape),
				THEME("edge", setup, teardown, edge)};

	return RUN_THEMES("tile_sched", themes);
}
