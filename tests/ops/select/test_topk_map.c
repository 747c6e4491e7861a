/* SPDX-License-Identifier: Apache-2.0
 *
 * topk that maps what it selects: the same bytes and reports as topk and then
 * index_map, for every kernel of topk and more rows than it has blocks.
 */
#include <stdlib.h>

#include "spmla/ops/topk.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum {
	MOST_ROWS = 140,
	MOST_LEN = 9000,
	MOST_K = 300,
	PAGE = 64,
	PAGES = MOST_LEN / PAGE + 1,
	TABLE_ROWS = 5
};

static fixture f;
static float *scores;
static int64_t starts[MOST_ROWS];
static int32_t lens[MOST_ROWS], context[MOST_ROWS], row_of[MOST_ROWS];
static int32_t other_lens[MOST_ROWS];
static int32_t table[TABLE_ROWS][PAGES], cols[TABLE_ROWS];

/* What a call writes. */
typedef struct result {
	int32_t indices[MOST_ROWS][MOST_K];
	int32_t slots[MOST_ROWS][MOST_K + 2];
	int32_t lens[MOST_ROWS], counts[MOST_ROWS], kept[MOST_ROWS];
	spmla_device_status status;
} result;

static result both, one;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	scores = test_alloc(2 * MOST_LEN * sizeof *scores, 0);
}

static void
teardown(void)
{
	free(scores);
	fixture_close(&f);
}

/* Rows of up to `most` scores that lie over each other. Every request but the
 * last has its pages; `bad` ones miss some, or the row, or see fewer keys than
 * were scored. */
static void
fill(uint64_t *rng, uint32_t most, uint32_t bad)
{
	uint32_t i, c;

	for (i = 0; i < 2 * MOST_LEN; i++)
		scores[i] = rng_float(rng);
	for (i = 0; i < TABLE_ROWS; i++) {
		cols[i] = PAGES;
		for (c = 0; c < PAGES; c++)
			table[i][c] = (int32_t)(i * PAGES + c);
	}
	if (bad) {
		cols[1] = 1;
		table[2][0] = TABLE_ROWS * PAGES;
	}
	for (i = 0; i < MOST_ROWS; i++) {
		starts[i] = rng_below(rng, MOST_LEN);
		lens[i] = (int32_t)rng_below(rng, most + 1);
		context[i] = lens[i];
		if (bad && i % 7 == 4)
			context[i] = lens[i] / 2;
		row_of[i] = (int32_t)(i % (bad ? TABLE_ROWS + 1 : TABLE_ROWS));
		other_lens[i] = (int32_t)i;
	}
}

static spmla_topk_args
args_of(uint32_t rows, uint32_t k, result *to)
{
	spmla_topk_args a = {.struct_bytes = sizeof a, .rows = rows, .k = k};
	spmla_index_map_args *m = &a.map;

	a.logits = scores;
	a.logits_elems = 2 * MOST_LEN;
	a.row_starts = starts;
	a.context_lens = lens;
	a.indices = to->indices[0];
	a.indices_stride_elems = MOST_K;
	a.lens = to->lens;
	m->struct_bytes = sizeof *m;
	m->tokens = rows;
	m->k = k;
	m->rows = TABLE_ROWS;
	m->columns = PAGES;
	m->table_stride_elems = PAGES;
	m->page_tokens = PAGE;
	m->pool_pages = TABLE_ROWS * PAGES;
	m->token_row = row_of;
	m->block_table = table[0];
	m->table_cols = cols;
	m->indices = a.indices;
	m->indices_stride_elems = MOST_K;
	m->lens = a.lens;
	m->slots = to->slots[0];
	m->slots_stride_elems = MOST_K + 2;
	m->context_lens = context;
	return a;
}

static void
run(const spmla_topk_args *a, result *r)
{
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	ck_assert_int_eq(spmla_topk(f.ctx, a, NULL), SPMLA_OK);
	r->status = fixture_status(&f);
}

