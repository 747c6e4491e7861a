/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_prefill_plan, spmla_split_step, spmla_prefill_chunk_requests: cuts by
 * hand, and for random steps that every token lies in one chunk that fits.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

enum { MOST = 4096, ROWS = 8 };

static spmla_plan plan;
static spmla_prefill_chunk chunks[MOST];
static uint32_t count;

static void
make_plan(uint32_t tokens, uint32_t requests, uint32_t workspace)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config c;

	fixture_config(&c);
	c.bucket_count = 1;
	c.buckets[0] = (spmla_shape){requests, requests, 1, 0};
	c.max_prefill_tokens = tokens;
	c.prefill_workspace_tokens = workspace;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&plan, &c, &device, NULL), SPMLA_OK);
}

static spmla_step
step_of(const spmla_request *requests, uint32_t n)
{
	spmla_step step = SPMLA_STEP_INIT;

	step.requests = requests;
	step.request_count = n;
	return step;
}

static void
cut(const spmla_request *requests, uint32_t n)
{
	const spmla_step step = step_of(requests, n);

	ck_assert_int_eq(
		spmla_prefill_plan(&plan, &step, chunks, MOST, &count, NULL),
		SPMLA_OK);
}

static void
expect_chunk(uint32_t i, uint32_t first_token, uint32_t end_token,
	     uint32_t first_request, uint32_t end_request, uint32_t context)
{
	const spmla_prefill_chunk want = {{first_token, end_token},
					  {first_request, end_request},
					  end_request - first_request,
					  context};

	ck_assert_uint_lt(i, count);
	ck_assert_mem_eq(&chunks[i], &want, sizeof want);
}

START_TEST(a_long_prompt_is_cut_and_its_context_grows)
{
	static const spmla_request one[1] = {{3, 250, 250, SPMLA_REQUEST_JOIN}};
	const spmla_step step = step_of(one, 1);
	spmla_request part;
	uint32_t i;

	make_plan(100, 4, 0);
	cut(one, 1);
	ck_assert_uint_eq(count, 3);
	expect_chunk(0, 0, 100, 0, 1, 100);
	expect_chunk(1, 100, 200, 0, 1, 200);
	expect_chunk(2, 200, 250, 0, 1, 250);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(spmla_prefill_chunk_requests(&step, &chunks[i],
							      &part, 1, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(part.row, 3);
		ck_assert_uint_eq(part.query_tokens, i == 2 ? 50 : 100);
		ck_assert_uint_eq(part.seq_len_tokens,
				  i == 2 ? 250 : 100 * (i + 1));
		/* Once, or the row would forget what the last chunk stored. */
		ck_assert_uint_eq(part.flags, i == 0 ? SPMLA_REQUEST_JOIN : 0);
	}
}
END_TEST

START_TEST(tokens_that_are_cached_count_as_context_only)
{
	/* 300 cached, 120 to do */
	static const spmla_request one[1] = {{3, 120, 420, 0}};

	make_plan(100, 4, 0);
	cut(one, 1);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 100, 0, 1, 400);
	expect_chunk(1, 100, 120, 0, 1, 420);
}
END_TEST

START_TEST(short_prompts_share_a_chunk)
{
	static const spmla_request four[4] = {
		{0, 40, 40, 0}, {1, 30, 30, 0}, {2, 50, 60, 0}, {3, 5, 5, 0}};

	make_plan(100, 4, 0);
	cut(four, 4);
	/* 40 + 30 + 30 of the third: 10 cached, 30 done, then 20 more */
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 100, 0, 3, 40 + 30 + 40);
	expect_chunk(1, 100, 125, 2, 4, 60 + 5);
}
END_TEST

START_TEST(a_chunk_ends_before_a_context_that_has_no_room)
{
	static const spmla_request three[3] = {
		{0, 40, 200, 0}, {1, 30, 250, 0}, {2, 10, 100, 0}};

	make_plan(100, 4, 449);
	cut(three, 3);
	/* 200 + 250 = 450 > 449; 250 + 100 fit */
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 40, 0, 1, 200);
	expect_chunk(1, 40, 80, 1, 3, 350);
	make_plan(100, 4, 450);
	cut(three, 3);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 70, 0, 2, 450);
	expect_chunk(1, 70, 80, 2, 3, 100);
}
END_TEST

