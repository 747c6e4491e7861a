/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: rows far apart, and that it takes what inv_rope_quant gives.
 */
#include "tests/harness/themes.h"
#include "tests/ops/project/inv_rope_rig.h"
#include "tests/ops/project/o_proj_rig.h"

#include <string.h>
#include <sys/mman.h>

static o_proj_rig r;

START_TEST(bf16_needs_no_scales)
{
	o_proj_open(&r, SPMLA_O_BF16, 3, 2, 384, 128);
	r.a.o_scales = NULL;
	r.a.w_scales = NULL;
	r.a.o_scale_stride_elems = r.a.o_scale_group_stride_elems = 0;
	r.a.w_scale_row_stride_elems = r.a.w_scale_group_stride_elems = 0;
	o_proj_check(&r);
	o_proj_close(&r);
}
END_TEST

/* Groups of the matrix 3 GiB apart, tokens of o too; only what is touched takes
 * memory. */
START_TEST(bytes_past_2_and_4_gib_are_found)
{
	const uint64_t apart = UINT64_C(3) << 30;
	const uint32_t bytes = _i ? 1 : 2;
	uint8_t *map = test_map(7 * apart);
	uint32_t g, t;

	o_proj_open(&r, (uint32_t)_i, 2, 3, 512, 128);
	for (g = 0; g < 3; g++)
		memcpy(map + g * apart,
		       r.w + g * bytes * (uint64_t)r.a.w_group_stride_elems,
		       bytes * (uint64_t)r.a.w_group_stride_elems);
	for (t = 0; t < 2; t++)
		for (g = 0; g < 3; g++)
			memcpy(map + (3 + t) * apart + g * 2048,
			       r.o + bytes * (t * (uint64_t)r.a
							      .o_token_stride_elems +
					      g * (uint64_t)r.a
							      .o_group_stride_elems),
			       512 * bytes);
	r.a.w = map;
	r.a.w_group_stride_elems = (int64_t)(apart / bytes);
	r.a.o = map + 3 * apart;
	r.a.o_token_stride_elems = (int64_t)(apart / bytes);
	r.a.o_group_stride_elems = 2048 / bytes;
	o_proj_check(&r);
	munmap(map, 7 * apart);
	o_proj_close(&r);
}
END_TEST

/* The outputs of inv_rope_quant, as they are. A token outside the rope table is
 * zeros to the end. */
START_TEST(what_inv_rope_quant_writes_is_taken)
{
	inv_rope_rig from;
	uint32_t i;

	inv_rope_open(&from, 5, 2, 1);
	from.a.quant = (uint32_t)_i;
	memset(from.o, 0, from.o_elems * 2);
	for (i = 0; i < from.o_elems; i++)
		from.o[i] = test_bf16(rng_float(&from.rng));
	from.positions[2] = -1;
	inv_rope_check(&from);
	o_proj_open(&r, (uint32_t)_i, 5, 2, 512, 128);
	r.a.o = from.out;
	r.a.o_token_stride_elems = from.a.out_token_stride_elems;
	r.a.o_group_stride_elems = from.a.out_group_stride_elems;
	r.a.o_scales = from.scales;
	r.a.o_scale_stride_elems = from.a.scale_stride_elems;
	r.a.o_scale_group_stride_elems = from.a.scale_group_stride_elems;
	o_proj_check(&r);
	for (i = 0; i < 128; i++)
		ck_assert_uint_eq(o_proj_z(&r, 2, 1, i) & 0x7fff, 0);
	inv_rope_close(&from);
	o_proj_close(&r);
}
END_TEST

SUITE
{
	const theme_test edge[] = {
		{bf16_needs_no_scales, 1},
		{what_inv_rope_quant_writes_is_taken, 3},
	};
	const theme_test layout[] = {{bytes_past_2_and_4_gib_are_found, 3}};
	const theme themes[] = {

		THEME("edge", NULL, NULL, edge),
		THEME("layout", NULL, NULL, layout),

	};

	return RUN_THEMES(themes);
}
