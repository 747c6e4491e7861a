/* SPDX-License-Identifier: Apache-2.0
 *
 * The only table of buffers, with one row for each. The plan is one walk over
 * it. init reads the plan and never computes a size again.
 */
#include "spmla/arena/arena_table.h"
#include "spmla/internal/cpu_sizes.h"

#define D(name) SPMLA_I_DIM_##name
#define ROW(name, memory, life, branch, elem, d0, d1, shape, writer)        \
	{                                                                   \
		SPMLA_BUF_##name, SPMLA_MEMORY_##memory, SPMLA_LIFE_##life, \
			branch, elem, {D(d0), D(d1)}, #name, shape, writer  \
	}

/* The table of a group other than the main one. */
#define TABLE(group)                                                          \
	ROW(BLOCK_TABLE_##group, DEVICE, CONTEXT, 0, 4, ROWS_##group,         \
	    COLUMNS_##group, "[max_rows][columns]", "prologue, table_write"), \
		ROW(TABLE_COLS_##group, DEVICE, CONTEXT, 0, 8, ROWS_##group,  \
		    ONE, "[2][max_rows]", "prologue, table_write"),           \
		ROW(TABLE_STAGING_##group, PINNED, CONTEXT, 0, 4,             \
		    ROWS_##group, COLUMNS_##group, "[max_rows][columns]",     \
		    "engine, before table_write")

/* A planned pool. */
#define POOL(name, writer)                                    \
	ROW(name##_CACHE, CACHE, CONTEXT, 0, 1, name##_PAGES, \
	    name##_PAGE_BYTES, "[layers][pool_pages]", writer)

/* clang-format off: a table is read as a table */
const spmla_i_arena_row spmla_i_arena_table[] = {
	ROW(CONTEXT, HOST, CONTEXT, 0, 1, CONTEXT_BYTES, ONE, "[bytes]",
	    "init, host calls"),
	ROW(BACKEND_STATE, HOST, CONTEXT, 0, 1, BACKEND_BYTES, ONE, "[bytes]",
	    "backend"),
	ROW(GRAPH_NODES, HOST, CONTEXT, 0, sizeof(spmla_i_cpu_node),
	    GRAPH_NODES, ONE, "[max_graph_nodes]", "capture"),
	ROW(QUEUE, HOST, CONTEXT, 0, sizeof(spmla_i_cpu_node), QUEUE_ENTRIES,
	    ONE, "[queue_entries]", "enqueue, replay"),

	ROW(STEP_RING, PINNED, CONTEXT, 0, 1, RING_SLOTS, RECORD_BYTES,
	    "[ring_slots][record_bytes]", "push, write, undo"),
	ROW(RING_CONSUMED, PINNED, CONTEXT, 0, SPMLA_I_LINE_BYTES, ONE, ONE,
	    "[1 line]", "prologue"),
	ROW(DEVICE_STATUS, PINNED, CONTEXT, 0, SPMLA_I_LINE_BYTES, ONE, ONE,
	    "[1 line]", "any op that meets bad data"),
	ROW(TABLE_STAGING, PINNED, CONTEXT, 0, 4, RING_ROWS, COLUMNS,
	    "[max_rows][columns]", "engine, before table_write"),

	ROW(STEP_STATE, DEVICE, CONTEXT, 0, SPMLA_I_LINE_BYTES, ONE, ONE,
	    "[1 line]", "prologue"),
	ROW(STEP_DEVICE, DEVICE, CONTEXT, 0, 1, STEP_DEVICE_BYTES, ONE,
	    "header, [requests]", "engine, before FROM_DEVICE"),
	ROW(ROW_LEN, DEVICE, CONTEXT, 0, 4, ROWS, ONE, "[max_rows]",
	    "engine, before LENS_ON_DEVICE"),
	ROW(ADVANCE_BY, DEVICE, CONTEXT, 0, 4, REQUESTS, ONE, "[requests]",
	    "engine, before ADVANCE"),
	ROW(BLOCK_TABLE_MAIN, DEVICE, CONTEXT, 0, 4, RING_ROWS, COLUMNS,
	    "[max_rows][columns]", "prologue, table_write"),
	ROW(TABLE_COLS_MAIN, DEVICE, CONTEXT, 0, 8, RING_ROWS, ONE,
	    "[2][max_rows]", "prologue, table_write"),
	TABLE(C4A),
	TABLE(C128A),
	TABLE(INDEX),
	TABLE(STATE_C4A),
	TABLE(STATE_C128A),
	TABLE(STATE_INDEX),
	ROW(SPLIT_KEYS, DEVICE, CONTEXT, 0, 4, SPLIT_KEYS, KEY_VALUES,
	    "[tokens][512]", "kv_compress, zeros again"),
	ROW(SPLIT_COUNTS, DEVICE, CONTEXT, 0, 4, SPLIT_KEYS, ONE, "[tokens]",
	    "kv_compress, zeros again"),
	ROW(DECODE_WORKSPACE, DEVICE, CONTEXT, 0, 4, DECODE_WORKSPACE, ONE,
	    "[words]", "sparse_decode, zeros again"),
	ROW(STEP_UNITS, DEVICE, CONTEXT, 0, 4, STEP_UNITS, ONE, "[words]",
	    "prologue, zeros again"),

	ROW(STEP_REQUESTS, DEVICE, STEP, 0, 16, REQUESTS, ONE, "[requests]",
	    "prologue"),
	ROW(QUERY_START_LOC, DEVICE, STEP, 0, 4, REQUESTS_PLUS_1, ONE,
	    "[requests + 1]", "prologue"),
	ROW(SEQ_LENS, DEVICE, STEP, 0, 4, REQUESTS, ONE, "[requests]",
	    "prologue"),
	ROW(REQ_ROW, DEVICE, STEP, 0, 4, REQUESTS, ONE, "[requests]",
	    "prologue"),
	ROW(REQ_ID_PER_TOKEN, DEVICE, STEP, 0, 4, TOKENS, ONE, "[tokens]",
	    "prologue"),
	ROW(TOKEN_ROW, DEVICE, STEP, 0, 4, TOKENS, ONE, "[tokens]", "prologue"),
	ROW(POSITIONS, DEVICE, STEP, 0, 4, TOKENS, ONE, "[tokens]", "prologue"),
	ROW(CONTEXT_LENS, DEVICE, STEP, 0, 4, TOKENS, ONE, "[tokens]",
	    "prologue"),
	ROW(SLOT_MAPPING, DEVICE, STEP, 0, 8, TOKENS, ONE, "[tokens]",
	    "prologue"),
	ROW(LOGITS_ROW_STARTS, DEVICE, STEP, 0, 8, TOKENS_PLUS_1, ONE,
	    "[tokens + 1]", "prologue"),
	ROW(WORKSPACE_STARTS, DEVICE, STEP, 0, 4, PREFILL_REQUESTS_PLUS_1, ONE,
	    "[requests + 1]", "prologue of a prefill"),
	ROW(KEY_STARTS, DEVICE, STEP, 0, 4, PREFILL_TOKENS, ONE,
	    "[prefill_tokens]", "prologue of a prefill"),
	ROW(KEY_ENDS, DEVICE, STEP, 0, 4, PREFILL_TOKENS, ONE,
	    "[prefill_tokens]", "prologue of a prefill"),
	ROW(PIECE_ROW_STARTS, DEVICE, STEP, 0, 8, PIECE_TOKENS, ONE,
	    "[prefill_tokens]", "prologue of a prefill"),
	ROW(TILE_SCHEDULER_METADATA, DEVICE, STEP, 0, 4, DECODE_PARTS, TILE_ROW,
	    "[parts][8]", "prologue"),
	ROW(NUM_SPLITS, DEVICE, STEP, 0, 4, SPLIT_TOKENS_PLUS_1, ONE,
	    "[shared + 1]", "prologue"),
	ROW(TILE_SCHEDULER_METADATA_C128A, DEVICE, STEP, 0, 4, C128A_PARTS,
	    TILE_ROW, "[parts][8]", "prologue"),
	ROW(NUM_SPLITS_C128A, DEVICE, STEP, 0, 4, C128A_SPLIT_TOKENS_PLUS_1,
	    ONE, "[shared + 1]", "prologue"),
	ROW(TOPK_INDICES, DEVICE, STEP, 0, 4, TOKENS, TOPK, "[tokens][topk]",
	    "topk; layers may share it"),
	ROW(TOPK_LENS, DEVICE, STEP, 0, 4, TOKENS, ONE, "[tokens]", "topk"),
	/* topk may map what it selects while other tokens' logits are read. */
	ROW(TOPK_SLOTS, DEVICE, STEP, 0, 4, SLOTS_TOKENS, TOPK,
	    "[piece_tokens][topk]", "topk, index_map"),
	ROW(C4A_LENS, DEVICE, STEP, 0, 4, C4A_SLOTS_TOKENS, ONE,
	    "[piece_tokens]", "topk, index_map"),
	ROW(C4A_SWA_LENS, DEVICE, STEP, 0, 4, C4A_SWA_TOKENS, ONE,
	    "[piece_tokens]", "topk, index_map"),
	ROW(COMPRESSED_LENS, DEVICE, STEP, 0, 4, V4_TOKENS, ONE, "[tokens]",
	    "prologue"),
	ROW(COMPRESSED_SLOT_MAPPING_C4A, DEVICE, STEP, 0, 8, V4_TOKENS, ONE,
	    "[tokens]", "prologue"),
	ROW(COMPRESSED_SLOT_MAPPING_INDEX, DEVICE, STEP, 0, 8, INDEX_SLOTS, ONE,
	    "[tokens]", "prologue"),
	ROW(COMPRESSED_SLOT_MAPPING_C128A, DEVICE, STEP, 0, 8, V4_TOKENS, ONE,
	    "[tokens]", "prologue"),
	ROW(SWA_INDICES, DEVICE, STEP, 0, 4, V4_TOKENS, WINDOW,
	    "[tokens][window]", "prologue"),
	ROW(SWA_LENS, DEVICE, STEP, 0, 4, V4_TOKENS, ONE, "[tokens]",
	    "prologue"),
	ROW(C128A_INDICES, DEVICE, STEP, 0, 4, C128A_TOKENS, C128A_WIDTH,
	    "[piece_tokens][context / 128]", "prologue; c128a_index"),
	ROW(C128A_LENS, DEVICE, STEP, 0, 4, V4_TOKENS, ONE, "[tokens]",
	    "prologue"),

	ROW(RAGGED_INDPTR_SWA, DEVICE, STEP, 0, 4, RAGGED_SWA_TOKENS_PLUS_1,
	    ONE, "[tokens + 1]", "prologue"),
	ROW(RAGGED_INDICES_SWA, DEVICE, STEP, 0, 4, RAGGED_SWA_TOKENS, WINDOW,
	    "[tokens * window]", "prologue"),
	ROW(RAGGED_INDPTR_C128A, DEVICE, STEP, 0, 4, RAGGED_V4_TOKENS_PLUS_1,
	    ONE, "[piece_tokens + 1]", "prologue; ragged_index"),
	ROW(RAGGED_INDICES_C128A, DEVICE, STEP, 0, 4, RAGGED_V4_TOKENS,
	    C128A_WIDTH, "[piece_tokens * context / 128]",
	    "prologue; ragged_index"),
	ROW(INDEXER_SCHEDULE, DEVICE, STEP, 0, 4, SCHEDULE_ROWS, SCHEDULE_ROW,
	    "[SMs + 1][2]", "prologue"),

	/* V4 may make the next three on a branch. It forks after all earlier
	 * work and joins before any other use of INDEX or ATTEND, so they may
	 * share bytes with others. */
	ROW(INDEX_Q, DEVICE, INDEX, 0, 1, TOKENS, INDEX_Q_BYTES,
	    "[tokens][index_heads][128]", "indexer_q_prep"),
	ROW(INDEX_WEIGHTS, DEVICE, INDEX, 0, 4, TOKENS, INDEX_HEADS,
	    "[tokens][index_heads]", "indexer_q_prep"),
	ROW(INDEX_Q_SCALES, DEVICE, INDEX, 0, 4, TOKENS, INDEX_Q_SCALES,
	    "[tokens][index_heads]", "indexer_q_prep"),
	ROW(LOGITS, DEVICE, INDEX, 0, 4, LOGITS, ONE, "ragged rows",
	    "mqa_logits"),
	ROW(INDEX_SCRATCH, DEVICE, INDEX, 0, 1, INDEX_SCRATCH, ONE, "[bytes]",
	    "mqa_logits, topk; V4: kv_compress"),
	ROW(GATHERED_INDEX_K, DEVICE, INDEX, 0, 1, WORKSPACE, INDEX_K_BYTES,
	    "[workspace][bytes of a key]", "indexer_k_gather"),
	ROW(GATHERED_INDEX_SCALES, DEVICE, INDEX, 0, 4, WORKSPACE, ONE,
	    "[workspace]", "indexer_k_gather"),

	ROW(RAGGED_INDPTR, DEVICE, ATTEND, 0, 4, RAGGED_TOKENS_PLUS_1, ONE,
	    "[piece_tokens + 1]", "topk, index_map"),
	ROW(RAGGED_INDICES, DEVICE, ATTEND, 0, 4, RAGGED_TOKENS, TOPK,
	    "[piece_tokens * topk]", "topk, index_map"),
	ROW(RAGGED_INDPTR_C4A_SWA, DEVICE, ATTEND, 0, 4,
	    RAGGED_V4_TOKENS_PLUS_1, ONE, "[piece_tokens + 1]", "ragged_index"),
	ROW(RAGGED_INDICES_C4A_SWA, DEVICE, ATTEND, 0, 4, RAGGED_V4_TOKENS,
	    WINDOW, "[piece_tokens * window]", "ragged_index"),
	ROW(ATTEND_SCRATCH, DEVICE, ATTEND, 0, 1, ATTEND_SCRATCH, ONE,
	    "[bytes]", "sparse_decode"),
	ROW(SPLIT_OUT, DEVICE, ATTEND, 0, 4, SPLIT_ROWS, HEAD_VALUES,
	    "[shared + parts][heads][512]", "sparse_decode"),
	ROW(SPLIT_LSE, DEVICE, ATTEND, 0, 4, SPLIT_ROWS, HEADS,
	    "[shared + parts][heads]", "sparse_decode"),
	ROW(GATHERED_KV, DEVICE, ATTEND, 0, 2, WORKSPACE, MLA_DIM,
	    "[workspace][576]", "kv_gather"),

	ROW(OUTPUT_O, DEVICE, OUTPUT, 0, 1, OUTPUT_TOKENS, OUTPUT_BYTES,
	    "[piece_tokens][heads][512]", "inv_rope_quant"),
	ROW(OUTPUT_SCALES, DEVICE, OUTPUT, 0, 4, OUTPUT_TOKENS, OUTPUT_SCALES,
	    "[4 heads][piece_tokens]", "inv_rope_quant"),

	ROW(KV_CACHE, CACHE, CONTEXT, 0, 1, CACHE_PAGES, KV_PAGE_BYTES,
	    "[cache_layers][pool_pages]", "kv_insert"),
	ROW(INDEX_CACHE, CACHE, CONTEXT, 0, 1, INDEX_PAGES, INDEX_PAGE_BYTES,
	    "[layers][pool_pages]", "indexer_k_insert, kv_compress"),
	POOL(C4A, "kv_compress"),
	POOL(C128A, "kv_compress"),
	POOL(STATE_C4A, "compress_state_save"),
	POOL(STATE_C128A, "compress_state_save"),
	POOL(STATE_INDEX, "compress_state_save"),
};
/* clang-format on */

const uint32_t spmla_i_arena_rows = SPMLA_I_COUNT(spmla_i_arena_table);

SPMLA_STATIC_ASSERT(SPMLA_I_COUNT(spmla_i_arena_table) <= SPMLA_MAX_PLAN_ROWS,
		    "a plan holds every row");

const spmla_i_arena_row *
spmla_i_arena_find(uint32_t buf)
{
	uint32_t i;

	for (i = 0; i < spmla_i_arena_rows; i++)
		if ((uint32_t)spmla_i_arena_table[i].buf == buf)
			return &spmla_i_arena_table[i];
	return NULL;
}
