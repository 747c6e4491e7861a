/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: rows and scales far apart, and calls that leave out what they
 * do not ask for.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/inv_rope_rig.h"

#include <string.h>
#include <sys/mman.h>

static inv_rope_rig r;

START_TEST(what_is_not_asked_for_needs_no_fields)
{
	inv_rope_open(&r, 3, 2, 2);
	r.a.rope_style = SPMLA_ROPE_NONE;
	r.a.positions = NULL;
	r.a.cos_sin = NULL;
	r.a.cos_sin_rows = 0;
	inv_rope_check(&r);
	r.a.quant = SPMLA_O_BF16;
	r.a.scales = NULL;
	r.a.scale_stride_elems = r.a.scale_group_stride_elems = 0;
	inv_rope_check(&r);
	inv_rope_close(&r);
}
END_TEST

/* Tokens of o, and of the output, 3 GiB apart, and the position of the last one
 * in row 2^24 - 1 of a table of 4 GiB. Only what is touched takes memory. */
START_TEST(bytes_past_2_and_4_gib_are_found)
{
	const uint64_t apart = UINT64_C(3) << 30;
	uint8_t *map = test_map(10 * apart);
	uint8_t *o = map, *out = map + 4 * apart, *table = map + 8 * apart;
	uint32_t t;

	inv_rope_open(&r, 3, 1, 1);
	r.a.quant = (uint32_t)_i;
	inv_rope_check(&r);
	for (t = 0; t < 3; t++)
		memcpy(o + t * apart, r.o + t * 520, 1024);
	memcpy(table + 16777215 * UINT64_C(256),
	       r.cos_sin + r.positions[2] * 64, 256);
	for (t = 0; t < 2; t++)
		memcpy(table + t * 256, r.cos_sin + r.positions[t] * 64, 256);
	r.positions[0] = 0;
	r.positions[1] = 1;
	r.positions[2] = 16777215;
	r.a.cos_sin = (float *)(void *)table;
	r.a.cos_sin_rows = 1 << 24;
	r.a.o = (uint16_t *)(void *)o;
	r.a.o_token_stride_elems = (int64_t)(apart / 2);
	r.a.out = out;
	r.a.out_token_stride_elems = (int64_t)(_i ? apart : apart / 2);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (t = 0; t < 3; t++)
		ck_assert_mem_eq(out + t * apart,
				 r.out_want + t * 520 * (_i ? 1 : 2),
				 _i ? 512 : 1024);
	ck_assert_mem_eq(r.scales, r.scales_want, r.scale_words * 4);
	munmap(map, 10 * apart);
	inv_rope_close(&r);
}
END_TEST

/* Rows of scales 3 GiB apart. */
START_TEST(scales_past_4_gib_are_written_where_they_belong)
{
	const uint64_t apart = UINT64_C(3) << 30;
	uint8_t *map = test_map(8 * apart);
	uint32_t i;

	inv_rope_open(&r, 2, 1, 2);
	inv_rope_check(&r);
	r.a.scales = map;
	r.a.scale_stride_elems = (int64_t)(apart / 4);
	ck_assert_int_eq(spmla_inv_rope_quant(r.f.ctx, &r.a, NULL), SPMLA_OK);
	for (i = 0; i < 8; i++)
		ck_assert_mem_eq(map + i * apart, r.scales_want + i * 8, 16);
	munmap(map, 8 * apart);
	inv_rope_close(&r);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{what_is_not_asked_for_needs_no_fields, 1},
	};
	const theme_test layout[] = {
		{bytes_past_2_and_4_gib_are_found, 2},
		{scales_past_4_gib_are_written_where_they_belong, 1},
	};
	const theme themes[] = {

		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),

	};

	return RUN_THEMES(themes);
}
