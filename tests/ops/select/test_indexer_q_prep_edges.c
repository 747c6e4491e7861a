/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: calls without rope, rope tables past 2 GiB, and subnormal
 * heads.
 */
#include "tests/harness/themes.h"
#include "tests/ops/select/indexer_q_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

START_TEST(without_rope_its_fields_do_not_matter)
{
	q_rig r;

	q_rig_open(&r, 3, 4);
	ck_assert_ptr_null(r.a.positions);
	ck_assert_ptr_null(r.a.cos_sin);
	r.a.cos_sin_rows = 0;
	q_rig_check(&r);
	q_rig_close(&r);
}
END_TEST

/* A table of 2^24 positions is 4 GiB: the last row begins past 2^31 B, the
 * row of position 1000000 at 256 MB. They turn as positions 3 and 5 do. */
START_TEST(rows_of_the_rope_table_may_lie_past_2_gib)
{
	const uint64_t bytes = UINT64_C(4) << 30;
	float *map = test_map(bytes);
	uint8_t *near_q;
	q_rig r;

	q_rig_open(&r, 2, 3);
	q_rig_rope(&r, SPMLA_ROPE_INTERLEAVED);
	r.positions[0] = 3;
	r.positions[1] = 5;
	q_rig_check(&r);
	near_q = test_alloc(r.q_bytes, 0);
	memcpy(near_q, r.q_out, r.q_bytes);
	memcpy(map + 16777215 * UINT64_C(64), r.cos_sin + 3 * 64, 256);
	memcpy(map + 1000000 * 64, r.cos_sin + 5 * 64, 256);
	r.a.cos_sin = map;
	r.a.cos_sin_rows = 1 << 24;
	r.positions[0] = 16777215;
	r.positions[1] = 1000000;
	memset(r.q_out, 0, 2 * 3 * 128);
	ck_assert_int_eq(spmla_indexer_q_prep(r.f.ctx, &r.a, NULL), SPMLA_OK);
	ck_assert_mem_eq(r.q_out, near_q, r.q_bytes);
	munmap(map, bytes);
	free(near_q);
	q_rig_close(&r);
}
END_TEST

/* amax 127 * 2^-133 is far below the floor, so s = 2^-42, and what is left of a
 * subnormal is a zero of its sign. */
START_TEST(a_head_of_subnormals_is_zeros_of_their_signs)
{
	uint32_t i;
	q_rig r;

	q_rig_open(&r, 1, 1);
	q_rig_f32(&r);
	r.weights_f32[0] = r.a.softmax_scale = r.a.head_scale = 1;
	for (i = 0; i < 128; i++)
		r.q[i] = (uint16_t)((i & 1) << 15 | (i % 127 + 1));
	q_rig_check(&r);
	ck_assert(q_rig_weight(&r, 0, 0) == 0x1p-42f);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(r.q_out[i], i & 1 ? 0x80 : 0x00);
	q_rig_close(&r);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{without_rope_its_fields_do_not_matter, 1},
		{a_head_of_subnormals_is_zeros_of_their_signs, 1},
		{rows_of_the_rope_table_may_lie_past_2_gib, 1},
	};
	const theme themes[] = {

		THEME("edge", NULL, NULL, edge),

	};

	return RUN_THEMES(themes);
}