START_TEST(a_chunk_has_no_more_requests_than_a_step)
{
	static const spmla_request five[5] = {{0, 1, 1, 0},
					      {1, 1, 1, 0},
					      {2, 1, 1, 0},
					      {3, 1, 1, 0},
					      {4, 1, 1, 0}};

	make_plan(100, 2, 0);
	cut(five, 5);
	ck_assert_uint_eq(count, 3);
	expect_chunk(0, 0, 2, 0, 2, 2);
	expect_chunk(1, 2, 4, 2, 4, 2);
	expect_chunk(2, 4, 5, 4, 5, 1);
}
END_TEST

START_TEST(requests_without_query_tokens_are_left_out)
{
	static const spmla_request mixed[5] = {{0, 0, 99, 0},
					       {1, 3, 3, 0},
					       {2, 0, 0, 0},
					       {3, 4, 9, 1},
					       {4, 0, 7, 0}};
	const spmla_step step = step_of(mixed, 5);
	spmla_request parts[2];

	make_plan(100, 4, 512);
	cut(mixed, 5);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(chunks[0].queries.end, 7);
	ck_assert_uint_eq(chunks[0].requests.first, 1);
	ck_assert_uint_eq(chunks[0].requests.end, 4);
	ck_assert_uint_eq(chunks[0].request_count, 2);
	ck_assert_uint_eq(chunks[0].live_context, 12);
	ck_assert_int_eq(
		spmla_prefill_chunk_requests(&step, &chunks[0], parts, 2, NULL),
		SPMLA_OK);
	ck_assert_mem_eq(&parts[0], &mixed[1], sizeof parts[0]);
	ck_assert_mem_eq(&parts[1], &mixed[3], sizeof parts[1]);
	cut(mixed, 1);
	ck_assert_uint_eq(count, 0);
	cut(NULL, 0);
	ck_assert_uint_eq(count, 0);
}
END_TEST

/* ---- Any step ---------------------------------------------------------- */

/* The chunks one after the other bring every request from what is cached to its
 * end; each of them is a step that the plan takes. */
