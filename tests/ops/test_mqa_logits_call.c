/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits, the call: what the host refuses, what the device reports, and
 * that a recorded call equals an eager one.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/mqa_world.h"

static fixture f;
static mqa_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.index_heads = 8;
	fixture_open(&f, &config, 0);
	mqa_open(&w, 8, 64);
}

static void
teardown(void)
{
	mqa_close(&w);
	fixture_close(&f);
}

/* Rows 2 and 0 of the table. */
static const int32_t hostile[6] = {-1, INT32_MIN, INT32_MAX, -2, 1 << 30, 10};

START_TEST(page_outside_the_pool_scores_minus_infinity)
{
	ck_assert_uint_eq(w.a.cache.pages, 10);
	w.table[2 * w.a.table_stride_elems + 1] = hostile[_i];
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0] + 64], -INFINITY);
	ck_assert_float_eq(w.logits[w.starts[0] + 127], -INFINITY);
	ck_assert(isfinite(w.logits[w.starts[0] + 63]));
	ck_assert(isfinite(w.logits[w.starts[0] + 128]));
	mqa_expect_status(&f, SPMLA_FAULT_PAGE, 2);
}
END_TEST

START_TEST(page_not_written_scores_minus_infinity)
{
	const int32_t cols[3] = {3, -7, 1};

	w.a.table_cols = cols;
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0] + 149], -INFINITY);
	ck_assert(isfinite(w.logits[w.starts[2]]));
	mqa_expect_status(&f, SPMLA_FAULT_PAGE, 2);
}
END_TEST

START_TEST(keys_past_the_table_score_minus_infinity)
{
	w.a.columns = 1;
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[1] + 64], -INFINITY);
	mqa_expect_status(&f, SPMLA_FAULT_PAGE, 0);
}
END_TEST

START_TEST(row_outside_the_table_is_not_written)
{
	static const int32_t rows[4] = {-1, 3, INT32_MAX, INT32_MIN};

	w.token_row[1] = rows[_i];
	mqa_check(&f, &w);
	mqa_expect_status(&f, SPMLA_FAULT_ROW, 1);
}
END_TEST

START_TEST(row_that_does_not_fit_the_logits_is_not_written)
{
	static const int64_t starts[5] = {-1, 252, 401, INT64_MAX, INT64_MIN};

	w.starts[1] = starts[_i];
	mqa_check(&f, &w);
	mqa_expect_status(&f, SPMLA_FAULT_LOGITS, 0);
	w.lens[1] = INT32_MAX;
	w.starts[1] = 0;
	mqa_check(&f, &w);
	mqa_expect_status(&f, SPMLA_FAULT_LOGITS, 0);
}
END_TEST

START_TEST(row_without_keys_is_not_looked_at)
{
	w.lens[0] = 0;
	w.lens[1] = -1;
	w.lens[2] = INT32_MIN;
	w.token_row[0] = -1;
	w.token_row[1] = INT32_MAX;
	w.starts[1] = INT64_MAX;
	mqa_check(&f, &w);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}
END_TEST

static void
expect_error(const spmla_mqa_logits_args *a, const char *text)
{
	const spmla_status s = spmla_mqa_logits(f.ctx, a, NULL);

	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(fixture_diag(&f), text);
	ck_assert_msg(!strncmp(text, spmla_status_name(s),
			       strlen(spmla_status_name(s))),
		      "%s", text);
}

START_TEST(every_number_that_is_wrong_is_named)
{
	spmla_mqa_logits_args a = w.a;

	ck_assert_int_eq(spmla_mqa_logits(NULL, &a, NULL), SPMLA_E_NULL);
	expect_error(NULL,
		     "SPMLA_E_NULL: mqa_logits: got NULL, want a pointer");
	a.struct_bytes = 4;
	expect_error(&a, "SPMLA_E_STRUCT_SIZE: mqa_logits: got 4, want 144");
	a = w.a;
	a.heads = 0;
	expect_error(&a,
		     "SPMLA_E_RANGE: mqa_logits.heads: got 0, want at least 1");
	a.heads = 9;
	expect_error(&a,
		     "SPMLA_E_RANGE: mqa_logits.heads: got 9, want at most 8");
	a = w.a;
	a.rows = 0;
	expect_error(&a,
		     "SPMLA_E_RANGE: mqa_logits.rows: got 0, want at least 1");
	a = w.a;
	a.columns = 0;
	expect_error(
		&a,
		"SPMLA_E_RANGE: mqa_logits.columns: got 0, want at least 1");
	a = w.a;
	a.table_stride_elems = 2;
	expect_error(&a, "SPMLA_E_RANGE: mqa_logits.table_stride_elems: got 2, "
			 "want at least 3");
}
END_TEST

