/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: rows outside the scores and past 4 GiB, and that rows are independent.
 * What it selects is in test_topk.c.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/ops/topk.h"

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

START_TEST(row_outside_the_scores_is_empty_and_reported)
{
	static const int64_t bad[6] = {-1,  INT64_MIN,        INT64_MAX,
				       101, INT64_C(1) << 33, 92};
	static const int32_t want[2][4] = {{-1, -1, -1, -1}, {0, 1, 2, 3}};
	float row[100] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
	uint32_t i;

	for (i = 0; i < 6; i++) {
		const int64_t row_starts[3] = {bad[i], 0, bad[i]};
		const int32_t row_lens[3] = {i & 1 ? INT32_MAX : 9, 9, 0};
		int32_t got[3][4], n[3];
		spmla_topk_args a = {sizeof a,   3,        4,      0, row, 100,
				     row_starts, row_lens, got[0], 4, n,   0,
				     0,          0,        {0}};

		ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
		ck_assert_mem_eq(got[0], want[0], sizeof want[0]);
		ck_assert_mem_eq(got[1], want[1], sizeof want[1]);
		ck_assert_mem_eq(got[2], want[0], sizeof want[0]);
		ck_assert_int_eq(n[0], 0);
		ck_assert_int_eq(n[1], 4);
		ck_assert_uint_eq(fixture_status(&f).count, 1);
		ck_assert_uint_eq(fixture_status(&f).fault, SPMLA_FAULT_LOGITS);
		ck_assert_uint_eq(fixture_status(&f).row, 0);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	}
}
END_TEST

START_TEST(row_does_not_depend_on_its_neighbours)
{
	uint64_t rng = test_seed() + 3;
	const int32_t row_lens[4] = {700, 700, 500, 700};
	const int64_t row_starts[4] = {0, 0, 700, 0};
	int32_t got[4][64], alone[64];
	float pool[1200];
	spmla_topk_args a = {sizeof a, 4,          64,       0,      pool,
			     1200,     row_starts, row_lens, got[0], 64,
			     NULL,     0,          0,        0,      {0}};
	uint32_t i;

	for (i = 0; i < 1200; i++)
		pool[i] = (float)rng_below(&rng, 50);
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	a.rows = 1;
	a.indices = alone;
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got[0], alone, sizeof alone);
	ck_assert_mem_eq(got[1], alone, sizeof alone);
	ck_assert_mem_eq(got[3], alone, sizeof alone);
}
END_TEST

/* A row of 2^20 + 1 scores of 0 that starts 4 GiB and 20 B behind the first
 * element; four of them are more, the other four of the set are the lowest. */
START_TEST(a_million_scores_past_4_gib_are_ranked)
{
	static const int32_t best[4] = {7, 999983, 1048575, 1048576};
	static const int32_t want[8] = {0, 1,      2,       3,
					7, 999983, 1048575, 1048576};
	const uint64_t first = (UINT64_C(1) << 30) + 5, len = 1048577;
	const uint64_t bytes = (first + len) * sizeof(float);
	float *map = test_map(bytes);
	const int64_t start = (int64_t)first;
	const int32_t n = (int32_t)len;
	int32_t got[8];
	spmla_topk_args a = {.struct_bytes = sizeof a,
			     .rows = 1,
			     .k = 8,
			     .logits = map,
			     .logits_elems = first + len,
			     .row_starts = &start,
			     .context_lens = &n,
			     .indices = got,
			     .indices_stride_elems = 8};
	uint32_t i;

	for (i = 0; i < 4; i++)
		map[first + (uint64_t)best[i]] = 1 + (float)i;
	map[0] = map[5] = map[8] = 9; /* of no row */
	ck_assert_int_eq(spmla_topk(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got, want, sizeof want);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	munmap(map, bytes);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{row_outside_the_scores_is_empty_and_reported, 1},
	};
	const theme_test layout[] = {
		{a_million_scores_past_4_gib_are_ranked, 1},
	};
	const theme_test determinism[] = {
		{row_does_not_depend_on_its_neighbours, 1},
	};
	const theme themes[] = {
		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
