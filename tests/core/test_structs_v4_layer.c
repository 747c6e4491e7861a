/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 layer and its branches as an engine's binary sees them. All numbers are
 * written out: one that changes breaks engines that were built before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include "spmla/v4.h"

#define S        PIN_S
#define F        PIN_F
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_v4_layer, 584),
	F(spmla_v4_layer, struct_bytes, 0, 4),
	F(spmla_v4_layer, ratio, 4, 4),
	F(spmla_v4_layer, cos_sin_rows, 8, 4),
	F(spmla_v4_layer, norm_eps, 12, 4),
	F(spmla_v4_layer, cos_sin, 16, 8),
	F(spmla_v4_layer, q, 24, 8),
	F(spmla_v4_layer, q_token_stride_elems, 32, 8),
	F(spmla_v4_layer, q_head_stride_elems, 40, 8),
	F(spmla_v4_layer, kv, 48, 8),
	F(spmla_v4_layer, kv_stride_elems, 56, 8),
	F(spmla_v4_layer, compress_kv, 64, 8),
	F(spmla_v4_layer, compress_score, 72, 8),
	F(spmla_v4_layer, compress_kv_stride_elems, 80, 8),
	F(spmla_v4_layer, compress_score_stride_elems, 88, 8),
	F(spmla_v4_layer, ape, 96, 8),
	F(spmla_v4_layer, norm_weight, 104, 8),
	F(spmla_v4_layer, index_kv, 112, 8),
	F(spmla_v4_layer, index_score, 120, 8),
	F(spmla_v4_layer, index_kv_stride_elems, 128, 8),
	F(spmla_v4_layer, index_score_stride_elems, 136, 8),
	F(spmla_v4_layer, index_ape, 144, 8),
	F(spmla_v4_layer, index_norm_weight, 152, 8),
	F(spmla_v4_layer, index_q, 160, 8),
	F(spmla_v4_layer, index_q_token_stride_elems, 168, 8),
	F(spmla_v4_layer, index_q_head_stride_elems, 176, 8),
	F(spmla_v4_layer, index_weights, 184, 8),
	F(spmla_v4_layer, index_weights_stride_elems, 192, 8),
	F(spmla_v4_layer, index_weights_dtype, 200, 4),
	F(spmla_v4_layer, empty_lse, 204, 4),
	F(spmla_v4_layer, topk_indices, 208, 8),
	F(spmla_v4_layer, topk_lens, 216, 8),
	F(spmla_v4_layer, topk_stride_elems, 224, 8),
	F(spmla_v4_layer, attn_sink, 232, 8),
	F(spmla_v4_layer, out, 240, 8),
	F(spmla_v4_layer, out_token_stride_elems, 248, 8),
	F(spmla_v4_layer, out_head_stride_elems, 256, 8),
	F(spmla_v4_layer, lse, 264, 8),
	F(spmla_v4_layer, lse_token_stride_elems, 272, 8),
	F(spmla_v4_layer, lse_head_stride_elems, 280, 8),
	F(spmla_v4_layer, output_quant, 288, 4),
	F(spmla_v4_layer, output_groups, 292, 4),
	F(spmla_v4_layer, output_columns, 296, 4),
	F(spmla_v4_layer, cos_sin_dtype, 300, 4),
	F(spmla_v4_layer, wo, 304, 8),
	F(spmla_v4_layer, wo_group_stride_elems, 312, 8),
	F(spmla_v4_layer, wo_row_stride_elems, 320, 8),
	F(spmla_v4_layer, wo_scales, 328, 8),
	F(spmla_v4_layer, wo_scale_group_stride_elems, 336, 8),
	F(spmla_v4_layer, wo_scale_row_stride_elems, 344, 8),
	F(spmla_v4_layer, z, 352, 8),
	F(spmla_v4_layer, z_token_stride_elems, 360, 8),
	F(spmla_v4_layer, z_group_stride_elems, 368, 8),
	F(spmla_v4_layer, swa, 376, 40),
	F(spmla_v4_layer, compressed, 416, 40),
	F(spmla_v4_layer, state, 456, 40),
	F(spmla_v4_layer, index, 496, 40),
	F(spmla_v4_layer, index_state, 536, 40),
	F(spmla_v4_layer, norm_dtype, 576, 4),
	F(spmla_v4_layer, compress_dtype, 580, 4),
	S(spmla_v4_branches, 48),
	F(spmla_v4_branches, struct_bytes, 0, 4),
	F(spmla_v4_branches, reserved, 4, 4),
	F(spmla_v4_branches, streams, 8, 16),
	F(spmla_v4_branches, events, 24, 24),
};
/* clang-format on */

START_TEST(every_field_of_a_layer_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

START_TEST(branches_begin_empty)
{
	static const spmla_v4_branches empty = SPMLA_V4_BRANCHES_INIT;
	uint32_t i;

	ck_assert_uint_eq(empty.struct_bytes, 48);
	ck_assert_uint_eq(empty.reserved, 0);
	for (i = 0; i < 2; i++)
		ck_assert_ptr_null(empty.streams[i]);
	for (i = 0; i < 3; i++)
		ck_assert_ptr_null(empty.events[i]);
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{every_field_of_a_layer_lies_where_it_lay, 1},
		{branches_begin_empty, 1},
	};
	const theme themes[] = {THEME("layout", NULL, NULL, layout)};

	return RUN_THEMES(themes);
}
