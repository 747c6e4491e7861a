/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: where the bytes of a key lie, near and beyond 2 GiB.
 */
#include "spmla/platform/gpu/compress/kv_compress_few_kernel.h"
#include "tests/harness/themes.h"
#include "tests/ops/compress/compress_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* 64 keys: key 5 at 5 * 576 = 2880, its rope at 3328, its scales at 64 * 576 +
 * 5 * 8 = 36904. */
START_TEST(values_and_scales_lie_apart_in_a_page)
{
	uint64_t i;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_V4_FP8, 6,
			  64, 64);
	ck_assert_uint_eq(r.a.cache.page_stride_bytes, 37440);
	compress_rig_put(&r, 0, 0, 4);
	compress_rig_request(&r, 0, 0, 4);
	r.slots[3] = 5;
	compress_rig_check(&r);
	for (i = 0; i < r.cache_bytes; i++)
		ck_assert_uint_eq(r.seen[i], (i >= 2880 && i < 3456) ||
						     (i >= 36904 && i < 36912));
	compress_rig_close(&r);
}
END_TEST

/* Pages of state and cache 2^31 + 1024 bytes apart. */
START_TEST(pages_may_be_more_than_2_gib_apart)
{
	const uint64_t bytes = UINT64_C(7) << 30;
	const uint64_t stride = (UINT64_C(1) << 31) + 1024;
	uint8_t *far_bytes, *state;
	uint32_t p;
	compress_rig r;

	far_bytes = test_map(bytes);
	compress_rig_open(&r, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_INDEX_FP8, 3,
			  3, 0);
	compress_rig_put(&r, 0, 0, r.history);
	compress_rig_request(&r, 0, 4, 4);
	r.slots[3] = 7;
	compress_rig_check(&r);
	/* The state behind its own stride, the cache in its gaps. */
	state = far_bytes + (1u << 30);
	for (p = 0; p < 3; p++)
		memcpy(state + p * stride,
		       r.state + (uint64_t)r.table[p] *
					 r.a.state.page_stride_bytes,
		       4 * 2048);
	for (p = 0; p < 3; p++)
		r.table[p] = (int32_t)p;
	r.a.state.base = state;
	r.a.state.page_stride_bytes = stride;
	r.a.state.pages = 3;
	r.a.cache.base = far_bytes;
	r.a.cache.page_stride_bytes = stride;
	r.a.cache.pages = 3;
	compress_rig_run(&r);
	ck_assert_mem_eq(far_bytes + 2 * stride + 128, r.cache + 2 * 396 + 128,
			 128);
	ck_assert_mem_eq(far_bytes + 2 * stride + 384 + 4,
			 r.cache + 2 * 396 + 384 + 4, 4);
	munmap(far_bytes, bytes);
	compress_rig_close(&r);
}
END_TEST

/* Two tokens of the call end a group whose other rows are in the state, by the
 * kernel for few tokens and by the kernel for many. Pages of the state, and
 * rows of the call, are more than 4 GiB apart. */
START_TEST(what_several_blocks_read_may_be_more_than_4_gib_apart)
{
	const uint64_t stride = (UINT64_C(1) << 32) + 4096;
	const uint32_t row_bytes = 512 * 4, tokens = 2, pages = 2;
	uint8_t *state, *kv, *score, *near_keys;
	uint32_t i;
	compress_rig r;

	compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_BF16, 3,
			  2, 0);
	compress_rig_ring(&r, 128);
	compress_rig_split(&r);
	compress_rig_put(&r, 1, 256, 382);
	compress_rig_request(&r, 1, 382, tokens);
	if (_i)
		compress_rig_request(&r, 0, 0, COMPRESS_FEW);
	compress_rig_check(&r);
	near_keys = test_alloc(r.cache_bytes, 0);
	memcpy(near_keys, r.cache, r.cache_bytes);
	state = test_map(stride * pages);
	kv = test_map(stride * tokens);
	score = test_map(stride * tokens);
	for (i = 0; i < pages; i++) {
		int32_t *page = r.table + r.a.table_stride_elems + i;

		memcpy(state + i * stride,
		       r.state + (uint64_t)*page * r.a.state.page_stride_bytes,
		       64 * 2 * row_bytes);
		*page = (int32_t)i;
	}
	for (i = 0; i < tokens; i++) {
		const uint64_t at = i * (uint64_t)r.a.kv_stride_elems;

		memcpy(kv + i * stride, r.call_kv + at, row_bytes);
		memcpy(score + i * stride, r.call_score + at, row_bytes);
	}
	r.a.state.base = state;
	r.a.state.page_stride_bytes = stride;
	r.a.state.pages = pages;
	r.a.kv = (const float *)(const void *)kv;
	r.a.score = (const float *)(const void *)score;
	r.a.kv_stride_elems = r.a.score_stride_elems = (int64_t)(stride / 4);
	compress_rig_reset(&r);
	compress_rig_run(&r);
	ck_assert_mem_eq(r.cache, near_keys, r.cache_bytes);
	munmap(state, stride * pages);
	munmap(kv, stride * tokens);
	munmap(score, stride * tokens);
	free(near_keys);
	compress_rig_close(&r);
}
END_TEST

/* Rows of cos_sin are 256 bytes: row 2^24 - 128 lies just below 2^32. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(1) << 32;
	const uint32_t last = (1u << 24) - 1, group = last - 127;
	float *table;
	uint8_t near_key[1024];
	compress_rig r;

	table = test_map(bytes);
	compress_rig_open(&r, SPMLA_LAYOUT_STATE_512, SPMLA_LAYOUT_V4_BF16, 2,
			  4, 0);
	compress_rig_put(&r, 0, 0, r.history);
	compress_rig_request(&r, 0, 128, 128);
	r.slots[127] = 0;
	compress_rig_check(&r);
	memcpy(near_key, r.cache, sizeof near_key);
	/* The same group as the last one of 2^24 tokens. */
	memcpy(table + (uint64_t)group * 64, r.cos_sin + 128 * 64, 256);
	r.a.cos_sin = table;
	r.a.cos_sin_rows = last + 1;
	r.positions[127] = (int32_t)last;
	r.a.state.entries_per_page = 256;
	r.a.state.page_stride_bytes = 256 * 4096 + 16;
	r.a.state.pages = 1;
	free(r.state);
	r.state = test_alloc(r.a.state.page_stride_bytes, 0xff);
	r.a.state.base = r.state;
	r.a.form = SPMLA_STATE_RING;
	r.a.columns = 1;
	r.table[0] = 0;
	r.cols[0] = 1;
	r.a.kv = r.call_kv;
	r.a.score = r.call_score;
	r.a.kv_stride_elems = r.a.score_stride_elems = 520;
	r.a.ape = r.ape;
	/* Its rows from the ring: 2^24 - 128 .. is 128 .. of 256. */
	compress_rig_put(&r, 0, 128, 256);
	compress_rig_reset(&r);
	compress_rig_run(&r);
	ck_assert_mem_eq(r.cache, near_key, sizeof near_key);
	munmap(table, bytes);
	compress_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{values_and_scales_lie_apart_in_a_page, 1},
		{pages_may_be_more_than_2_gib_apart, 1},
		{rows_of_the_rope_table_may_lie_past_2_gib, 1},
		{what_several_blocks_read_may_be_more_than_4_gib_apart, 2},
	};
	const theme themes[] = {THEME("layout", NULL, NULL, layout)};

	return RUN_THEMES(themes);
}
