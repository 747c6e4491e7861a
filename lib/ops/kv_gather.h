/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: copies the KV rows of whole requests, or of single slots, out of
 * their pages as dense bf16. dim is 576 (FP8_DS_MLA, MLA_BF16) or 512 (V4
 * layouts).
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
	/* rows of dst in use, where the last request ends; < 2^31 */
	uint32_t keys;
	uint32_t rows;                   /* rows of block_table */
	uint32_t columns;                /* columns of a row */
	uint32_t table_stride_elems;     /* >= columns */
	const int32_t *workspace_starts; /* [requests], ascending from >= 0 */
	const int32_t *seq_starts; /* [requests]: position of the first key;
				    * NULL: 0 */
	/* [requests]: row of block_table; NULL: b, and rows >= requests */
	const int32_t *req_row;
	const int32_t *block_table; /* [rows][table_stride_elems] */
	const int32_t *table_cols;  /* [rows] written columns; NULL: all */
	uint16_t *dst;              /* bf16 [keys][dst_stride_elems] */
	int64_t dst_stride_elems;   /* >= dim */
	spmla_cache cache; /* FP8_DS_MLA, MLA_BF16, V4_FP8, V4_BF16, V4_E4M3 */
	/* [requests]: one past the last row of each request; NULL: where the
	 * next request begins, and `keys` for the last */
	const int32_t *workspace_ends;
	/* [keys]: gather single slots; NULL: gather requests. With slots, the
	 * fields requests, tables and starts are not read. */
	const int32_t *slots;
	/* V4_E4M3: the scale of the whole cache, > 0, <= 2^126. Others do not
	 * read it. */
	float kv_scale;
	uint32_t ring; /* 1: ring table; not read by slot */
	/* V4_E4M3: the address of kv_scale on the device. It is read when the
	 * operation runs, and not checked. NULL: kv_scale is used. */
	const float *kv_scale_at;
} spmla_kv_gather_args;

/* Makes dense rows for a kernel that reads no pages: the keys of each request
 * one behind the other, or one row for each slot of a list.
 *
 * By request: request b owns the rows of dst from workspace_starts[b] up to
 * workspace_starts[b + 1] (the last request: up to keys), or up to
 * workspace_ends[b]. Its row j is the entry of position seq_starts[b] + j. Rows
 * that no request owns, also those before workspace_starts[0], are left as they
 * are. In a row, values 0..511 are the latent and 512..575 the rope; V4: 0..447
 * and 448..511.
 * The key of position p lies in column p / entries_per_page. For a ring table
 * the column is modulo columns. The columns must hold all keys that are
 * gathered for a request; a plan's ring_columns hold the window and new keys.
 *
 * By slot: row n of dst is the entry in slots[n]. A negative slot gives zeros.
 * A slot past the cache gives zeros and FAULT_SLOT, row = n.
 *
 * Values. FP8_DS_MLA: latent = bf16(f32(e4m3) * scale), the product rounded to
 * f32 and then to bf16, both to nearest even; a NaN is 0x7fc0, whatever its
 * sign. Rope values, and all values of MLA_BF16 and V4_BF16, are copied bit for
 * bit. V4_E4M3: the same product with kv_scale. V4_FP8: the same product. A
 * scale byte is 2^(byte - 127), except 0, which is 0, and 255, which is
 * infinity (0 times it is NaN), as in the source. sparse_decode reads 2^-127
 * and NaN instead; rows of our writers give the same result, because they never
 * store 0, and with 255 only zeros and NaN.
 *
 * With cache.encoding FNUZ (FP8_DS_MLA, V4_FP8, V4_E4M3) codes are FNUZ; 0x80
 * is NaN.
 *
 * Bad data. A key whose column is past the table or not written, or whose page
 * is outside the cache, becomes a row of zeros: FAULT_PAGE for each. All rows
 * of a request are zeros if its table row is outside the table (FAULT_ROW), or
 * if its seq_start is negative, or a bound falls below the one before it or
 * leaves [0, keys] (FAULT_LENGTH; the bound is clamped). Each request reports
 * these once; FAULT_LENGTH wins. For a request without keys only the bounds are
 * checked.
 *
 * V4's workspace [requests][m], with the last gather_len[b] entries of each
 * request at `offset`, is
 *   workspace_starts[b] = b * m + offset
 *   workspace_ends[b]   = workspace_starts[b] + gather_len[b]
 *   seq_starts[b]       = seq_len[b] - gather_len[b]
 *   keys                = requests * m
 * Positions count cache entries: compressed keys, in a compressed cache.
 *
 * No keys, or neither requests nor slots: nothing else is checked, nothing is
 * enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM cp_gather_and_upconvert_fp8_kv_cache; V4:
 * dequantize_and_gather_k_cache and, by slot, the gather of its XPU decode. */
spmla_status spmla_kv_gather(spmla_ctx *ctx, const spmla_kv_gather_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
