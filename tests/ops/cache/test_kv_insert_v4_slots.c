/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: where rows of V4 come from and go to.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/kv_insert_rig.h"
#include "tests/reference/narrow_ref.h"

enum { FP8 = SPMLA_LAYOUT_V4_FP8 };

START_TEST(v4_rows_may_lie_at_any_address_and_stride)
{
	uint32_t by;
	kv_rig r;

	for (by = 0; by < 4; by++) {
		kv_rig_open_v4(&r, FP8, 9, 16, 1, 0);
		r.a.kv_c = r.kv + by;
		r.a.kv_c_stride_elems = by == 3 ? 519 : 512 + 8 * by;
		kv_rig_check(&r);
		kv_rig_close(&r);
	}
}
END_TEST

/* Entry 5 of a page of 64: values at 5 * 576 = 2880, rope at 2880 + 448 = 3328,
 * scales at 64 * 576 + 5 * 8 = 36904. In a page of 2 the second entry has its
 * values at 576, its scales at 1152 + 8. */
START_TEST(v4_entry_lies_where_the_layout_says)
{
	uint16_t rope;
	kv_rig r;

	kv_rig_open_v4(&r, FP8, 1, 64, 1, 64);
	memset(r.kv, 0, 1024);
	r.slots[0] = 5;
	r.kv[0] = 0x4600;   /* 8192 = 448 * 2^4 * 8 / 7: scale 2^5, 256 */
	r.kv[447] = 0x3f80; /* 1: scale 2^-8, 256 */
	r.kv[448] = 0x1234;
	kv_rig_check(&r);
	ck_assert_uint_eq(r.pool[2880], 0x78); /* 2^8: 15 << 3 */
	ck_assert_uint_eq(r.pool[2880 + 447], 0x78);
	memcpy(&rope, r.pool + 3328, sizeof rope);
	ck_assert_uint_eq(rope, 0x1234);
	ck_assert_uint_eq(r.pool[36904], 127 + 5);
	ck_assert_uint_eq(r.pool[36904 + 1], 105);
	ck_assert_uint_eq(r.pool[36904 + 6], 119);
	ck_assert_uint_eq(r.pool[36904 + 7], 0);
	kv_rig_close(&r);
	kv_rig_open_v4(&r, FP8, 1, 2, 1, 560); /* 1728 = 3 * 576 */
	memset(r.kv, 0, 1024);
	r.slots[0] = 1;
	r.kv[0] = 0x3f80;
	kv_rig_check(&r);
	ck_assert_uint_eq(r.pool[576], 0x78);
	ck_assert_uint_eq(r.pool[1160], 119);
	ck_assert_uint_eq(r.pool[1152], 0xAB);
	kv_rig_close(&r);
}
END_TEST

/* 8000000 entries of 584 B end at 4.67e9 B, past 32 bits, signed or not. */
START_TEST(v4_slots_past_4_gib_are_written_where_they_belong)
{
	static const int64_t slots[3] = {3700000, 7400001, 8000063};
	const uint64_t bytes = UINT64_C(5) << 30;
	uint8_t *far_pool;
	uint32_t t;
	kv_rig r;

	far_pool = test_map(bytes);
	kv_rig_open_v4(&r, FP8, 3, 64, 1, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = slots[t] % 64;
	kv_rig_check(&r);
	for (t = 0; t < 3; t++)
		r.slots[t] = slots[t];
	r.a.cache.base = far_pool;
	r.a.cache.pages = (uint32_t)(bytes / r.a.cache.page_stride_bytes);
	ck_assert_int_eq(spmla_kv_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++) {
		const uint64_t page = (uint64_t)slots[t] / 64 * 37376;
		const uint64_t i = (uint64_t)slots[t] % 64;

		ck_assert_mem_eq(far_pool + page + i * 576, r.pool + i * 576,
				 576);
		ck_assert_mem_eq(far_pool + page + 36864 + i * 8,
				 r.pool + 36864 + i * 8, 8);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	munmap(far_pool, bytes);
	kv_rig_close(&r);
}
END_TEST

START_TEST(v4_slots_outside_are_skipped_and_those_past_it_reported)
{
	spmla_device_status status;
	kv_rig r;

	kv_rig_open_v4(&r, FP8, 12, 4, 4, 16);
	r.slots[0] = 7;
	r.slots[1] = 15; /* the last */
	r.slots[2] = -1;
	r.slots[3] = INT64_MIN;
	r.slots[9] = 16;
	r.slots[4] = INT64_MAX;
	r.slots[5] = INT64_C(1) << 32; /* 0 in 32 bits */
	r.slots[6] = r.slots[7] = r.slots[8] = r.slots[10] = r.slots[11] = -2;
	kv_rig_check(&r);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	kv_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_SLOT);
	ck_assert_uint_eq(status.row, 4);
	kv_rig_close(&r);
}
END_TEST

START_TEST(v4_of_two_rows_for_one_slot_every_byte_is_that_of_one)
{
	uint8_t first[1184], second[1184];
	uint32_t i;
	kv_rig r;

	kv_rig_open_v4(&r, FP8, 2, 2, 1, 0);
	r.slots[0] = 1;
	r.slots[1] = -1;
	kv_rig_run(&r);
	memcpy(first, r.pool, 1168);
	r.slots[0] = -1;
	r.slots[1] = 1;
	kv_rig_run(&r);
	memcpy(second, r.pool, 1168);
	r.slots[0] = 1;
	kv_rig_run(&r);
	for (i = 0; i < 1168; i++)
		ck_assert(r.pool[i] == first[i] || r.pool[i] == second[i]);
	kv_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{v4_rows_may_lie_at_any_address_and_stride, 1},
	};
	const theme_test edge[] = {
		{v4_slots_outside_are_skipped_and_those_past_it_reported, 1},
		{v4_of_two_rows_for_one_slot_every_byte_is_that_of_one, 1},
	};
	const theme_test layout[] = {
		{v4_entry_lies_where_the_layout_says, 1},
		{v4_slots_past_4_gib_are_written_where_they_belong, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),
	};

	return RUN_THEMES(themes);
}
