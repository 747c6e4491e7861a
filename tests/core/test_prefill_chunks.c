/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefill plan's chunks: the vectors of the sources, and what has to hold
 * for any batch (every request once, no budget left). Refusals are in
 * test_prefill_plan_call.c.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

enum { MOST = 40, CHUNKS = 4096 };

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

/* ---- Chunks ------------------------------------------------------------ */

typedef struct chunk_vector {
	uint32_t requests, workspace, count;
	uint32_t lens[4];
	spmla_range want[4];
} chunk_vector;

/* vLLM's, then an empty batch and requests without tokens. */
static const chunk_vector chunk_vectors[] = {
	{4, 5, 3, {2, 3, 4, 2}, {{0, 2}, {2, 3}, {3, 4}}},
	{3, 5, 3, {5, 5, 5}, {{0, 1}, {1, 2}, {2, 3}}},
	{3, 10, 1, {1, 1, 1}, {{0, 3}}},
	{3, 100, 1, {4, 4, 4}, {{0, 3}}},
	{0, 5, 0, {0}, {{0, 0}}},
	{4, 5, 1, {0, 5, 0, 0}, {{0, 4}}},
	{3, 0, 1, {0, 0, 0}, {{0, 3}}},
};

START_TEST(prompts_share_a_workspace_as_long_as_they_fit)
{
	const chunk_vector *v = &chunk_vectors[_i];
	spmla_range got[4];
	uint32_t count = 99, offset, i;

	for (offset = 0; offset <= 7; offset += 7) {
		ck_assert_int_eq(spmla_split_prefill_chunks(
					 v->lens, v->requests, v->workspace,
					 offset, got, v->count, &count, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(count, v->count);
		for (i = 0; i < count; i++) {
			ck_assert_uint_eq(got[i].first,
					  v->want[i].first + offset);
			ck_assert_uint_eq(got[i].end, v->want[i].end + offset);
		}
	}
}
END_TEST

START_TEST(any_prompt_lies_in_one_chunk_that_fits)
{
	uint64_t rng = test_seed();
	uint32_t round, i, c;

	for (round = 0; round < 600; round++) {
		const uint32_t requests = rng_below(&rng, MOST);
		const uint32_t workspace = 20 + rng_below(&rng, 100);
		uint32_t lens[MOST], starts[MOST], count, next = 0;
		spmla_range got[MOST];

		for (i = 0; i < requests; i++)
			lens[i] = rng_below(&rng, workspace + 1);
		ck_assert_int_eq(spmla_split_prefill_chunks(lens, requests,
							    workspace, 0, got,
							    MOST, &count, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_prefill_workspace_starts(lens, requests,
								got, count,
								starts, NULL),
				 SPMLA_OK);
		for (c = 0; c < count; c++) {
			uint32_t row = 0;

			ck_assert_uint_eq(got[c].first, next);
			ck_assert_uint_gt(got[c].end, next);
			for (; next < got[c].end; next++) {
				ck_assert_uint_eq(starts[next], row);
				row += lens[next];
			}
			ck_assert_uint_le(row, workspace);
			/* greedy: the next one would not have fitted */
			if (next < requests)
				ck_assert_uint_gt(row + lens[next], workspace);
		}
		ck_assert_uint_eq(next, requests);
	}
}
END_TEST

/* vLLM's: sequences of 10, 15, 20, 5 in two chunks of two. */
START_TEST(workspace_starts_are_counted_anew_in_each_chunk)
{
	static const uint32_t lens[4] = {10, 15, 20, 5};
	static const spmla_range chunks[2] = {{0, 2}, {2, 4}};
	static const uint32_t want[4] = {0, 10, 0, 20};
	uint32_t got[4];

	ck_assert_int_eq(
		spmla_prefill_workspace_starts(lens, 4, chunks, 2, got, NULL),
		SPMLA_OK);
	ck_assert_mem_eq(got, want, sizeof want);
	ck_assert_int_eq(
		spmla_prefill_workspace_starts(NULL, 0, NULL, 0, NULL, NULL),
		SPMLA_OK);
}
END_TEST

/* ---- Chunks of the indexer --------------------------------------------- */

typedef struct indexer_vector {
	uint32_t requests, workspace, count;
	uint64_t bytes;
	uint32_t seq[3], query[3];
	spmla_indexer_chunk want[3];
} indexer_vector;

/* vLLM's, then requests without keys or queries. In the fifth, 1000 bytes are
 * 250 logits: two requests have 10 * 20, three would have 15 * 30. */
static const indexer_vector indexer_vectors[] = {
	{1, 100, 0, 1000, {0}, {0}, {{{0, 0}, {0, 0}}}},
	{3,
	 1000,
	 3,
	 5000,
	 {100, 100, 100},
	 {10, 10, 10},
	 {{{0, 1}, {0, 10}}, {{1, 2}, {0, 10}}, {{2, 3}, {0, 10}}}},
	{3, 100, 1, 10000, {10, 10, 10}, {5, 5, 5}, {{{0, 3}, {0, 15}}}},
	{3,
	 50,
	 3,
	 1000000,
	 {50, 50, 50},
	 {1, 1, 1},
	 {{{0, 1}, {0, 1}}, {{1, 2}, {0, 1}}, {{2, 3}, {0, 1}}}},
	{3,
	 100,
	 2,
	 1000,
	 {10, 10, 10},
	 {5, 5, 5},
	 {{{0, 2}, {0, 10}}, {{2, 3}, {0, 5}}}},
	{2, 100, 1, 1000, {0, 7}, {3, 2}, {{{0, 2}, {0, 5}}}},
	{2, 100, 1, 1000, {0, 7}, {3, 0}, {{{0, 2}, {0, 3}}}},
	{1, 100, 0, 1000, {0}, {3}, {{{0, 0}, {0, 0}}}},
	{1, 100, 0, 1000, {7}, {0}, {{{0, 0}, {0, 0}}}},
	/* just what fits: 10 * 20 logits, 30 + 20 keys; and one byte less */
	{2, 100, 1, 800, {10, 10}, {5, 5}, {{{0, 2}, {0, 10}}}},
	{2,
	 100,
	 2,
	 799,
	 {10, 10},
	 {5, 5},
	 {{{0, 1}, {0, 5}}, {{1, 2}, {0, 5}}}},
	{2, 50, 1, 1000, {30, 20}, {1, 1}, {{{0, 2}, {0, 2}}}},
	{0, 100, 0, 1000, {0}, {0}, {{{0, 0}, {0, 0}}}},
};

START_TEST(index_queries_share_a_chunk_as_long_as_keys_and_logits_fit)
{
	const indexer_vector *v = &indexer_vectors[_i];
	spmla_indexer_chunk got[3];
	uint32_t count = 99, i;

	ck_assert_int_eq(spmla_split_indexer_prefill_chunks(
				 v->seq, v->query, v->requests, v->workspace,
				 v->bytes, 4, got, 3, &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, v->count);
	for (i = 0; i < count; i++) {
		const spmla_indexer_chunk *w = &v->want[i];

		ck_assert_uint_eq(got[i].requests.first, w->requests.first + 4);
		ck_assert_uint_eq(got[i].requests.end, w->requests.end + 4);
		ck_assert_uint_eq(got[i].queries.first, w->queries.first);
		ck_assert_uint_eq(got[i].queries.end, w->queries.end);
	}
}
END_TEST

/* vLLM's: 1000 keys exceed 250 logits with a single query, so the first request
 * becomes 100 chunks of one query. */
START_TEST(request_beyond_the_logits_budget_is_cut_into_queries)
{
	static const uint32_t seq[2] = {1000, 50}, query[2] = {100, 5};
	spmla_indexer_chunk got[101];
	uint32_t count, i;

	ck_assert_int_eq(spmla_split_indexer_prefill_chunks(seq, query, 2, 2000,
							    1000, 0, got, 101,
							    &count, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(count, 101);
	for (i = 0; i < 100; i++) {
		ck_assert_uint_eq(got[i].requests.first, 0);
		ck_assert_uint_eq(got[i].requests.end, 1);
		ck_assert_uint_eq(got[i].queries.first, i);
		ck_assert_uint_eq(got[i].queries.end, i + 1);
	}
	ck_assert_uint_eq(got[100].requests.first, 1);
	ck_assert_uint_eq(got[100].requests.end, 2);
	ck_assert_uint_eq(got[100].queries.first, 0);
	ck_assert_uint_eq(got[100].queries.end, 5);
}
END_TEST

/* Queries of a batch by (request, query), each counted. */
static void
check_cover(const uint32_t *seq, const uint32_t *query, uint32_t requests,
	    const spmla_indexer_chunk *got, uint32_t count, uint32_t workspace,
	    uint64_t budget)
{
	static uint8_t seen[MOST * 64];
	uint32_t c, r, i, all = 0;

	memset(seen, 0, sizeof seen);
	for (c = 0; c < count; c++) {
		const spmla_range q = got[c].queries;
		uint64_t keys = 0, first = 0, queries = 0;

		ck_assert(got[c].requests.first < got[c].requests.end);
		for (r = 0; r < got[c].requests.first; r++)
			first += query[r];
		for (r = got[c].requests.first; r < got[c].requests.end; r++) {
			keys += seq[r];
			queries += query[r];
		}
		ck_assert(q.first < q.end && q.end <= queries && keys > 0);
		ck_assert_uint_le(keys, workspace);
		ck_assert(keys * (q.end - q.first) <= budget ||
			  q.end - q.first == 1);
		for (i = q.first; i < q.end; i++)
			seen[first + i]++;
	}
	for (r = 0; r < requests; r++)
		for (i = 0; i < query[r]; i++, all++)
			ck_assert(seen[all] == 1 ||
				  (seen[all] == 0 && seq[r] == 0));
}

START_TEST(any_index_query_lies_in_one_chunk_and_budgets_are_kept)
{
	static spmla_indexer_chunk got[CHUNKS];
	uint64_t rng = test_seed();
	uint32_t round, i;

	for (round = 0; round < 600; round++) {
		const uint32_t requests = rng_below(&rng, MOST);
		const uint32_t workspace = 30 + rng_below(&rng, 200);
		const uint64_t bytes = rng_below(&rng, 12000);
		uint32_t seq[MOST], query[MOST], count;

		for (i = 0; i < requests; i++) {
			seq[i] = rng_below(&rng, 3) ? rng_below(&rng, 31) : 0;
			query[i] = rng_below(&rng, 4) ? rng_below(&rng, 64) : 0;
		}
		ck_assert_int_eq(spmla_split_indexer_prefill_chunks(
					 seq, query, requests, workspace, bytes,
					 0, got, CHUNKS, &count, NULL),
				 SPMLA_OK);
		check_cover(seq, query, requests, got, count, workspace,
			    bytes / 4);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{prompts_share_a_workspace_as_long_as_they_fit,
		 COUNT(chunk_vectors)},
		{any_prompt_lies_in_one_chunk_that_fits, 1},
		{workspace_starts_are_counted_anew_in_each_chunk, 1},
		{index_queries_share_a_chunk_as_long_as_keys_and_logits_fit,
		 COUNT(indexer_vectors)},
		{request_beyond_the_logits_budget_is_cut_into_queries, 1},
		{any_index_query_lies_in_one_chunk_and_budgets_are_kept, 1},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape)};

	return RUN_THEMES(themes);
}
