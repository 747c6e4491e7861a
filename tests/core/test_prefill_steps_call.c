/* SPDX-License-Identifier: Apache-2.0
 *
 * spmla_prefill_plan and spmla_prefill_chunk_requests as calls: what they
 * refuse, with which words, and that nothing is written then.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/prefill_plan.h"

enum { MOST = 10 };

static spmla_plan plan;
static spmla_prefill_chunk chunks[MOST];
static uint32_t count;
static spmla_diag diag;

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
setup(void)
{
	diag = (spmla_diag)SPMLA_DIAG_INIT;
}

static void
expect_error(spmla_status s, const char *want)
{
	ck_assert_int_eq(s, diag.status);
	ck_assert_str_eq(test_diag_text(&diag), want);
}

static void
refuse(const spmla_request *r, uint32_t n, const char *want)
{
	const spmla_step step = step_of(r, n);

	memset(chunks, 0x5a, sizeof chunks);
	count = 77;
	expect_error(
		spmla_prefill_plan(&plan, &step, chunks, MOST, &count, &diag),
		want);
	ck_assert_uint_eq(count, 77);
	ck_assert_uint_eq(bytes_other(chunks, sizeof chunks, 0x5a),
			  sizeof chunks);
}

START_TEST(a_request_that_cannot_be_is_named)
{
#define E "SPMLA_E_RECORD: step.requests."
	static const spmla_request row[2] = {{0, 1, 1, 0}, {8, 1, 1, 0}};
	static const spmla_request query[1] = {{0, 6, 5, 0}};
	static const spmla_request flag[1] = {{0, 1, 1, 2}};
	static const spmla_request paused[1] = {{0, 0, 513, 0}};
	/* The whole context has to fit, and only the second's does not. */
	static const spmla_request large[2] = {{0, 1, 300, 0}, {1, 1, 301, 0}};

	make_plan(100, 4, 300);
	refuse(row, 2, E "row[1]: got 8, want at most 7");
	refuse(query, 1, E "query_tokens[0]: got 6, want at most 5");
	refuse(flag, 1, E "flags[0]: got 2, want at most 1");
	refuse(large, 2, E "seq_len_tokens[1]: got 301, want at most 300");
	refuse(paused, 1, E "seq_len_tokens[0]: got 513, want at most 512");
	make_plan(0, 4, 0);
	refuse(large, 1,
	       "SPMLA_E_UNSUPPORTED: config.max_prefill_tokens: got 0, "
	       "want at least 1");
#undef E
}
END_TEST

/* As spmla_step_encode: of two requests with one row the later is named, also
 * where no chunk would have both, and the first such one of all. */
START_TEST(a_row_that_occurs_twice_is_named)
{
	static const spmla_request twice[4] = {
		{3, 100, 100, 0}, {7, 100, 100, 0}, {1, 5, 5, 0}, {7, 1, 1, 0}};
	static const spmla_request both[4] = {
		{2, 0, 9, 0}, {1, 1, 1, 0}, {1, 0, 0, 0}, {2, 1, 1, 0}};

	make_plan(100, 4, 0);
	refuse(twice, 4,
	       "SPMLA_E_RECORD: step.requests.row[3]: got 7 again, "
	       "want it once");
	refuse(both, 4,
	       "SPMLA_E_RECORD: step.requests.row[2]: got 1 again, "
	       "want it once");
}
END_TEST

