/* SPDX-License-Identifier: Apache-2.0
 *
 * swa_index: the cache slots of each token's sliding window, and how many keys
 * a prefill gathers for each request.
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
	const int32_t *positions;       /* [tokens] */
	const int32_t *token_row;       /* [tokens]: row of block_table */
	const int64_t *slot_mapping;    /* [tokens], < 0: no token */
	const int32_t *block_table;     /* [rows][table_stride_elems] */
	const int32_t *table_cols;      /* [rows] written columns; NULL: all */
	const int32_t *replay_starts;   /* [rows]: no key before it; NULL: 0 */
	int32_t *indices;               /* [tokens][indices_stride_elems] */
	int64_t indices_stride_elems;   /* >= width */
	int32_t *lens;                  /* [tokens] */
	const int32_t *query_start_loc; /* [requests + 1] */
	const int32_t *seq_lens;        /* [requests], with the query tokens */
	const int32_t *req_row; /* [requests]; NULL: request b has row b */
	int32_t *gather_lens;   /* [requests] */
	/* [tokens][2]: the first and last position of the image that the token
	 * is in; ones that its own is not between: none. NULL: no token is. */
	const int32_t *image_spans;
	uint32_t max_image;   /* keys of an image, >= 1; with images only */
	uint32_t padded_lens; /* 1: the length of what sees keys is width */
} spmla_swa_index_args;

/* Token t at pos = positions[t] sees the keys from
 *   start = max(pos - window + 1, replay_starts[row], 0)
 * on: lens = pos + 1 - start, and for k < lens
 *   indices[k] = block_table[row][col] * page_stride_rows + p % page_tokens
 * with p = start + k, col = p / page_tokens (ring: modulo columns); -1 from
 * lens to width. A token without a slot has length 0 and a row of -1.
 * A token of an image, first <= pos <= last, sees that too, in both directions:
 *   start = max(pos - max(window - 1, min(pos - first, max_image - 1)), ..),
 * and the last key is pos + min(last - pos, max_image), or an earlier one so
 * that they are at most window + max_image. lens counts all of them.
 * padded_lens: the row is the left part of a longer one, whose right part
 * index_map or c128a_index makes (slots = indices + width, the same stride,
 * entries_before = width, their lengths instead of these): lens is width, but 0
 * where it would be 0.
 * One of a row outside the table (FAULT_ROW), at a position < 0 or before the
 * replay's start (FAULT_POSITION) is as one without a slot. A column not there
 * or not written, a page outside the pool or one with slots past 2^31 gives -1
 * for its keys and, once a row and page, FAULT_PAGE; lens still counts them.
 * A ring must hold a window and an image's wherever they start: columns >
 * (window + max_image + page_tokens - 2) / page_tokens.
 * For each request with q > 0 query tokens, and replay as above,
 *   gather_lens = q + min(seq_lens - q - replay, window - 1),
 * the rows of its window and its new keys; 0 for q <= 0. seq_lens below
 * q + replay gives 0 and FAULT_LENGTH, with replay_starts a row outside the
 * table 0 and FAULT_ROW.
 * Reports name the table's row, FAULT_ROW the token; of a request req_row's
 * entry, whatever it is. A replay's start below 0 counts as 0.
 * No tokens: what is of tokens alone, their arrays and the table, is not
 * checked, but page_tokens, page_stride_rows, ring and rows are; no requests:
 * what is of them is not.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM DeepseekSparseSWAMetadataBuilder, the vision variant too; an
 * invalid token's row is as its newer versions have it. Padded rows are the
 * left part of build_flashinfer_mixed_sparse_indices. */
spmla_status spmla_swa_index(spmla_ctx *ctx, const spmla_swa_index_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
