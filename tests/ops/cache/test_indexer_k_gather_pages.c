/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: pages of unusual size and far away, and tables shorter than
 * the batch.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/gather_rig.h"

#include "spmla/ops/indexer_k_gather.h"

static gather_rig g;
static int32_t cu[3] = {0, 20, 50};
static uint8_t k[60 * 128];
static float scales[60];

static void
setup(void)
{
	gather_open(&g, SPMLA_LAYOUT_INDEX_FP8, 16, 2, 4, 0);
	memset(k, 0x5A, sizeof k);
	memset(scales, 0x5A, sizeof scales);
}

static void
teardown(void)
{
	gather_close(&g);
}

/* Keys 0..19 of the output are the first request's, 20..49 the second one's. */
static spmla_indexer_k_gather_args
two_requests(void)
{
	return (spmla_indexer_k_gather_args){
		.struct_bytes = sizeof(spmla_indexer_k_gather_args),
		.requests = 2,
		.keys = 60,
		.rows = 2,
		.columns = 4,
		.table_stride_elems = 7,
		.cu_seq_lens = cu,
		.block_table = g.table,
		.dst_k = k,
		.dst_scale = scales,
		.cache = g.cache};
}

START_TEST(no_requests_and_no_keys_need_nothing)
{
	spmla_indexer_k_gather_args none = {0};

	none.struct_bytes = (uint32_t)sizeof none;
	none.requests = 3;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &none, NULL),
			 SPMLA_OK);
	none.requests = 0;
	none.keys = 3;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &none, NULL),
			 SPMLA_OK);
}
END_TEST

START_TEST(with_rows_named_the_table_may_be_shorter_than_the_batch)
{
	static const int32_t same[2] = {0, 0};
	spmla_indexer_k_gather_args a = two_requests();

	a.rows = 1;
	a.req_row = same;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(k, k + 20 * 128, 20 * 128);
}
END_TEST

START_TEST(pages_may_be_of_odd_size_and_far_apart)
{
	spmla_indexer_k_gather_args a;
	uint32_t n;

	gather_close(&g);
	gather_open(&g, SPMLA_LAYOUT_INDEX_FP8, 3, 1, 7, 4096);
	ck_assert_uint_eq(g.cache.page_stride_bytes, 396 + 4096);
	a = two_requests();
	a.rows = a.requests = 1;
	a.columns = 7;
	a.table_stride_elems = 10;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (n = 0; n < 20; n++) {
		const uint8_t *page = g.pool + (uint64_t)g.table[n / 3] * 4492;

		ck_assert_mem_eq(k + n * 128, page + n % 3 * 128, 128);
		ck_assert_mem_eq(scales + n, page + 384 + n % 3 * 4, 4);
	}
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
}
END_TEST

/* Pages of 16 keys are 2112 B: page 2500000 starts at 5.28e9 B, page 1016801 at
 * 2^31 + 64 B, past 31 and 32 bits. */
START_TEST(pages_past_2_and_4_gib_are_read_where_they_lie)
{
	const uint64_t bytes = UINT64_C(5500000000);
	static int32_t far_pages[14] = {2500000, 1016801, 0, 0, 0, 0, 0,
					0,       2500000, 0, 0, 0, 0, 0};
	spmla_indexer_k_gather_args a = two_requests();
	uint8_t *pool;
	uint32_t i;

	pool = test_map(bytes);
	for (i = 0; i < 2; i++)
		memcpy(pool + (uint64_t)far_pages[i] * 2112, g.pool + i * 2112,
		       2112);
	a.cache.base = pool;
	a.cache.pages = (uint32_t)(bytes / 2112);
	a.block_table = far_pages;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(k, g.pool, 16 * 128);
	ck_assert_mem_eq(k + 16 * 128, g.pool + 2112, 4 * 128);
	ck_assert_mem_eq(k + 36 * 128, g.pool, 14 * 128);
	ck_assert_mem_eq(scales, g.pool + 2048, 16 * 4);
	ck_assert_mem_eq(scales + 16, g.pool + 2112 + 2048, 4 * 4);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	munmap(pool, bytes);
}
END_TEST

/* Output row 33600000 has its codes at 4.3e9 B. */
START_TEST(output_past_4_gib_is_written_where_it_belongs)
{
	enum { FIRST = 33600000, KEYS = FIRST + 20 };
	const uint64_t k_bytes = KEYS * UINT64_C(128),
		       bytes = k_bytes + KEYS * 4;
	static const int32_t far_cu[2] = {FIRST, KEYS};
	uint8_t *map = test_map(bytes);
	spmla_indexer_k_gather_args a = two_requests();

	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	a.requests = a.rows = 1;
	a.keys = KEYS;
	a.cu_seq_lens = far_cu;
	a.dst_k = map;
	a.dst_scale = (float *)(void *)(map + k_bytes);
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(map + FIRST * UINT64_C(128), k, 20 * 128);
	ck_assert_mem_eq(a.dst_scale + FIRST, scales, 20 * 4);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	munmap(map, bytes);
}
END_TEST

/* A million keys in pages of 16: 62501 columns that are pages 0, 1, .. 13. */
START_TEST(a_request_of_a_million_keys_is_copied_to_its_end)
{
	enum { KEYS = 1000001, COLUMNS = 62501 };
	static const int32_t long_cu[2] = {0, KEYS};
	int32_t *table = test_alloc(COLUMNS * sizeof *table, 0);
	uint8_t *out = test_alloc(KEYS * 128, 0x5A);
	float *out_scales = test_alloc(KEYS * 4, 0x5A);
	spmla_indexer_k_gather_args a = two_requests();
	uint32_t wrong = 0, i, n;

	for (i = 0; i < COLUMNS; i++)
		table[i] = (int32_t)(i % 14);
	a.requests = a.rows = 1;
	a.keys = KEYS;
	a.columns = a.table_stride_elems = COLUMNS;
	a.cu_seq_lens = long_cu;
	a.block_table = table;
	a.dst_k = out;
	a.dst_scale = out_scales;
	ck_assert_int_eq(spmla_indexer_k_gather(g.f.ctx, &a, NULL), SPMLA_OK);
	for (n = 0; n < KEYS; n++) {
		const uint8_t *page = g.pool + n / 16 % 14 * 2112;

		wrong += memcmp(out + n * 128, page + n % 16 * 128, 128) != 0;
		wrong += memcmp(out_scales + n, page + 2048 + n % 16 * 4, 4) !=
			 0;
	}
	ck_assert_uint_eq(wrong, 0);
	gather_status(&g, 0, SPMLA_FAULT_NONE, 0);
	free(table);
	free(out);
	free(out_scales);
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
		{a_request_of_a_million_keys_is_copied_to_its_end, 1},
	};
	const theme themes[] = {
		THEME("error", setup, teardown, error),
		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
