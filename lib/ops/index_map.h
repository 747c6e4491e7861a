/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map: maps key positions of a request to slots of the paged cache.
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
	uint32_t k;                  /* entries of a row, 1 or more */
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
	/* [tokens]: number of slots != -1, plus entries_before; NULL: not
	 * wanted */
	int32_t *valid_counts;
	/* A token with workspace_ids[t] >= 0 is one of prefill: it maps to
	 * workspace_starts[id] + index instead. NULL: no token does. */
	const int32_t *workspace_ids;    /* [tokens] */
	const int32_t *workspace_starts; /* [workspaces] */
	/* [tokens]: an index at or past it counts as none; NULL: not checked */
	const int32_t *context_lens;
	/* [tokens]; < 0: no token, so its row is -1, its count 0, and nothing
	 * else is read; NULL: all are tokens */
	const int64_t *slot_mapping;
	uint32_t compact; /* 1: valid slots first, in order */
	/* Entries that stand before `slots` in the same row (a window, for
	 * example), and that valid_counts includes. entries_before + k < 2^31.
	 */
	uint32_t entries_before;
	/* [tokens + 1], written: ragged rows, see below. NULL: rows of
	 * slots_stride_elems */
	int32_t *indptr;
	/* [tokens]: the column of a token's first page; columns below 0 do not
	 * exist; NULL: 0. Lets rows begin anywhere in a flat page list. */
	const int32_t *first_cols;
	uint32_t capacity_elems; /* of slots, with indptr; < 2^31 */
	/* 1: a missing page (FAULT_PAGE) empties the token, even a token with a
	 * workspace: its row is -1, its count 0. */
	uint32_t whole;
	/* Lengths of other lists of the tokens, and where they go: 0 for a
	 * token that `whole` empties, else as they are. NULL: none, both. */
	const int32_t *other_lens; /* [tokens] */
	int32_t *kept_lens;        /* [tokens], written */
} spmla_index_map_args;

/* Each token selects positions of its request. This operation turns each into a
 * cache slot, or a workspace row, in the same place of the row. Index i of a
 * token becomes
 *   slot = block_table[row][first_col + i / page_tokens] * page_stride_rows
 *        + i % page_tokens
 * With `compact`, valid slots move to the front and -1 follows them, so that
 * valid_counts is the length of the row. Entries at and past lens, clamped to
 * [0, k], give -1.
 *
 * An index < 0 gives -1. An index past the table's columns gives -1 without a
 * report, as in the source, even if the token has a workspace. A column not
 * written, a page outside the pool, a row or workspace outside its array, or a
 * slot outside [0, 2^31) gives -1 and FAULT_PAGE, FAULT_ROW or FAULT_INDEX.
 * With `whole`, one FAULT_PAGE makes the token's whole row -1 (and its
 * kept_lens 0); every index without a page is reported.
 * With context_lens, an index at or past the token's length gives -1 and
 * FAULT_INDEX, before any other check, because past the context a workspace
 * holds the next request's keys. A negative length refuses every index.
 *
 * Ragged rows. Token t has n entries: lens clamped to [0, k], or 0 without a
 * slot. They lie from slots[indptr[t]] on; indptr[0] = 0, and indptr[t + 1] =
 * indptr[t] + n. So a row has one entry for each index, and the entry is -1 if
 * the index has no slot. A row that would pass capacity_elems is empty: indptr
 * stops at the capacity, the room before it holds -1, and FAULT_LENGTH is
 * reported if n > 0. sparse_decode and sparse_prefill take slots and indptr as
 * they are.
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: without indptr, slots may be indices, with the same stride.
 * Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM convert_req_index_to_global_index. compact with slot_mapping:
 * compute_global_topk_indices_and_lens, which leaves gaps where they are and
 * also converts the rows of tokens without a slot. entries_before: the right
 * part of build_flashinfer_mixed_sparse_indices. */
spmla_status spmla_index_map(spmla_ctx *ctx, const spmla_index_map_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
