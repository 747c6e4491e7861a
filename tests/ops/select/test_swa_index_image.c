/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: windows of tokens in an image, which see all of it, and rows that
 * are the left half of longer ones.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/swa_rig.h"

static swa_rig r;

/* A window of 3, images of at most 4 keys. Positions 0 .. 3 are in page 5, from
 * slot 20 on, 4 .. 7 in page 3, from slot 12 on. */
static void
setup(void)
{
	swa_open(&r);
	r.a.width = 7;
	r.a.image_spans = r.spans;
	r.a.max_image = 4;
}

static void
teardown(void)
{
	swa_close(&r);
}

static void
at(int32_t pos, int32_t first, int32_t last)
{
	r.pos[0] = pos;
	r.spans[0] = first;
	r.spans[1] = last;
}

/* 5 of 4 .. 6: one to the left, which the window has, and one to the right. 6
 * of 4 .. 6 is its end; 4 its beginning. */
START_TEST(token_sees_its_image_and_the_window_before_it)
{
	at(5, 4, 6);
	swa_expect(&r, (const int32_t[]){23, 12, 13, 14, -1, -1, -1}, 7, 4);
	at(6, 4, 6);
	swa_expect(&r, (const int32_t[]){12, 13, 14, -1, -1, -1, -1}, 7, 3);
	at(4, 4, 6);
	swa_expect(&r, (const int32_t[]){22, 23, 12, 13, 14, -1, -1}, 7, 5);
	at(0, 0, 1);
	swa_expect(&r, (const int32_t[]){20, 21, -1, -1, -1, -1, -1}, 7, 2);
	at(7, 7, 7);
	swa_expect(&r, (const int32_t[]){13, 14, 15, -1, -1, -1, -1}, 7, 3);
}
END_TEST

/* 6 of 3 .. 6 has three to the left, one more than the window: it begins at
 * 6 - 2 - 1. So it does if the image began before, as 3 = 4 - 1 count. */
START_TEST(image_longer_than_the_window_is_seen_from_its_start)
{
	at(6, 3, 6);
	swa_expect(&r, (const int32_t[]){23, 12, 13, 14, -1, -1, -1}, 7, 4);
	at(6, 1, 6);
	swa_expect(&r, (const int32_t[]){23, 12, 13, 14, -1, -1, -1}, 7, 4);
	at(6, INT32_MIN, 6);
	swa_expect(&r, (const int32_t[]){23, 12, 13, 14, -1, -1, -1}, 7, 4);
}
END_TEST

/* In image 2 .. 7 token 2 sees min(5, 4) to the right. Images of one key count
 * none to the left and one to the right. */
START_TEST(keys_to_the_right_are_at_most_those_of_an_image)
{
	at(2, 2, 7);
	swa_expect(&r, (const int32_t[]){20, 21, 22, 23, 12, 13, 14}, 7, 7);
	r.a.max_image = 1;
	at(2, 2, INT32_MAX);
	swa_expect(&r, (const int32_t[]){20, 21, 22, 23, -1, -1, -1}, 7, 4);
}
END_TEST

/* An image that is twice as long as it may be: of 0 .. 7 token 3 would see all,
 * but gets the first 1 + 4 keys, its own among them. */
START_TEST(window_and_image_are_no_more_than_a_row_has)
{
	r.a.window = 1;
	r.a.width = 5;
	at(3, 0, 7);
	swa_expect(&r, (const int32_t[]){20, 21, 22, 23, 12}, 5, 5);
}
END_TEST

START_TEST(token_beside_an_image_has_its_window)
{
	static const int32_t spans[5][2] = {
		{6, 7}, {2, 4}, {0, -1}, {7, 3}, {INT32_MAX, INT32_MIN},
	};

	at(5, spans[_i][0], spans[_i][1]);
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1, -1, -1}, 7, 3);
	r.a.image_spans = NULL;
	r.a.max_image = 0; /* not read */
	swa_expect(&r, (const int32_t[]){23, 12, 13, -1, -1, -1, -1}, 7, 3);
}
END_TEST

START_TEST(replay_start_bounds_the_image_too)
{
	r.a.replay_starts = r.replay;
	at(6, 3, 7);
	r.replay[0] = 5;
	swa_expect(&r, (const int32_t[]){13, 14, 15, -1, -1, -1, -1}, 7, 3);
	r.replay[0] = 7;
	swa_expect(&r, (const int32_t[]){-1, -1, -1, -1, -1, -1, -1}, 7, 0);
}
END_TEST