static void
check_chunks(const spmla_request *requests, uint32_t n)
{
	static uint8_t record[1 << 16] __attribute__((aligned(16)));
	const spmla_step step = step_of(requests, n);
	uint32_t at[ROWS], i, b, token = 0;
	spmla_request parts[ROWS];

	for (b = 0; b < n; b++)
		at[b] = requests[b].seq_len_tokens - requests[b].query_tokens;
	ck_assert_uint_le(plan.record_bytes, sizeof record);
	for (i = 0; i < count; i++) {
		const uint32_t k = chunks[i].request_count;
		spmla_step_info info = SPMLA_STEP_INFO_INIT;
		spmla_step piece = step_of(parts, k);

		ck_assert_uint_eq(chunks[i].queries.first, token);
		ck_assert_int_eq(spmla_prefill_chunk_requests(
					 &step, &chunks[i], parts, ROWS, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(spmla_step_encode(&plan, &piece, record,
						   sizeof record, &info, NULL),
				 SPMLA_OK);
		ck_assert_uint_gt(info.tokens, 0);
		ck_assert_uint_eq(info.live_context, chunks[i].live_context);
		token += info.tokens;
		ck_assert_uint_eq(chunks[i].queries.end, token);
		for (b = 0; b < k; b++) { /* rows are 0, 1, .. */
			const spmla_request *r = &requests[parts[b].row];

			ck_assert_uint_eq(parts[b].seq_len_tokens,
					  at[parts[b].row] +
						  parts[b].query_tokens);
			ck_assert_uint_eq(
				parts[b].flags,
				at[parts[b].row] == r->seq_len_tokens -
							    r->query_tokens
					? r->flags
					: 0);
			at[parts[b].row] = parts[b].seq_len_tokens;
		}
	}
	for (b = 0; b < n; b++)
		ck_assert_uint_eq(at[b], requests[b].seq_len_tokens);
}

START_TEST(every_token_of_any_step_lies_in_one_chunk_that_fits)
{
	uint64_t seed = test_seed();
	spmla_request r[ROWS];
	uint32_t n, b, i;

	for (n = 0; n < 3000; n++) {
		const uint32_t workspace = 1 + rng_below(&seed, 600);
		const uint32_t most = workspace < 512 ? workspace : 512;
		const uint32_t requests = rng_below(&seed, ROWS + 1);

		make_plan(1 + rng_below(&seed, 200), 1 + rng_below(&seed, ROWS),
			  workspace);
		for (b = 0; b < requests; b++) {
			const uint32_t len = rng_below(&seed, most + 1);

			r[b] = (spmla_request){b, rng_below(&seed, len + 1),
					       len, rng_below(&seed, 2)};
		}
		cut(r, requests);
		check_chunks(r, requests);
		for (i = 0; i + 1 < count; i++) /* nothing is left undone */
			ck_assert_uint_eq(chunks[i].queries.end,
					  chunks[i + 1].queries.first);
	}
}
END_TEST

/* ---- Decodes and prompts in one step ------------------------------------- */

static void
split(const spmla_request *requests, uint32_t n)
{
	const spmla_step step = step_of(requests, n);
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];

	if (spmla_split_step(&plan, &step, chunks, MOST, &count, &diag) !=
	    SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		ck_abort_msg("%s", text);
	}
}

/* Buckets {2, 2, 1} and {6, 3, 2}. */
static void
make_split_plan(uint32_t tokens, uint32_t workspace)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config c;

	fixture_config(&c);
	c.bucket_count = 2;
	c.buckets[0] = (spmla_shape){2, 2, 1, 0};
	c.buckets[1] = (spmla_shape){6, 3, 2, 900};
	c.max_prefill_tokens = tokens;
	c.prefill_workspace_tokens = workspace;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&plan, &c, &device, NULL), SPMLA_OK);
}

/* The decodes need no workspace; the paused one is left out. */
START_TEST(decodes_run_beside_a_long_prompt)
{
	static const spmla_request all[5] = {{0, 1, 400, 0},
					     {1, 0, 500, 0},
					     {2, 2, 300, 0},
					     {3, 1, 200, 0},
					     {4, 150, 150, 0}};

	make_split_plan(100, 160);
	split(all, 5);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(chunks[0].request_count, 3);
	ck_assert_uint_eq(chunks[0].requests.first, 0);
	ck_assert_uint_eq(chunks[0].requests.end, 4);
	ck_assert_uint_eq(chunks[0].queries.end, 4);
	ck_assert_uint_eq(chunks[0].live_context, 900);
	expect_chunk(1, 4, 104, 4, 5, 100);
	expect_chunk(2, 104, 154, 4, 5, 150);
}
END_TEST

/* 901 of context are too many for the second bucket, not for the first, and
 * four requests too many for both. The rest of a prompt is a prompt, however
 * short, and so is the rest of a decode that a chunk of prompts ends in. */
START_TEST(decodes_fill_one_bucket_after_the_other)
{
	static const spmla_request three[3] = {
		{0, 1, 401, 0}, {1, 1, 300, 0}, {2, 2, 200, 0}};
	static const spmla_request four[4] = {
		{0, 1, 10, 0}, {1, 1, 10, 0}, {2, 1, 10, 0}, {3, 1, 10, 0}};
	static const spmla_request two[2] = {{0, 101, 101, 0}, {1, 2, 59, 0}};
	static const spmla_request cut_short[2] = {{0, 99, 99, 0},
						   {1, 2, 59, 0}};

	make_split_plan(100, 160);
	split(three, 3);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 2, 0, 2, 701);
	expect_chunk(1, 2, 4, 2, 3, 200);
	split(four, 4);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 3, 0, 3, 30);
	expect_chunk(1, 3, 4, 3, 4, 10);
	split(two, 2);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 100, 0, 1, 100);
	expect_chunk(1, 100, 103, 0, 2, 160);
	split(cut_short, 2);
	ck_assert_uint_eq(count, 2);
	expect_chunk(0, 0, 100, 0, 2, 99 + 58);
	expect_chunk(1, 100, 101, 1, 2, 59);
}
END_TEST

