/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of all buffers. The size of a row is a product of named dimensions,
 * so each count is written once and is data, not code.
 */
#ifndef SPMLA_ARENA_TABLE_H
#define SPMLA_ARENA_TABLE_H

#include "spmla/spmla.h"

/* The factors of counts, filled from a resolved config. */
typedef enum spmla_i_dim {
	SPMLA_I_DIM_ONE = 0,
	SPMLA_I_DIM_TOKENS, /* most tokens of a bucket or prefill */
	SPMLA_I_DIM_TOKENS_PLUS_1,
	SPMLA_I_DIM_REQUESTS, /* most of a bucket */
	SPMLA_I_DIM_REQUESTS_PLUS_1,
	SPMLA_I_DIM_ROWS,      /* stable rows */
	SPMLA_I_DIM_RING_ROWS, /* stable rows; 0 for a DEVICE table */
	SPMLA_I_DIM_COLUMNS,   /* of a block table row */
	SPMLA_I_DIM_TOPK,
	/* tokens of a piece of attention; 0 if lists are ragged */
	SPMLA_I_DIM_SLOTS_TOKENS,
	SPMLA_I_DIM_C4A_SLOTS_TOKENS,
	SPMLA_I_DIM_C4A_SWA_TOKENS,
	/* the same if they are; else 0, as are the next seven */
	SPMLA_I_DIM_RAGGED_TOKENS,
	SPMLA_I_DIM_RAGGED_TOKENS_PLUS_1,
	SPMLA_I_DIM_RAGGED_V4_TOKENS,
	SPMLA_I_DIM_RAGGED_V4_TOKENS_PLUS_1,
	SPMLA_I_DIM_RAGGED_SWA_TOKENS, /* of the whole step */
	SPMLA_I_DIM_RAGGED_SWA_TOKENS_PLUS_1,
	SPMLA_I_DIM_SCHEDULE_ROWS, /* SMs + 1 */
	SPMLA_I_DIM_SCHEDULE_ROW,  /* 2 */
	SPMLA_I_DIM_INDEX_HEADS,
	SPMLA_I_DIM_INDEX_Q_BYTES, /* of a token's index query */
	SPMLA_I_DIM_LOGITS,
	SPMLA_I_DIM_RING_SLOTS,
	SPMLA_I_DIM_RECORD_BYTES,
	SPMLA_I_DIM_STEP_DEVICE_BYTES,
	SPMLA_I_DIM_CONTEXT_BYTES,
	SPMLA_I_DIM_BACKEND_BYTES,
	SPMLA_I_DIM_GRAPH_NODES,    /* CPU */
	SPMLA_I_DIM_QUEUE_ENTRIES,  /* CPU */
	SPMLA_I_DIM_INDEX_SCRATCH,  /* CPU, bytes */
	SPMLA_I_DIM_ATTEND_SCRATCH, /* CPU, bytes */
	SPMLA_I_DIM_CACHE_PAGES,    /* planned layers * pool pages */
	SPMLA_I_DIM_KV_PAGE_BYTES,
	SPMLA_I_DIM_INDEX_PAGES, /* pages and page bytes, of each pool */
	SPMLA_I_DIM_INDEX_PAGE_BYTES,
	SPMLA_I_DIM_PIECE_TOKENS, /* 0: no prefill */
	/* 0: no prefill, or V4's, which gathers nothing; also the next two */
	SPMLA_I_DIM_PREFILL_TOKENS,
	SPMLA_I_DIM_PREFILL_REQUESTS_PLUS_1,
	SPMLA_I_DIM_WORKSPACE,     /* rows of gathered context */
	SPMLA_I_DIM_INDEX_K_BYTES, /* of a gathered index key */
	SPMLA_I_DIM_MLA_DIM,
	/* GPU: parts of a decode step; 0: all run whole */
	SPMLA_I_DIM_DECODE_PARTS,
	SPMLA_I_DIM_TILE_ROW,
	/* tokens of the longest step in parts */
	SPMLA_I_DIM_SPLIT_TOKENS_PLUS_1,
	SPMLA_I_DIM_C128A_PARTS, /* the same of V4 */
	SPMLA_I_DIM_C128A_SPLIT_TOKENS_PLUS_1,
	SPMLA_I_DIM_SPLIT_ROWS,
	SPMLA_I_DIM_DECODE_WORKSPACE, /* words; 0: no step is of few tokens */
	SPMLA_I_DIM_HEADS,
	SPMLA_I_DIM_HEAD_VALUES, /* heads * 512 */
	/* V4 only, else 0. */
	/* rows and columns of each group's table; 0 rows if the table is not
	 * SpMLA's own */
	SPMLA_I_DIM_ROWS_C4A,
	SPMLA_I_DIM_COLUMNS_C4A,
	SPMLA_I_DIM_ROWS_C128A,
	SPMLA_I_DIM_COLUMNS_C128A,
	SPMLA_I_DIM_ROWS_INDEX,
	SPMLA_I_DIM_COLUMNS_INDEX,
	SPMLA_I_DIM_ROWS_STATE_C4A,
	SPMLA_I_DIM_COLUMNS_STATE_C4A,
	SPMLA_I_DIM_ROWS_STATE_C128A,
	SPMLA_I_DIM_COLUMNS_STATE_C128A,
	SPMLA_I_DIM_ROWS_STATE_INDEX,
	SPMLA_I_DIM_COLUMNS_STATE_INDEX,
	SPMLA_I_DIM_V4_TOKENS,
	SPMLA_I_DIM_C128A_TOKENS, /* of a piece */
	SPMLA_I_DIM_INDEX_SLOTS,  /* tokens, if INDEX has its own table */
	SPMLA_I_DIM_WINDOW,
	SPMLA_I_DIM_C128A_WIDTH,
	SPMLA_I_DIM_INDEX_Q_SCALES, /* index heads, if MXFP4 */
	SPMLA_I_DIM_OUTPUT_TOKENS,  /* a multiple of 4 */
	SPMLA_I_DIM_OUTPUT_BYTES,   /* of heads * 512 values */
	SPMLA_I_DIM_OUTPUT_SCALES,  /* heads * 4 */
	SPMLA_I_DIM_SPLIT_KEYS,     /* tokens, on a GPU */
	SPMLA_I_DIM_KEY_VALUES,     /* 512 */
	SPMLA_I_DIM_STEP_UNITS,     /* words; 0: no prologue is one launch */
	SPMLA_I_DIM_C4A_PAGES,      /* pages and page bytes, of each pool */
	SPMLA_I_DIM_C4A_PAGE_BYTES,
	SPMLA_I_DIM_C128A_PAGES,
	SPMLA_I_DIM_C128A_PAGE_BYTES,
	SPMLA_I_DIM_STATE_C4A_PAGES,
	SPMLA_I_DIM_STATE_C4A_PAGE_BYTES,
	SPMLA_I_DIM_STATE_C128A_PAGES,
	SPMLA_I_DIM_STATE_C128A_PAGE_BYTES,
	SPMLA_I_DIM_STATE_INDEX_PAGES,
	SPMLA_I_DIM_STATE_INDEX_PAGE_BYTES,
	SPMLA_I_DIM_COUNT
} spmla_i_dim;

typedef struct spmla_i_arena_row {
	spmla_buf buf;
	spmla_memory memory;
	spmla_life life;
	uint32_t branch; /* 1: used on a branch, shares no bytes */
	uint32_t elem_bytes;
	spmla_i_dim dim[2]; /* elements = dim[0] * dim[1] */
	const char *name;
	const char *shape;
	const char *writer; /* who writes it and when */
} spmla_i_arena_row;

/* Every region and every buffer starts at a multiple of SPMLA_I_BUF_ALIGN,
 * which is what the CUDA driver gives: small pinned blocks share a page. */
enum { SPMLA_I_BUF_ALIGN = 256, SPMLA_I_RED_ZONE = 256 };

extern const spmla_i_arena_row spmla_i_arena_table[];
extern const uint32_t spmla_i_arena_rows;

/* The row of a buffer, or NULL. */
const spmla_i_arena_row *spmla_i_arena_find(uint32_t buf);

#endif