START_TEST(every_pointer_that_is_missing_is_named)
{
	static const struct {
		size_t offset;
		const char *text;
	} fields[7] = {
#define FIELD(name)                             \
	{offsetof(spmla_mqa_logits_args, name), \
	 "SPMLA_E_NULL: mqa_logits." #name ": got NULL, want a pointer"}
		FIELD(q),          FIELD(weights),
		FIELD(token_row),  FIELD(context_lens),
		FIELD(row_starts), FIELD(block_table),
		FIELD(logits),
#undef FIELD
	};
	spmla_mqa_logits_args a = w.a;

	memset((uint8_t *)&a + fields[_i].offset, 0, sizeof(void *));
	expect_error(&a, fields[_i].text);
}
END_TEST

START_TEST(every_field_of_the_cache_that_is_wrong_is_named)
{
	spmla_mqa_logits_args a = w.a;

	a.cache.struct_bytes = 0;
	expect_error(&a,
		     "SPMLA_E_STRUCT_SIZE: cache.struct_bytes: got 0, want 40");
	a = w.a;
	a.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	expect_error(&a, "SPMLA_E_RANGE: cache.layout: got 1, want 3");
	a = w.a;
	a.cache.entries_per_page = 0;
	expect_error(&a, "SPMLA_E_RANGE: cache.entries_per_page: got 0, "
			 "want at least 1");
	a = w.a;
	a.cache.pages = 0;
	expect_error(&a, "SPMLA_E_RANGE: cache.pages: got 0, want at least 1");
	a = w.a;
	a.cache.page_stride_bytes = 8432;
	expect_error(&a, "SPMLA_E_RANGE: cache.page_stride_bytes: got 8432, "
			 "want at least 8448");
	a.cache.page_stride_bytes = 8456;
	expect_error(&a, "SPMLA_E_RANGE: cache.page_stride_bytes: got 8456, "
			 "want a multiple of 16");
	a = w.a;
	a.cache.base = NULL;
	expect_error(&a, "SPMLA_E_NULL: cache.base: got NULL, want a pointer");
}
END_TEST

START_TEST(no_tokens_is_no_work)
{
	spmla_mqa_logits_args a = {.struct_bytes = sizeof a};

	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

START_TEST(replay_sees_what_changed_in_place)
{
	uint64_t rng = test_seed() + 9;
	float eager[MQA_LOGITS];
	spmla_graph graph;
	uint32_t round, i;

	memset(w.logits, 0x5A, sizeof eager);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_mem_eq(w.logits, "\x5A\x5A\x5A\x5A", 4);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8 * 128; i++)
			w.q[i] = (uint8_t)rng_below(&rng, 0x7F);
		for (i = 0; i < MQA_TOKENS; i++)
			w.lens[i] = (int32_t)rng_below(&rng, 90);
		mqa_check(&f, &w);
		memset(w.logits, 0x5A, sizeof eager);
		ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
		memcpy(eager, w.logits, sizeof eager);
		memset(w.logits, 0x5A, sizeof eager);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(w.logits, eager, sizeof eager);
	}
}
END_TEST

/* Rows of logits from element 2^31 + 5 on. */
START_TEST(logits_past_8_gib_are_written_where_they_belong)
{
	const int64_t far = (INT64_C(1) << 31) + 5;
	const uint64_t bytes = ((uint64_t)far + MQA_LOGITS) * sizeof(float);
	float near_rows[MQA_LOGITS];
	float *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t t;

	if (map == MAP_FAILED)
		return; /* no such address space here */
	mqa_check(&f, &w);
	memcpy(near_rows, w.logits, sizeof near_rows);
	w.a.logits = map;
	w.a.logits_elems = (uint64_t)far + MQA_LOGITS;
	for (t = 0; t < MQA_TOKENS; t++)
		w.starts[t] += far;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MQA_TOKENS; t++)
		ck_assert_mem_eq(map + w.starts[t],
				 near_rows + w.starts[t] - far,
				 (uint32_t)w.lens[t] * sizeof(float));
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	munmap(map, bytes);
}
END_TEST

/* Column c has page c % 10, so that key n has the score of key n % 640; the
 * last column holds 3 keys. */