START_TEST(a_prompt_still_needs_the_workspace)
{
	static const spmla_request two[2] = {{0, 2, 400, 0}, {1, 3, 161, 0}};
	const spmla_step step = step_of(two, 2);
	spmla_diag diag = SPMLA_DIAG_INIT;

	make_split_plan(100, 160);
	ck_assert_int_eq(
		spmla_split_step(&plan, &step, chunks, MOST, &count, &diag),
		SPMLA_E_RECORD);
	ck_assert_str_eq(test_diag_text(&diag),
			 "SPMLA_E_RECORD: step.requests.seq_len_tokens[1]"
			 ": got 161, want at most 160");
}
END_TEST

/* Requests of decodes and prompts, in any mixture. */
static uint32_t
random_requests(uint64_t *seed, spmla_request all[ROWS])
{
	const uint32_t n = 1 + (uint32_t)(rng_next(seed) % ROWS);
	uint32_t i;

	make_split_plan(1 + (uint32_t)(rng_next(seed) % 60), 512);
	for (i = 0; i < n; i++) {
		const uint32_t q = (uint32_t)(rng_next(seed) %
					      (rng_next(seed) % 2 ? 4 : 90));

		all[i] = (spmla_request){
			i, q, q + 1 + (uint32_t)(rng_next(seed) % 400), 0};
	}
	return n;
}

/* The requests of a chunk encode. If it begins with a decode, it has a bucket.
 */
static void
check_chunk(const spmla_step *step, const spmla_prefill_chunk *chunk)
{
	static uint8_t record[1 << 14] __attribute__((aligned(16)));
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_request part[ROWS];
	spmla_step one;

	ck_assert_int_eq(
		spmla_prefill_chunk_requests(step, chunk, part, ROWS, NULL),
		SPMLA_OK);
	one = step_of(part, chunk->request_count);
	ck_assert_int_eq(spmla_step_encode(&plan, &one, record, sizeof record,
					   &info, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(info.live_context, chunk->live_context);
	if (part[0].query_tokens <= 2 &&
	    part[0].query_tokens == step->requests[part[0].row].query_tokens)
		ck_assert_uint_lt(info.bucket, 2);
}

/* Every token lies in one chunk, whose requests encode. */
START_TEST(random_splits_are_steps_of_the_plan)
{
	uint64_t seed = 11;
	uint32_t round, i;

	for (round = 0; round < 300; round++) {
		spmla_request all[ROWS];
		const uint32_t n = random_requests(&seed, all);
		const spmla_step step = step_of(all, n);
		uint32_t end = 0;

		split(all, n);
		for (i = 0; i < count; i++) {
			ck_assert_uint_eq(chunks[i].queries.first, end);
			end = chunks[i].queries.end;
			check_chunk(&step, &chunks[i]);
		}
		for (i = 0; i < n; i++)
			end -= all[i].query_tokens;
		ck_assert_uint_eq(end, 0);
	}
}
END_TEST

SUITE
{
	const theme_test cuts[] = {
		{a_long_prompt_is_cut_and_its_context_grows, 1},
		{tokens_that_are_cached_count_as_context_only, 1},
		{short_prompts_share_a_chunk, 1},
		{a_chunk_ends_before_a_context_that_has_no_room, 1},
		{a_chunk_has_no_more_requests_than_a_step, 1},
		{requests_without_query_tokens_are_left_out, 1},
	};
	const theme_test mixed[] = {
		{decodes_run_beside_a_long_prompt, 1},
		{decodes_fill_one_bucket_after_the_other, 1},
		{a_prompt_still_needs_the_workspace, 1},
		{random_splits_are_steps_of_the_plan, 1},
	};
	const theme_test any[] = {
		{every_token_of_any_step_lies_in_one_chunk_that_fits, 1},
	};
	const theme themes[] = {
		THEME("cuts", NULL, NULL, cuts),
		THEME("mixed", NULL, NULL, mixed),
		THEME("any", NULL, NULL, any),
	};

	return RUN_THEMES(themes);
}
