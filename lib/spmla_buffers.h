/* SPDX-License-Identifier: Apache-2.0
 *
 * The planned buffers: what each one holds, and its type and shape. A plan
 * has those that its config needs; spmla_plan_row lists them with their sizes,
 * and spmla_view gives their addresses.
 */
#ifndef SPMLA_BUFFERS_H
#define SPMLA_BUFFERS_H

/* The buffers. In their shapes:
 *   T  most tokens of a step, prefill included
 *   B  most requests of a bucket
 *   P  max_prefill_tokens
 *   W  prefill_workspace_tokens
 *   A  tokens of a piece: min(T, max(1024, the most tokens of a bucket)).
 *      Buffers of A rows hold the last piece of a longer step. */
typedef enum spmla_buf {
	SPMLA_BUF_CONTEXT = 0,     /* the spmla_ctx itself */
	SPMLA_BUF_GRAPH_NODES = 1, /* CPU: recorded ops */
	SPMLA_BUF_QUEUE = 2,       /* CPU: the deferred queue */
	SPMLA_BUF_BACKEND_STATE = 3,
	SPMLA_BUF_STEP_RING = 10,     /* [ring_slots][record bytes] */
	SPMLA_BUF_RING_CONSUMED = 11, /* uint64 [1] */
	SPMLA_BUF_DEVICE_STATUS = 12, /* see spmla_status_read */
	SPMLA_BUF_TABLE_STAGING = 13, /* int32 [max_rows][columns], main */
	SPMLA_BUF_STEP_STATE = 20,    /* device counters of the protocol */
	SPMLA_BUF_STEP_REQUESTS = 21, /* spmla_request [B], this step's */
	/* spmla_step_device, then spmla_request [B]; the engine writes it */
	SPMLA_BUF_STEP_DEVICE = 22,
	/* int32 [max_rows], engine writes it */
	SPMLA_BUF_ROW_LEN = 23,
	SPMLA_BUF_ADVANCE_BY = 24,       /* int32 [B], engine writes it */
	SPMLA_BUF_BLOCK_TABLE_MAIN = 25, /* int32 [max_rows][columns] */
	/* int32 [2][max_rows]. [0]: columns before the first gap; keys use it.
	 * [1]: one past the last written column; windows and states use it. */
	SPMLA_BUF_TABLE_COLS_MAIN = 26,
	SPMLA_BUF_QUERY_START_LOC = 30, /* int32 [B + 1] */
	SPMLA_BUF_SEQ_LENS = 31,        /* int32 [B], 0 = none or skipped */
	SPMLA_BUF_REQ_ROW = 32, /* int32 [B]: the request's stable row */
	SPMLA_BUF_REQ_ID_PER_TOKEN = 33,  /* int32 [T]: request b, padding 0 */
	SPMLA_BUF_TOKEN_ROW = 34,         /* int32 [T]: stable row, padding 0 */
	SPMLA_BUF_POSITIONS = 35,         /* int32 [T], padding 0 */
	SPMLA_BUF_CONTEXT_LENS = 36,      /* int32 [T]: keys a token sees */
	SPMLA_BUF_SLOT_MAPPING = 37,      /* int64 [T], padding -1 */
	SPMLA_BUF_LOGITS_ROW_STARTS = 38, /* int64 [T + 1], in elements */
	SPMLA_BUF_TOPK_INDICES = 39,      /* int32 [T][topk], request-local */
	SPMLA_BUF_TOPK_LENS = 40,         /* int32 [T]: entries that are set */
	/* int32 [B + 1], prefill: the workspace row where each request begins,
	 * then the number of rows in all */
	SPMLA_BUF_WORKSPACE_STARTS = 41,
	/* int32 [P]: a token's first workspace row */
	SPMLA_BUF_KEY_STARTS = 42,
	SPMLA_BUF_KEY_ENDS = 43,         /* int32 [P]: one past its last row */
	SPMLA_BUF_PIECE_ROW_STARTS = 44, /* int64 [P], in elements of LOGITS */
	/* GPU: for decode steps that are done in parts (split-KV), see
	 * spmla_tile_sched. Their request 0 is the first token that is not done
	 * whole. D: the most tokens that parts share in a step. V4: the first
	 * two are for layers of ratio 4, the next two for ratio 128. */
	SPMLA_BUF_TILE_SCHEDULER_METADATA = 45, /* int32 [parts][8] */
	SPMLA_BUF_NUM_SPLITS = 46,              /* int32 [D + 1] */
	SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A = 47,
	SPMLA_BUF_NUM_SPLITS_C128A = 48,
	/* e4m3 [T][index_heads][128]; with INDEX_MXFP4 64 bytes a head, and the
	 * four scales of a head in INDEX_Q_SCALES */
	SPMLA_BUF_INDEX_Q = 50,
	SPMLA_BUF_INDEX_WEIGHTS = 51, /* f32 [T][index_heads] */
	SPMLA_BUF_LOGITS = 52,        /* f32, ragged rows */
	SPMLA_BUF_INDEX_SCRATCH = 53, /* CPU: one per cpu_worker */
	/* e4m3 [W][128] and f32 [W]; INDEX_MXFP4: [W][64] and four bytes [W] */
	SPMLA_BUF_GATHERED_INDEX_K = 54,
	SPMLA_BUF_GATHERED_INDEX_SCALES = 55,
	SPMLA_BUF_TOPK_SLOTS = 60,     /* int32 [A][topk], cache slots */
	SPMLA_BUF_ATTEND_SCRATCH = 61, /* CPU: one per cpu_worker */
	SPMLA_BUF_GATHERED_KV = 62,    /* bf16 [W][576] */
	SPMLA_BUF_SPLIT_OUT = 63,      /* f32 [D + parts][heads][512] */
	SPMLA_BUF_SPLIT_LSE = 64,      /* f32 [D + parts][heads], base 2 */
	/* [cache_layers][pool_pages] pages; V4: the window's */
	SPMLA_BUF_KV_CACHE = 70,
	/* [cache_layers][pool_pages] pages; V4: [c4a_layers], also for the next
	 * three */
	SPMLA_BUF_INDEX_CACHE = 71,
	SPMLA_BUF_C4A_CACHE = 72,
	SPMLA_BUF_STATE_C4A_CACHE = 73,
	SPMLA_BUF_STATE_INDEX_CACHE = 74,
	SPMLA_BUF_C128A_CACHE = 75, /* [c128a_layers], also for the next */
	SPMLA_BUF_STATE_C128A_CACHE = 76,
	/* V4: the table, written columns and staging of each group but the main
	 * one; shapes as for the main group. */
	SPMLA_BUF_BLOCK_TABLE_C4A = 80,
	SPMLA_BUF_TABLE_COLS_C4A = 81,
	SPMLA_BUF_TABLE_STAGING_C4A = 82,
	SPMLA_BUF_BLOCK_TABLE_C128A = 83,
	SPMLA_BUF_TABLE_COLS_C128A = 84,
	SPMLA_BUF_TABLE_STAGING_C128A = 85,
	SPMLA_BUF_BLOCK_TABLE_INDEX = 86,
	SPMLA_BUF_TABLE_COLS_INDEX = 87,
	SPMLA_BUF_TABLE_STAGING_INDEX = 88,
	SPMLA_BUF_BLOCK_TABLE_STATE_C4A = 89,
	SPMLA_BUF_TABLE_COLS_STATE_C4A = 90,
	SPMLA_BUF_TABLE_STAGING_STATE_C4A = 91,
	SPMLA_BUF_BLOCK_TABLE_STATE_C128A = 92,
	SPMLA_BUF_TABLE_COLS_STATE_C128A = 93,
	SPMLA_BUF_TABLE_STAGING_STATE_C128A = 94,
	SPMLA_BUF_BLOCK_TABLE_STATE_INDEX = 95,
	SPMLA_BUF_TABLE_COLS_STATE_INDEX = 96,
	SPMLA_BUF_TABLE_STAGING_STATE_INDEX = 97,
	/* V4: metadata of a step. CONTEXT_LENS and SLOT_MAPPING are for the
	 * window. -1 is no slot. C = max_context_tokens / 128, rounded up
	 * to a multiple of 128. A row of indices is valid up to its length and
	 * unspecified behind it. A token without a page for a key that it
	 * sees, or without room for its index logits, has all three lengths 0.
	 */
	/* int32 [T]: complete groups of 4 that a token sees */
	SPMLA_BUF_COMPRESSED_LENS = 100,
	SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A = 101, /* int64 [T] */
	/* int64 [T]; not planned if INDEX uses the table of C4A: use C4A's
	 * mapping */
	SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX = 102,
	SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A = 103, /* int64 [T] */
	SPMLA_BUF_SWA_INDICES = 104, /* int32 [T][window_tokens], slots */
	SPMLA_BUF_SWA_LENS = 105,    /* int32 [T] */
	/* int32 [A][C], slots. The prologue writes them; in a step of more than
	 * A tokens, attend of each layer of ratio 128 does. */
	SPMLA_BUF_C128A_INDICES = 106,
	SPMLA_BUF_C128A_LENS = 107,     /* int32 [T] */
	SPMLA_BUF_INDEX_Q_SCALES = 110, /* int32 [T][index_heads], MXFP4 */
	/* int32 [A]: slots in the row of TOPK_SLOTS */
	SPMLA_BUF_C4A_LENS = 111,
	/* O: A rounded up to a multiple of 4 */
	SPMLA_BUF_OUTPUT_O =
		112, /* e4m3 or, by config.output_quant, bf16 [O][heads][512] */
	SPMLA_BUF_OUTPUT_SCALES = 113, /* [4 * heads][O] words */
	/* kv_compress of ratio 128 on a GPU. S: the most tokens of a bucket, at
	 * most 1024. */
	SPMLA_BUF_SPLIT_KEYS = 114,   /* uint32 [S][512], 0 between calls */
	SPMLA_BUF_SPLIT_COUNTS = 115, /* uint32 [S], 0 between calls */
	/* With SPMLA_CONFIG_RAGGED, token t has the entries from indptr[t] up
	 * to indptr[t + 1] - 1. The first pair is the selection (cache slots;
	 * in a V3.2 prefill, workspace rows), written by the layer's attention
	 * in place of TOPK_SLOTS and C4A_LENS. The prologue writes the window's
	 * pair. C128A's pair has the same writer as C128A_INDICES. */
	SPMLA_BUF_RAGGED_INDPTR = 116,        /* int32 [A + 1] */
	SPMLA_BUF_RAGGED_INDICES = 117,       /* int32 [A * topk] */
	SPMLA_BUF_RAGGED_INDPTR_SWA = 118,    /* int32 [T + 1] */
	SPMLA_BUF_RAGGED_INDICES_SWA = 119,   /* int32 [T * window_tokens] */
	SPMLA_BUF_RAGGED_INDPTR_C128A = 120,  /* int32 [A + 1] */
	SPMLA_BUF_RAGGED_INDICES_C128A = 121, /* int32 [A * C] */
	/* int32 [sm_count + 1][2], with SPMLA_CONFIG_RAGGED: indexer_schedule
	 * over CONTEXT_LENS (V4: COMPRESSED_LENS), each token as a request with
	 * next_n 1, by the device's rule. */
	SPMLA_BUF_INDEXER_SCHEDULE = 122,
	/* scratch of sparse_decode on a Hopper GPU (few tokens, or parts):
	 * uint32, 0 between calls */
	SPMLA_BUF_DECODE_WORKSPACE = 123,
	/* int32 [A], layers of ratio 4: SWA_LENS, but 0 for a token that
	 * selects a key without a page. With SPMLA_CONFIG_RAGGED the layer's
	 * attention packs the window's rows of these lengths into the pair
	 * below. */
	SPMLA_BUF_C4A_SWA_LENS = 124,
	SPMLA_BUF_RAGGED_INDPTR_C4A_SWA = 125,  /* int32 [A + 1] */
	SPMLA_BUF_RAGGED_INDICES_C4A_SWA = 126, /* int32 [A * window_tokens] */
	/* V4, scratch of the prologue on a Hopper GPU: uint32 [U + 2][16], where
	 * U is the most tokens of a bucket, at most 512. 0 between steps; init
	 * and wake make it so. The engine does not write it: a step would take
	 * what is there for its own. */
	SPMLA_BUF_STEP_UNITS = 127,
	SPMLA_BUF_FORCE_32 = 0x7fffffff
} spmla_buf;

#endif
