/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb: rows far apart, and subnormal values.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/themes.h"
#include "tests/ops/project/q_absorb_rig.h"
#include "tests/reference/project_ref.h"

static q_absorb_rig r;

static void
setup(void)
{
	q_absorb_open(&r);
	r.a.rope_style = SPMLA_ROPE_NEOX;
}

static void
teardown(void)
{
	q_absorb_close(&r);
}

/* A table of 2^24 positions is 4 GiB: the last row begins past 2^31 B, the
 * row of position 1000000 at 256 MB. They turn as positions 3 and 5 do. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(4) << 30;
	float *map = test_map(bytes);
	const uint32_t q_bytes = r.q_elems * 2;
	uint16_t *near_q = test_alloc(q_bytes, 0);

	r.a.tokens = 2;
	r.positions[0] = 3;
	r.positions[1] = 5;
	q_absorb_check(&r);
	memcpy(near_q, r.q, q_bytes);
	memcpy(map + 16777215 * UINT64_C(64), r.cos_sin + 3 * 64, 256);
	memcpy(map + 1000000 * 64, r.cos_sin + 5 * 64, 256);
	r.a.cos_sin = map;
	r.a.cos_sin_rows = 1 << 24;
	r.positions[0] = 16777215;
	r.positions[1] = 1000000;
	q_absorb_run(&r);
	ck_assert_mem_eq(r.q, near_q, q_bytes);
	q_absorb_expect_status(&r, SPMLA_FAULT_NONE, 0);
	munmap(map, bytes);
	free(near_q);
}
END_TEST

/* 2^-133, the least bf16, times 2^100 is 2^-33; 2^-100 * 2^-30 = 2^-130 is 8
 * times the least, not 0. In a rope part that is not rotated it is copied. */
START_TEST(subnormal_values_are_not_flushed)
{
	memset(r.q_nope, 0, r.q_nope_elems * 2);
	r.q_nope[0] = 0x0001;
	r.q_nope[1] = test_bf16(0x1p-100f);
	memset(r.w, 0, r.w_elems * 2);
	r.w[4] = test_bf16(0x1p100f);
	r.w[r.a.w_row_stride_elems + 5] = test_bf16(0x1p-30f);
	r.a.rope_style = SPMLA_ROPE_NONE;
	r.q_pe[63] = 0x8001;
	q_absorb_run(&r);
	ck_assert_uint_eq(r.q[4], test_bf16(0x1p-33f));
	ck_assert_uint_eq(r.q[5], 0x0008);
	ck_assert_uint_eq(r.q[512 + 63], 0x8001);
}
END_TEST

SUITE
{
	const theme_test edge[] = {{subnormal_values_are_not_flushed, 1}};
	const theme_test layout[] = {
		{rows_of_the_rope_table_may_lie_past_2_gib, 1}};
	const theme themes[] = {

		THEME("edge", setup, teardown, edge),
		THEME("layout", setup, teardown, layout),

	};

	return RUN_THEMES(themes);
}
