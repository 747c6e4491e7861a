/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: windows of tokens in an image, which see all of it that was
 * gathered.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/combine_index_rig.h"

static sight_rig r;

/* Request 1 has 19 keys; keys 7 .. 18 are in rows 25 .. 36; a window of 3,
 * images of at most 4 keys, no top-k. */
static void
setup(void)
{
	sight_open(&r);
	r.a.topk = 0;
	r.a.topk_indices = NULL;
	r.a.image_spans = r.spans;
	r.a.max_image = 4;
	r.req[0] = 1;
}

static void
teardown(void)
{
	sight_close(&r);
}

static void
at(int32_t pos, int32_t first, int32_t last)
{
	r.context[0] = pos + 1;
	r.spans[0] = first;
	r.spans[1] = last;
}

/* Position 12 of 11 .. 14: 10 and 11 of the window, 13 and 14. 15 of 12 .. 15
 * has three to the left, one more than the window. */
START_TEST(window_takes_in_the_image)
{
	at(12, 11, 14);
	sight_expect(&r, (const int32_t[]){28, 29, 30, 31, 32, -1, -1, -1, -1},
		     5, 0, 0);
	at(15, 12, 15);
	sight_expect(&r, (const int32_t[]){30, 31, 32, 33, -1, -1, -1, -1, -1},
		     4, 0, 0);
	at(12, 13, 14); /* not in it */
	sight_expect(&r, (const int32_t[]){28, 29, 30, -1, -1, -1, -1, -1, -1},
		     3, 0, 0);
}
END_TEST

/* 13 / 4 = 3 entries, whatever the image holds. */
START_TEST(compressed_entries_are_those_of_the_position)
{
	r.a.topk = 2;
	r.a.topk_indices = r.topk;
	memcpy(r.topk, (const int32_t[]){2, 3}, 8);
	at(12, 12, 13);
	sight_expect(&r, (const int32_t[]){22, 28, 29, 30, 31, -1, -1, -1, -1},
		     5, SPMLA_FAULT_INDEX, 1);
}
END_TEST

/* The image began before 7, and goes on behind 18. */
START_TEST(keys_that_were_not_gathered_are_not_seen)
{
	at(8, 5, 9);
	sight_expect(&r, (const int32_t[]){25, 26, 27, -1, -1, -1, -1, -1, -1},
		     3, 0, 0);
	at(17, 17, INT32_MAX);
	sight_expect(&r, (const int32_t[]){33, 34, 35, 36, -1, -1, -1, -1, -1},
		     4, 0, 0);
}
END_TEST

/* An image longer than it may be: the first 1 + 4 of 10 .. 17. */
START_TEST(window_and_image_are_no_more_than_a_row_has)
{
	r.a.window = 1;
	at(13, 0, 18);
	sight_expect(&r, (const int32_t[]){28, 29, 30, 31, 32, -1, -1, -1, -1},
		     5, 0, 0);
}
END_TEST

START_TEST(random_images_equal_the_rule)
{
	static const uint32_t windows[4] = {1, 8, 64, 130};
	static const uint32_t images[4] = {1, 7, 50, 200};
	uint64_t rng = test_seed() + 60 + (uint64_t)_i;
	uint32_t i;

	r.a.window = windows[_i % 4];
	r.a.max_image = images[_i / 4 % 4];
	r.a.ratio = _i % 2 ? 4 : 1;
	r.a.topk = _i % 3 ? 16 : 0;
	r.a.topk_indices = r.topk;
	r.a.topk_stride_elems = 16;
	r.a.width = r.a.topk + r.a.window + r.a.max_image;
	r.a.indices_stride_elems = r.a.width + 3;
	r.a.tokens = SIGHT_TOKENS;
	r.a.requests = SIGHT_REQUESTS;
	r.a.window_row = 1000 / r.a.ratio;
	r.a.request_rows = r.a.window_row + 1000;
	index_random(&rng, r.topk, SIGHT_TOKENS * 16, 200);
	for (i = 0; i < SIGHT_REQUESTS; i++) {
		r.seq[i] = 200 + (int32_t)rng_below(&rng, 800);
		r.gather[i] = 1 + (int32_t)rng_below(&rng, (uint32_t)r.seq[i]);
	}
	for (i = 0; i < SIGHT_TOKENS; i++) {
		const uint32_t b = rng_below(&rng, SIGHT_REQUESTS);

		r.req[i] = (int32_t)b;
		r.context[i] = r.seq[b] -
			       (int32_t)rng_below(&rng, (uint32_t)r.gather[b]);
		r.spans[2 * i] =
			r.context[i] - (int32_t)rng_below(&rng, 90) + 5;
		r.spans[2 * i + 1] =
			r.spans[2 * i] + (int32_t)rng_below(&rng, 300);
	}
	sight_check(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{window_takes_in_the_image, 1},
		{compressed_entries_are_those_of_the_position, 1},
	};
	const theme_test edge[] = {
		{keys_that_were_not_gathered_are_not_seen, 1},
		{window_and_image_are_no_more_than_a_row_has, 1},
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
