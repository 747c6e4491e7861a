/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: makes the key of each group of tokens that is complete, and
 * stores it.
 */
#ifndef SPMLA_OPS_KV_COMPRESS_H
#define SPMLA_OPS_KV_COMPRESS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dim is 512 with the states STATE_1024 and STATE_512, 128 with STATE_256; W is
 * their 1024, 512, 256. */
typedef struct spmla_kv_compress_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t ratio; /* 4 or 128 */
	uint32_t form;  /* spmla_state_form */
	uint32_t rows;  /* of block_table */
	uint32_t columns;
	uint32_t table_stride_elems; /* >= columns */
	uint32_t cos_sin_rows;
	float norm_eps;              /* > 0, <= 2^126; 1e-6 in V4 */
	float e4m3_scale;            /* V4_E4M3: the cache's, as norm_eps */
	const int32_t *positions;    /* [tokens] */
	const int64_t *slot_mapping; /* [tokens], of cache; < 0: skip */
	const int32_t *token_row;    /* [tokens] */
	const int32_t *block_table;  /* [rows][table_stride_elems], of state */
	const int32_t *table_cols;   /* [rows] written columns; NULL: all */
	const float *norm_weight;    /* [dim] */
	const float *cos_sin;        /* [cos_sin_rows][32 cos, 32 sin] */
	/* RING: what compress_state_save gets of this call. */
	const float *kv;             /* [tokens][W] */
	const float *score;          /* [tokens][W] */
	int64_t kv_stride_elems;     /* >= W */
	int64_t score_stride_elems;  /* >= W */
	const float *ape;            /* [ratio][W] */
	const int32_t *context_lens; /* [tokens]; <= 0: no row; NULL: all are */
	spmla_cache state; /* STATE_1024 or STATE_256 (ratio 4), STATE_512 */
	spmla_cache cache; /* V4_FP8, V4_BF16, V4_E4M3; of dim 128:
			      INDEX_FP8, INDEX_MXFP4 */
	/* Ratio 128 on a GPU, so that several blocks make a key; both or NULL.
	 */
	uint32_t *split_keys;   /* [tokens][512], zeros before and after */
	uint32_t *split_counts; /* [tokens], zeros before and after */
} spmla_kv_compress_args;

/* For each token with a slot whose pos + 1 is a multiple of ratio, over the n
 * rows of its group: positions pos - n + 1 .. pos, n = 128 at ratio 128, and at
 * ratio 4 n = 8, of which the older 4 give columns [0, dim) of kv and of score,
 * the newer 4 columns [dim, 2 dim); a position below 0 has no row:
 * 1. in each column: c = sum of kv * w / sum of w, w = exp2((score - m) *
 *    log2 e), m the largest score. Rows come in order, 8 at a time: each of both
 *    sums of the 8 is summed from 0 on, with their largest score n in place of
 *    m, and times exp2((n - m) * log2 e) goes to the sum over all; at ratio 128
 *    these are 16, summed by the tree 8, 4, 2, 1. A score of NaN or +inf, or
 *    -inf alone, makes c NaN.
 * 2. y = (c * r) * norm_weight, r = 1 / sqrt(mean of c^2 + norm_eps), the
 *    mean's sum in 16 lanes (lane l adds l, l + 16, .. to 0) and then the tree
 *    8, 4, 2, 1.
 * 3. the last 64 are rotated, interleaved, by the row pos / ratio * ratio of
 *    cos_sin, unfused; then all are rounded to bf16.
 * 4. V4_FP8: for each 64 of the first 448, s = the next power of two from
 *    max(amax, 1e-4) / 448 (NaN ignored), code = e4m3(y / s), the byte of s;
 *    a byte 0; 64 rope values. INDEX_FP8: the same with one s for all 128, as
 *    f32. INDEX_MXFP4: for each 32, s = the next power of two from max(amax,
 *    6 * 2^-126) / 6, at most 2^127, code = e2m1(y / s), the byte of s.
 *    V4_BF16: y. V4_E4M3: e4m3(y / e4m3_scale).
 * A NaN is 0x7f as e4m3, 0x7fc0 as bf16 and 7 as e2m1, whatever its sign. An
 * infinity makes s of e4m3 +inf (byte 255), itself 0x7f and finite values zeros
 * of their sign; as e2m1 it is 6 of its sign.
 * The row of a position is its entry of state; RING: of positions of this call
 * (token t - (pos - p) has the same row, position p and a context) it is kv and
 * score + ape[p % ratio], with the same bits as if it had been saved before; so
 * PAGED comes after compress_state_save, RING before it.
 * Bad data skips the token; reports name it: a slot past the cache
 * (FAULT_SLOT), else a position below 0 or a group outside cos_sin
 * (FAULT_POSITION), a row outside the table (FAULT_ROW). Where a column of the
 * group is not written or a page is outside the state (FAULT_PAGE, once a
 * token), y is 0: readers find a key of zeros, not what lay there. Of a slot
 * that occurs twice in one call, each value and scale is that of one of the two
 * keys, which one is unspecified, and not the same for all on a GPU.
 * With split_keys, which is aligned to 16 bytes, a key of ratio 128 is faster,
 * where few tokens of a call end a group, and has the same bits. It and
 * split_counts are one call's at a time: calls that may overlap have their own.
 * If they were not zeros, keys are of any value, or not written, until they are
 * zeros again, and a call may take half a second a key; none hangs.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable. Exact: but for exp2, whose last
 * bits differ by platform. c is within 1e-5 of the sum of |kv| * w over that of
 * w: some 20 roundings in either sum, exponents off by a few units of their
 * last place, and 2 factors; but a weight or factor below 2^-126 may count as
 * 0, or with few bits. So a code may be the next one and, where amax is
 * next to a power of two times 448 or 6, a scale. Where the scores of a column
 * are equal all weights are 1, and the key is the same on all platforms.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE, E_UNSUPPORTED (another ratio).
 * Source: vLLM compress_norm_rope_store. */
spmla_status spmla_kv_compress(spmla_ctx *ctx,
			       const spmla_kv_compress_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
