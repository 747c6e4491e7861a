/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefill plan: what it refuses, and that it then writes nothing.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

static spmla_diag diag;
static const uint32_t lens[4] = {3, 1, 2, 4};
static uint32_t out[4];
static spmla_range ranges[4];
static spmla_indexer_chunk pieces[8];
static uint32_t count;

static void
setup(void)
{
	diag = (spmla_diag)SPMLA_DIAG_INIT;
	memset(out, 0x5A, sizeof out);
	memset(ranges, 0x5A, sizeof ranges);
	memset(pieces, 0x5A, sizeof pieces);
	count = 0x5A5A5A5A;
}

static void
teardown(void)
{
}

static int
untouched(const void *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (((const uint8_t *)p)[i] != 0x5A)
			return 0;
	return 1;
}

static void
expect_error(spmla_status s, const char *text)
{
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(test_diag_text(&diag), text);
	ck_assert(!strncmp(text, spmla_status_name(s),
			   strlen(spmla_status_name(s))));
	ck_assert(untouched(out, sizeof out));
	ck_assert(untouched(ranges, sizeof ranges));
	ck_assert(untouched(pieces, sizeof pieces));
	ck_assert(untouched(&count, sizeof count));
}

#define P "split_decodes_and_prefills."

START_TEST(split_refuses_what_no_batch_can_be)
{
	spmla_batch_split split = SPMLA_BATCH_SPLIT_INIT, small = {0};
	static const uint32_t two[2] = {UINT32_MAX, 1}, even[3] = {2, 0, 2};

	expect_error(spmla_split_decodes_and_prefills(lens, 4, 10, 1, 0, NULL,
						      &diag),
		     "SPMLA_E_NULL: " P "split: got NULL, want a pointer");
	expect_error(spmla_split_decodes_and_prefills(NULL, 4, 10, 1, 0, &split,
						      &diag),
		     "SPMLA_E_NULL: " P "query_lens: got NULL, want a pointer");
	expect_error(spmla_split_decodes_and_prefills(lens, 4, 10, 1, 2, &split,
						      &diag),
		     "SPMLA_E_RANGE: " P "uniform: got 2, want at most 1");
	expect_error(spmla_split_decodes_and_prefills(lens, 4, 10, 1, 0, &small,
						      &diag),
		     "SPMLA_E_STRUCT_SIZE: " P "split: got 0, want 24");
	expect_error(spmla_split_decodes_and_prefills(lens, 4, 9, 1, 0, &split,
						      &diag),
		     "SPMLA_E_RANGE: " P "tokens: got 9, want at least 10");
	expect_error(spmla_split_decodes_and_prefills(even, 3, 4, 8, 1, &split,
						      &diag),
		     "SPMLA_E_RANGE: " P "tokens: got 4, want 6");
	expect_error(spmla_split_decodes_and_prefills(two, 2, UINT32_MAX, 1, 0,
						      &split, &diag),
		     "SPMLA_E_OVERFLOW: " P "query_lens: got 4294967296, want "
		     "at most 4294967295");
	ck_assert_uint_eq(split.num_decodes + split.num_prefill_tokens, 0);
	ck_assert_int_eq(spmla_split_decodes_and_prefills(lens, 4, 9, 1, 0,
							  &split, NULL),
			 SPMLA_E_RANGE);
}
END_TEST

START_TEST(threshold_refuses_heads_that_no_kernel_has)
{
	expect_error(spmla_reorder_threshold(0, 0, out, &diag),
		     "SPMLA_E_RANGE: reorder_threshold.heads: got 0, want at "
		     "least 1");
	expect_error(spmla_reorder_threshold(129, 0, out, &diag),
		     "SPMLA_E_RANGE: reorder_threshold.heads: got 129, want at "
		     "most 128");
	expect_error(spmla_reorder_threshold(64, 2, out, &diag),
		     "SPMLA_E_RANGE: reorder_threshold.arch: got 2, want at "
		     "most 1");
	expect_error(spmla_reorder_threshold(64, 0, NULL, &diag),
		     "SPMLA_E_NULL: reorder_threshold.threshold: got NULL, "
		     "want a pointer");
}
END_TEST

