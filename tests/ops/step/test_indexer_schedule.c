/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: rows against a list of all units of work, written out one
 * by one and dealt to the SMs, and against vectors worked out by hand.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/indexer_schedule.h"

enum { MAX_LENS = 8192, MAX_SMS = 400, MAX_UNITS = 1 << 16 };

#define SM90   SPMLA_INDEXER_SCHEDULE_SM90
#define SM100  SPMLA_INDEXER_SCHEDULE_SM100
#define VARLEN SPMLA_INDEXER_SCHEDULE_SM100_VARLEN

static fixture f;
static int32_t lens[MAX_LENS];
static int32_t indices[MAX_LENS];
static int32_t schedule[(MAX_SMS + 2) * 2];

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

static spmla_indexer_schedule_args
args_of(uint32_t rule, uint32_t batch, uint32_t next_n, uint32_t num_sms)
{
	const spmla_indexer_schedule_args a = {sizeof a, rule,    batch, next_n,
					       num_sms,  0,       lens,  next_n,
					       indices,  schedule};

	return a;
}

/* units[u] = (row, split) of each unit, in order; returns how many. */
static uint32_t
list_units(const spmla_indexer_schedule_args *a, int32_t (*units)[2],
	   uint32_t *faults)
{
	uint32_t first = 0, n = 0, next, i, j;

	for (i = 0; i < a->batch; i++)
		*faults +=
			lens[i * a->context_lens_stride_elems + a->next_n - 1] <
			0;
	for (; first < a->batch; first = next) {
		int64_t len, segs;
		uint32_t atoms = (a->next_n + 1) / 2, tokens = a->next_n;

		for (next = first + 1; a->rule == VARLEN && next < a->batch &&
				       indices[next] == indices[first];
		     next++)
			tokens++;
		len = lens[(next - 1) * a->context_lens_stride_elems +
			   a->next_n - 1];
		segs = len > 0 ? (len + 255) / 256 : 0;
		ck_assert(n + segs * tokens <= MAX_UNITS);
		/* SM90: atom by atom; SM100: split by split. */
		for (i = 0; a->rule == SM90 && i < atoms; i++)
			for (j = 0; j < segs; j++, n++) {
				units[n][0] = (int32_t)(first * atoms + i);
				units[n][1] = (int32_t)j;
			}
		for (j = 0; a->rule != SM90 && j < segs; j++)
			for (i = 0; i < tokens; i++, n++) {
				units[n][0] = (int32_t)(first * a->next_n);
				units[n][1] = (int32_t)j;
			}
	}
	return n;
}

static uint32_t
oracle(const spmla_indexer_schedule_args *a, int32_t *want)
{
	static int32_t units[MAX_UNITS + 1][2];
	uint32_t faults = 0, start = 0, sm;
	const uint32_t n = list_units(a, units, &faults);
	const uint32_t height =
		a->rule == SM90 ? (a->next_n + 1) / 2 : a->next_n;

	units[n][0] = (int32_t)(a->batch * height); /* the end */
	units[n][1] = 0;
	for (sm = 0; sm <= a->num_sms; sm++) {
		const uint32_t rest = n % a->num_sms;

		memcpy(want + sm * 2, units[start], 8);
		start += n / a->num_sms;
		start += a->rule == SM90 ? sm >= a->num_sms - rest : sm < rest;
		if (start > n)
			start = n; /* past the last SM */
	}
	return faults;
}

static void
check_schedule(const spmla_indexer_schedule_args *a)
{
	static int32_t want[(MAX_SMS + 2) * 2];
	uint32_t faults;

	memset(want, 0x5A, sizeof want);
	memset(schedule, 0x5A, sizeof schedule);
	faults = oracle(a, want);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, a, NULL), SPMLA_OK);
	ck_assert_mem_eq(schedule, want, sizeof want);
	ck_assert_uint_eq(fixture_status(&f).count, faults);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
}

static void
expect(const int32_t (*want)[2], uint32_t count)
{
	ck_assert_mem_eq(schedule, want, count * sizeof *want);
}

START_TEST(random_batches_equal_the_list_of_units)
{
	static const uint32_t sms[6] = {1, 2, 7, 78, 132, 148};
	const uint32_t rounds = fixture_rounds(3000, 3000);
	uint64_t rng = test_seed() + 21;
	uint32_t round, i;

	for (round = 0; round < rounds; round++) {
		const uint32_t rule = 1 + round % 3;
		const uint32_t next_n =
			rule == VARLEN ? 1 : 1 + rng_below(&rng, 5);
		const uint32_t most = round % 5 ? 3000 : 300;
		spmla_indexer_schedule_args a =
			args_of(rule, 1 + rng_below(&rng, 40), next_n,
				sms[rng_below(&rng, 6)]);

		a.context_lens_stride_elems = next_n + rng_below(&rng, 3);
		for (i = 0; i < MAX_LENS / 16; i++) {
			lens[i] = rng_below(&rng, 4)
					  ? (int32_t)rng_below(&rng, most)
					  : 0;
			indices[i] = (int32_t)rng_below(&rng, 2);
		}
		check_schedule(&a);
	}
}
END_TEST

