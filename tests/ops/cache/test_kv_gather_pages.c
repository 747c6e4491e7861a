/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: pages of unusual size and far away, and tables shorter than the
 * batch. Rows are MLA_BF16 where the values do not matter: they are copies.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"

#include "spmla/ops/kv_gather.h"

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
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);

	a.rows = 1;
	a.req_row = same;
	ck_assert_int_eq(spmla_kv_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(dst, dst + 20 * 576, 20 * 1152);
}
END_TEST

START_TEST(pages_may_be_of_odd_size_and_far_apart)
{
	spmla_kv_gather_args a;
	uint32_t n;

	gather_close(&g);
	gather_open(&g, SPMLA_LAYOUT_MLA_BF16, 3, 1, 7, 4096);
	ck_assert_uint_eq(g.cache.page_stride_bytes, 3456 + 4096);
	a = gather_two_requests(&g, starts, dst);
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
 * 500000 past 2^32 B. The first two pages of the pool lie there, so the
 * result is the same as with the near ones. */
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
	a = gather_two_requests(&g, starts, dst);
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
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);
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
	spmla_kv_gather_args a = gather_two_requests(&g, starts, dst);

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

SUITE
{
	const theme_test error[] = {
		{no_requests_and_no_keys_need_nothing, 1},
		{with_rows_named_the_table_may_be_shorter_than_the_batch, 1},
	};
	const theme_test layout[] = {
		{pages_may_be_of_odd_size_and_far_apart, 1},
		{pages_past_2_and_4_gib_are_read_where_they_lie, 1},
		{output_past_4_gib_is_written_where_it_belongs, 1},
		{positions_of_very_long_requests_are_found, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
