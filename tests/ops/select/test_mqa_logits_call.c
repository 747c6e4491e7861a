/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits, the call: what the host refuses, what the device reports, and
 * that a recorded call equals an eager one.
 */
#include <math.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/select/mqa_world.h"

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

SUITE
{
	const theme_test edge[] = {
		{page_outside_the_pool_scores_minus_infinity, 6},
		{page_not_written_scores_minus_infinity, 1},
		{keys_past_the_table_score_minus_infinity, 1},
		{row_outside_the_table_is_not_written, 4},
		{row_that_does_not_fit_the_logits_is_not_written, 5},
		{row_without_keys_is_not_looked_at, 1},
	};
	const theme_test error[] = {
		{every_number_that_is_wrong_is_named, 1},
		{every_pointer_that_is_missing_is_named, 7},
		{every_field_of_the_cache_that_is_wrong_is_named, 1},
		{no_tokens_is_no_work, 1},
	};
	const theme_test graph[] = {
		{replay_sees_what_changed_in_place, 1},
	};
	const theme themes[] = {
		THEME("edge", setup, teardown, edge),
		THEME("error", setup, teardown, error),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