/* More rows than are looked at in one go. */
START_TEST(rows_far_apart_are_not_mixed_up)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_request r[4] = {{4096, 1, 1, 0},
			      {0, 1, 1, 0},
			      {8192, 1, 1, 0},
			      {65535, 1, 1, 0}};
	spmla_config c;
	uint32_t i;

	fixture_config(&c);
	c.max_rows = 65536;
	c.max_prefill_tokens = 100;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&plan, &c, &device, NULL), SPMLA_OK);
	for (i = 0; i < 3; i++) {
		const spmla_step step = step_of(r, 4);

		ck_assert_int_eq(spmla_prefill_plan(&plan, &step, chunks, MOST,
						    &count, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(count, 1);
		ck_assert_uint_eq(chunks[0].request_count, 4);
		r[3].row = r[i].row;
		refuse(r, 4,
		       i == 0   ? "SPMLA_E_RECORD: step.requests.row[3]: "
				  "got 4096 again, want it once"
		       : i == 1 ? "SPMLA_E_RECORD: step.requests.row[3]: "
				  "got 0 again, want it once"
				: "SPMLA_E_RECORD: step.requests.row[3]: "
				  "got 8192 again, want it once");
		r[3].row = 65534;
	}
}
END_TEST

/* Chunk 1 is {100, 200} of request 0 at a context of 200, or with any one of
 * these words another: then it is none of this step. */
START_TEST(a_chunk_of_another_step_is_refused)
{
#define E "SPMLA_E_RANGE: chunk_requests.chunk"
	static const struct {
		uint32_t word, value;
		const char *want;
	} changes[] = {
		{0, 200, E " (of this step): got 0, want 1"},
		{1, 260, E ".queries.end: got 260, want 250"},
		{1, 150, E ".live_context: got 200, want 150"},
		{2, 1, E ".requests.first: got 1, want 0"},
		{3, 2, E ".requests.end: got 2, want 1"},
		{4, 0, E " (of this step): got 1, want 0"},
		{5, 199, E ".live_context: got 199, want 200"},
	};
	static const spmla_request one[1] = {{3, 250, 250, 0}};
	const spmla_step step = step_of(one, 1);
	uint32_t words[6], i;
	spmla_request part;

	make_plan(100, 4, 0);
	ck_assert_int_eq(
		spmla_prefill_plan(&plan, &step, chunks, MOST, &count, NULL),
		SPMLA_OK);
	for (i = 0; i < 7; i++) {
		spmla_prefill_chunk other;

		memcpy(words, &chunks[1], sizeof words);
		words[changes[i].word] = changes[i].value;
		memcpy(&other, words, sizeof other);
		memset(&part, 0x5a, sizeof part);
		expect_error(spmla_prefill_chunk_requests(&step, &other, &part,
							  1, &diag),
			     changes[i].want);
		ck_assert_uint_eq(bytes_other(&part, sizeof part, 0x5a),
				  sizeof part);
	}
	memset(words, 0, sizeof words);
	memcpy(&chunks[0], words, sizeof words);
	expect_error(spmla_prefill_chunk_requests(&step, &chunks[0], &part, 1,
						  &diag),
		     E ".request_count: got 0, want at least 1");
#undef E
}
END_TEST

START_TEST(a_list_that_is_too_short_says_how_long_it_has_to_be)
{
	static const spmla_request one[1] = {{3, 250, 250, 0}};
	const spmla_step step = step_of(one, 1);
	spmla_prefill_chunk other = {{0, 250}, {0, 1}, 2, 250};
	spmla_request part;

	make_plan(100, 4, 0);
	expect_error(
		spmla_prefill_plan(&plan, &step, chunks, 2, &count, &diag),
		"SPMLA_E_SPACE: prefill_plan.chunks: got 2, want at least 3");
	ck_assert_int_eq(
		spmla_prefill_plan(&plan, &step, chunks, 3, &count, &diag),
		SPMLA_OK);
	expect_error(
		spmla_prefill_chunk_requests(&step, &chunks[0], NULL, 0, &diag),
		"SPMLA_E_SPACE: chunk_requests.requests: got 0, "
		"want at least 1");
	expect_error(
		spmla_prefill_chunk_requests(&step, &other, &part, 1, &diag),
		"SPMLA_E_RANGE: chunk_requests.chunk (of this step): "
		"got 1, want 2");
}
END_TEST

START_TEST(a_pointer_or_a_struct_that_is_wrong_is_named)
{
	spmla_step step = step_of(NULL, 1);
	spmla_request part;

	make_plan(100, 4, 0);
	expect_error(
		spmla_prefill_plan(NULL, &step, chunks, 1, &count, &diag),
		"SPMLA_E_NULL: prefill_plan.plan: got NULL, want a pointer");
	expect_error(
		spmla_prefill_plan(&plan, NULL, chunks, 1, &count, &diag),
		"SPMLA_E_NULL: prefill_plan.step: got NULL, want a pointer");
	expect_error(
		spmla_prefill_plan(&plan, &step, NULL, 1, &count, &diag),
		"SPMLA_E_NULL: prefill_plan.chunks: got NULL, want a pointer");
	expect_error(
		spmla_prefill_plan(&plan, &step, chunks, 1, NULL, &diag),
		"SPMLA_E_NULL: prefill_plan.count: got NULL, want a pointer");
	expect_error(spmla_prefill_plan(&plan, &step, chunks, 1, &count, &diag),
		     "SPMLA_E_NULL: step.requests: got NULL, want a pointer");
	expect_error(
		spmla_prefill_chunk_requests(&step, chunks, &part, 1, &diag),
		"SPMLA_E_NULL: step.requests: got NULL, want a pointer");
	expect_error(
		spmla_prefill_chunk_requests(&step, NULL, &part, 1, &diag),
		"SPMLA_E_NULL: chunk_requests.chunk: got NULL, want a pointer");
	step.flags = SPMLA_STEP_LENS_ON_DEVICE;
	step.request_count = 0;
	expect_error(spmla_prefill_plan(&plan, &step, chunks, 1, &count, &diag),
		     "SPMLA_E_RECORD: step.flags: got 1, want 0");
	step.struct_bytes--;
	ck_assert_int_eq(
		spmla_prefill_plan(&plan, &step, chunks, 1, &count, NULL),
		SPMLA_E_STRUCT_SIZE);
	ck_assert_int_eq(
		spmla_prefill_chunk_requests(&step, chunks, &part, 1, NULL),
		SPMLA_E_STRUCT_SIZE);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{a_request_that_cannot_be_is_named, 1},
		{a_row_that_occurs_twice_is_named, 1},
		{rows_far_apart_are_not_mixed_up, 1},
		{a_chunk_of_another_step_is_refused, 1},
		{a_list_that_is_too_short_says_how_long_it_has_to_be, 1},
		{a_pointer_or_a_struct_that_is_wrong_is_named, 1},
	};
	const theme themes[] = {
		THEME("error", setup, NULL, error),
	};

	return RUN_THEMES(themes);
}
