/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: pages of unusual size and far away.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_insert_rig.h"

#include <string.h>
#include <sys/mman.h>

START_TEST(a_bf16_cache_needs_no_scale_mode)
{
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_MLA_BF16, 3, 4, 2, 0);
	r.a.scale_mode = 77;
	kv_rig_check(&r);
	kv_rig_close(&r);
}
END_TEST

/* 17 entries in pages of 3 and of 7: the entry past the last of a page lies in
 * the next page, wherever that starts. */
START_TEST(pages_of_odd_size_and_wide_stride_keep_their_padding)
{
	uint32_t t;
	kv_rig r;

	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 17, 3, 6, 4096);
	for (t = 0; t < 17; t++)
		r.slots[t] = t;
	kv_rig_check(&r);
	kv_rig_close(&r);
	kv_rig_open(&r, SPMLA_LAYOUT_MLA_BF16, 17, 7, 3, 16);
	for (t = 0; t < 17; t++)
		r.slots[t] = 20 - t;
	kv_rig_check(&r);
	kv_rig_close(&r);
}
END_TEST

/* 7000000 entries of 656 B end at 4.59e9 B, past 32 bits, signed or not. */
START_TEST(slots_past_4_gib_are_written_where_they_belong)
{
	static const int64_t slots[3] = {3300000, 6600000, 7000000};
	const uint64_t bytes = UINT64_C(5) << 30;
	uint8_t near_slots[3 * SPMLA_FP8_DS_MLA_BYTES];
	uint8_t *far_pool;
	uint32_t t;
	kv_rig r;

	far_pool = test_map(bytes);
	kv_rig_open(&r, SPMLA_LAYOUT_FP8_DS_MLA, 3, 64, 1, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = t;
	kv_rig_check(&r);
	memcpy(near_slots, r.pool, sizeof near_slots);
	for (t = 0; t < 3; t++)
		r.slots[t] = slots[t];
	r.a.cache.base = far_pool;
	r.a.cache.pages = (uint32_t)(bytes / r.a.cache.page_stride_bytes);
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(far_pool + (uint64_t)slots[t] * 656,
				 near_slots + t * 656, 656);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	munmap(far_pool, bytes);
	kv_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{a_bf16_cache_needs_no_scale_mode, 1},
		{pages_of_odd_size_and_wide_stride_keep_their_padding, 1},
		{slots_past_4_gib_are_written_where_they_belong, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, layout),
	};

	return RUN_THEMES(themes);
}
