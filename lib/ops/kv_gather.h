/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: the KV rows of whole requests as bf16, out of their pages.
 */
#ifndef SPMLA_OPS_KV_GATHER_H
#define SPMLA_OPS_KV_GATHER_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_kv_gather_args {
	uint32_t struct_bytes;
	uint32_t requests;
	uint32_t keys;    /* rows of dst in use: where the last request ends;
			   * < 2^31 */
	uint32_t rows;    /* rows of block_table */
	uint32_t columns; /* columns of a row */
	uint32_t table_stride_elems;     /* >= columns */
	const int32_t *workspace_starts; /* [requests], ascending from >= 0 */
	const int32_t *seq_starts; /* [requests]: position of the first key;
				    * NULL: 0 */
	const int32_t *req_row;    /* [requests]: row of block_table; NULL: b */
	const int32_t *block_table;    /* [rows][table_stride_elems] */
	const int32_t *table_cols;     /* [rows] written columns; NULL: all */
	uint16_t *dst;                 /* bf16 [keys][dst_stride_elems] */
	int64_t dst_stride_elems;      /* >= 576 */
	spmla_cache cache;             /* FP8_DS_MLA or MLA_BF16 */
	const int32_t *workspace_ends; /* [requests]: behind the last row of
	                                * each; NULL: where the next begins, and
	                                * keys for the last */
} spmla_kv_gather_args;

/* Request b owns the rows [workspace_starts[b], workspace_starts[b + 1]) of
 * dst, the last one those up to keys, or each those up to its workspace_end;
 * rows that no request owns are left as they are. Its row j is the entry of
 * position seq_starts[b] + j, values 0..511 its latent, 512..575 its rope. Rows
 * before workspace_starts[0] are left as they are.
 * FP8_DS_MLA: latent = bf16(f32(e4m3) * scale), the product rounded to f32 and
 * then to bf16, both to nearest even; a NaN is 0x7fc0, whatever its sign. Rope
 * values, and all values of MLA_BF16, are copied bit for bit.
 * A key whose column is past the table or not written, or whose page is outside
 * the cache, is a row of zeros: FAULT_PAGE for each. So is every row of a
 * request whose table row is outside the table: FAULT_ROW, whose seq_start is
 * negative, or one of whose bounds is less than the bound before it or outside
 * [0, keys], and is moved there: FAULT_LENGTH. These are reported once a
 * request, FAULT_LENGTH if both; of one without keys only the bounds count.
 * No requests or no keys: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM cp_gather_and_upconvert_fp8_kv_cache. */
spmla_status spmla_kv_gather(spmla_ctx *ctx, const spmla_kv_gather_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
