/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of V4's output projection as an engine's binary sees them, and
 * the numbers of their enums. All are written out: one that changes breaks
 * engines that were built before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include "spmla/ops/ops.h"

#define S        PIN_S
#define F        PIN_F
#define V        PIN_V
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_inv_rope_quant_args, 128),
	F(spmla_inv_rope_quant_args, struct_bytes, 0, 4),
	F(spmla_inv_rope_quant_args, tokens, 4, 4),
	F(spmla_inv_rope_quant_args, groups, 8, 4),
	F(spmla_inv_rope_quant_args, heads_per_group, 12, 4),
	F(spmla_inv_rope_quant_args, quant, 16, 4),
	F(spmla_inv_rope_quant_args, rope_style, 20, 4),
	F(spmla_inv_rope_quant_args, cos_sin_rows, 24, 4),
	F(spmla_inv_rope_quant_args, positions_dtype, 28, 4),
	F(spmla_inv_rope_quant_args, o, 32, 8),
	F(spmla_inv_rope_quant_args, o_token_stride_elems, 40, 8),
	F(spmla_inv_rope_quant_args, o_head_stride_elems, 48, 8),
	F(spmla_inv_rope_quant_args, positions, 56, 8),
	F(spmla_inv_rope_quant_args, cos_sin, 64, 8),
	F(spmla_inv_rope_quant_args, out, 72, 8),
	F(spmla_inv_rope_quant_args, out_token_stride_elems, 80, 8),
	F(spmla_inv_rope_quant_args, out_group_stride_elems, 88, 8),
	F(spmla_inv_rope_quant_args, scales, 96, 8),
	F(spmla_inv_rope_quant_args, scale_stride_elems, 104, 8),
	F(spmla_inv_rope_quant_args, scale_group_stride_elems, 112, 8),
	F(spmla_inv_rope_quant_args, cos_sin_dtype, 120, 4),
	F(spmla_inv_rope_quant_args, reserved, 124, 4),
	S(spmla_o_group_proj_args, 144),
	F(spmla_o_group_proj_args, struct_bytes, 0, 4),
	F(spmla_o_group_proj_args, tokens, 4, 4),
	F(spmla_o_group_proj_args, groups, 8, 4),
	F(spmla_o_group_proj_args, inner, 12, 4),
	F(spmla_o_group_proj_args, columns, 16, 4),
	F(spmla_o_group_proj_args, quant, 20, 4),
	F(spmla_o_group_proj_args, o, 24, 8),
	F(spmla_o_group_proj_args, o_token_stride_elems, 32, 8),
	F(spmla_o_group_proj_args, o_group_stride_elems, 40, 8),
	F(spmla_o_group_proj_args, o_scales, 48, 8),
	F(spmla_o_group_proj_args, o_scale_stride_elems, 56, 8),
	F(spmla_o_group_proj_args, o_scale_group_stride_elems, 64, 8),
	F(spmla_o_group_proj_args, w, 72, 8),
	F(spmla_o_group_proj_args, w_group_stride_elems, 80, 8),
	F(spmla_o_group_proj_args, w_row_stride_elems, 88, 8),
	F(spmla_o_group_proj_args, w_scales, 96, 8),
	F(spmla_o_group_proj_args, w_scale_group_stride_elems, 104, 8),
	F(spmla_o_group_proj_args, w_scale_row_stride_elems, 112, 8),
	F(spmla_o_group_proj_args, z, 120, 8),
	F(spmla_o_group_proj_args, z_token_stride_elems, 128, 8),
	F(spmla_o_group_proj_args, z_group_stride_elems, 136, 8),
};

static const pin_value values[] = {
	V(SPMLA_O_BF16, 0),          V(SPMLA_O_FP8, 1),
	V(SPMLA_O_FP8_PACKED, 2),    V(SPMLA_O_FORCE_32, 0x7fffffff),
	V(sizeof(spmla_o_quant), 4),
};
/* clang-format on */

START_TEST(every_field_of_the_arguments_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

START_TEST(numbers_of_the_enums_stay)
{
	pins_check_values(values, COUNT(values));
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{every_field_of_the_arguments_lies_where_it_lay, 1},
		{numbers_of_the_enums_stay, 1},
	};
	const theme themes[] = {THEME("layout", NULL, NULL, layout)};

	return RUN_THEMES(themes);
}
