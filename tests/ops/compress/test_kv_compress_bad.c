/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: bad data, and tokens that are no row of a group.
 */
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"

#include <string.h>

/* PAGED, two groups of ratio 4 of row 1, V4_FP8. */
static void
open_two(compress_rig *r, uint32_t state, uint32_t cache)
{
	compress_rig_open(r, state, cache, 6, 4, 0);
	compress_rig_put(r, 1, 0, r->history);
	compress_rig_request(r, 1, 0, 2 * r->a.ratio);
}

/* Who a report of the token names: its row of the table, if that has it. */
static uint32_t
who(const compress_rig *r, uint32_t token)
{
	const uint32_t row = (uint32_t)r->row[token];

	return row < COMPRESS_RIG_ROWS ? row : token;
}

/* One report, and nothing is written. */
static void
reported(compress_rig *r, uint32_t fault, uint32_t token)
{
	uint64_t i;

	compress_rig_reset(r);
	compress_rig_run(r);
	if (fault)
		expect_status(&r->f, 1, fault, who(r, token), 0);
	else
		ck_assert_uint_eq(fixture_status(&r->f).count, 0);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	for (i = 0; i < r->cache_bytes; i++)
		ck_assert(r->cache[i] == 0xAB);
}

/* Token 3 ends the only group. */
START_TEST(bad_data_skips_a_token_and_is_reported_once)
{
	static const int32_t bad[3] = {-1, COMPRESS_RIG_ROWS, INT32_MIN};
	static const int64_t none[3] = {-1, -2, INT64_MIN};
	uint32_t i;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8);
	r.slots[7] = -1;
	for (i = 0; i < 3; i++) {
		r.slots[3] = none[i];
		reported(&r, 0, 0);
	}
	r.slots[3] = r.a.cache.pages * 4;
	r.positions[3] = -1;
	reported(&r, SPMLA_FAULT_SLOT, 3);
	r.slots[3] = INT64_MAX;
	reported(&r, SPMLA_FAULT_SLOT, 3);
	r.slots[3] = 0;
	reported(&r, SPMLA_FAULT_POSITION, 3);
	r.positions[3] = INT32_MIN;
	reported(&r, SPMLA_FAULT_POSITION, 3);
	r.positions[3] = INT32_MAX; /* % 4 == 3 */
	reported(&r, SPMLA_FAULT_POSITION, 3);
	r.positions[3] = 2; /* inside a group: nothing is wrong */
	r.row[3] = -1;
	reported(&r, 0, 0);
	r.positions[3] = 7;
	for (i = 0; i < 3; i++) {
		r.row[3] = bad[i];
		reported(&r, SPMLA_FAULT_ROW, 3);
	}
	r.row[3] = 1;
	r.a.cos_sin_rows = 4; /* group 1 begins at 4 */
	reported(&r, SPMLA_FAULT_POSITION, 3);
	r.a.cos_sin_rows = 5;
	compress_rig_check(&r);
	compress_rig_close(&r);
}
END_TEST

/* The call has all that the group needs, and a table row that is none. */
START_TEST(ring_of_a_row_that_is_not_there_stores_nothing)
{
	const int32_t bad[3] = {-1, COMPRESS_RIG_ROWS, INT32_MIN};
	uint32_t i, t;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 6,
			  4, 0);
	compress_rig_ring(&r, 8);
	compress_rig_request(&r, 1, 0, 4);
	for (i = 0; i < 3; i++) {
		for (t = 0; t < 4; t++)
			r.row[t] = bad[i];
		reported(&r, SPMLA_FAULT_ROW, 3);
	}
	for (t = 0; t < 4; t++)
		r.row[t] = 1;
	compress_rig_check(&r);
	compress_rig_close(&r);
}
END_TEST

/* One report of token 7, whose key, INDEX_FP8, is zeros with the least scale;
 * nothing else is written. */
static void
zeros(compress_rig *r)
{
	const uint64_t page = r->a.cache.page_stride_bytes;
	const uint64_t key = (uint64_t)r->slots[7];
	uint8_t *first = r->cache + key / 4 * page;
	uint8_t *scale = first + 4 * 128 + key % 4 * 4;
	float got;
	uint64_t i;

	compress_rig_reset(r);
	compress_rig_run(r);
	expect_status(&r->f, 1, SPMLA_FAULT_PAGE, who(r, 7), 0);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	memcpy(&got, scale, 4);
	ck_assert(got == 0x1p-22f);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(first[key % 4 * 128 + i], 0);
	memset(scale, 0xAB, 4);
	memset(first + key % 4 * 128, 0xAB, 128);
	for (i = 0; i < r->cache_bytes; i++)
		ck_assert(r->cache[i] == 0xAB);
}

