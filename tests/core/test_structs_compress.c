/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of the compressor's operations as an engine's binary sees them.
 * All are written out: one that changes breaks engines that were built before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include "spmla/ops/ops.h"

#define S        PIN_S
#define F        PIN_F
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_compress_state_save_args, 168),
	F(spmla_compress_state_save_args, struct_bytes, 0, 4),
	F(spmla_compress_state_save_args, tokens, 4, 4),
	F(spmla_compress_state_save_args, ratio, 8, 4),
	F(spmla_compress_state_save_args, form, 12, 4),
	F(spmla_compress_state_save_args, kv, 16, 8),
	F(spmla_compress_state_save_args, score, 24, 8),
	F(spmla_compress_state_save_args, kv_stride_elems, 32, 8),
	F(spmla_compress_state_save_args, score_stride_elems, 40, 8),
	F(spmla_compress_state_save_args, ape, 48, 8),
	F(spmla_compress_state_save_args, positions, 56, 8),
	F(spmla_compress_state_save_args, slot_mapping, 64, 8),
	F(spmla_compress_state_save_args, context_lens, 72, 8),
	F(spmla_compress_state_save_args, token_row, 80, 8),
	F(spmla_compress_state_save_args, block_table, 88, 8),
	F(spmla_compress_state_save_args, table_cols, 96, 8),
	F(spmla_compress_state_save_args, rows, 104, 4),
	F(spmla_compress_state_save_args, columns, 108, 4),
	F(spmla_compress_state_save_args, table_stride_elems, 112, 4),
	F(spmla_compress_state_save_args, positions_dtype, 116, 4),
	F(spmla_compress_state_save_args, state, 120, 40),
	F(spmla_compress_state_save_args, kv_dtype, 160, 4),
	F(spmla_compress_state_save_args, reserved, 164, 4),
	S(spmla_kv_compress_args, 264),
	F(spmla_kv_compress_args, struct_bytes, 0, 4),
	F(spmla_kv_compress_args, tokens, 4, 4),
	F(spmla_kv_compress_args, ratio, 8, 4),
	F(spmla_kv_compress_args, form, 12, 4),
	F(spmla_kv_compress_args, rows, 16, 4),
	F(spmla_kv_compress_args, columns, 20, 4),
	F(spmla_kv_compress_args, table_stride_elems, 24, 4),
	F(spmla_kv_compress_args, cos_sin_rows, 28, 4),
	F(spmla_kv_compress_args, norm_eps, 32, 4),
	F(spmla_kv_compress_args, e4m3_scale, 36, 4),
	F(spmla_kv_compress_args, positions, 40, 8),
	F(spmla_kv_compress_args, slot_mapping, 48, 8),
	F(spmla_kv_compress_args, token_row, 56, 8),
	F(spmla_kv_compress_args, block_table, 64, 8),
	F(spmla_kv_compress_args, table_cols, 72, 8),
	F(spmla_kv_compress_args, norm_weight, 80, 8),
	F(spmla_kv_compress_args, cos_sin, 88, 8),
	F(spmla_kv_compress_args, kv, 96, 8),
	F(spmla_kv_compress_args, score, 104, 8),
	F(spmla_kv_compress_args, kv_stride_elems, 112, 8),
	F(spmla_kv_compress_args, score_stride_elems, 120, 8),
	F(spmla_kv_compress_args, ape, 128, 8),
	F(spmla_kv_compress_args, context_lens, 136, 8),
	F(spmla_kv_compress_args, state, 144, 40),
	F(spmla_kv_compress_args, cache, 184, 40),
	F(spmla_kv_compress_args, split_keys, 224, 8),
	F(spmla_kv_compress_args, split_counts, 232, 8),
	F(spmla_kv_compress_args, e4m3_scale_at, 240, 8),
	F(spmla_kv_compress_args, positions_dtype, 248, 4),
	F(spmla_kv_compress_args, cos_sin_dtype, 252, 4),
	F(spmla_kv_compress_args, norm_dtype, 256, 4),
	F(spmla_kv_compress_args, kv_dtype, 260, 4),
};
/* clang-format on */

START_TEST(every_field_of_the_arguments_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

SUITE
{
	const theme_test layout[] = {
		{every_field_of_the_arguments_lies_where_it_lay, 1},
	};
	const theme themes[] = {THEME("layout", NULL, NULL, layout)};

	return RUN_THEMES(themes);
}
