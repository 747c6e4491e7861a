/* SPDX-License-Identifier: Apache-2.0
 *
 * c128a_index: lists the complete compressed entries of each token: cache slots
 * for decode, entry numbers for prefill.
 */
#ifndef SPMLA_OPS_C128A_INDEX_H
#define SPMLA_OPS_C128A_INDEX_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_c128a_index_args {
	uint32_t struct_bytes;
	uint32_t tokens;             /* decode tokens, then prefill tokens */
	uint32_t decode_tokens;      /* <= tokens */
	uint32_t ratio;              /* tokens of an entry, 128 in V4 */
	uint32_t width;              /* entries of a row, 1 .. 2^31 - 1 */
	uint32_t rows;               /* rows of block_table */
	uint32_t columns;            /* columns of a row */
	uint32_t table_stride_elems; /* >= columns */
	uint32_t page_entries;       /* compressed entries of a page, < 2^31 */
	uint32_t page_stride_rows;   /* slots from page to page, >=
				      * page_entries; 0: page_entries */
	uint32_t pool_pages;         /* valid pages; 0: any page id >= 0 */
	/* Entries that stand before decode_slots in the same row, and that
	 * decode_lens includes. entries_before + width < 2^31. */
	uint32_t entries_before;
	/* int32 or int64 [tokens]; both NULL with `entries` */
	const void *positions;
	const int64_t *slot_mapping;  /* [tokens], < 0: no token */
	const int32_t *token_row;     /* [decode_tokens]: row of block_table */
	const int32_t *block_table;   /* [rows][table_stride_elems] */
	const int32_t *table_cols;    /* [rows] written columns; NULL: all */
	int32_t *decode_slots;        /* [decode_tokens][decode_stride_elems] */
	int64_t decode_stride_elems;  /* >= width */
	int32_t *decode_lens;         /* [decode_tokens]; NULL with `entries` */
	int32_t *prefill_indices;     /* [tokens - decode_tokens][..] */
	int64_t prefill_stride_elems; /* >= width */
	int32_t *prefill_lens;        /* [tokens - decode_tokens]; NULL: none */
	/* [tokens]: how many entries each token sees, where they are known.
	 * NULL: they follow from positions and slot_mapping. */
	const int32_t *entries;
	uint32_t positions_dtype; /* spmla_int_dtype */
	uint32_t reserved;
} spmla_c128a_index_args;

/* A compressed entry is complete once its last token is there. Each token sees
 * the entries that are complete at its position; decode wants to know where
 * they lie, prefill only which they are.
 *
 * Token t at pos = positions[t] sees n = min((pos + 1) / ratio, width) entries,
 * those that are complete by then. Its length is n, for decode entries_before +
 * n. For e < n its row has
 *   decode:  block_table[row][e / page_entries] * page_stride_rows
 *            + e % page_entries
 *   prefill: e
 * and -1 from n to width. Memory between rows is left alone, so rows may keep
 * the stride of the longest context whatever the width of this step is.
 *
 * With `entries`, n = entries[t], clamped to [0, width], whatever position and
 * slot the token has.
 *
 * A token without a slot has length 0 and a row of -1 (slot_mapping names
 * the token's own key, not a compressed one). The same holds for a token whose
 * row is outside the table (FAULT_ROW) or whose position is < 0
 * (FAULT_POSITION). A column that does not exist or is not written, a page
 * outside the pool, or a page with slots past 2^31 gives -1 for its entries
 * and, once per row and page, FAULT_PAGE; the length still counts them. Reports
 * name the table's row, except FAULT_ROW and reports of prefill tokens, which
 * name the token.
 *
 * No tokens: nothing else is checked, nothing is enqueued. Fields that only
 * decode or only prefill uses are not checked if it has no tokens.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM build_c128a_topk_metadata; there the row of a token without a
 * slot has the entries of its position. */
spmla_status spmla_c128a_index(spmla_ctx *ctx,
			       const spmla_c128a_index_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
