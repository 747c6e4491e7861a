/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of the gathers and planners as an engine's binary sees them,
 * and the numbers of their enums. All are written out: one that changes breaks
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
	S(spmla_indexer_k_gather_args, 112),
	F(spmla_indexer_k_gather_args, struct_bytes, 0, 4),
	F(spmla_indexer_k_gather_args, requests, 4, 4),
	F(spmla_indexer_k_gather_args, keys, 8, 4),
	F(spmla_indexer_k_gather_args, rows, 12, 4),
	F(spmla_indexer_k_gather_args, columns, 16, 4),
	F(spmla_indexer_k_gather_args, table_stride_elems, 20, 4),
	F(spmla_indexer_k_gather_args, cu_seq_lens, 24, 8),
	F(spmla_indexer_k_gather_args, req_row, 32, 8),
	F(spmla_indexer_k_gather_args, block_table, 40, 8),
	F(spmla_indexer_k_gather_args, table_cols, 48, 8),
	F(spmla_indexer_k_gather_args, dst_k, 56, 8),
	F(spmla_indexer_k_gather_args, dst_scale, 64, 8),
	F(spmla_indexer_k_gather_args, cache, 72, 40),
	S(spmla_kv_gather_args, 152),
	F(spmla_kv_gather_args, struct_bytes, 0, 4),
	F(spmla_kv_gather_args, requests, 4, 4),
	F(spmla_kv_gather_args, keys, 8, 4),
	F(spmla_kv_gather_args, rows, 12, 4),
	F(spmla_kv_gather_args, columns, 16, 4),
	F(spmla_kv_gather_args, table_stride_elems, 20, 4),
	F(spmla_kv_gather_args, workspace_starts, 24, 8),
	F(spmla_kv_gather_args, seq_starts, 32, 8),
	F(spmla_kv_gather_args, req_row, 40, 8),
	F(spmla_kv_gather_args, block_table, 48, 8),
	F(spmla_kv_gather_args, table_cols, 56, 8),
	F(spmla_kv_gather_args, dst, 64, 8),
	F(spmla_kv_gather_args, dst_stride_elems, 72, 8),
	F(spmla_kv_gather_args, cache, 80, 40),
	F(spmla_kv_gather_args, workspace_ends, 120, 8),
	F(spmla_kv_gather_args, slots, 128, 8),
	F(spmla_kv_gather_args, kv_scale, 136, 4),
	F(spmla_kv_gather_args, ring, 140, 4),
	F(spmla_kv_gather_args, kv_scale_at, 144, 8),
	S(spmla_prefill_rows_args, 104),
	F(spmla_prefill_rows_args, struct_bytes, 0, 4),
	F(spmla_prefill_rows_args, requests, 4, 4),
	F(spmla_prefill_rows_args, tokens, 8, 4),
	F(spmla_prefill_rows_args, keys, 12, 4),
	F(spmla_prefill_rows_args, piece_tokens, 16, 4),
	F(spmla_prefill_rows_args, reserved, 20, 4),
	F(spmla_prefill_rows_args, piece_stride_elems, 24, 8),
	F(spmla_prefill_rows_args, query_start_loc, 32, 8),
	F(spmla_prefill_rows_args, seq_lens, 40, 8),
	F(spmla_prefill_rows_args, req_row, 48, 8),
	F(spmla_prefill_rows_args, req_id_per_token, 56, 8),
	F(spmla_prefill_rows_args, context_lens, 64, 8),
	F(spmla_prefill_rows_args, workspace_starts, 72, 8),
	F(spmla_prefill_rows_args, key_starts, 80, 8),
	F(spmla_prefill_rows_args, key_ends, 88, 8),
	F(spmla_prefill_rows_args, row_starts, 96, 8),
	S(spmla_indexer_schedule_args, 56),
	F(spmla_indexer_schedule_args, struct_bytes, 0, 4),
	F(spmla_indexer_schedule_args, rule, 4, 4),
	F(spmla_indexer_schedule_args, batch, 8, 4),
	F(spmla_indexer_schedule_args, next_n, 12, 4),
	F(spmla_indexer_schedule_args, num_sms, 16, 4),
	F(spmla_indexer_schedule_args, reserved, 20, 4),
	F(spmla_indexer_schedule_args, context_lens, 24, 8),
	F(spmla_indexer_schedule_args, context_lens_stride_elems, 32, 8),
	F(spmla_indexer_schedule_args, indices, 40, 8),
	F(spmla_indexer_schedule_args, schedule, 48, 8),
	S(spmla_tile_sched_args, 88),
	F(spmla_tile_sched_args, struct_bytes, 0, 4),
	F(spmla_tile_sched_args, batch, 4, 4),
	F(spmla_tile_sched_args, parts, 8, 4),
	F(spmla_tile_sched_args, overhead_blocks, 12, 4),
	F(spmla_tile_sched_args, row_format, 16, 4),
	F(spmla_tile_sched_args, topk, 20, 4),
	F(spmla_tile_sched_args, extra_topk, 24, 4),
	F(spmla_tile_sched_args, lens_tokens, 28, 4),
	F(spmla_tile_sched_args, topk_lens, 32, 8),
	F(spmla_tile_sched_args, extra_topk_lens, 40, 8),
	F(spmla_tile_sched_args, tile_scheduler_metadata, 48, 8),
	F(spmla_tile_sched_args, num_splits, 56, 8),
	F(spmla_tile_sched_args, indptr, 64, 8),
	F(spmla_tile_sched_args, extra_indptr, 72, 8),
	F(spmla_tile_sched_args, split_blocks, 80, 4),
	F(spmla_tile_sched_args, first_request, 84, 4),
};

static const pin_value values[] = {
	V(SPMLA_INDEXER_SCHEDULE_SM90, 1),
	V(SPMLA_INDEXER_SCHEDULE_SM100, 2),
	V(SPMLA_INDEXER_SCHEDULE_SM100_VARLEN, 3),
	V(SPMLA_INDEXER_SCHEDULE_FORCE_32, 0x7fffffff),
	V(SPMLA_INDEXER_SCHEDULE_SPLIT, 256),
	V(SPMLA_TILE_OLD_SM90, 1),
	V(SPMLA_TILE_OLD_SM100, 2),
	V(SPMLA_TILE_SM90, 3),
	V(SPMLA_TILE_SM100_HEAD64, 4),
	V(SPMLA_TILE_SM100_HEAD128, 5),
	V(SPMLA_TILE_RULE_FORCE_32, 0x7fffffff),
	V(SPMLA_TILE_ROW_NEW, 0),
	V(SPMLA_TILE_ROW_OLD, 1),
	V(SPMLA_TILE_ROW_FORCE_32, 0x7fffffff),
	V(SPMLA_TILE_BLOCK_KEYS, 64),
	V(SPMLA_TILE_ROW_ELEMS, 8),
	V(sizeof(spmla_indexer_schedule_rule), 4),
	V(sizeof(spmla_tile_rule), 4),
	V(sizeof(spmla_tile_row), 4),
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
