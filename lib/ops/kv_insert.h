/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: writes the MLA rows of new tokens into the paged KV cache.
 */
#ifndef SPMLA_OPS_KV_INSERT_H
#define SPMLA_OPS_KV_INSERT_H

#include "spmla/ops/indexer_k_insert.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_kv_insert_args {
	uint32_t struct_bytes;
	/* entries of slot_mapping; kv_c may have more */
	uint32_t tokens;
	uint32_t dtype;      /* of kv_c, k_pe: BF16 or FP16; V4: BF16 */
	uint32_t scale_mode; /* spmla_scale_mode; FP8_DS_MLA only */
	/* 16-bit [tokens][512], the normed latent; V4: the whole row, rotated
	 */
	const void *kv_c;
	/* 16-bit [tokens][64], rotated; V4: not read, nor its stride */
	const void *k_pe;
	int64_t kv_c_stride_elems;   /* >= 512 */
	int64_t k_pe_stride_elems;   /* >= 64 */
	const int64_t *slot_mapping; /* [tokens]; < 0: skip the token */
	spmla_cache cache; /* FP8_DS_MLA, MLA_BF16, V4_FP8, V4_BF16, V4_E4M3 */
	/* V4_E4M3: the scale of the whole cache, > 0, <= 2^126; 1 / scale must
	 * be finite, or zeros become NaN. Other layouts do not read it. */
	float kv_scale;
	uint32_t reserved;
	/* V4_E4M3: the address of kv_scale on the device. It is read when the
	 * operation runs, and not checked. NULL: kv_scale is used. */
	const float *kv_scale_at;
	/* The index keys of these tokens, which indexer_k_insert inserts next;
	 * struct_bytes 0: none. index.tokens equals tokens. */
	spmla_indexer_k_insert_args index;
} spmla_kv_insert_args;

/* Writes the row of token t to slot_mapping[t].
 *
 * FP8_DS_MLA, for each 128 values of the latent: amax is the largest |x| (NaN
 * ignored), scale = max(amax / 448, 2^-126) (RAW) or pow2up(max(amax / 448,
 * 1e-4)) (POW2), byte = e4m3(x / scale): a true f32 division, rounded to
 * nearest even, saturating; see spmla_e4m3 for NaN and infinities. The 64 rope
 * values are copied bit for bit.
 * V4_FP8, for each 64 of the first 448 values: scale 2^e = pow2up(max(amax,
 * 1e-4) / 448), stored as the byte e + 127; value e4m3(x / 2^e), NaN and
 * infinities as above. The eighth scale byte is 0. The last 64 values are
 * copied bit for bit.
 * V4_E4M3: each value is e4m3(x * (1 / kv_scale)); quotient and product are
 * rounded to f32.
 * With cache.encoding FNUZ (FP8_DS_MLA, V4_FP8, V4_E4M3) the codes are FNUZ. In
 * scales that follow from amax 224 takes the place of 448.
 * MLA_BF16, V4_BF16: all values are copied bit for bit.
 *
 * A slot past the cache skips the token: FAULT_SLOT. If a slot occurs twice in
 * one call, each value and each scale comes from one of the two rows; which one
 * is unspecified, and on a GPU it may differ within the row.
 * With `index` the results are as if spmla_indexer_k_insert followed this call.
 * On a GPU both are one launch, unless the rows are V4's.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: bit for bit.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE; the errors of indexer_k_insert.
 * Source: vLLM concat_and_cache_mla, both of its scale rules; V4:
 * quantize_and_insert_k_cache. */
spmla_status spmla_kv_insert(spmla_ctx *ctx, const spmla_kv_insert_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
