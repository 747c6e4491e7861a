/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: pages, rows and lengths that are not there.
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

/* The first key of a page reports it, and here it is the last of the row. */
START_TEST(missing_page_of_one_key_is_reported)
{
	w.lens[0] = 129;
	w.table[2 * w.a.table_stride_elems + 2] = -1;
	mqa_check(&f, &w);
	ck_assert_float_eq(w.logits[w.starts[0] + 128], -INFINITY);
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

/* The second row has 150 keys and room for 130: the third row's scores stay. */
START_TEST(rows_of_one_stride_need_no_starts)
{
	static const int32_t lens[3] = {100, 130, 7};
	float kept[3 * 130];
	uint32_t t;

	for (t = 0; t < 3; t++) {
		w.lens[t] = lens[t];
		w.starts[t] = 130 * t;
	}
	mqa_check(&f, &w);
	memcpy(kept, w.logits, sizeof kept);
	w.a.row_starts = NULL;
	w.a.row_stride_elems = 130;
	memset(w.logits, 0x77, 100 * sizeof *w.logits);
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(w.logits, kept, sizeof kept);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	w.lens[1] = 150;
	memset(w.logits + 130, 0, 130 * sizeof *w.logits);
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(w.logits, kept, sizeof kept);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	mqa_expect_status(&f, SPMLA_FAULT_LOGITS, (uint32_t)w.token_row[1]);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{page_outside_the_pool_scores_minus_infinity, 6},
		{missing_page_of_one_key_is_reported, 1},
		{page_not_written_scores_minus_infinity, 1},
		{keys_past_the_table_score_minus_infinity, 1},
		{row_outside_the_table_is_not_written, 4},
		{row_that_does_not_fit_the_logits_is_not_written, 5},
		{row_without_keys_is_not_looked_at, 1},
		{rows_of_one_stride_need_no_starts, 1},
	};
	const theme themes[] = {
		THEME("edge", setup, teardown, edge),

	};

	return RUN_THEMES(themes);
}
