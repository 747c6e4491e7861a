/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: request-local key positions to slots of the paged cache.
 */
#ifndef SPMLA_OPS_INDEX_MAP_H
#define SPMLA_OPS_INDEX_MAP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_index_map_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t k;                  /* entries of a row, any number */
	uint32_t rows;               /* rows of block_table */
	uint32_t columns;            /* columns of a row */
	uint32_t table_stride_elems; /* >= columns */
	uint32_t page_tokens;
	uint32_t page_stride_rows;  /* slots from page to page, >= page_tokens;
				    * 0: page_tokens */
	uint32_t pool_pages;        /* valid pages; 0: any page id >= 0 */
	uint32_t workspaces;        /* entries of workspace_starts */
	const int32_t *token_row;   /* [tokens]: row of block_table */
	const int32_t *block_table; /* [rows][table_stride_elems] */
	const int32_t *table_cols;  /* [rows] written columns; NULL: all */
	const int32_t *indices;     /* [tokens][indices_stride_elems] */
	int64_t indices_stride_elems; /* >= k */
	const int32_t *lens;          /* [tokens]: entries to read; NULL: k */
	int32_t *slots;               /* [tokens][slots_stride_elems] */
	int64_t slots_stride_elems;   /* >= k */
	int32_t *valid_counts;        /* [tokens]: slots != -1, and
				       * entries_before; NULL: none */
	/* Tokens of prefill: workspace_ids[t] >= 0 maps to
	 * workspace_starts[id] + index instead. NULL: no token does. */
	const int32_t *workspace_ids;    /* [tokens] */
	const int32_t *workspace_starts; /* [workspaces] */
	/* [tokens]: an index at or past it is none; NULL: not looked at. */
	const int32_t *context_lens;
	/* [tokens], < 0: no token, whose row is -1 and whose count is 0, and of
	 * which nothing else is looked at; NULL: all are. */
	const int64_t *slot_mapping;
	uint32_t compact; /* 1: valid slots come first, in their order */
	/* Entries of a row that stand before `slots` and that valid_counts has
	 * too: a window, say; with k less than 2^31. */
	uint32_t entries_before;
} spmla_index_map_args;

/* slot = block_table[row][i / page_tokens] * page_stride_rows
 *      + i % page_tokens, where the index stands (compact: at the front, and
 * -1 behind them, so that valid_counts is the length of the row); -1 for an
 * index < 0 and for entries at and past lens, which is clamped to [0, k]. An
 * index past the table's columns gives -1 and no report, also where the token
 * has a workspace, as the source does; a column not written, a page outside the
 * pool, a row or workspace outside its array, or a slot outside [0, 2^31) gives
 * -1: FAULT_PAGE, FAULT_ROW, FAULT_INDEX. With context_lens an index at or past
 * the token's (all, if it is negative) gives -1 and FAULT_INDEX, before
 * anything else is looked at: what lies behind a context in a workspace is the
 * next request's.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: slots may be indices, with the same stride. Order: enqueues;
 * capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM convert_req_index_to_global_index; compact with slot_mapping:
 * compute_global_topk_indices_and_lens, which leaves gaps where they are and
 * converts the rows of tokens without a slot too; with entries_before the right
 * part of build_flashinfer_mixed_sparse_indices. */
spmla_status spmla_index_map(spmla_ctx *ctx, const spmla_index_map_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