#undef P
#define P "split_prefill_chunks."

START_TEST(chunks_refuse_a_long_prompt_and_a_short_array)
{
	expect_error(spmla_split_prefill_chunks(lens, 4, 3, 0, ranges, 4,
						&count, &diag),
		     "SPMLA_E_RANGE: " P "seq_lens[3]: got 4, want at most 3");
	expect_error(spmla_split_prefill_chunks(lens, 4, 4, 0, ranges, 2,
						&count, &diag),
		     "SPMLA_E_SPACE: " P "chunks: got 2, want at least 3");
	expect_error(spmla_split_prefill_chunks(lens, 4, 4, 0, NULL, 0, &count,
						&diag),
		     "SPMLA_E_SPACE: " P "chunks: got 0, want at least 3");
	expect_error(spmla_split_prefill_chunks(lens, 4, 4, 0, NULL, 4, &count,
						&diag),
		     "SPMLA_E_NULL: " P "chunks: got NULL, want a pointer");
	expect_error(spmla_split_prefill_chunks(NULL, 4, 4, 0, ranges, 4,
						&count, &diag),
		     "SPMLA_E_NULL: " P "seq_lens: got NULL, want a pointer");
	expect_error(spmla_split_prefill_chunks(lens, 4, 4, 0, ranges, 4, NULL,
						&diag),
		     "SPMLA_E_NULL: " P "count: got NULL, want a pointer");
	expect_error(spmla_split_prefill_chunks(lens, 4, 4, UINT32_MAX - 3,
						ranges, 4, &count, &diag),
		     "SPMLA_E_RANGE: " P "offset: got 4294967292, want at most "
		     "4294967291");
}
END_TEST

#undef P
#define P "prefill_workspace_starts."

START_TEST(starts_refuse_chunks_that_are_not_the_requests_in_order)
{
	static const uint32_t long_ones[2] = {UINT32_MAX, 1};
	static const spmla_range gap[2] = {{0, 1}, {2, 4}};
	static const spmla_range back[2] = {{0, 2}, {2, 1}};
	static const spmla_range past[2] = {{0, 2}, {2, 5}};
	static const spmla_range less[2] = {{0, 2}, {2, 3}};
	static const spmla_range both[1] = {{0, 2}};

	expect_error(
		spmla_prefill_workspace_starts(lens, 4, gap, 2, out, &diag),
		"SPMLA_E_RANGE: " P "chunks[1]: got 2, want 1");
	expect_error(
		spmla_prefill_workspace_starts(lens, 4, back, 2, out, &diag),
		"SPMLA_E_RANGE: " P "chunks[1]: got 1, want at least 2");
	expect_error(
		spmla_prefill_workspace_starts(lens, 4, past, 2, out, &diag),
		"SPMLA_E_RANGE: " P "chunks[1]: got 5, want at most 4");
	expect_error(
		spmla_prefill_workspace_starts(lens, 4, less, 2, out, &diag),
		"SPMLA_E_RANGE: " P "chunks: got 3, want 4");
	expect_error(spmla_prefill_workspace_starts(long_ones, 2, both, 1, out,
						    &diag),
		     "SPMLA_E_OVERFLOW: " P "chunks[0]: got 4294967296, want "
		     "at most 4294967295");
	expect_error(
		spmla_prefill_workspace_starts(NULL, 4, gap, 2, out, &diag),
		"SPMLA_E_NULL: " P "seq_lens: got NULL, want a pointer");
	expect_error(
		spmla_prefill_workspace_starts(lens, 4, NULL, 2, out, &diag),
		"SPMLA_E_NULL: " P "chunks: got NULL, want a pointer");
	expect_error(
		spmla_prefill_workspace_starts(lens, 4, gap, 2, NULL, &diag),
		"SPMLA_E_NULL: " P "starts: got NULL, want a pointer");
}
END_TEST

#undef P
#define P "split_indexer_prefill_chunks."

static spmla_status
pieces_of(const uint32_t *seq, const uint32_t *query, uint32_t requests,
	  uint32_t offset, spmla_indexer_chunk *to, uint32_t capacity,
	  uint32_t *n)
{
	return spmla_split_indexer_prefill_chunks(
		seq, query, requests, 5, 24, offset, to, capacity, n, &diag);
}

