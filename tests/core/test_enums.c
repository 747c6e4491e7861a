/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers behind the names: they travel in binaries, records and logs. New
 * ones are added; none changes.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include <stdio.h>
#include <stdlib.h>

#include "spmla/internal/backend.h"

#define V        PIN_V
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin_value statuses[] = {
	V(SPMLA_OK, 0),
	V(SPMLA_E_NULL, 10),
	V(SPMLA_E_STRUCT_SIZE, 11),
	V(SPMLA_E_RANGE, 12),
	V(SPMLA_E_OVERFLOW, 13),
	V(SPMLA_E_REGION, 20),
	V(SPMLA_E_OVERLAP, 21),
	V(SPMLA_E_UNSUPPORTED, 30),
	V(SPMLA_E_STATE, 40),
	V(SPMLA_E_BUSY, 41),
	V(SPMLA_E_RING_FULL, 50),
	V(SPMLA_E_TICKET, 51),
	V(SPMLA_E_RECORD, 52),
	V(SPMLA_E_CAPTURE, 60),
	V(SPMLA_E_SPACE, 61),
	V(SPMLA_E_NO_DRIVER, 70),
	V(SPMLA_E_DRIVER_OLD, 71),
	V(SPMLA_E_NO_BLOB, 72),
	V(SPMLA_E_DEVICE, 80),
	V(SPMLA_STATUS_FORCE_32, 0x7fffffff),
	V(SPMLA_WANT_NOTHING, 0),
	V(SPMLA_WANT_EQUAL, 1),
	V(SPMLA_WANT_AT_LEAST, 2),
	V(SPMLA_WANT_AT_MOST, 3),
	V(SPMLA_WANT_MULTIPLE_OF, 4),
	V(SPMLA_WANT_NOT_NULL, 5),
	V(SPMLA_WANT_UNIQUE, 6),
	V(SPMLA_WANT_FINITE, 7),
	V(SPMLA_WANT_ONE_OF, 8),
	V(SPMLA_WANT_EITHER, 9),
	V(SPMLA_WANT_FORCE_32, 0x7fffffff),
};

static const pin_value faults[] = {
	V(SPMLA_FAULT_NONE, 0),
	V(SPMLA_FAULT_TICKET_MISSING, 1),
	V(SPMLA_FAULT_TOO_LARGE, 2),
	V(SPMLA_FAULT_ROW, 3),
	V(SPMLA_FAULT_LENGTH, 4),
	V(SPMLA_FAULT_PAGE, 5),
	V(SPMLA_FAULT_SLOT, 6),
	V(SPMLA_FAULT_LOGITS, 7),
	V(SPMLA_FAULT_INDEX, 8),
	V(SPMLA_FAULT_POSITION, 9),
	V(SPMLA_FAULT_FORCE_32, 0x7fffffff),
};

