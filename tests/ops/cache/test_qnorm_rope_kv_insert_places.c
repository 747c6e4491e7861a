/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: where rows may lie, in place of the input and far away
 * too.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/qnorm_rig.h"
#include "tests/reference/narrow_ref.h"

#define LEAST ", want at least 512"

enum { E4M3 = SPMLA_LAYOUT_V4_E4M3 };

START_TEST(only_an_e4m3_cache_has_a_scale)
{
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 3, 2, 4, 4);
	r.a.kv_scale = 0;
	qnorm_check(&r);
	qnorm_close(&r);
}
END_TEST

START_TEST(rows_may_lie_at_any_address_and_stride)
{
	uint32_t by;
	qnorm_rig r;

	for (by = 0; by < 4; by++) {
		qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 5, 3, 4, 2);
		r.a.q = r.q + by;
		r.a.q_head_stride_elems = 512 + by;
		r.a.kv = r.kv + by;
		r.a.kv_stride_elems = by == 2 ? 517 : 512;
		/* Heads outermost, each with its tokens. */
		r.a.q_out_token_stride_elems = 512 + by % 2;
		r.a.q_out_head_stride_elems = 5 * (512 + by % 2) + by;
		qnorm_check(&r);
		qnorm_close(&r);
	}
}
END_TEST

START_TEST(queries_may_be_prepared_in_place)
{
	qnorm_rig r;

	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 9, 8, 8, 4);
	r.a.q_out_head_stride_elems = r.a.q_head_stride_elems;
	r.a.q_out_token_stride_elems = r.a.q_token_stride_elems;
	qnorm_model(&r);
	memset(r.q_out, 0xAB, r.q_bytes);
	for (uint32_t i = 0; i < 72; i++)
		memcpy(r.q_out + i * 520, r.q + i * 520, 1024);
	r.a.q = r.q_out;
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	check_bytes(r.q_out, r.q_want, r.q_bytes);
	qnorm_close(&r);
}
END_TEST

/* 8000000 entries of 584 B, and heads 2^31 elements apart. Only the pages that
 * are touched exist. */
START_TEST(far_slots_and_heads_are_found)
{
	const uint64_t bytes = UINT64_C(5) << 30;
	const int64_t slot = 8000063;
	uint8_t *far;
	qnorm_rig r;

	far = test_map(bytes);
	qnorm_open(&r, SPMLA_LAYOUT_V4_FP8, 1, 2, 2, 64);
	r.slots[0] = slot % 64;
	qnorm_check(&r);
	r.slots[0] = slot;
	r.a.cache.page_stride_bytes = 37376;
	r.a.cache.base = far;
	r.a.cache.pages = (uint32_t)(bytes / 37376);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(far + (uint64_t)slot / 64 * 37376 + 63 * 576,
			 r.pool + 63 * 576, 576);
	ck_assert_mem_eq(far + (uint64_t)slot / 64 * 37376 + 36864 + 63 * 8,
			 r.pool + 36864 + 63 * 8, 8);
	r.slots[0] = -1;
	r.a.q_out = (uint16_t *)(void *)far;
	r.a.q_out_head_stride_elems = INT64_C(0x80000200);
	ck_assert_int_eq(spmla_qnorm_rope_kv_insert(r.f.ctx, &r.a, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(far + UINT64_C(0x100000400), r.q_out + 528, 1024);
	munmap(far, bytes);
	qnorm_close(&r);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{only_an_e4m3_cache_has_a_scale, 1},
	};
	const theme_test layout[] = {
		{rows_may_lie_at_any_address_and_stride, 1},
		{queries_may_be_prepared_in_place, 1},
		{far_slots_and_heads_are_found, 1},
	};
	const theme themes[] = {
		THEME("error", NULL, NULL, error),
		THEME("layout", NULL, NULL, layout),
	};

	return RUN_THEMES(themes);
}