/* 4, 1 and 3 splits; 8 units are 2 for each of 4 SMs. */
START_TEST(three_requests_on_four_sms)
{
	static const int32_t want[5][2] = {
		{0, 0}, {0, 2}, {1, 0}, {2, 1}, {3, 0}};
	spmla_indexer_schedule_args a = args_of(SM90, 3, 1, 4);

	memcpy(lens, (const int32_t[]){1000, 100, 600}, 12);
	check_schedule(&a);
	expect(want, 5);
	a.rule = SM100;
	check_schedule(&a);
	expect(want, 5);
	a.rule = VARLEN; /* the same requests, each of one token */
	memcpy(indices, (const int32_t[]){5, 9, 5}, 12);
	check_schedule(&a);
	expect(want, 5);
}
END_TEST

/* 600 rows of 2^23 splits; over 5 SMs they leave no rest, over 7 they do. */
START_TEST(more_units_than_32_bits_count)
{
	enum { ROWS = 600 };
	const uint32_t sms = _i ? 7 : 5;
	const uint64_t segs = 1u << 23, units = ROWS * segs;
	const uint64_t each = units / sms, pivot = sms - units % sms;
	spmla_indexer_schedule_args a = args_of(SM90, ROWS, 1, sms);
	uint64_t sm;

	for (sm = 0; sm < ROWS; sm++)
		lens[sm] = INT32_MAX;
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (sm = 0; sm <= sms; sm++) {
		const uint64_t unit = sm * each + (sm > pivot ? sm - pivot : 0);

		ck_assert_uint_eq((uint32_t)schedule[2 * sm], unit / segs);
		ck_assert_uint_eq((uint32_t)schedule[2 * sm + 1], unit % segs);
	}
}
END_TEST

/* Last tokens of 1000 and 100: 4 splits and 1. SM90: 2 atoms each, 10 units,
 * 2 2 3 3. SM100: 15 units, 4 4 4 3, and 4 units of 3 tokens are a split and a
 * third. */
START_TEST(several_tokens_a_request)
{
	static const int32_t sm90[5][2] = {
		{0, 0}, {0, 2}, {1, 0}, {1, 3}, {4, 0}};
	static const int32_t sm100[5][2] = {
		{0, 0}, {0, 1}, {0, 2}, {3, 0}, {6, 0}};
	spmla_indexer_schedule_args a = args_of(SM90, 2, 3, 4);

	memcpy(lens, (const int32_t[]){998, 999, 1000, 98, 99, 100}, 24);
	check_schedule(&a);
	expect(sm90, 5);
	a.rule = SM100;
	check_schedule(&a);
	expect(sm100, 5);
}
END_TEST

/* Runs 0-1, 2, 3-5 with last lengths 300, 0 and 513: 2 splits of 2 tokens, none
 * of 1, 3 of 3: 13 units on 3 SMs, 5 4 4. Unit 5 is (5 - 4) / 3 = split 0 of
 * the third run, unit 9 is split 1. */
START_TEST(neighbours_of_one_index_are_one_request)
{
	static const int32_t want[4][2] = {{0, 0}, {3, 0}, {3, 1}, {6, 0}};
	const spmla_indexer_schedule_args a = args_of(VARLEN, 6, 1, 3);

	memcpy(lens, (const int32_t[]){9999, 300, 0, 1, 2, 513}, 24);
	memcpy(indices, (const int32_t[]){7, 7, -1, 7, 7, 7}, 24);
	check_schedule(&a);
	expect(want, 4);
}
END_TEST

/* Runs of 700 rows: kernels take 1024 rows at a time, the emulator's 128. */
START_TEST(a_run_may_be_longer_than_a_block)
{
	const spmla_indexer_schedule_args a = args_of(VARLEN, 2300, 1, 132);
	uint32_t i;

	for (i = 0; i < a.batch; i++) {
		lens[i] = (int32_t)(i % 2000);
		indices[i] = (int32_t)(i / 700);
	}
	check_schedule(&a);
}
END_TEST

START_TEST(without_work_every_row_is_the_end)
{
	static const int32_t want[3][4][2] = {{{6, 0}, {6, 0}, {6, 0}, {6, 0}},
					      {{9, 0}, {9, 0}, {9, 0}, {9, 0}},
					      {{3, 0}, {3, 0}, {3, 0}, {3, 0}}};
	spmla_indexer_schedule_args a;
	uint32_t rule;

	memset(lens, 0, sizeof lens);
	for (rule = SM90; rule <= VARLEN; rule++) {
		a = args_of(rule, 3, rule == VARLEN ? 1 : 3, 3);
		check_schedule(&a);
		expect(want[rule - 1], 4);
		a.batch = 0;
		check_schedule(&a);
		expect((const int32_t[4][2]){{0, 0}, {0, 0}, {0, 0}, {0, 0}},
		       4);
	}
}
END_TEST