START_TEST(a_context_of_a_million_keys_is_scored_to_its_end)
{
	/* An emulator of matrix instructions takes two minutes for a
	 * million. */
	const int few = getenv("SPMLA_TEST_EMULATOR") != NULL;
	const uint32_t keys = few ? 20003 : 1000003;
	const uint32_t columns = keys / 64 + 1;
	int32_t *table = test_alloc(columns * sizeof *table, 0);
	float *logits = test_alloc((keys + 1) * sizeof *logits, 0x5A);
	const float untouched = logits[keys];
	uint32_t wrong = 0, i;

	for (i = 0; i < columns; i++)
		table[i] = (int32_t)(i % 10);
	w.a.tokens = w.a.heads = w.a.rows = 1;
	w.a.columns = w.a.table_stride_elems = columns;
	w.a.block_table = table;
	w.a.logits = logits;
	w.a.logits_elems = keys;
	w.token_row[0] = 0;
	w.starts[0] = 0;
	w.lens[0] = (int32_t)keys;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (i = 0; i < 640; i++)
		ck_assert(isfinite(logits[i]));
	for (i = 640; i < keys; i++)
		wrong += memcmp(&logits[i], &logits[i % 640], 4) != 0;
	ck_assert_uint_eq(wrong, 0);
	ck_assert(!memcmp(&logits[keys], &untouched, 4));
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	free(table);
	free(logits);
}
END_TEST

/* All have the query and the row of token 0, and three of its keys, if any. */
START_TEST(thousands_of_tokens_are_scored_and_reported_each_as_alone)
{
	enum { MANY = 4100, HEADS = 8 };
	uint8_t *q = test_alloc(MANY * HEADS * 128, 0);
	float *weights = test_alloc(MANY * HEADS * sizeof *weights, 0);
	int32_t *row = test_alloc(MANY * sizeof *row, 0);
	int32_t *lens = test_alloc(MANY * sizeof *lens, 0);
	int64_t *starts = test_alloc(MANY * sizeof *starts, 0);
	float *logits = test_alloc(MANY * 4 * sizeof *logits, 0x5A);
	const float untouched = logits[0];
	uint32_t t, n;

	mqa_check(&f, &w);
	for (t = 0; t < MANY; t++) {
		memcpy(q + t * HEADS * 128, w.q, HEADS * 128);
		memcpy(weights + t * HEADS, w.weights, HEADS * sizeof *weights);
		row[t] = t == 4097 ? -1 : w.token_row[0];
		lens[t] = t % 100 == 7 || t > 4090 ? 3 : 0;
		starts[t] = 4 * (int64_t)t;
	}
	w.a.tokens = MANY;
	w.a.q = q;
	w.a.weights = weights;
	w.a.token_row = row;
	w.a.context_lens = lens;
	w.a.row_starts = starts;
	w.a.logits_elems = MANY * 4;
	w.a.logits = logits;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MANY; t++)
		for (n = 0; n < 4; n++)
			ck_assert_mem_eq(&logits[t * 4 + n],
					 t != 4097 && (int32_t)n < lens[t]
						 ? &w.logits[w.starts[0] + n]
						 : &untouched,
					 sizeof untouched);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	mqa_expect_status(&f, SPMLA_FAULT_ROW, 4097);
	free(q);
	free(weights);
	free(row);
	free(lens);
	free(starts);
	free(logits);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("mqa_logits");
	TCase *edge = tcase_create("edge");
	TCase *layout = tcase_create("layout");
	TCase *error = tcase_create("error");
	TCase *graph = tcase_create("graph");

	tcase_add_checked_fixture(edge, setup, teardown);
	tcase_add_loop_test(edge, page_outside_the_pool_scores_minus_infinity,
			    0, 6);
	tcase_add_test(edge, page_not_written_scores_minus_infinity);
	tcase_add_test(edge, keys_past_the_table_score_minus_infinity);
	tcase_add_loop_test(edge, row_outside_the_table_is_not_written, 0, 4);
	tcase_add_loop_test(
		edge, row_that_does_not_fit_the_logits_is_not_written, 0, 5);
	tcase_add_test(edge, row_without_keys_is_not_looked_at);
	tcase_add_checked_fixture(layout, setup, teardown);
	tcase_add_test(layout, logits_past_8_gib_are_written_where_they_belong);
	tcase_add_test(layout,
		       a_context_of_a_million_keys_is_scored_to_its_end);
	tcase_add_test(
		layout,
		thousands_of_tokens_are_scored_and_reported_each_as_alone);
	tcase_add_checked_fixture(error, setup, teardown);
	tcase_add_test(error, every_number_that_is_wrong_is_named);
	tcase_add_loop_test(error, every_pointer_that_is_missing_is_named, 0,
			    7);
	tcase_add_test(error, every_field_of_the_cache_that_is_wrong_is_named);
	tcase_add_test(error, no_tokens_is_no_work);
	tcase_add_checked_fixture(graph, setup, teardown);
	tcase_add_test(graph, replay_sees_what_changed_in_place);
	suite_add_tcase(s, edge);
	suite_add_tcase(s, layout);
	suite_add_tcase(s, error);
	suite_add_tcase(s, graph);
	return s;
}

int
main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