/* One call and two; the same memory but for where it lies. */
static void
check(const spmla_topk_args *mapped)
{
	spmla_topk_args a = *mapped;
	spmla_index_map_args m = mapped->map;

	memset(&one, 0x5A, sizeof one);
	memset(&both, 0x5A, sizeof both);
	run(&a, &one);
	a.indices = both.indices[0];
	a.lens = both.lens;
	a.map.struct_bytes = 0;
	m.indices = a.indices;
	m.lens = a.lens;
	m.slots = m.slots == mapped->indices ? a.indices : both.slots[0];
	m.valid_counts = m.valid_counts ? both.counts : NULL;
	m.kept_lens = m.kept_lens ? both.kept : NULL;
	run(&a, &both);
	ck_assert_int_eq(spmla_index_map(f.ctx, &m, NULL), SPMLA_OK);
	both.status = fixture_status(&f);
	ck_assert_mem_eq(&one, &both, sizeof one);
}

START_TEST(slots_are_those_of_index_map_for_any_number_of_rows)
{
	static const uint32_t rows[6] = {1, 16, 17, 67, 133, 140};
	static const uint32_t ks[6] = {300, 37, 130, 8, 64, 20};
	const uint32_t rounds = fixture_rounds(16, 8);
	uint64_t rng = test_seed() + (uint64_t)_i;
	uint32_t n;

	/* Four choices, bits of i. Half the rounds have any three of them. */
	for (n = 0; n < rounds; n++) {
		const uint32_t bad = (n ^ n >> 1 ^ n >> 2 ^ n >> 3) & 1u;
		const uint32_t i = n % 8 | bad << 3;
		spmla_topk_args a = args_of(rows[_i], ks[_i], &one);

		fill(&rng, i % 2 ? MOST_LEN : 700, i / 8);
		a.map.whole = i & 1u;
		a.map.compact = i >> 1 & 1u;
		if (i >> 2 & 1u) {
			a.map.valid_counts = one.counts;
			a.map.other_lens = other_lens;
			a.map.kept_lens = one.kept;
		}
		check(&a);
		if (_i > 0) /* of one row nothing is bad */
			ck_assert_uint_eq(one.status.count > 0, i / 8);
	}
}
END_TEST

/* What is selected there is gone then. */
START_TEST(slots_may_lie_where_the_indices_are)
{
	static const uint32_t rows[3] = {3, 20, 70};
	uint64_t rng = test_seed() + 20 + (uint64_t)_i;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		spmla_topk_args a = args_of(rows[_i], 64, &one);

		fill(&rng, 2000, i / 2);
		a.map.slots = a.indices;
		a.map.slots_stride_elems = a.indices_stride_elems;
		a.map.compact = i % 2;
		check(&a);
	}
}
END_TEST

/* By a launch of its own. */
START_TEST(slots_may_be_ragged)
{
	static int32_t ends[MOST_ROWS + 1];
	uint64_t rng = test_seed() + 40;
	spmla_topk_args a = args_of(20, 64, &one);
	spmla_index_map_args m = a.map;
	uint32_t i;

	fill(&rng, 100, 0);
	memset(&one, 0x5A, sizeof one);
	a.map.indptr = ends;
	a.map.capacity_elems = 20 * 64;
	run(&a, &one);
	memset(&both, 0x5A, sizeof both);
	m.slots = both.slots[0];
	ck_assert_int_eq(spmla_index_map(f.ctx, &m, NULL), SPMLA_OK);
	fixture_drain(&f);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(ends[i + 1] - ends[i], one.lens[i]);
		ck_assert_mem_eq((int32_t *)one.slots + ends[i], both.slots[i],
				 (size_t)one.lens[i] * 4);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{slots_are_those_of_index_map_for_any_number_of_rows, 6},
		{slots_may_lie_where_the_indices_are, 3},
		{slots_may_be_ragged, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
	};

	return RUN_THEMES(themes);
}
