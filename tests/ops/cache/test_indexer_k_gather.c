/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: what lands where, against a model of the contract and bytes
 * placed by hand. Every check compares every byte of the outputs, red zones
 * included.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/indexer_k_gather.h"

enum { MAX_KEYS = 4096, MAX_REQUESTS = 700, RED_ZONE = 64 };

static gather_rig g;
static int32_t cu[MAX_REQUESTS + 1];
static uint8_t *k;
static uint8_t *scales;                               /* f32 */
static const uint8_t missing[4] = {0, 0, 0x80, 0xff}; /* -inf */

static void
open_rig(uint32_t entries, uint32_t rows, uint32_t columns, uint64_t pad)
{
	gather_open(&g, SPMLA_LAYOUT_INDEX_FP8, entries, rows, columns, pad);
	k = test_alloc(MAX_KEYS * 128 + RED_ZONE, 0);
	scales = test_alloc(MAX_KEYS * 4 + RED_ZONE, 0);
}

static void
close_rig(void)
{
	gather_close(&g);
	free(k);
	free(scales);
}

static spmla_indexer_k_gather_args
args_of(uint32_t requests, uint32_t keys)
{
	const spmla_indexer_k_gather_args a = {
		sizeof a,  requests, keys, g.rows,
		g.columns, g.stride, cu,   g.req_row,
		g.table,   g.cols,   k,    (float *)(void *)scales,
		g.cache,
	};

	return a;
}

static void
poison(void)
{
	memset(k, 123, MAX_KEYS * 128 + RED_ZONE);
	memset(scales, 123, MAX_KEYS * 4 + RED_ZONE);
}