/* 24 bytes are 6 logits. Queries as keys: 3 * 3 > 6, so pieces of 2; 1 * 1 and
 * with the next 3 * 3 > 6, so one; 2 * 2; 4 * 4, so pieces of one. 2 + 1 + 1 +
 * 4 = 8. */
START_TEST(pieces_refuse_a_long_prompt_and_a_short_array)
{
	static const uint32_t six[4] = {1, 6, 1, 1};
	static const uint32_t big[2] = {UINT32_MAX, 1};

	expect_error(pieces_of(six, lens, 4, 0, pieces, 8, &count),
		     "SPMLA_E_RANGE: " P "seq_lens[1]: got 6, want at most 5");
	expect_error(pieces_of(lens, lens, 4, 0, pieces, 7, &count),
		     "SPMLA_E_SPACE: " P "chunks: got 7, want at least 8");
	expect_error(pieces_of(lens, big, 2, 0, pieces, 8, &count),
		     "SPMLA_E_OVERFLOW: " P "query_lens: got 4294967296, want "
		     "at most 4294967295");
	expect_error(pieces_of(NULL, lens, 4, 0, pieces, 8, &count),
		     "SPMLA_E_NULL: " P "seq_lens: got NULL, want a pointer");
	expect_error(pieces_of(lens, NULL, 4, 0, pieces, 8, &count),
		     "SPMLA_E_NULL: " P "query_lens: got NULL, want a pointer");
	expect_error(pieces_of(lens, lens, 4, 0, NULL, 8, &count),
		     "SPMLA_E_NULL: " P "chunks: got NULL, want a pointer");
	expect_error(pieces_of(lens, lens, 4, 0, pieces, 8, NULL),
		     "SPMLA_E_NULL: " P "count: got NULL, want a pointer");
	expect_error(pieces_of(lens, lens, 4, UINT32_MAX, pieces, 8, &count),
		     "SPMLA_E_RANGE: " P "offset: got 4294967295, want at most "
		     "4294967291");
	ck_assert_int_eq(pieces_of(lens, lens, 4, 0, pieces, 8, &count),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 8);
	ck_assert_uint_eq(pieces[7].queries.end, 4);
}
END_TEST

#undef P
#define P "dcp_local_seq_lens."

START_TEST(local_lengths_refuse_a_rank_that_is_none)
{
	expect_error(spmla_dcp_local_seq_lens(lens, 4, 0, 0, 1, out, &diag),
		     "SPMLA_E_RANGE: " P "ranks: got 0, want at least 1");
	expect_error(spmla_dcp_local_seq_lens(lens, 4, 2, 2, 1, out, &diag),
		     "SPMLA_E_RANGE: " P "rank: got 2, want at most 1");
	expect_error(spmla_dcp_local_seq_lens(lens, 4, 2, 1, 0, out, &diag),
		     "SPMLA_E_RANGE: " P "interleave: got 0, want at least 1");
	expect_error(spmla_dcp_local_seq_lens(NULL, 4, 2, 1, 1, out, &diag),
		     "SPMLA_E_NULL: " P "seq_lens: got NULL, want a pointer");
	expect_error(spmla_dcp_local_seq_lens(lens, 4, 2, 1, 1, NULL, &diag),
		     "SPMLA_E_NULL: " P "local_lens: got NULL, want a pointer");
	ck_assert_int_eq(spmla_dcp_local_seq_lens(NULL, 0, 2, 1, 1, NULL, NULL),
			 SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{split_refuses_what_no_batch_can_be, 1},
		{threshold_refuses_heads_that_no_kernel_has, 1},
		{chunks_refuse_a_long_prompt_and_a_short_array, 1},
		{starts_refuse_chunks_that_are_not_the_requests_in_order, 1},
		{pieces_refuse_a_long_prompt_and_a_short_array, 1},
		{local_lengths_refuse_a_rank_that_is_none, 1},
	};
	const theme themes[] = {THEME("error", setup, teardown, error)};

	return RUN_THEMES(themes);
}
