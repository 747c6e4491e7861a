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

/* A call of many tokens, whose rows of logits are `wide` apart. */
typedef struct many {
	uint8_t *q;
	float *weights, *logits, untouched;
	int32_t *row, *lens;
	int64_t *starts;
} many;

enum { MANY_HEADS = 8 };

static void
many_open(many *m, uint32_t tokens, uint32_t wide)
{
	const uint32_t heads = tokens * MANY_HEADS;
	uint32_t t;

	mqa_check(&f, &w);
	m->q = test_alloc(heads * 128, 0);
	m->weights = test_alloc(heads * sizeof *m->weights, 0);
	m->row = test_alloc(tokens * sizeof *m->row, 0);
	m->lens = test_alloc(tokens * sizeof *m->lens, 0);
	m->starts = test_alloc(tokens * sizeof *m->starts, 0);
	m->logits = test_alloc(tokens * wide * sizeof *m->logits, 0x5A);
	m->untouched = m->logits[0];
	for (t = 0; t < tokens; t++)
		m->starts[t] = wide * (int64_t)t;
	w.a.tokens = tokens;
	w.a.q = m->q;
	w.a.weights = m->weights;
	w.a.token_row = m->row;
	w.a.context_lens = m->lens;
	w.a.row_starts = m->starts;
	w.a.logits_elems = tokens * wide;
	w.a.logits = m->logits;
}

static void
many_close(many *m)
{
	free(m->q);
	free(m->weights);
	free(m->row);
	free(m->lens);
	free(m->starts);
	free(m->logits);
}

/* Token t has the query and the row of token `of` of the world, and so many of
 * its keys. */
static void
put_one(many *m, uint32_t t, uint32_t of, int32_t len)
{
	const uint32_t bytes = MANY_HEADS * 128;

	memcpy(m->q + t * bytes, w.q + of * bytes, bytes);
	memcpy(m->weights + t * MANY_HEADS, w.weights + of * MANY_HEADS,
	       MANY_HEADS * sizeof *w.weights);
	m->row[t] = w.token_row[of];
	m->lens[t] = len;
}

/* The first `len` of the `wide` logits of token t are token `of`'s. */
static void
expect_one(const many *m, uint32_t t, uint32_t wide, uint32_t of, int32_t len)
{
	uint32_t n;

	for (n = 0; n < wide; n++)
		ck_assert_mem_eq(&m->logits[t * wide + n],
				 (int32_t)n < len ? &w.logits[w.starts[of] + n]
						  : &m->untouched,
				 sizeof m->untouched);
}

/* All have the query and the row of token 0, and three of its keys, if any. */
START_TEST(thousands_of_tokens_are_scored_and_reported_each_as_alone)
{
	enum { MANY = 4100, WIDE = 4 };
	uint32_t t;
	many m;

	many_open(&m, MANY, WIDE);
	for (t = 0; t < MANY; t++)
		put_one(&m, t, 0, t % 100 == 7 || t > 4090 ? 3 : 0);
	m.row[4097] = -1;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MANY; t++)
		expect_one(&m, t, WIDE, 0, t == 4097 ? 0 : m.lens[t]);
	ck_assert_uint_eq(fixture_status(&f).count, 1);
	mqa_expect_status(&f, SPMLA_FAULT_ROW, 4097);
	many_close(&m);
}
END_TEST

/* Tokens of one to three units, so that a block of a GPU goes from one to the
 * next wherever its warps are. Some neighbours share a row. */
START_TEST(a_token_behind_others_is_scored_as_alone)
{
	enum { MANY = 600, WIDE = 160 };
	uint32_t t, of;
	many m;

	many_open(&m, MANY, WIDE);
	for (t = 0; t < MANY; t++) {
		of = t % 5 < 3 ? t % 2 : 0;
		put_one(&m, t, of, 1 + (int32_t)(t * 37) % w.lens[of]);
	}
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &w.a, NULL), SPMLA_OK);
	for (t = 0; t < MANY; t++) {
		of = t % 5 < 3 ? t % 2 : 0;
		expect_one(&m, t, WIDE, of, m.lens[t]);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	many_close(&m);
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
