/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: what the call refuses and says, pages of unusual size and far
 * away, and how it is recorded, queued and replayed. Rows are MLA_BF16 where
 * the values do not matter: they are copies.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/kv_gather.h"

#define FIELD(field) ARG_FIELD(spmla_kv_gather_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: kv_gather."
#define NUL(field) \
	SPMLA_E_NULL, "SPMLA_E_NULL: " field ": got NULL, want a pointer"

static gather_rig g;
static int32_t starts[2] = {0, 20};
static uint16_t dst[60 * 576];

static void
open_rig(uint32_t layout)
{
	gather_open(&g, layout, 16, 2, 4, 0);
	memset(dst, 0x5A, sizeof dst);
}

static void
setup(void)
{
	open_rig(SPMLA_LAYOUT_MLA_BF16);
}

static void
teardown(void)
{
	gather_close(&g);
}

static spmla_kv_gather_args
good_args(void)
{
	const spmla_kv_gather_args a = {
		sizeof a, 2,    50,  2,   4,       7,    starts, NULL, NULL,
		g.table,  NULL, dst, 576, g.cache, NULL, NULL,   0,    0};

	return a;
}

/* The 50 keys as they are in the pages. */
static void
expect_keys(void)
{
	int32_t n;

	for (n = 0; n < 50; n++) {
		const int32_t b = n >= starts[1], j = n - starts[b];
		const uint8_t *page = (const uint8_t *)g.cache.base +
				      (uint64_t)g.table[b * 7 + j / 16] *
					      g.cache.page_stride_bytes;

		ck_assert_mem_eq(dst + n * 576, page + j % 16 * 1152, 1152);
	}
	ck_assert_uint_eq(dst[50 * 576], 0x5A5A);
}

static const arg_error errors[] = {
	{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: kv_gather: got 8, want 144"},
	{FIELD(keys), UINT64_C(1) << 31,
	 RANGE "keys: got 2147483648, want at most 2147483647"},
	{FIELD(rows), 1, RANGE "rows: got 1, want at least 2"},
	{FIELD(columns), 0, RANGE "columns: got 0, want at least 1"},
	{FIELD(table_stride_elems), 3,
	 RANGE "table_stride_elems: got 3, want at least 4"},
	{FIELD(ring), 2, RANGE "ring: got 2, want at most 1"},
	{FIELD(workspace_starts), 0, NUL("kv_gather.workspace_starts")},
	{FIELD(block_table), 0, NUL("kv_gather.block_table")},
	{FIELD(dst), 0, NUL("kv_gather.dst")},
	{FIELD(dst_stride_elems), 575,
	 RANGE "dst_stride_elems: got 575, want at least 576"},
	{FIELD(dst_stride_elems), UINT64_MAX,
	 RANGE "dst_stride_elems: got 0, want at least 576"},
	{FIELD(cache.layout), SPMLA_LAYOUT_INDEX_FP8, SPMLA_E_RANGE,
	 "SPMLA_E_RANGE: cache.layout: got 3, want 1"},
	{FIELD(cache.page_stride_bytes), 18416, SPMLA_E_RANGE,
	 "SPMLA_E_RANGE: cache.page_stride_bytes: got 18416, want at least "
	 "18432"}, /* 16 * 1152 */
	{FIELD(cache.base), 0, NUL("cache.base")},
};

START_TEST(every_field_is_checked_and_named)
{
	uint32_t i;

	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_kv_gather_args bad = good_args();

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_kv_gather(g.f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&g.f), e->text);
	}
	for (i = 0; i < 60 * 576; i++)
		ck_assert_uint_eq(dst[i], 0x5A5A);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	const spmla_kv_gather_args a = good_args();

	ck_assert_int_eq(spmla_kv_gather(NULL, &a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, NULL, NULL), SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&g.f),
			 "SPMLA_E_NULL: kv_gather: got NULL, want a pointer");
}
END_TEST

START_TEST(no_requests_and_no_keys_need_nothing)
{
	spmla_kv_gather_args none = {0};

	none.struct_bytes = (uint32_t)sizeof none;
	none.requests = 3;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &none, NULL), SPMLA_OK);
	none.requests = 0;
	none.keys = 3;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &none, NULL), SPMLA_OK);
}
END_TEST

START_TEST(with_rows_named_the_table_may_be_shorter_than_the_batch)
{
	static const int32_t same[2] = {0, 0};
	spmla_kv_gather_args a = good_args();

	a.rows = 1;
	a.req_row = same;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(dst, dst + 20 * 576, 20 * 1152);
	a.rows = 0;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_E_RANGE);
	ck_assert_str_eq(
		fixture_diag(&g.f),
		"SPMLA_E_RANGE: kv_gather.rows: got 0, want at least 1");
}
END_TEST

START_TEST(pages_may_be_of_odd_size_and_far_apart)
{
	spmla_kv_gather_args a;
	uint32_t n;

	gather_close(&g);
	gather_open(&g, SPMLA_LAYOUT_MLA_BF16, 3, 1, 7, 4096);
	ck_assert_uint_eq(g.cache.page_stride_bytes, 3456 + 4096);
	a = good_args();
	a.rows = a.requests = 1;
	a.keys = 21;
	a.columns = 7;
	a.table_stride_elems = 10;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (n = 0; n < 21; n++)
		ck_assert_mem_eq(dst + n * 576,
				 g.pool + (uint64_t)g.table[n / 3] * 7552 +
					 n % 3 * 1152,
				 1152);
	ck_assert_uint_eq(dst[21 * 576], 0x5A5A);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
}
END_TEST