static const pin_value bufs[] = {
	V(SPMLA_MEMORY_HOST, 0),
	V(SPMLA_MEMORY_PINNED, 1),
	V(SPMLA_MEMORY_DEVICE, 2),
	V(SPMLA_MEMORY_CACHE, 3),
	V(SPMLA_MEMORY_COUNT, 4),
	V(SPMLA_MEMORY_FORCE_32, 0x7fffffff),
	V(SPMLA_LIFE_CONTEXT, 0),
	V(SPMLA_LIFE_STEP, 1),
	V(SPMLA_LIFE_INDEX, 2),
	V(SPMLA_LIFE_ATTEND, 3),
	V(SPMLA_LIFE_OUTPUT, 4),
	V(SPMLA_LIFE_COUNT, 5),
	V(SPMLA_LIFE_FORCE_32, 0x7fffffff),
	V(SPMLA_BUF_CONTEXT, 0),
	V(SPMLA_BUF_GRAPH_NODES, 1),
	V(SPMLA_BUF_QUEUE, 2),
	V(SPMLA_BUF_BACKEND_STATE, 3),
	V(SPMLA_BUF_STEP_RING, 10),
	V(SPMLA_BUF_RING_CONSUMED, 11),
	V(SPMLA_BUF_DEVICE_STATUS, 12),
	V(SPMLA_BUF_TABLE_STAGING, 13),
	V(SPMLA_BUF_STEP_STATE, 20),
	V(SPMLA_BUF_STEP_REQUESTS, 21),
	V(SPMLA_BUF_STEP_DEVICE, 22),
	V(SPMLA_BUF_ROW_LEN, 23),
	V(SPMLA_BUF_ADVANCE_BY, 24),
	V(SPMLA_BUF_BLOCK_TABLE_MAIN, 25),
	V(SPMLA_BUF_TABLE_COLS_MAIN, 26),
	V(SPMLA_BUF_QUERY_START_LOC, 30),
	V(SPMLA_BUF_SEQ_LENS, 31),
	V(SPMLA_BUF_REQ_ROW, 32),
	V(SPMLA_BUF_REQ_ID_PER_TOKEN, 33),
	V(SPMLA_BUF_TOKEN_ROW, 34),
	V(SPMLA_BUF_POSITIONS, 35),
	V(SPMLA_BUF_CONTEXT_LENS, 36),
	V(SPMLA_BUF_SLOT_MAPPING, 37),
	V(SPMLA_BUF_LOGITS_ROW_STARTS, 38),
	V(SPMLA_BUF_TOPK_INDICES, 39),
	V(SPMLA_BUF_TOPK_LENS, 40),
	V(SPMLA_BUF_WORKSPACE_STARTS, 41),
	V(SPMLA_BUF_KEY_STARTS, 42),
	V(SPMLA_BUF_KEY_ENDS, 43),
	V(SPMLA_BUF_PIECE_ROW_STARTS, 44),
	V(SPMLA_BUF_TILE_SCHEDULER_METADATA, 45),
	V(SPMLA_BUF_NUM_SPLITS, 46),
	V(SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A, 47),
	V(SPMLA_BUF_NUM_SPLITS_C128A, 48),
	V(SPMLA_BUF_INDEX_Q, 50),
	V(SPMLA_BUF_INDEX_WEIGHTS, 51),
	V(SPMLA_BUF_LOGITS, 52),
	V(SPMLA_BUF_INDEX_SCRATCH, 53),
	V(SPMLA_BUF_GATHERED_INDEX_K, 54),
	V(SPMLA_BUF_GATHERED_INDEX_SCALES, 55),
	V(SPMLA_BUF_TOPK_SLOTS, 60),
	V(SPMLA_BUF_ATTEND_SCRATCH, 61),
	V(SPMLA_BUF_GATHERED_KV, 62),
	V(SPMLA_BUF_SPLIT_OUT, 63),
	V(SPMLA_BUF_SPLIT_LSE, 64),
	V(SPMLA_BUF_KV_CACHE, 70),
	V(SPMLA_BUF_INDEX_CACHE, 71),
	V(SPMLA_BUF_C4A_CACHE, 72),
	V(SPMLA_BUF_STATE_C4A_CACHE, 73),
	V(SPMLA_BUF_STATE_INDEX_CACHE, 74),
	V(SPMLA_BUF_C128A_CACHE, 75),
	V(SPMLA_BUF_STATE_C128A_CACHE, 76),
	V(SPMLA_BUF_BLOCK_TABLE_C4A, 80),
	V(SPMLA_BUF_TABLE_COLS_C4A, 81),
	V(SPMLA_BUF_TABLE_STAGING_C4A, 82),
	V(SPMLA_BUF_BLOCK_TABLE_C128A, 83),
	V(SPMLA_BUF_TABLE_COLS_C128A, 84),
	V(SPMLA_BUF_TABLE_STAGING_C128A, 85),
	V(SPMLA_BUF_BLOCK_TABLE_INDEX, 86),
	V(SPMLA_BUF_TABLE_COLS_INDEX, 87),
	V(SPMLA_BUF_TABLE_STAGING_INDEX, 88),
	V(SPMLA_BUF_BLOCK_TABLE_STATE_C4A, 89),
	V(SPMLA_BUF_TABLE_COLS_STATE_C4A, 90),
	V(SPMLA_BUF_TABLE_STAGING_STATE_C4A, 91),
	V(SPMLA_BUF_BLOCK_TABLE_STATE_C128A, 92),
	V(SPMLA_BUF_TABLE_COLS_STATE_C128A, 93),
	V(SPMLA_BUF_TABLE_STAGING_STATE_C128A, 94),
	V(SPMLA_BUF_BLOCK_TABLE_STATE_INDEX, 95),
	V(SPMLA_BUF_TABLE_COLS_STATE_INDEX, 96),
	V(SPMLA_BUF_TABLE_STAGING_STATE_INDEX, 97),
	V(SPMLA_BUF_COMPRESSED_LENS, 100),
	V(SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A, 101),
	V(SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX, 102),
	V(SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A, 103),
	V(SPMLA_BUF_SWA_INDICES, 104),
	V(SPMLA_BUF_SWA_LENS, 105),
	V(SPMLA_BUF_C128A_INDICES, 106),
	V(SPMLA_BUF_C128A_LENS, 107),
	V(SPMLA_BUF_INDEX_Q_SCALES, 110),
	V(SPMLA_BUF_C4A_LENS, 111),
	V(SPMLA_BUF_OUTPUT_O, 112),
	V(SPMLA_BUF_OUTPUT_SCALES, 113),
	V(SPMLA_BUF_SPLIT_KEYS, 114),
	V(SPMLA_BUF_SPLIT_COUNTS, 115),
	V(SPMLA_BUF_RAGGED_INDPTR, 116),
	V(SPMLA_BUF_RAGGED_INDICES, 117),
	V(SPMLA_BUF_RAGGED_INDPTR_SWA, 118),
	V(SPMLA_BUF_RAGGED_INDICES_SWA, 119),
	V(SPMLA_BUF_RAGGED_INDPTR_C128A, 120),
	V(SPMLA_BUF_RAGGED_INDICES_C128A, 121),
	V(SPMLA_BUF_INDEXER_SCHEDULE, 122),
	V(SPMLA_BUF_DECODE_WORKSPACE, 123),
	V(SPMLA_BUF_C4A_SWA_LENS, 124),
	V(SPMLA_BUF_FORCE_32, 0x7fffffff),
};

