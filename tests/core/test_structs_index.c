/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of V4's index operations as an engine's binary sees them. The
 * numbers are written out: one that changes breaks engines that were built
 * before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include "spmla/ops/ops.h"

#define S        PIN_S
#define F        PIN_F
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_swa_index_args, 176),
	F(spmla_swa_index_args, struct_bytes, 0, 4),
	F(spmla_swa_index_args, tokens, 4, 4),
	F(spmla_swa_index_args, window, 8, 4),
	F(spmla_swa_index_args, width, 12, 4),
	F(spmla_swa_index_args, rows, 16, 4),
	F(spmla_swa_index_args, columns, 20, 4),
	F(spmla_swa_index_args, table_stride_elems, 24, 4),
	F(spmla_swa_index_args, page_tokens, 28, 4),
	F(spmla_swa_index_args, page_stride_rows, 32, 4),
	F(spmla_swa_index_args, pool_pages, 36, 4),
	F(spmla_swa_index_args, ring, 40, 4),
	F(spmla_swa_index_args, requests, 44, 4),
	F(spmla_swa_index_args, positions, 48, 8),
	F(spmla_swa_index_args, token_row, 56, 8),
	F(spmla_swa_index_args, slot_mapping, 64, 8),
	F(spmla_swa_index_args, block_table, 72, 8),
	F(spmla_swa_index_args, table_cols, 80, 8),
	F(spmla_swa_index_args, replay_starts, 88, 8),
	F(spmla_swa_index_args, indices, 96, 8),
	F(spmla_swa_index_args, indices_stride_elems, 104, 8),
	F(spmla_swa_index_args, lens, 112, 8),
	F(spmla_swa_index_args, query_start_loc, 120, 8),
	F(spmla_swa_index_args, seq_lens, 128, 8),
	F(spmla_swa_index_args, req_row, 136, 8),
	F(spmla_swa_index_args, gather_lens, 144, 8),
	F(spmla_swa_index_args, image_spans, 152, 8),
	F(spmla_swa_index_args, max_image, 160, 4),
	F(spmla_swa_index_args, padded_lens, 164, 4),
	F(spmla_swa_index_args, positions_dtype, 168, 4),
	F(spmla_swa_index_args, reserved, 172, 4),
	S(spmla_c128a_index_args, 152),
	F(spmla_c128a_index_args, struct_bytes, 0, 4),
	F(spmla_c128a_index_args, tokens, 4, 4),
	F(spmla_c128a_index_args, decode_tokens, 8, 4),
	F(spmla_c128a_index_args, ratio, 12, 4),
	F(spmla_c128a_index_args, width, 16, 4),
	F(spmla_c128a_index_args, rows, 20, 4),
	F(spmla_c128a_index_args, columns, 24, 4),
	F(spmla_c128a_index_args, table_stride_elems, 28, 4),
	F(spmla_c128a_index_args, page_entries, 32, 4),
	F(spmla_c128a_index_args, page_stride_rows, 36, 4),
	F(spmla_c128a_index_args, pool_pages, 40, 4),
	F(spmla_c128a_index_args, entries_before, 44, 4),
	F(spmla_c128a_index_args, positions, 48, 8),
	F(spmla_c128a_index_args, slot_mapping, 56, 8),
	F(spmla_c128a_index_args, token_row, 64, 8),
	F(spmla_c128a_index_args, block_table, 72, 8),
	F(spmla_c128a_index_args, table_cols, 80, 8),
	F(spmla_c128a_index_args, decode_slots, 88, 8),
	F(spmla_c128a_index_args, decode_stride_elems, 96, 8),
	F(spmla_c128a_index_args, decode_lens, 104, 8),
	F(spmla_c128a_index_args, prefill_indices, 112, 8),
	F(spmla_c128a_index_args, prefill_stride_elems, 120, 8),
	F(spmla_c128a_index_args, prefill_lens, 128, 8),
	F(spmla_c128a_index_args, entries, 136, 8),
	F(spmla_c128a_index_args, positions_dtype, 144, 4),
	F(spmla_c128a_index_args, reserved, 148, 4),
	S(spmla_combine_index_args, 120),
	F(spmla_combine_index_args, struct_bytes, 0, 4),
	F(spmla_combine_index_args, tokens, 4, 4),
	F(spmla_combine_index_args, requests, 8, 4),
	F(spmla_combine_index_args, window, 12, 4),
	F(spmla_combine_index_args, ratio, 16, 4),
	F(spmla_combine_index_args, topk, 20, 4),
	F(spmla_combine_index_args, width, 24, 4),
	F(spmla_combine_index_args, request_rows, 28, 4),
	F(spmla_combine_index_args, window_row, 32, 4),
	F(spmla_combine_index_args, max_image, 36, 4),
	F(spmla_combine_index_args, req_id_per_token, 40, 8),
	F(spmla_combine_index_args, context_lens, 48, 8),
	F(spmla_combine_index_args, seq_lens, 56, 8),
	F(spmla_combine_index_args, gather_lens, 64, 8),
	F(spmla_combine_index_args, topk_indices, 72, 8),
	F(spmla_combine_index_args, topk_stride_elems, 80, 8),
	F(spmla_combine_index_args, indices, 88, 8),
	F(spmla_combine_index_args, indices_stride_elems, 96, 8),
	F(spmla_combine_index_args, lens, 104, 8),
	F(spmla_combine_index_args, image_spans, 112, 8),
	S(spmla_ragged_index_args, 64),
	F(spmla_ragged_index_args, struct_bytes, 0, 4),
	F(spmla_ragged_index_args, tokens, 4, 4),
	F(spmla_ragged_index_args, width, 8, 4),
	F(spmla_ragged_index_args, num_slots, 12, 4),
	F(spmla_ragged_index_args, capacity_elems, 16, 4),
	F(spmla_ragged_index_args, reserved, 20, 4),
	F(spmla_ragged_index_args, indices, 24, 8),
	F(spmla_ragged_index_args, indices_stride_elems, 32, 8),
	F(spmla_ragged_index_args, lens, 40, 8),
	F(spmla_ragged_index_args, ragged_indptr, 48, 8),
	F(spmla_ragged_index_args, ragged_indices, 56, 8),
};
/* clang-format on */

START_TEST(every_field_of_the_arguments_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{every_field_of_the_arguments_lies_where_it_lay, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, tests),
	};

	return RUN_THEMES(themes);
}
