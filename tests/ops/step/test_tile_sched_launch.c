/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: the parts of a launch, and the two formats of rows. What it plans
 * is in test_tile_sched.c.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/tile_sched.h"

enum { BATCH = 5, PARTS = 12 };

static fixture f;
static int32_t lens[BATCH];
static int32_t rows[PARTS * 8 + 8];
static int32_t num_splits[BATCH + 2];

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memset(lens, 0, sizeof lens);
	memset(rows, 0x5A, sizeof rows);
	memset(num_splits, 0x5A, sizeof num_splits);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_tile_sched_args
five_requests(void)
{
	return (spmla_tile_sched_args){.struct_bytes =
					       sizeof(spmla_tile_sched_args),
				       .batch = BATCH,
				       .parts = PARTS,
				       .overhead_blocks = 5,
				       .topk = 2048,
				       .topk_lens = lens,
				       .tile_scheduler_metadata = rows,
				       .num_splits = num_splits};
}

START_TEST(both_row_formats_say_the_same)
{
	spmla_tile_sched_args a = five_requests();
	int32_t new_rows[PARTS * 8];
	uint32_t p;

	memcpy(lens, (const int32_t[]){2048, 1, 700, 0, 1999}, sizeof lens);
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	memcpy(new_rows, rows, sizeof new_rows);
	a.row_format = SPMLA_TILE_ROW_OLD;
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	for (p = 0; p < PARTS; p++) {
		const int32_t *x = rows + p * 8, *y = new_rows + p * 8;

		ck_assert(x[0] == y[0] && x[1] == y[2] && x[2] == y[1]);
		ck_assert(x[3] == y[3] && x[4] == y[4]);
		ck_assert(x[5] == 0 && x[6] == 0 && x[7] == 0 && y[7] == 0);
	}
	ck_assert_int_eq(rows[PARTS * 8], 0x5A5A5A5A);
}
END_TEST

START_TEST(only_the_number_of_blocks_counts)
{
	const spmla_tile_sched_args a = five_requests();
	int32_t first[PARTS * 8], first_splits[BATCH + 1];
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		lens[i] = (int32_t)(i * 400 + 1);
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	memcpy(first, rows, sizeof first);
	memcpy(first_splits, num_splits, sizeof first_splits);
	for (i = 0; i < BATCH; i++)
		lens[i] = (lens[i] + 63) / 64 * 64;
	ck_assert_int_eq(spmla_tile_sched(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(rows, first, sizeof first);
	ck_assert_mem_eq(num_splits, first_splits, sizeof first_splits);
}
END_TEST

/* By hand, from the table of the contract. */
START_TEST(parts_of_a_launch)
{
	static const uint32_t cases[][7] = {
		/* rule, sm_count, s_q, h_q, h_k, parts, overhead */
		{SPMLA_TILE_OLD_SM90, 132, 1, 128, 1, 66, 5},
		{SPMLA_TILE_OLD_SM90, 133, 2, 128, 1, 33, 5},
		{SPMLA_TILE_OLD_SM90, 132, 1, 129, 1, 33, 5},
		{SPMLA_TILE_OLD_SM90, 132, 2, 16, 1, 33, 5},
		{SPMLA_TILE_OLD_SM90, 132, 4, 256, 2, 8, 5}, /* 33 / 4 */
		{SPMLA_TILE_OLD_SM90, 132, 67, 128, 1, 1, 5},
		{SPMLA_TILE_OLD_SM100, 148, 1, 128, 1, 74, 5},
		{SPMLA_TILE_OLD_SM100, 148, 3, 64, 1, 49, 5},
		{SPMLA_TILE_SM90, 132, 1, 64, 1, 132, 5},
		{SPMLA_TILE_SM90, 132, 1, 128, 1, 66, 5},
		{SPMLA_TILE_SM90, 132, 5, 128, 1, 13, 5}, /* 26 / 2 */
		{SPMLA_TILE_SM90, 132, 133, 64, 1, 1, 5},
		{SPMLA_TILE_SM100_HEAD64, 148, 3, 64, 1, 49, 5},
		{SPMLA_TILE_SM100_HEAD64, 148, 149, 128, 1, 1, 5},
		{SPMLA_TILE_SM100_HEAD128, 148, 1, 128, 1, 74, 3},
		{SPMLA_TILE_SM100_HEAD128, 148, 3, 128, 1, 24, 3}, /* 49 / 2 */
		{SPMLA_TILE_SM100_HEAD128, 1, UINT32_MAX, 128, 1, 1, 3},
		{SPMLA_TILE_OLD_SM90, 2, UINT32_MAX, UINT32_MAX, 1, 1, 5},
	};
	uint32_t i, parts, overhead;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const uint32_t *c = cases[i];

		ck_assert_int_eq(spmla_tile_sched_parts(c[0], c[1], c[2], c[3],
							c[4], &parts, &overhead,
							NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(parts, c[5]);
		ck_assert_uint_eq(overhead, c[6]);
	}
}
END_TEST

START_TEST(a_launch_that_cannot_be_is_refused)
{
	static const struct {
		uint32_t rule, sm_count, s_q, h_q, h_k;
		const char *text;
	} cases[] = {
		{0, 132, 1, 64, 1, "rule: got 0, want 1, 2, 3, 4 or 5"},
		{6, 132, 1, 64, 1, "rule: got 6, want 1, 2, 3, 4 or 5"},
		{3, 0, 1, 64, 1, "sm_count: got 0, want at least 1"},
		{3, (1u << 30) + 1, 1, 64, 1,
		 "sm_count: got 1073741825, want at most 1073741824"},
		{3, 132, 0, 64, 1, "s_q: got 0, want at least 1"},
		{3, 132, 1, 63, 1, "h_q: got 63, want at least 64"},
		{4, 132, 1, 0, 1, "h_q: got 0, want at least 1"},
		{1, 132, 1, 64, 0, "h_k: got 0, want at least 1"},
		{1, 132, 1, 65, 2, "h_q: got 65, want a multiple of 2"},
	};
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t i, parts = 77, overhead = 77;
	char text[200];

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ck_assert_int_eq(
			spmla_tile_sched_parts(cases[i].rule, cases[i].sm_count,
					       cases[i].s_q, cases[i].h_q,
					       cases[i].h_k, &parts, &overhead,
					       &diag),
			SPMLA_E_RANGE);
		spmla_diag_text(&diag, text, sizeof text);
		ck_assert(
			!strncmp(text, "SPMLA_E_RANGE: tile_sched_parts.", 32));
		ck_assert_str_eq(text + 32, cases[i].text);
	}
	ck_assert_int_eq(
		spmla_tile_sched_parts(3, 132, 1, 64, 1, NULL, &overhead, NULL),
		SPMLA_E_NULL);
	ck_assert_int_eq(
		spmla_tile_sched_parts(3, 132, 1, 64, 1, &parts, NULL, &diag),
		SPMLA_E_NULL);
	ck_assert_uint_eq(parts, 77);
	ck_assert_uint_eq(overhead, 77);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{parts_of_a_launch, 1},
	};
	const theme_test error[] = {
		{a_launch_that_cannot_be_is_refused, 1},
	};
	const theme_test layout[] = {
		{both_row_formats_say_the_same, 1},
	};
	const theme_test determinism[] = {
		{only_the_number_of_blocks_counts, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
