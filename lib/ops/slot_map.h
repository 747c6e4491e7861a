/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_map: the cache slot of each token's key.
 */
#ifndef SPMLA_OPS_SLOT_MAP_H
#define SPMLA_OPS_SLOT_MAP_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_slot_map_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t rows;    /* rows of block_table */
	uint32_t columns; /* columns of a row */
	uint32_t page_tokens;
	uint32_t pool_pages;
	uint32_t table_stride_elems; /* >= columns */
	uint32_t compress_ratio;     /* R, keys compressed R:1; 0 or 1: none */
	const int32_t *token_row;    /* [tokens] */
	const void *positions;       /* int32 or int64 [tokens] */
	const int32_t *block_table;  /* [rows][table_stride_elems] */
	const int32_t *table_cols;   /* [rows] written columns; NULL: all */
	int32_t *context_lens;       /* [tokens], in and out */
	int64_t *slot_mapping;       /* [tokens] */
	uint32_t ring; /* 1: the column of a position is modulo `columns` */
	uint32_t positions_dtype; /* spmla_int_dtype */
	/* Context-parallel decode, see below. 0 or 1 ranks: none */
	uint32_t dcp_ranks;      /* up to 65536; 0 or 1 with a ratio */
	uint32_t dcp_rank;       /* below dcp_ranks */
	uint32_t dcp_interleave; /* 1 .. 4096; not read without ranks */
	uint32_t reserved;
} spmla_slot_map_args;

/* Where each token's own key goes: a page of its request, and the place in that
 * page.
 *
 * Without a ratio:
 *   slot_mapping = block_table[row][col] * page_tokens + pos % page_tokens
 *   col          = pos / page_tokens (ring: modulo columns)
 * and -1 where context_lens is 0 (padding).
 * A row outside the table (FAULT_ROW), a position below 0, a column not written
 * or a page outside the pool (FAULT_PAGE) gives slot -1 and sets the token's
 * context_lens to 0. So the token writes no key and has an empty result.
 * Reports name token_row[t], even if it is outside the table.
 *
 * With a ratio R, a page holds page_tokens / R keys. Only a token that ends a
 * group, (pos + 1) % R == 0, has a slot, the slot of key pos / R:
 *   slot_mapping = block_table[row][col] * (page_tokens / R)
 *                + pos % page_tokens / R
 * The other tokens get -1, keep their context_lens and are not looked up,
 * except that a position below 0 is bad data as above. page_tokens is a
 * multiple of R.
 *
 * With dcp_ranks W > 1 and dcp_interleave I, position p lies on rank p / I % W.
 * A token's context_lens becomes n, the number of positions 0 .. pos that lie
 * on this rank:
 *   n = (pos + 1) / I / W * I
 *     + clip((pos + 1) - (pos + 1) / I / W * I * W - rank * I, 0, I)
 * If pos lies on this rank, the token has the slot of key n - 1, else -1. With
 * n = 0 nothing is looked up.
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM slot mapping, get_compressed_slot_mapping, and
 * get_dcp_local_seq_lens. */
spmla_status spmla_slot_map(spmla_ctx *ctx, const spmla_slot_map_args *args,
			    spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
