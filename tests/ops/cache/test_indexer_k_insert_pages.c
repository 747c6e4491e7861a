/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: bad slots and positions, pages of unusual size, and what
 * calls without norm or rope leave out.
 */
#include "tests/harness/themes.h"
#include "tests/ops/cache/indexer_k_rig.h"

#include <string.h>
#include <sys/mman.h>

START_TEST(fp16_takes_neither_norm_nor_rope_alone)
{
	k_rig r;

	k_rig_open(&r, 1, 4, 1, 0);
	r.a.dtype = SPMLA_DTYPE_FP16;
	k_rig_check(&r);
	k_rig_norm(&r);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_E_UNSUPPORTED);
	r.a.norm_weight = NULL;
	k_rig_check(&r);
	k_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_E_UNSUPPORTED);
	k_rig_close(&r);
}
END_TEST

/* Without a weight and a style the fields that go with them are not read. */
START_TEST(fields_of_absent_steps_do_not_matter)
{
	k_rig r;

	k_rig_open(&r, 3, 4, 1, 0);
	r.a.norm_eps = -1;
	r.a.norm_bias = NULL;
	r.a.positions = NULL;
	r.a.cos_sin = NULL;
	r.a.cos_sin_rows = 0;
	k_rig_check(&r);
	k_rig_close(&r);
}
END_TEST

/* Token 2 has both a bad slot and a bad position: one report. */
START_TEST(bad_slots_and_positions_are_skipped_and_reported)
{
	static const int64_t slots[8] = {-1, 15,        16, 0,
					 1,  INT64_MIN, 2,  INT64_MAX};
	static const int32_t positions[8] = {-5, 49,        50, 50,
					     -1, INT32_MAX, 0,  3};
	spmla_device_status status;
	k_rig r;

	k_rig_open(&r, 8, 4, 4, 16);
	k_rig_rope(&r, SPMLA_ROPE_NEOX);
	memcpy(r.slots, slots, sizeof slots);
	memcpy(r.positions, positions, sizeof positions);
	k_rig_check(&r);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	k_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 4); /* 2, 3, 4 and 7 */
	ck_assert_uint_eq(status.row, 2);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_SLOT);
	r.slots[2] = -1;
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	k_rig_run(&r);
	status = fixture_status(&r.f);
	ck_assert_uint_eq(status.count, 3);
	ck_assert_uint_eq(status.row, 3);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_POSITION);
	k_rig_close(&r);
}
END_TEST

/* Blocks of a GPU write both at once: values are whole, keys need not be. */
START_TEST(of_two_keys_for_one_slot_every_value_is_that_of_one)
{
	uint8_t page[2][4 * 132];
	uint32_t i, bytes;
	k_rig r;

	k_rig_open(&r, 2, 4, 1, 0);
	for (i = 0; i < 2; i++) {
		r.slots[i] = 2;
		r.slots[1 - i] = -1;
		k_rig_run(&r);
		memcpy(page[i], r.pool, sizeof page[i]);
	}
	r.slots[0] = r.slots[1] = 2;
	k_rig_run(&r);
	for (i = 0; i < sizeof page[0]; i += bytes) {
		bytes = i < 4 * 128 ? 1 : 4;
		ck_assert(!memcmp(r.pool + i, page[0] + i, bytes) ||
			  !memcmp(r.pool + i, page[1] + i, bytes));
	}
	k_rig_close(&r);
}
END_TEST

/* 64 * 132 = 8448 B: row 63 has its values at 8064, its scale at 8444. Page 1
 * starts a stride later. */
START_TEST(values_and_scales_lie_apart_in_a_page)
{
	k_rig r;

	k_rig_open(&r, 2, 64, 2, 48);
	ck_assert_uint_eq(r.a.cache.page_stride_bytes, 8496);
	memset(r.k, 0, 136 * 2 * 2);
	r.k[0] = test_bf16(448.0f);          /* scale 1, 0x7e */
	r.k[136 + 127] = test_bf16(-896.0f); /* scale 2, 0xfe */
	r.slots[0] = 63;
	r.slots[1] = 127;
	k_rig_check(&r);
	ck_assert_uint_eq(r.pool[8064], 0x7e);
	ck_assert_mem_eq(r.pool + 8444, "\0\0\x80\x3f", 4);
	ck_assert_uint_eq(r.pool[8496 + 8064 + 127], 0xfe);
	ck_assert_mem_eq(r.pool + 8496 + 8444, "\0\0\0\x40", 4);
	ck_assert_uint_eq(r.pool[8448], 0xAB);
	k_rig_close(&r);
}
END_TEST

/* A page of 1, 3 or 7 entries ends in 12, 4 or 4 bytes that nobody owns. */
START_TEST(pages_of_odd_size_keep_their_padding)
{
	static const uint32_t entries[3] = {1, 3, 7};
	uint32_t i, t;
	k_rig r;

	for (i = 0; i < 3; i++) {
		k_rig_open(&r, 17, entries[i], 21 / entries[i], 4096 * i);
		for (t = 0; t < 17; t++)
			r.slots[t] = 20 - t;
		k_rig_check(&r);
		k_rig_close(&r);
	}
}
END_TEST

/* Pages 2^31 + 1024 bytes apart: page 2 starts past 2^32. */
START_TEST(pages_may_be_more_than_2_gib_apart)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const uint64_t stride = (UINT64_C(1) << 31) + 1024;
	uint8_t *far_pool;
	uint32_t t;
	k_rig r;

	far_pool = test_map(bytes);
	k_rig_open(&r, 3, 4, 3, 0);
	for (t = 0; t < 3; t++)
		r.slots[t] = 4 * t + t;
	k_rig_check(&r);
	r.a.cache.base = far_pool;
	r.a.cache.page_stride_bytes = stride;
	ck_assert_int_eq(spmla_indexer_k_insert(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++) {
		const uint8_t *near_page = r.pool + t * 528;
		const uint8_t *far_page = far_pool + t * stride;

		ck_assert_mem_eq(far_page + t * 128, near_page + t * 128, 128);
		ck_assert_mem_eq(far_page + 512 + t * 4,
				 near_page + 512 + t * 4, 4);
	}
	munmap(far_pool, bytes);
	k_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{fp16_takes_neither_norm_nor_rope_alone, 1},
	};
	const theme_test edge[] = {
		{fields_of_absent_steps_do_not_matter, 1},
		{bad_slots_and_positions_are_skipped_and_reported, 1},
		{of_two_keys_for_one_slot_every_value_is_that_of_one, 1},
	};
	const theme_test layout[] = {
		{values_and_scales_lie_apart_in_a_page, 1},
		{pages_of_odd_size_keep_their_padding, 1},
		{pages_may_be_more_than_2_gib_apart, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),

	};

	return RUN_THEMES(themes);
}