START_TEST(requests_without_keys_are_passed_over)
{
	static const int32_t want[3][2] = {{1, 0}, {4, 0}, {6, 0}};
	spmla_indexer_schedule_args a = args_of(SM90, 6, 1, 2);

	memcpy(lens, (const int32_t[]){0, 1, 0, 0, 256, 0}, 24);
	check_schedule(&a);
	expect(want, 3);
	a.rule = SM100;
	check_schedule(&a);
	expect(want, 3);
}
END_TEST

/* 3 units on 132 SMs: SM90 gives them to the last three, SM100 to the first. */
START_TEST(with_more_sms_than_units_one_end_is_idle)
{
	spmla_indexer_schedule_args a = args_of(SM90, 1, 1, 132);

	lens[0] = 700;
	check_schedule(&a);
	ck_assert_int_eq(schedule[2 * 129 + 1], 0);
	ck_assert_int_eq(schedule[2 * 130 + 1], 1);
	ck_assert_int_eq(schedule[2 * 131 + 1], 2);
	a.rule = SM100;
	check_schedule(&a);
	ck_assert_int_eq(schedule[2 * 1 + 1], 1);
	ck_assert_int_eq(schedule[2 * 3], 1);
	ck_assert_int_eq(schedule[2 * 131], 1);
}
END_TEST

START_TEST(a_length_below_zero_counts_as_none_and_is_reported)
{
	const spmla_indexer_schedule_args a = args_of(SM100, 4, 2, 3);
	spmla_device_status status;

	memcpy(lens, (const int32_t[]){1, 500, -9, 600, 3, -1, 1, INT32_MIN},
	       32);
	check_schedule(&a); /* only the last token's length is read */
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 2);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_LENGTH);
	ck_assert_uint_eq(status.row, 2);
}
END_TEST

/* 1024 requests of 2^23 splits and 4 tokens are 2^35 units, or 2^34 of atoms;
 * with an SM a request each starts one. */
START_TEST(units_do_not_wrap)
{
	spmla_indexer_schedule_args a = args_of(SM100, 1024, 4, 256);
	uint32_t i;

	for (i = 0; i < 4096; i++)
		lens[i] = INT32_MAX;
	for (a.rule = SM90; a.rule <= SM100; a.rule++) {
		ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL),
				 SPMLA_OK);
		for (i = 0; i <= 256; i++) {
			ck_assert_int_eq(schedule[2 * i],
					 i * 4 * (a.rule == SM90 ? 2 : 4));
			ck_assert_int_eq(schedule[2 * i + 1], 0);
		}
	}
	/* 2^23 = 3 * 2796202 + 2: SM90 gives 2796202 units to the first of 3
	 * SMs and one more to the others, SM100 one more to the first two. */
	a = args_of(SM90, 1, 1, 3);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(schedule[3], 2796202);
	ck_assert_int_eq(schedule[5], 5592405);
	a.rule = SM100;
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(schedule[3], 2796203);
	ck_assert_int_eq(schedule[5], 5592406);
}
END_TEST

START_TEST(rows_of_lengths_may_be_far_apart)
{
	spmla_indexer_schedule_args a = args_of(SM90, 3, 2, 7);
	int32_t dense[8 * 2];

	memcpy(lens, (const int32_t[]){1, 900, 1, 2000, 1, 300}, 24);
	check_schedule(&a);
	memcpy(dense, schedule, sizeof dense);
	memset(lens, 0x7f, sizeof lens);
	lens[1] = 900;
	lens[1001] = 2000;
	lens[2001] = 300;
	a.context_lens_stride_elems = 1000;
	check_schedule(&a);
	ck_assert_mem_eq(schedule, dense, sizeof dense);
}
END_TEST

START_TEST(only_the_number_of_splits_counts)
{
	spmla_indexer_schedule_args a = args_of(SM90, 3, 1, 5);
	int32_t first[6 * 2];

	for (a.rule = SM90; a.rule <= VARLEN; a.rule++) {
		memcpy(indices, (const int32_t[]){1, 2, 3}, 12);
		memcpy(lens, (const int32_t[]){1, 257, 1024}, 12);
		check_schedule(&a);
		memcpy(first, schedule, sizeof first);
		memcpy(lens, (const int32_t[]){256, 512, 769}, 12);
		check_schedule(&a);
		ck_assert_mem_eq(schedule, first, sizeof first);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{three_requests_on_four_sms, 1},
		{several_tokens_a_request, 1},
		{more_units_than_32_bits_count, 2},
		{neighbours_of_one_index_are_one_request, 1},
		{a_run_may_be_longer_than_a_block, 1},
		{random_batches_equal_the_list_of_units, 1},
	};
	const theme_test edge[] = {
		{without_work_every_row_is_the_end, 1},
		{requests_without_keys_are_passed_over, 1},
		{with_more_sms_than_units_one_end_is_idle, 1},
		{a_length_below_zero_counts_as_none_and_is_reported, 1},
		{units_do_not_wrap, 1},
	};
	const theme_test layout[] = {
		{rows_of_lengths_may_be_far_apart, 1},
	};
	const theme_test determinism[] = {
		{only_the_number_of_splits_counts, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism)};

	return RUN_THEMES(themes);
}
