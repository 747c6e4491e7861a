/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over V4 rows, the call: what the host refuses of the second
 * cache and the splits, and that a recorded call equals an eager one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/v4_decode_world.h"
#include "tests/reference/narrow_ref.h"

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

#define FIELD(name) ARG_FIELD(spmla_sparse_decode_args, name)
#define NUMBER(name, value, text)                                           \
	{                                                                   \
		FIELD(name), value, SPMLA_E_RANGE,                          \
			"SPMLA_E_RANGE: sparse_decode." #name ": got " text \
	}
#define NULLED(name)                                         \
	{                                                    \
		FIELD(name), 0, SPMLA_E_NULL,                \
			"SPMLA_E_NULL: sparse_decode." #name \
			": got NULL, want a pointer"         \
	}
#define EXTRA(name, value, text)                              \
	{                                                     \
		FIELD(name), value, SPMLA_E_RANGE,            \
			"SPMLA_E_RANGE: " #name ": got " text \
	}

static const arg_error errors[] = {
	NUMBER(q_head_stride_elems, 511, "511, want at least 512"),
	NUMBER(q_token_stride_elems, 511, "511, want at least 512"),
	NUMBER(extra_slots_stride_elems, 4, "4, want at least 5"),
	NULLED(extra_slots),
	{FIELD(extra_cache.struct_bytes), 0, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: extra_cache.struct_bytes: got 0, want 40"},
	EXTRA(extra_cache.layout, 1, "1, want 4"),
	EXTRA(extra_cache.entries_per_page, 0, "0, want at least 1"),
	EXTRA(extra_cache.pages, 0, "0, want at least 1"),
	EXTRA(extra_cache.page_stride_bytes, 37360,
	      "37360, want at least 37376"),
	EXTRA(extra_cache.page_stride_bytes, 37384,
	      "37384, want a multiple of 16"),
	{FIELD(extra_cache.base), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: extra_cache.base: got NULL, want a pointer"},
	NUMBER(split_rows, 0, "0, want at least 1"),
	NULLED(tile_scheduler_metadata),
	NULLED(num_splits),
	NULLED(split_out),
	NULLED(split_lse),
};

START_TEST(every_argument_that_is_wrong_is_named)
{
	const arg_error *e = &errors[_i];
	spmla_sparse_decode_args bad;

	v4_open(&w, 2, 64, 5, 64, 5);
	w.a.parts = 1;
	bad = w.a;
	memcpy((uint8_t *)&bad + e->offset, &e->value, e->bytes);
	ck_assert_uint_eq(spmla_sparse_decode(f.ctx, &bad, NULL), e->status);
	ck_assert_str_eq(fixture_diag(&f), e->text);
}
END_TEST

START_TEST(second_cache_is_for_v4_rows_only)
{
	v4_open(&w, 2, 64, 5, 64, 5);
	w.a.cache.layout = SPMLA_LAYOUT_MLA_BF16;
	w.a.cache.entries_per_page = 1;
	w.a.cache.page_stride_bytes = 1152;
	w.a.q_head_stride_elems = w.a.q_token_stride_elems = 576;
	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &w.a, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: sparse_decode.extra_topk: got 5, want "
			 "0");
}
END_TEST

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

START_TEST(replay_sees_what_changed_in_place)
{
	spmla_graph graph;
	uint16_t *eager;
	uint32_t round;

	v4_open(&w, 3, 64, 70, 2, 70);
	eager = malloc(w.out_elems * 2);
	memset(w.out, 0x5A, w.out_elems * 2);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	v4_run(&f, &w);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(w.out[0], 0x5A5A);
	for (round = 0; round < 2; round++) {
		v4_choose(&w);
		v4_check(&f, &w);
		memcpy(eager, w.out, w.out_elems * 2);
		memset(w.out, 0xC3, w.out_elems * 2);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(w.out, eager, w.out_elems * 2);
	}
	free(eager);
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
		{every_argument_that_is_wrong_is_named,
		 (int)(sizeof errors / sizeof *errors)},
		{second_cache_is_for_v4_rows_only, 1},
		{what_is_not_asked_for_may_be_missing, 1},
	};
	const theme_test layout[] = {
		{partial_results_past_4_gib_are_written_where_they_belong, 1}};
	const theme_test graph[] = {{replay_sees_what_changed_in_place, 1}};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
		THEME("graph", setup, teardown, graph),
	};

	return RUN_THEMES(themes);
}