static const pin_value others[] = {
	V(SPMLA_DTYPE_BF16, 0),
	V(SPMLA_DTYPE_FP16, 1),
	V(SPMLA_DTYPE_F32, 2),
	V(SPMLA_DTYPE_FORCE_32, 0x7fffffff),
	V(SPMLA_ROPE_NONE, 0),
	V(SPMLA_ROPE_NEOX, 1),
	V(SPMLA_ROPE_INTERLEAVED, 2),
	V(SPMLA_ROPE_FORCE_32, 0x7fffffff),
	V(SPMLA_Q_SCALE_FUSED, 0),
	V(SPMLA_Q_SCALE_GROUP, 1),
	V(SPMLA_Q_SCALE_V4, 2),
	V(SPMLA_Q_SCALE_FORCE_32, 0x7fffffff),
	V(SPMLA_EMPTY_LSE_PLUS_INF, 0),
	V(SPMLA_EMPTY_LSE_MINUS_INF, 1),
	V(SPMLA_EMPTY_LSE_LOWEST, 2),
	V(SPMLA_EMPTY_LSE_FORCE_32, 0x7fffffff),
	V(SPMLA_LAYOUT_FP8_DS_MLA, 1),
	V(SPMLA_LAYOUT_MLA_BF16, 2),
	V(SPMLA_LAYOUT_INDEX_FP8, 3),
	V(SPMLA_LAYOUT_V4_FP8, 4),
	V(SPMLA_LAYOUT_V4_BF16, 5),
	V(SPMLA_LAYOUT_V4_E4M3, 6),
	V(SPMLA_LAYOUT_INDEX_MXFP4, 7),
	V(SPMLA_LAYOUT_STATE_256, 8),
	V(SPMLA_LAYOUT_STATE_512, 9),
	V(SPMLA_LAYOUT_STATE_1024, 10),
	V(SPMLA_LAYOUT_FORCE_32, 0x7fffffff),
	V(SPMLA_MLA_LATENT, 512),
	V(SPMLA_MLA_ROPE, 64),
	V(SPMLA_MLA_DIM, 576),
	V(SPMLA_MLA_SCALE_GROUP, 128),
	V(SPMLA_MLA_SCALES, 4),
	V(SPMLA_FP8_DS_MLA_SCALE_BYTE, 512),
	V(SPMLA_FP8_DS_MLA_ROPE_BYTE, 528),
	V(SPMLA_FP8_DS_MLA_BYTES, 656),
	V(SPMLA_MLA_BF16_BYTES, 1152),
	V(SPMLA_INDEX_DIM, 128),
	V(SPMLA_INDEX_ROPE, 64),
	V(SPMLA_INDEX_FP8_BYTES, 132),
	V(SPMLA_COMPRESS_OVERLAP, 4),
	V(SPMLA_COMPRESS_MOST, 128),
	V(SPMLA_STATE_PAGED, 0),
	V(SPMLA_STATE_RING, 1),
	V(SPMLA_STATE_FORM_FORCE_32, 0x7fffffff),
	V(SPMLA_PAGE_STRIDE_ALIGN, 16),
	V(SPMLA_LOGITS_ROW_ALIGN, 256),
	V(SPMLA_MODEL_V32, 1),
	V(SPMLA_MODEL_V4_FLASH, 2),
	V(SPMLA_MODEL_V4_PRO, 3),
	V(SPMLA_MODEL_FORCE_32, 0x7fffffff),
	V(SPMLA_MAX_BUCKETS, 16),
	V(SPMLA_MAX_TABLE_GROUPS, 8),
	V(SPMLA_GROUP_MAIN, 0),
	V(SPMLA_GROUP_SWA, 0),
	V(SPMLA_GROUP_C4A, 1),
	V(SPMLA_GROUP_C128A, 2),
	V(SPMLA_GROUP_INDEX, 3),
	V(SPMLA_GROUP_STATE_C4A, 4),
	V(SPMLA_GROUP_STATE_C128A, 5),
	V(SPMLA_GROUP_STATE_INDEX, 6),
	V(SPMLA_V4_GROUPS, 7),
	V(SPMLA_BUCKET_PREFILL, 16),
	V(SPMLA_CONFIG_BATCH_INVARIANT, 1),
	V(SPMLA_CONFIG_APART, 2),
	V(SPMLA_CONFIG_RAGGED, 4),
	V(SPMLA_CONFIG_FLAG_FORCE_32, 0x7fffffff),
	V(SPMLA_SCALE_POW2, 1),
	V(SPMLA_SCALE_RAW, 2),
	V(SPMLA_SCALE_MODE_FORCE_32, 0x7fffffff),
	V(SPMLA_TABLE_RING, 1),
	V(SPMLA_TABLE_DEVICE, 2),
	V(SPMLA_TABLE_OF_MAIN, 16),
	V(SPMLA_TABLE_SOURCE_FORCE_32, 0x7fffffff),
	V(SPMLA_BACKEND_CPU, 1),
	V(SPMLA_BACKEND_KIND_FORCE_32, 0x7fffffff),
	V(SPMLA_NATIVE_DEFERRED, 1),
	V(SPMLA_NATIVE_SCALAR, 2),
	V(SPMLA_NATIVE_AVX2, 4),
	V(SPMLA_NATIVE_FLAG_FORCE_32, 0x7fffffff),
	V(SPMLA_MAX_PLAN_ROWS, 96),
	V(SPMLA_REQUEST_JOIN, 1),
	V(SPMLA_REQUEST_FLAG_FORCE_32, 0x7fffffff),
	V(SPMLA_STEP_LENS_ON_DEVICE, 1),
	V(SPMLA_STEP_FLAG_FORCE_32, 0x7fffffff),
	V(SPMLA_FROM_RING, 1),
	V(SPMLA_FROM_DEVICE, 2),
	V(SPMLA_ADVANCE, 3),
	V(SPMLA_SOURCE_FORCE_32, 0x7fffffff),
};