/* Two pages of a group are gone: one report. The group after it needs the later
 * one as well. */
START_TEST(pages_that_are_not_there_make_keys_of_zeros)
{
	const int32_t bad[3] = {-1, COMPRESS_RIG_ROWS * 6, INT32_MIN};
	int32_t *page;
	uint32_t i;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8);
	r.slots[3] = -1;
	page = r.table + r.a.table_stride_elems;
	for (i = 0; i < 3; i++) {
		page[0] = page[1] = bad[i];
		zeros(&r);
	}
	page[1] = 0;
	zeros(&r);
	page[0] = 1;
	r.cols[1] = 1;
	zeros(&r);
	r.cols[1] = -1;
	zeros(&r);
	/* The first group needs no page but its own. */
	r.cols[1] = 6;
	page[0] = 0;
	page[1] = -1;
	compress_rig_put(&r, 1, 0, 4);
	r.slots[3] = 2;
	r.slots[7] = -1;
	compress_rig_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	compress_rig_close(&r);
}
END_TEST

/* A row of the call is found by its row and position, not by its distance: the
 * token before is another request's. */
START_TEST(a_token_of_another_request_is_no_row)
{
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16, 6,
			  4, 0);
	compress_rig_ring(&r, 12);
	compress_rig_put(&r, 0, 0, 3);
	compress_rig_put(&r, 1, 0, 11);
	compress_rig_request(&r, 0, 3, 8); /* up to position 10 */
	compress_rig_request(&r, 1, 11, 1);
	compress_rig_check(&r);
	/* The same row, but not the positions before: what is kept counts. */
	r.row[7] = 1;
	r.slots[8] = compress_rig_slot(&r, 1, 11);
	r.positions[7] = 9;
	compress_rig_check(&r);
	compress_rig_close(&r);
}
END_TEST

/* One that was skipped has row 0 and position 0, as if it began that row. */
START_TEST(a_token_without_context_is_no_row)
{
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 6,
			  4, 0);
	compress_rig_ring(&r, 8);
	r.a.context_lens = r.lens;
	compress_rig_put(&r, 0, 0, 1);
	compress_rig_request(&r, 1, 0, 1);
	compress_rig_request(&r, 0, 1, 3);
	r.row[0] = r.lens[0] = 0;
	r.slots[0] = -1;
	compress_rig_check(&r);
	/* With one it is. */
	compress_rig_put(&r, 0, 0, 4);
	memcpy(r.call_kv, r.kv, r.width * 4);
	memcpy(r.call_score, r.score, r.width * 4);
	memset(r.state, 0xff, r.state_bytes);
	compress_rig_put(&r, 0, 1, 4);
	r.lens[0] = 1;
	compress_rig_check(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	compress_rig_close(&r);
}
END_TEST

/* Blocks of a GPU write both at once: values are whole, keys need not be. */
START_TEST(of_two_keys_for_one_slot_every_value_is_that_of_one)
{
	uint8_t one[2][1024];
	uint32_t i;
	compress_rig r;

	open_two(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_BF16);
	for (i = 0; i < 2; i++) {
		r.slots[4 * i + 3] = 2;
		r.slots[7 - 4 * i] = -1;
		compress_rig_run(&r);
		memcpy(one[i], r.cache + 2 * 1024, 1024);
	}
	r.slots[3] = r.slots[7] = 2;
	compress_rig_run(&r);
	for (i = 0; i < 1024; i += 2)
		ck_assert(!memcmp(r.cache + 2048 + i, one[0] + i, 2) ||
			  !memcmp(r.cache + 2048 + i, one[1] + i, 2));
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{bad_data_skips_a_token_and_is_reported_once, 1},
		{ring_of_a_row_that_is_not_there_stores_nothing, 1},
		{pages_that_are_not_there_make_keys_of_zeros, 1},
		{a_token_of_another_request_is_no_row, 1},
		{a_token_without_context_is_no_row, 1},
		{of_two_keys_for_one_slot_every_value_is_that_of_one, 1},
	};
	const theme themes[] = {

		THEME("edge", NULL, NULL, edge),

	};

	return RUN_THEMES(themes);
}
