/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of V4's gathered prompts: the source's vector, what has to hold for
 * any batch, and refusals.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

enum { MOST = 40 };

/* vLLM's test: window 64, 4 queries each, so 4 + 63 = 67 are gathered; N = 144
 * / 4 = 36; M = 36 + 67 = 103; its workspace is 4 * (1024 / 4 + 64 + 128) =
 * 1792 rows, and 5 * 103 = 515. */
START_TEST(requests_of_the_source_share_one_chunk)
{
	static const uint32_t seq[5] = {80, 96, 112, 128, 144};
	static const uint32_t gather[5] = {67, 67, 67, 67, 67};
	spmla_gathered_chunk got[5];
	uint32_t count = 0;

	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 5, 4, 1792,
						     got, 5, &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(got[0].requests.first, 0);
	ck_assert_uint_eq(got[0].requests.end, 5);
	ck_assert_uint_eq(got[0].window_row, 36);
	ck_assert_uint_eq(got[0].request_rows, 103);
}
END_TEST

/* 309 rows hold three of 36 + 67 and no fourth; of ratio 1 there are no
 * compressed keys, so 309 / 67 = 4 requests fit. */
START_TEST(a_chunk_ends_before_the_request_that_makes_all_too_large)
{
	static const uint32_t seq[5] = {80, 96, 144, 128, 144};
	static const uint32_t gather[5] = {67, 67, 67, 67, 67};
	spmla_gathered_chunk got[5];
	uint32_t count = 0;

	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 5, 4, 309,
						     got, 5, &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(got[0].requests.end, 3);
	ck_assert_uint_eq(got[1].requests.first, 3);
	ck_assert_uint_eq(got[1].request_rows, 103);
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 5, 1, 309,
						     got, 5, &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(got[0].requests.end, 4);
	ck_assert_uint_eq(got[0].window_row, 0);
	ck_assert_uint_eq(got[0].request_rows, 67);
}
END_TEST

START_TEST(any_request_lies_in_one_chunk_that_fits_and_is_full)
{
	uint64_t rng = test_seed();
	uint32_t round, i, c;

	for (round = 0; round < 400; round++) {
		const uint32_t requests = rng_below(&rng, MOST);
		const uint32_t ratio = rng_below(&rng, 2) ? 4 : 128;
		const uint32_t room = 400 + rng_below(&rng, 2000);
		uint32_t seq[MOST], gather[MOST], count, next = 0;
		spmla_gathered_chunk got[MOST];

		for (i = 0; i < requests; i++) {
			seq[i] = rng_below(&rng, 1000);
			gather[i] = rng_below(&rng, 150);
		}
		ck_assert_int_eq(spmla_split_gathered_chunks(
					 seq, gather, requests, ratio, room,
					 got, MOST, &count, NULL),
				 SPMLA_OK);
		for (c = 0; c < count; c++) {
			const spmla_range *r = &got[c].requests;
			uint32_t keys = 0, others = 0;

			ck_assert_uint_eq(r->first, next);
			ck_assert_uint_gt(r->end, r->first);
			for (i = r->first; i < r->end; i++) {
				if (seq[i] / ratio > keys)
					keys = seq[i] / ratio;
				if (gather[i] > others)
					others = gather[i];
			}
			ck_assert_uint_eq(got[c].window_row, keys);
			ck_assert_uint_eq(got[c].request_rows, keys + others);
			ck_assert_uint_le((r->end - r->first) * (keys + others),
					  room);
			next = r->end;
			if (next == requests)
				break;
			if (seq[next] / ratio > keys)
				keys = seq[next] / ratio;
			if (gather[next] > others)
				others = gather[next];
			ck_assert_uint_gt((r->end + 1 - r->first) *
						  (keys + others),
					  room);
		}
		ck_assert_uint_eq(next, requests);
	}
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
#define R "SPMLA_E_RANGE: split_gathered_chunks."
	static const uint32_t seq[2] = {400, 4000}, gather[2] = {10, 11};
	spmla_gathered_chunk got[2];
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count = 7;

	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 2, 4, 1010,
						     got, 2, &count, &diag),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(&diag),
			 R "seq_lens[1]: got 1011, want at most 1010");
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 2, 0, 1011,
						     got, 2, &count, &diag),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(&diag),
			 R "ratio: got 0, want at least 1");
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 2, 4, 1011,
						     got, 1, &count, &diag),
			 SPMLA_E_SPACE);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_SPACE: split_gathered_chunks.chunks: "
			 "got 1, want at least 2");
	ck_assert_int_eq(spmla_split_gathered_chunks(NULL, gather, 2, 4, 1011,
						     got, 2, &count, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, NULL, 2, 4, 1011, got,
						     2, &count, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 2, 4, 1011,
						     NULL, 2, &count, NULL),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_split_gathered_chunks(seq, gather, 2, 4, 1011,
						     got, 2, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_uint_eq(count, 7);
	ck_assert_int_eq(spmla_split_gathered_chunks(NULL, NULL, 0, 4, 0, NULL,
						     0, &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 0);
#undef R
}
END_TEST

SUITE
{
	const theme_test chunks[] = {
		{requests_of_the_source_share_one_chunk, 1},
		{a_chunk_ends_before_the_request_that_makes_all_too_large, 1},
		{any_request_lies_in_one_chunk_that_fits_and_is_full, 1},
	};
	const theme_test error[] = {{what_is_wrong_is_named, 1}};
	const theme themes[] = {THEME("chunks", NULL, NULL, chunks),
				THEME("error", NULL, NULL, error)};

	return RUN_THEMES(themes);
}