/* 6 .. 9; 8 and 9 are in column 2 of 2. A ring of 4 has them. */
START_TEST(keys_to_the_right_need_their_columns)
{
	at(6, 6, 9);
	swa_expect(&r, (const int32_t[]){12, 13, 14, 15, -1, -1, -1}, 7, 6);
	swa_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(fixture_status(&r.f).count, 1);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	memcpy(r.table, (const int32_t[]){5, 3, 1, 0}, 16);
	r.a.rows = 1;
	r.a.ring = 1;
	r.a.columns = 4;
	swa_expect(&r, (const int32_t[]){12, 13, 14, 15, 4, 5, -1}, 7, 6);
	at(14, 14, 17); /* 12 .. 17 of 16 */
	swa_expect(&r, (const int32_t[]){0, 1, 2, 3, 20, 21, -1}, 7, 6);
}
END_TEST

/* The end of the last key is 2^31. */
START_TEST(image_may_end_at_the_last_position)
{
	r.a.page_tokens = 1 << 30;
	r.a.pool_pages = 2;
	memcpy(r.table, (const int32_t[]){1, 0}, 8);
	at(INT32_MAX - 1, 0, INT32_MAX);
	swa_expect(&r,
		   (const int32_t[]){(1 << 30) - 5, (1 << 30) - 4,
				     (1 << 30) - 3, (1 << 30) - 2,
				     (1 << 30) - 1, -1, -1},
		   7, 5);
}
END_TEST

/* A window of 4, rows of 8, the page of slots 0 .. 3: of position 3 the length
 * is 8. */
START_TEST(padded_row_is_as_long_as_it_is_wide)
{
	r.a.image_spans = NULL;
	r.a.padded_lens = 1;
	r.a.window = 4;
	r.a.width = 8;
	r.a.indices_stride_elems = 8;
	r.table[0] = 0;
	r.pos[0] = 3;
	swa_expect(&r, (const int32_t[]){0, 1, 2, 3, -1, -1, -1, -1}, 8, 8);
	r.slot[0] = -1;
	swa_expect(&r, (const int32_t[]){-1, -1, -1, -1, -1, -1, -1, -1}, 8, 0);
	r.slot[0] = 0;
	r.row[0] = 2;
	swa_expect(&r, (const int32_t[]){-1, -1, -1, -1, -1, -1, -1, -1}, 8, 0);
}
END_TEST

START_TEST(random_images_equal_the_rule)
{
	static const uint32_t windows[4] = {1, 3, 17, 64};
	static const uint32_t images[4] = {1, 5, 40, 100};
	uint64_t rng = test_seed() + 40 + (uint64_t)_i;
	const uint32_t hostile = _i % 3 == 2;
	uint32_t i;

	r.a.window = windows[_i % 4];
	r.a.max_image = images[_i / 4 % 4];
	r.a.width = r.a.window + r.a.max_image + (uint32_t)_i % 3;
	r.a.indices_stride_elems = r.a.width + 1;
	r.a.padded_lens = _i % 5 == 4;
	r.a.tokens = SWA_TOKENS;
	r.a.rows = SWA_ROWS;
	r.a.columns = SWA_COLUMNS;
	r.a.table_stride_elems = SWA_COLUMNS + 2;
	r.a.page_tokens = 64;
	r.a.pool_pages = 1000;
	r.a.ring = (uint32_t)_i % 2;
	r.a.replay_starts = _i & 4 ? r.replay : NULL;
	index_random(&rng, r.table, SWA_ROWS * (SWA_COLUMNS + 2), 1000);
	index_random(&rng, r.row, SWA_TOKENS, SWA_ROWS);
	index_random(&rng, r.pos, SWA_TOKENS, 64 * SWA_COLUMNS - 100);
	index_random(&rng, r.replay, SWA_ROWS, hostile ? 200 : 2);
	for (i = 0; i < SWA_TOKENS; i++) {
		r.slot[i] = (int64_t)rng_below(&rng, 8) - 1;
		r.spans[2 * i] = r.pos[i] - (int32_t)rng_below(&rng, 120) + 5;
		r.spans[2 * i + 1] =
			r.spans[2 * i] +
			(int32_t)rng_below(&rng, hostile ? 300 : 100);
		if (hostile && rng_below(&rng, 9) == 0)
			r.spans[2 * i + rng_below(&rng, 2)] = INT32_MIN;
	}
	swa_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{token_sees_its_image_and_the_window_before_it, 1},
		{image_longer_than_the_window_is_seen_from_its_start, 1},
		{keys_to_the_right_are_at_most_those_of_an_image, 1},
		{padded_row_is_as_long_as_it_is_wide, 1},
	};
	const theme_test edge[] = {
		{window_and_image_are_no_more_than_a_row_has, 1},
		{token_beside_an_image_has_its_window, 5},
		{replay_start_bounds_the_image_too, 1},
		{keys_to_the_right_need_their_columns, 1},
		{image_may_end_at_the_last_position, 1},
	};
	const theme_test determinism[] = {
		{random_images_equal_the_rule, 48},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("edge", setup, teardown, edge),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
