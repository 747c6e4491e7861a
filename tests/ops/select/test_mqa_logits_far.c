/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits where it is large: logits past 4 GiB, contexts of a million keys,
 * thousands of tokens.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* Rows of logits from element 2^31 + 5 on. */
START_TEST(logits_past_8_gib_are_written_where_they_belong)
{
	const int64_t far = (INT64_C(1) << 31) + 5;
	const uint64_t bytes = ((uint64_t)far + MQA_LOGITS) * sizeof(float);
	float near_rows[MQA_LOGITS];
	float *map = test_map(bytes);
	uint32_t t;

	mqa_check(&f, &w);
	memcpy(near_rows, w.logits, sizeof near_rows);
	w.a.logits = map;
	w.a.logits_elems = (uint64_t)far + MQA_LOGITS;
	for (t = 0; t < MQA_TOKENS; t++)
		w.starts[t] += far;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MQA_TOKENS; t++)
		ck_assert_mem_eq(map + w.starts[t],
				 near_rows + (w.starts[t] - far),
				 (uint32_t)w.lens[t] * sizeof(float));
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	munmap(map, bytes);
}
END_TEST

/* Column c has page c % pages, so that keys repeat; the last column is not full.
 * Pages hold one unit of 64 keys, two, three, four, or no whole number of
 * them. */
START_TEST(a_context_of_a_million_keys_is_scored_to_its_end)
{
	static const uint32_t entries[5] = {64, 128, 192, 256, 61};
	/* An emulator of matrix instructions takes two minutes for a
	 * million. */
	const int few = getenv("SPMLA_TEST_EMULATOR") != NULL;
	const uint32_t keys = !few ? 1000003 : _i ? 5003 : 20003;
	const uint32_t columns = keys / entries[_i] + 1;
	int32_t *table = test_alloc(columns * sizeof *table, 0);
	float *logits = test_alloc((keys + 1) * sizeof *logits, 0x5A);
	const float untouched = logits[keys];
	uint32_t wrong = 0, again, i;

	mqa_close(&w);
	mqa_open(&w, 8, entries[_i]);
	mqa_check(&f, &w);
	again = w.a.cache.pages * entries[_i];
	for (i = 0; i < columns; i++)
		table[i] = (int32_t)(i % w.a.cache.pages);
	w.a.tokens = w.a.heads = w.a.rows = 1;
	w.a.columns = w.a.table_stride_elems = columns;
	w.a.block_table = table;
	w.a.logits = logits;
	w.a.logits_elems = keys;
	w.token_row[0] = 0;
	w.starts[0] = 0;
	w.lens[0] = (int32_t)keys;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (i = 0; i < again; i++)
		ck_assert(isfinite(logits[i]));
	for (i = again; i < keys; i++)
		wrong += memcmp(&logits[i], &logits[i % again], 4) != 0;
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

/* Tokens of one to three units, so that a block of a GPU goes from one to the
 * next wherever its warps are. Some neighbours share a row. */
START_TEST(a_token_behind_others_is_scored_as_alone)
{
	enum { MANY = 600, HEADS = 8, WIDE = 160 };
	uint8_t *q = test_alloc(MANY * HEADS * 128, 0);
	float *weights = test_alloc(MANY * HEADS * sizeof *weights, 0);
	int32_t *row = test_alloc(MANY * sizeof *row, 0);
	int32_t *lens = test_alloc(MANY * sizeof *lens, 0);
	int64_t *starts = test_alloc(MANY * sizeof *starts, 0);
	float *logits = test_alloc(MANY * WIDE * sizeof *logits, 0x5A);
	const float untouched = logits[0];
	int32_t t, n;

	mqa_check(&f, &w);
	for (t = 0; t < MANY; t++) {
		const int32_t of = t % 5 < 3 ? t % 2 : 0;

		memcpy(q + t * HEADS * 128, w.q + of * HEADS * 128,
		       HEADS * 128);
		memcpy(weights + t * HEADS, w.weights + of * HEADS,
		       HEADS * sizeof *weights);
		row[t] = w.token_row[of];
		lens[t] = 1 + t * 37 % w.lens[of];
		starts[t] = WIDE * (int64_t)t;
	}
	w.a.tokens = MANY;
	w.a.q = q;
	w.a.weights = weights;
	w.a.token_row = row;
	w.a.context_lens = lens;
	w.a.row_starts = starts;
	w.a.logits_elems = MANY * WIDE;
	w.a.logits = logits;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MANY; t++) {
		const float *alone =
			w.logits + w.starts[row[t] == w.token_row[1]];

		for (n = 0; n < WIDE; n++)
			ck_assert_mem_eq(&logits[t * WIDE + n],
					 n < lens[t] ? alone + n : &untouched,
					 sizeof untouched);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	free(q);
	free(weights);
	free(row);
	free(lens);
	free(starts);
	free(logits);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{logits_past_8_gib_are_written_where_they_belong, 1},
		{a_context_of_a_million_keys_is_scored_to_its_end, 5},
		{thousands_of_tokens_are_scored_and_reported_each_as_alone, 1},
		{a_token_behind_others_is_scored_as_alone, 1},
	};
	const theme themes[] = {
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
