/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_gather: copies the index keys of whole requests out of their pages.
 */
#ifndef SPMLA_OPS_INDEXER_K_GATHER_H
#define SPMLA_OPS_INDEXER_K_GATHER_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_indexer_k_gather_args {
	uint32_t struct_bytes;
	uint32_t requests;
	/* rows of dst_k, at least cu_seq_lens[requests]; < 2^31 */
	uint32_t keys;
	uint32_t rows;               /* rows of block_table */
	uint32_t columns;            /* columns of a row */
	uint32_t table_stride_elems; /* >= columns */
	const int32_t *cu_seq_lens;  /* [requests + 1], ascending from >= 0 */
	/* [requests]: row of block_table; NULL: b, and rows >= requests */
	const int32_t *req_row;
	const int32_t *block_table; /* [rows][table_stride_elems] */
	const int32_t *table_cols;  /* [rows] written columns; NULL: all */
	uint8_t *dst_k;    /* e4m3 [keys][128], MXFP4 e2m1 [keys][64], dense */
	float *dst_scale;  /* [keys]; MXFP4: the four ue8m0 bytes of a key */
	spmla_cache cache; /* INDEX_FP8, INDEX_FP8_TILED or INDEX_MXFP4 */
} spmla_indexer_k_gather_args;

/* Row n of the outputs, cu_seq_lens[b] <= n < cu_seq_lens[b + 1], is the entry
 * of request b's position n - cu_seq_lens[b]: its codes and its scale, or four
 * of MXFP4, bit for bit. Rows that no request covers are left as they are.
 * A key whose column is past the table or not written, or whose page is outside
 * the cache, is missing: zeros, with the scale SPMLA_INDEX_MISSING, so that it
 * scores -inf, as in spmla_mqa_logits; FAULT_PAGE for each. All keys of a
 * request are missing if its table row is outside the table (FAULT_ROW), or if
 * a bound falls below the one before it or leaves [0, keys] (FAULT_LENGTH; it
 * is clamped). Each request reports these once; FAULT_LENGTH wins. For a
 * request without keys only the bounds are checked.
 * No requests or no keys: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: copies.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM cp_gather_indexer_k_quant_cache. */
spmla_status spmla_indexer_k_gather(spmla_ctx *ctx,
				    const spmla_indexer_k_gather_args *args,
				    spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
