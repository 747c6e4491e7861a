/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: the cache slots of each token's sliding window, and the number of
 * keys that a prefill gathers for each request.
 */
#ifndef SPMLA_OPS_SWA_INDEX_H
#define SPMLA_OPS_SWA_INDEX_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_swa_index_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t window;  /* keys a token sees, its own included */
	uint32_t width;   /* entries of a row, >= window + max_image, < 2^31 */
	uint32_t rows;    /* rows of block_table */
	uint32_t columns; /* columns of a row */
	uint32_t table_stride_elems; /* >= columns */
	uint32_t page_tokens;        /* < 2^31 */
	uint32_t page_stride_rows;   /* slots from page to page, >= page_tokens;
				      * 0: page_tokens */
	uint32_t pool_pages;         /* valid pages; 0: any page id >= 0 */
	uint32_t ring;     /* 1: the column of a position is modulo `columns` */
	uint32_t requests; /* of gather_lens */
	const void *positions;          /* int32 or int64 [tokens] */
	const int32_t *token_row;       /* [tokens]: row of block_table */
	const int64_t *slot_mapping;    /* [tokens], < 0: no token */
	const int32_t *block_table;     /* [rows][table_stride_elems] */
	const int32_t *table_cols;      /* [rows] written columns; NULL: all */
	const int32_t *replay_starts;   /* [rows]: no key before it; NULL: 0 */
	int32_t *indices;               /* [tokens][indices_stride_elems] */
	int64_t indices_stride_elems;   /* >= width */
	int32_t *lens;                  /* [tokens] */
	const int32_t *query_start_loc; /* [requests + 1] */
	const int32_t *seq_lens;        /* [requests], query tokens included */
	const int32_t *req_row; /* [requests]; NULL: request b has row b */
	int32_t *gather_lens;   /* [requests] */
	/* [tokens][2]: first and last position of the token's image. A token
	 * outside its span has no image. NULL: no token has one. */
	const int32_t *image_spans;
	uint32_t max_image;       /* keys of an image, >= 1; with images only */
	uint32_t padded_lens;     /* 1: rows with keys get the length width */
	uint32_t positions_dtype; /* spmla_int_dtype */
	uint32_t reserved;
} spmla_swa_index_args;

/* Each token sees the last `window` keys and, inside an image, that image.
 *
 * Windows. Token t at pos = positions[t] sees the keys from
 *   start = max(pos - window + 1, replay_starts[row], 0)
 * to its own: lens = pos + 1 - start. For k < lens, with p = start + k,
 *   indices[k] = block_table[row][col] * page_stride_rows + p % page_tokens
 *   col        = p / page_tokens (ring: modulo columns)
 * and -1 from lens to width. A token without a slot has length 0 and a row of
 * -1.
 *
 * Images. A token of an image, first <= pos <= last, sees the image too, in
 * both directions:
 *   start = max(pos - max(window - 1, min(pos - first, max_image - 1)),
 *               replay_starts[row], 0)
 * The last key is pos + min(last - pos, max_image), cut so that a token sees at
 * most window + max_image keys. lens counts all of them.
 *
 * padded_lens: this row is the left part of a wider one; index_map or
 * c128a_index writes the right part, with slots = indices + width, the same
 * stride, entries_before = width, and the final lengths. lens is width, or 0
 * for a token without keys.
 *
 * Bad data. A token whose row is outside the table (FAULT_ROW), or whose
 * position is < 0 or before the replay's start (FAULT_POSITION), counts as one
 * without a slot. A column that does not exist or is not written, a page
 * outside the pool, or a page with slots past 2^31 gives -1 for its keys and,
 * once per row and page, FAULT_PAGE; lens still counts those keys. A ring must
 * hold a window and an image at any offset: columns > (window + max_image +
 * page_tokens - 2) / page_tokens.
 *
 * Gather lengths. For each request with q >= 0 query tokens, and replay =
 * max(replay_starts[row], 0), or 0 without replay_starts,
 *   gather_lens = q + min(seq_lens - q - replay, window - 1),
 * the rows of its window and its new keys; 0 for q < 0. seq_lens below q +
 * replay gives 0 and FAULT_LENGTH. With replay_starts, a row outside the table
 * gives 0 and FAULT_ROW.
 *
 * Reports name the table's row; FAULT_ROW names the token. A report on a
 * request names req_row's value, even if it is outside the table.
 * No tokens: the arrays of tokens and the table are not checked, but
 * page_tokens, page_stride_rows, ring and rows are. No requests: their fields
 * are not checked.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM DeepseekSparseSWAMetadataBuilder, also the vision variant; rows
 * of invalid tokens are as in its newer versions. Padded rows are the left part
 * of build_flashinfer_mixed_sparse_indices. */
spmla_status spmla_swa_index(spmla_ctx *ctx, const spmla_swa_index_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
