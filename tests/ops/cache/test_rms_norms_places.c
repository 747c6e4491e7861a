/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: where rows may lie, in place of the input and far away too.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/cache/rms_rig.h"
#include "tests/reference/narrow_ref.h"

static rms_rig r;

static void
setup(void)
{
	rms_open(&r);
}

static void
teardown(void)
{
	rms_close(&r);
}

START_TEST(rows_may_lie_at_any_address_and_stride)
{
	uint32_t by;

	for (by = 0; by < 4; by++) {
		r.a.q = r.q.x + by;
		r.a.q_weight = r.q.weight + (by == 3);
		r.a.kv_out = r.kv.out + (by > 1);
		rms_sizes(&r, 4, 1536, 4, 512);
		r.a.kv_stride_elems = 512 + by;
		r.a.q_out_stride_elems = 1536 + 3 * by;
		rms_fill(&r);
		rms_check(&r);
	}
}
END_TEST

START_TEST(rows_may_be_normed_in_place)
{
	uint32_t i;

	rms_sizes(&r, 5, 1536, 5, 512);
	r.a.q_out_stride_elems = r.a.q_stride_elems;
	rms_model(&r);
	rms_run(&r);
	for (i = 0; i < 5; i++)
		memcpy(r.q.out + i * 1544, r.q.x + i * 1544, 1536 * 2);
	r.a.q = r.q.out;
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	check_bytes(r.q.out, r.q.want, RMS_ELEMS * 2);
}
END_TEST

/* Rows 2^31 elements apart. Only the pages that are touched exist. */
START_TEST(rows_past_4_gib_are_found)
{
	const uint64_t bytes = UINT64_C(5) << 30, apart = 0x80000000u;
	uint8_t *far;

	far = test_map(bytes);
	rms_sizes(&r, 2, 512, 0, 8);
	rms_check(&r);
	memcpy(far, r.q.x, 1024);
	memcpy(far + 2 * apart, r.q.x + 520, 1024);
	r.a.q = r.a.q_out = (uint16_t *)(void *)far;
	r.a.q_stride_elems = r.a.q_out_stride_elems = (int64_t)apart;
	ck_assert_int_eq(spmla_rms_norms(r.f.ctx, &r.a, NULL), SPMLA_OK);
	check_bytes(far + 2 * apart, r.q.want + 528, 1024);
	munmap(far, bytes);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{rows_may_lie_at_any_address_and_stride, 1},
		{rows_may_be_normed_in_place, 1},
		{rows_past_4_gib_are_found, 1},
	};
	const theme themes[] = {

		THEME("layout", setup, teardown, layout),
	};

	return RUN_THEMES(themes);
}
