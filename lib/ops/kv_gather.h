/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: the KV rows of whole requests, or of single slots, as bf16, out of
 * their pages. dim is 576 (FP8_DS_MLA, MLA_BF16) or 512 (V4 layouts).
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
	const int32_t *block_table; /* [rows][table_stride_elems] */
	const int32_t *table_cols;  /* [rows] written columns; NULL: all */
	uint16_t *dst;              /* bf16 [keys][dst_stride_elems] */
	int64_t dst_stride_elems;   /* >= dim */
	spmla_cache cache; /* FP8_DS_MLA, MLA_BF16, V4_FP8, V4_BF16, V4_E4M3 */
	const int32_t *workspace_ends; /* [requests]: behind the last row of
	                                * each; NULL: where the next begins, and
	                                * keys for the last */
	const int32_t *slots; /* [keys]: rows by slot; NULL: by request. With
	                       * it requests, tables and starts are not read */
	float kv_scale;       /* V4_E4M3: of the whole cache, > 0, <= 2^126;
	                       * else not read */
	uint32_t ring;        /* 1: columns come round; by slot not read */
} spmla_kv_gather_args;

/* Request b owns the rows [workspace_starts[b], workspace_starts[b + 1]) of
 * dst, the last one those up to keys, or each those up to its workspace_end;
 * rows that no request owns are left as they are. Its row j is the entry of
 * position seq_starts[b] + j, values 0..511 its latent, 512..575 its rope; of
 * V4 0..447 and 448..511. Rows before workspace_starts[0] are left as they
 * are.
 * FP8_DS_MLA: latent = bf16(f32(e4m3) * scale), the product rounded to f32 and
 * then to bf16, both to nearest even; a NaN is 0x7fc0, whatever its sign. Rope
 * values, and all values of MLA_BF16 and V4_BF16, are copied bit for bit.
 * V4_FP8: the same product, a scale byte being the exponent bits of an f32:
 * 2^(byte - 127), but 0 is 0 and 255 infinity (then a zero is NaN), as the
 * source has it; sparse_decode reads 2^-127 and NaN there. No writer here makes
 * a 0, and with 255 all is NaN in both. V4_E4M3:
 * the same with kv_scale.
 * The key of position p lies in column p / entries_per_page (ring: modulo
 * columns, which hold all that is gathered of a request, as ring_columns of a
 * plan do for window and new keys).
 * A key whose column is past the table or not written, or whose page is outside
 * the cache, is a row of zeros: FAULT_PAGE for each. So is every row of a
 * request whose table row is outside the table: FAULT_ROW, whose seq_start is
 * negative, or one of whose bounds is less than the bound before it or outside
 * [0, keys], and is moved there: FAULT_LENGTH. These are reported once a
 * request, FAULT_LENGTH if both; of one without keys only the bounds count.
 * The last gather_len[b] entries of each request at an offset of a workspace
 * [requests][m], as the source of V4 has it, are workspace_starts[b] = b * m +
 * offset, workspace_ends[b] = workspace_starts[b] + gather_len[b],
 * seq_starts[b] = seq_len[b] - gather_len[b] and keys = requests * m; positions
 * count entries of the cache, compressed ones where it holds such.
 * By slot: row n of dst is the entry in slots[n]; zeros if that is negative,
 * and if it is past the cache: FAULT_SLOT, row = n.
 * No keys, or no requests and no slots: nothing else is checked, nothing is
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