static const pin_value operations[] = {
	V(SPMLA_OP_step_prologue, 0),
	V(SPMLA_OP_table_write, 1),
	V(SPMLA_OP_token_map, 2),
	V(SPMLA_OP_slot_map, 3),
	V(SPMLA_OP_logits_rows, 4),
	V(SPMLA_OP_kv_insert, 5),
	V(SPMLA_OP_indexer_k_insert, 6),
	V(SPMLA_OP_indexer_q_prep, 7),
	V(SPMLA_OP_mqa_logits, 8),
	V(SPMLA_OP_topk, 9),
	V(SPMLA_OP_index_map, 10),
	V(SPMLA_OP_sparse_decode, 11),
	V(SPMLA_OP_indexer_k_gather, 12),
	V(SPMLA_OP_kv_gather, 13),
	V(SPMLA_OP_indexer_schedule, 14),
	V(SPMLA_OP_tile_sched, 15),
	V(SPMLA_OP_sparse_prefill, 16),
	V(SPMLA_OP_mqa_logits_gathered, 17),
	V(SPMLA_OP_q_absorb, 18),
	V(SPMLA_OP_v_up, 19),
	V(SPMLA_OP_lse2_to_lse, 20),
	V(SPMLA_OP_filter_prefill_indices, 21),
	V(SPMLA_OP_split_combine, 22),
	V(SPMLA_OP_prefill_rows, 23),
	V(SPMLA_OP_rms_norms, 24),
	V(SPMLA_OP_qnorm_rope_kv_insert, 25),
	V(SPMLA_OP_compress_state_save, 26),
	V(SPMLA_OP_kv_compress, 27),
	V(SPMLA_OP_swa_index, 28),
	V(SPMLA_OP_c128a_index, 29),
	V(SPMLA_OP_combine_index, 30),
	V(SPMLA_OP_ragged_index, 31),
	V(SPMLA_OP_inv_rope_quant, 32),
	V(SPMLA_OP_o_group_proj, 33),
	V(SPMLA_OP_COUNT, 34),
	V(SPMLA_RMS_NORMS_WIDTH_UNIT, 8),
	V(SPMLA_RMS_NORMS_MAX_WIDTH, 4096),
};