/* Pages of 16 rows of 656 B are 10496 B: page 204601 starts past 2^31 B, page
 * 500000 past 2^32 B. The first two pages of the pool lie there, so the result
 * is that of the near ones. */
START_TEST(pages_past_2_and_4_gib_are_read_where_they_lie)
{
	const uint64_t bytes = UINT64_C(5500000000);
	static int32_t near_pages[2] = {0, 1}, far_pages[2] = {204601, 500000};
	static uint16_t near_keys[32 * 576];
	spmla_kv_gather_args a;
	uint8_t *pool;
	uint32_t i;

	pool = test_map(bytes);
	gather_close(&g);
	open_rig(SPMLA_LAYOUT_FP8_DS_MLA);
	a = good_args();
	a.requests = a.rows = 1;
	a.keys = 32;
	a.columns = a.table_stride_elems = 2;
	a.block_table = near_pages;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	memcpy(near_keys, dst, sizeof near_keys);
	memset(dst, 0x5A, sizeof dst);
	for (i = 0; i < 2; i++)
		memcpy(pool + (uint64_t)far_pages[i] * 10496,
		       g.pool + i * 10496, 10496);
	a.cache.base = pool;
	a.cache.pages = (uint32_t)(bytes / 10496);
	a.block_table = far_pages;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(dst, near_keys, sizeof near_keys);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	munmap(pool, bytes);
}
END_TEST

/* Rows of the output 2 GiB apart. */
START_TEST(output_past_4_gib_is_written_where_it_belongs)
{
	const uint64_t stride = UINT64_C(1) << 30, elems = 2 * stride + 576;
	uint16_t *map = test_map(elems * 2);
	spmla_kv_gather_args a = good_args();
	uint32_t n;

	a.requests = a.rows = 1;
	a.keys = 3;
	a.dst = map;
	a.dst_stride_elems = (int64_t)stride;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (n = 0; n < 3; n++)
		ck_assert_mem_eq(
			map + n * stride,
			g.pool + (uint64_t)g.table[0] * 18432 + n * 1152, 1152);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	munmap(map, elems * 2);
}
END_TEST

/* Position 16777210 of pages of 16: column 1048575 of a row of 2^20. */
START_TEST(positions_of_very_long_requests_are_found)
{
	static int32_t first[1] = {16777210};
	int32_t *table = test_alloc(4ull << 20, 0);
	spmla_kv_gather_args a = good_args();

	table[1048575] = 3;
	a.requests = a.rows = 1;
	a.keys = 7;
	a.columns = a.table_stride_elems = 1 << 20;
	a.block_table = table;
	a.seq_starts = first;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(dst, g.pool + 3 * 18432 + 10 * 1152, 6 * 1152);
	ck_assert_uint_eq(dst[6 * 576], 0);
	gather_status(&g, 1, SPMLA_FAULT_PAGE, 0);
	free(table);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_kv_gather_args a = good_args();
	spmla_graph graph;
	uint32_t round;

	ck_assert_int_eq(spmla_graph_begin(g.f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(g.f.ctx, &graph), SPMLA_OK);
	ck_assert_uint_eq(dst[0], 0x5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 4; round++) {
		const int32_t page = g.table[0];

		starts[1] = (int32_t)(10 + round);
		g.table[0] = g.table[8];
		g.table[8] = page;
		memset(dst, 0x5A, sizeof dst);
		ck_assert_int_eq(spmla_graph_replay(g.f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		expect_keys();
	}
	starts[1] = 20;
}
END_TEST

START_TEST(a_refused_call_fails_its_capture)
{
	spmla_kv_gather_args a = good_args();
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(g.f.ctx, NULL), SPMLA_OK);
	a.columns = 0;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_graph_end(g.f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(g.f.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_queued_op_has_its_own_copy_of_the_args)
{
	spmla_kv_gather_args a = good_args();
	spmla_config config;

	fixture_close(&g.f);
	fixture_config(&config);
	fixture_open(&g.f, &config, SPMLA_NATIVE_DEFERRED);
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	memset(&a, 0xff, sizeof a);
	ck_assert_uint_eq(fixture_pending(&g.f), 1);
	ck_assert_uint_eq(dst[0], 0x5A5A);
	fixture_drain(&g.f);
	expect_keys();
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{args_and_context_must_be_there, 1},
		{no_requests_and_no_keys_need_nothing, 1},
		{with_rows_named_the_table_may_be_shorter_than_the_batch, 1},
	};
	const theme_test layout[] = {
		{pages_may_be_of_odd_size_and_far_apart, 1},
		{pages_past_2_and_4_gib_are_read_where_they_lie, 1},
		{output_past_4_gib_is_written_where_it_belongs, 1},
		{positions_of_very_long_requests_are_found, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
		{a_refused_call_fails_its_capture, 1},
		{a_queued_op_has_its_own_copy_of_the_args, 1},
	};
	const theme themes[] = {THEME("error", setup, teardown, error),
				THEME("layout", setup, teardown, layout),
				THEME("graph", setup, teardown, graph)};

	return RUN_THEMES(themes);
}
