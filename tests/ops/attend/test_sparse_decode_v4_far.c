/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over V4 rows: partial results past 4 GiB, and calls that leave
 * out what they do not ask for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"

static fixture f;
static v4_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = V4_HEADS;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	v4_close(&w);
	fixture_close(&f);
}

START_TEST(what_is_not_asked_for_may_be_missing)
{
	v4_open(&w, 2, 64, 5, 64, 0);
	v4_choose(&w);
	w.a.extra_slots = NULL;
	w.a.extra_slots_stride_elems = 0;
	w.a.tile_scheduler_metadata = w.a.num_splits = NULL;
	w.a.split_out = w.a.split_lse = NULL;
	w.a.split_rows = 0;
	v4_check(&f, &w);
}
END_TEST

/* Row 2^20 of the partial results of 2 heads is 2^20 * 2 * 2048 B = 4 GiB
 * behind the first. */
START_TEST(partial_results_past_4_gib_are_written_where_they_belong)
{
	const uint32_t first = 1u << 20;
	const uint64_t bytes = (first + UINT64_C(2)) * 2 * 2048;
	static const int32_t parts[2][8] = {{0, 0, 0, 2, 0, 1, 1, 0},
					    {0, 0, 2, 4, 1, 1, 1, 0}};
	float *map = test_map(bytes);
	float *lse = test_alloc((first + 2) * 2 * sizeof *lse, 0);

	v4_open(&w, 2, 64, 256, 2, 0);
	v4_choose(&w);
	w.a.tokens = 1;
	w.a.parts = 2;
	memcpy(w.parts, parts, sizeof parts);
	memcpy(w.num_splits, (const int32_t[]){0, 2}, 8);
	v4_check(&f, &w);
	w.num_splits[0] += (int32_t)first;
	w.num_splits[1] += (int32_t)first;
	w.a.split_out = map;
	w.a.split_lse = lse;
	w.a.split_rows = first + 2;
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &w.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(map + first * UINT64_C(1024), w.split_out, 2 * 4096);
	ck_assert_mem_eq(lse + first * 2, w.split_lse, 4 * sizeof *lse);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	munmap(map, bytes);
	free(lse);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{what_is_not_asked_for_may_be_missing, 1},
	};
	const theme_test layout[] = {
		{partial_results_past_4_gib_are_written_where_they_belong, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),

	};

	return RUN_THEMES(themes);
}