static const pin_value sizes[] = {
	V(sizeof(spmla_dtype), 4),         V(sizeof(spmla_rope_style), 4),
	V(sizeof(spmla_q_scale_floor), 4), V(sizeof(spmla_empty_lse), 4),
	V(sizeof(spmla_state_form), 4),    V(sizeof(spmla_layout), 4),
	V(sizeof(spmla_status), 4),        V(sizeof(spmla_want), 4),
	V(sizeof(spmla_model), 4),         V(sizeof(spmla_config_flag), 4),
	V(sizeof(spmla_scale_mode), 4),    V(sizeof(spmla_table_source), 4),
	V(sizeof(spmla_backend_kind), 4),  V(sizeof(spmla_native_flag), 4),
	V(sizeof(spmla_memory), 4),        V(sizeof(spmla_life), 4),
	V(sizeof(spmla_buf), 4),           V(sizeof(spmla_request_flag), 4),
	V(sizeof(spmla_step_flag), 4),     V(sizeof(spmla_source), 4),
	V(sizeof(spmla_fault), 4),         V(sizeof(spmla_graph), 4),
	V(sizeof(spmla_stream), 8),
};
/* clang-format on */

START_TEST(status_numbers_stay)
{
	pins_check_values(statuses, COUNT(statuses));
}
END_TEST

START_TEST(fault_numbers_stay)
{
	pins_check_values(faults, COUNT(faults));
}
END_TEST

START_TEST(buffer_memory_and_life_numbers_stay)
{
	pins_check_values(bufs, COUNT(bufs));
}
END_TEST

START_TEST(all_other_numbers_stay)
{
	pins_check_values(others, COUNT(others));
}
END_TEST

START_TEST(an_operation_keeps_its_bit)
{
	pins_check_values(operations, COUNT(operations));
}
END_TEST

START_TEST(every_enum_has_32_bits)
{
	pins_check_values(sizes, COUNT(sizes));
}
END_TEST

START_TEST(the_version_is_that_of_the_header)
{
	char text[32];

	ck_assert_uint_eq(spmla_version(), SPMLA_VERSION);
	snprintf(text, sizeof text, "%u.%u.%u", SPMLA_VERSION / 10000,
		 SPMLA_VERSION / 100 % 100, SPMLA_VERSION % 100);
	ck_assert_str_eq(spmla_version_string(), text);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{status_numbers_stay, 1},
		{fault_numbers_stay, 1},
		{buffer_memory_and_life_numbers_stay, 1},
		{all_other_numbers_stay, 1},
		{an_operation_keeps_its_bit, 1},
		{every_enum_has_32_bits, 1},
		{the_version_is_that_of_the_header, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