/* Requests of cu into `keys` rows. */
static void
check_gather(uint32_t requests, uint32_t keys)
{
	static gather_key model[MAX_KEYS];
	static uint8_t want_k[MAX_KEYS * 128 + RED_ZONE];
	static uint8_t want_scales[MAX_KEYS * 4 + RED_ZONE];
	const uint64_t codes_bytes = g.cache.entries_per_page * 128;
	const spmla_indexer_k_gather_args a = args_of(requests, keys);
	int64_t bounds[MAX_REQUESTS + 1];
	uint32_t faults, n;

	for (n = 0; n <= requests; n++)
		bounds[n] = cu[n];
	faults = gather_model(&g, bounds, requests, NULL, model, keys);
	memset(want_k, 123, sizeof want_k);
	memset(want_scales, 123, sizeof want_scales);
	for (n = 0; n < keys; n++) {
		const gather_key *key = &model[n];

		if (!key->owned)
			continue;
		memset(want_k + n * 128, 0, 128);
		memcpy(want_scales + n * 4, missing, 4);
		if (!key->page)
			continue;
		memcpy(want_k + n * 128, key->page + key->entry * 128, 128);
		memcpy(want_scales + n * 4,
		       key->page + codes_bytes + key->entry * 4, 4);
	}
	poison();
	ck_assert_int_eq(spmla_status_clear(g.f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	check_bytes(k, want_k, sizeof want_k);
	check_bytes(scales, want_scales, sizeof want_scales);
	ck_assert_uint_eq(fixture_status(&g.f).count, faults);
}

/* cu = the running sum of lens, from `first`. */
static void
set_lens(int32_t first, const int32_t *lens, uint32_t requests)
{
	uint32_t b;

	cu[0] = first;
	for (b = 0; b < requests; b++)
		cu[b + 1] = cu[b] + lens[b];
}

START_TEST(requests_of_any_length_are_copied)
{
	static const uint32_t entries[5] = {64, 16, 4, 2, 1};
	uint32_t round, b, i;

	for (i = 0; i < 5; i++) {
		open_rig(entries[i], 6, 8, i % 2 ? 48 : 0);
		for (round = 0; round < 12; round++) {
			int32_t lens[6];

			for (b = 0; b < 6; b++)
				lens[b] = (int32_t)rng_below(
					&g.rng, 8 * entries[i] + 1);
			set_lens(0, lens, 6);
			check_gather(6, (uint32_t)cu[6] + 5);
			gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
		}
		close_rig();
	}
}
END_TEST

/* More than any block of a device has items; in the second round also with two
 * bounds, one below the bound before it and one above that behind it. */
START_TEST(any_number_of_requests_find_their_keys)
{
	int32_t lens[MAX_REQUESTS];
	uint32_t round, b;

	for (round = 0; round < 2; round++) {
		open_rig(2, MAX_REQUESTS, 2, 0);
		for (b = 0; b < MAX_REQUESTS; b++)
			lens[b] = (int32_t)rng_below(&g.rng, 5);
		set_lens(5, lens, MAX_REQUESTS);
		if (round) {
			cu[300] = -5;
			cu[511] = cu[520];
		}
		check_gather(MAX_REQUESTS, (uint32_t)cu[MAX_REQUESTS] + 3);
		close_rig();
	}
}
END_TEST

START_TEST(codes_may_lie_at_any_address)
{
	spmla_indexer_k_gather_args a;
	uint8_t alone[40 * 128];
	uint32_t by;

	open_rig(16, 1, 4, 0);
	set_lens(0, (const int32_t[]){40}, 1);
	check_gather(1, 40);
	memcpy(alone, k, sizeof alone);
	for (by = 1; by < 4; by++) {
		a = args_of(1, 40);
		a.dst_k = k + by;
		poison();
		ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(k + by, alone, sizeof alone);
		ck_assert_uint_eq(k[by - 1], 123);
		ck_assert_uint_eq(k[by + sizeof alone], 123);
	}
	close_rig();
}
END_TEST

/* Pages of 64 entries are 64 * 128 + 64 * 4 = 8448 B; the row's pages are 2 and
 * 0. Position 63 is entry 63 of page 2: codes at 2 * 8448 + 63 * 128 = 24960,
 * scale at 2 * 8448 + 8192 + 63 * 4 = 25340. Position 64 is entry 0 of page 0:
 * codes at 0, scale at 8192. */
START_TEST(bytes_placed_by_hand_are_found)
{
	static const float scale[2] = {0.125f, 3.5f};
	static int32_t pages[2] = {2, 0};
	uint8_t code[2][128];
	spmla_indexer_k_gather_args a;

	open_rig(64, 1, 2, 0);
	memset(g.pool, 0xAB, 3 * 8448);
	memset(code[0], 0x11, 128);
	memset(code[1], 0x22, 128);
	memcpy(g.pool + 24960, code[0], 128);
	memcpy(g.pool + 25340, &scale[0], 4);
	memcpy(g.pool, code[1], 128);
	memcpy(g.pool + 8192, &scale[1], 4);
	set_lens(0, (const int32_t[]){65}, 1);
	a = args_of(1, 70);
	a.block_table = pages;
	a.table_stride_elems = 2;
	poison();
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(k + 63 * 128, code, 256);
	ck_assert_mem_eq(scales + 63 * 4, scale, 8);
	ck_assert_uint_eq(k[62 * 128], 0xAB);
	ck_assert_uint_eq(k[65 * 128], 123);
	ck_assert_uint_eq(scales[65 * 4], 123);
	close_rig();
}
END_TEST

START_TEST(rows_that_no_request_covers_are_left_alone)
{
	open_rig(16, 3, 4, 0);
	set_lens(7, (const int32_t[]){20, 0, 31}, 3);
	check_gather(3, 100);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	check_gather(3, 58); /* exactly */
	close_rig();
}
END_TEST

START_TEST(requests_without_keys_stand_anywhere)
{
	open_rig(16, 5, 4, 16);
	set_lens(0, (const int32_t[]){0, 17, 0, 64, 0}, 5);
	check_gather(5, 81);
	set_lens(0, (const int32_t[]){0, 0, 0, 0, 0}, 5);
	check_gather(5, 3);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	close_rig();
}
END_TEST

START_TEST(a_request_reads_the_row_it_names)
{
	static const int32_t rows[3] = {4, 0, 4};

	open_rig(16, 5, 4, 0);
	g.req_row = rows;
	set_lens(0, (const int32_t[]){33, 64, 5}, 3);
	check_gather(3, 102);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	close_rig();
}
END_TEST

/* 4 columns of 16: positions 64..69 have no column. */
START_TEST(positions_past_the_table_are_missing)
{
	open_rig(16, 2, 4, 0);
	set_lens(0, (const int32_t[]){70, 10}, 2);
	check_gather(2, 80);
	gather_status(&g, 6, SPMLA_FAULT_PAGE, 0);
	close_rig();
}
END_TEST

START_TEST(columns_that_were_not_written_are_missing)
{
	static const int32_t cols[3] = {4, 1, -5};

	open_rig(16, 3, 4, 0);
	g.cols = cols;
	set_lens(0, (const int32_t[]){64, 18, 3}, 3);
	check_gather(3, 85);
	gather_status(&g, 2 + 3, SPMLA_FAULT_PAGE, 1);
	close_rig();
}
END_TEST

START_TEST(pages_outside_the_cache_are_missing)
{
	static const int32_t bad[4] = {-1, INT32_MIN, INT32_MAX, 0};
	uint32_t i;

	open_rig(16, 2, 4, 0);
	set_lens(0, (const int32_t[]){40, 64}, 2);
	for (i = 0; i < 4; i++) {
		g.table[g.stride + 2] =
			i == 3 ? (int32_t)g.cache.pages : bad[i];
		check_gather(2, 104);
		gather_status(&g, 16, SPMLA_FAULT_PAGE, 1);
	}
	close_rig();
}
END_TEST

START_TEST(a_row_outside_the_table_is_missing)
{
	static const int32_t rows[4] = {0, 2, -1, 1};

	open_rig(16, 2, 4, 0);
	g.req_row = rows;
	set_lens(0, (const int32_t[]){5, 6, 7, 8}, 4);
	check_gather(4, 26);
	gather_status(&g, 2, SPMLA_FAULT_ROW, 1);
	set_lens(0, (const int32_t[]){5, 0, 0, 8}, 4);
	check_gather(4, 13);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	close_rig();
}
END_TEST

/* Bounds 0 5 3 8: request 1 ends before it starts, request 2 starts before
 * request 1 ends and has 5..7 left. */
START_TEST(bounds_that_do_not_ascend_make_keys_missing)
{
	static const int32_t bounds[4] = {0, 5, 3, 8};
	uint8_t zeros[3 * 128] = {0};

	open_rig(16, 3, 4, 0);
	memcpy(cu, bounds, sizeof bounds);
	check_gather(3, 9);
	gather_status(&g, 2, SPMLA_FAULT_LENGTH, 1);
	ck_assert_mem_eq(k + 5 * 128, zeros, sizeof zeros);
	ck_assert_mem_eq(scales + 7 * 4, missing, 4);
	close_rig();
}
END_TEST

START_TEST(bounds_outside_the_output_make_keys_missing)
{
	static const int32_t bounds[4][4] = {
		{-3, 4, 6, 8},                 /* request 0 */
		{0, 4, 6, 9},                  /* request 2: 8 rows only */
		{0, INT32_MAX, INT32_MAX, 8},  /* all */
		{INT32_MIN, INT32_MIN, 0, 4}}; /* 0 and 1 */
	static const uint32_t faults[4] = {1, 1, 3, 2};
	static const uint32_t row[4] = {0, 2, 0, 0};
	uint32_t i;

	open_rig(16, 3, 4, 0);
	for (i = 0; i < 4; i++) {
		memcpy(cu, bounds[i], sizeof bounds[i]);
		check_gather(3, 8);
		gather_status(&g, faults[i], SPMLA_FAULT_LENGTH, row[i]);
	}
	close_rig();
}
END_TEST

START_TEST(a_request_does_not_depend_on_its_neighbours)
{
	static const int32_t rows[1] = {1};
	uint8_t alone[40 * 128];

	open_rig(16, 3, 4, 0);
	set_lens(0, (const int32_t[]){11, 40, 50}, 3);
	check_gather(3, 101);
	memcpy(alone, k + 11 * 128, sizeof alone);
	g.req_row = rows;
	set_lens(0, (const int32_t[]){40}, 1);
	check_gather(1, 40);
	ck_assert_mem_eq(k, alone, sizeof alone);
	close_rig();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{requests_of_any_length_are_copied, 1},
		{any_number_of_requests_find_their_keys, 1},
		{bytes_placed_by_hand_are_found, 1},
		{a_request_reads_the_row_it_names, 1},
	};
	const theme_test edge[] = {
		{rows_that_no_request_covers_are_left_alone, 1},
		{requests_without_keys_stand_anywhere, 1},
		{positions_past_the_table_are_missing, 1},
		{columns_that_were_not_written_are_missing, 1},
		{pages_outside_the_cache_are_missing, 1},
		{a_row_outside_the_table_is_missing, 1},
		{bounds_that_do_not_ascend_make_keys_missing, 1},
		{bounds_outside_the_output_make_keys_missing, 1},
	};
	const theme_test determinism[] = {
		{a_request_does_not_depend_on_its_neighbours, 1},
	};
	const theme_test layout[] = {
		{codes_may_lie_at_any_address, 1},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape),
				THEME("edge", NULL, NULL, edge),
				THEME("layout", NULL, NULL, layout),
				THEME("determinism", NULL, NULL, determinism)};

	return RUN_THEMES(themes);
}
