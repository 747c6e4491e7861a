/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: makes and stores the compressed key of each group of tokens that
 * is complete.
 */
#ifndef SPMLA_OPS_KV_COMPRESS_H
#define SPMLA_OPS_KV_COMPRESS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dim is 512 with STATE_1024 and STATE_512, 128 with STATE_256 and STATE_128. W
 * is the number in the layout's name. */
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
	float e4m3_scale;            /* V4_E4M3: the cache's; > 0, <= 2^126 */
	const void *positions;       /* int32 or int64 [tokens] */
	const int64_t *slot_mapping; /* [tokens], of cache; < 0: skip */
	const int32_t *token_row;    /* [tokens] */
	const int32_t *block_table;  /* [rows][table_stride_elems], of state */
	const int32_t *table_cols;   /* [rows] written columns; NULL: all */
	const void *norm_weight;     /* f32 or bf16 [dim] */
	const void *cos_sin; /* f32 or bf16 [cos_sin_rows][32 cos, 32 sin] */
	/* RING: the same tensors that compress_state_save gets in this step. */
	const void *kv;              /* f32 or bf16 [tokens][W] */
	const void *score;           /* f32 or bf16 [tokens][W] */
	int64_t kv_stride_elems;     /* >= W */
	int64_t score_stride_elems;  /* >= W */
	const float *ape;            /* [ratio][W] */
	const int32_t *context_lens; /* [tokens]; <= 0: no row; NULL: all are */
	/* STATE_1024 or STATE_256 (ratio 4), STATE_512 or STATE_128 (128) */
	spmla_cache state;
	/* V4_FP8, V4_BF16, V4_E4M3; dim 128: INDEX_FP8, INDEX_MXFP4 */
	spmla_cache cache;
	/* STATE_512 on a GPU: scratch with which several blocks make a key.
	 * Both or NULL. */
	uint32_t *split_keys;   /* [tokens][512], 0 before and after */
	uint32_t *split_counts; /* [tokens], 0 before and after */
	/* V4_E4M3: the address of e4m3_scale on the device. It is read when the
	 * operation runs, and not checked. NULL: e4m3_scale is used. */
	const float *e4m3_scale_at;
	uint32_t positions_dtype; /* spmla_int_dtype */
	uint32_t cos_sin_dtype;   /* spmla_real_dtype, as the next two */
	uint32_t norm_dtype;
	uint32_t kv_dtype; /* of kv and score */
} spmla_kv_compress_args;

/* Every complete group of tokens gives one key: a softmax-weighted mean of its
 * rows, column by column, then RMS norm, rope and quantisation.
 *
 * A token makes a key if it has a slot and its pos + 1 is a multiple of ratio.
 * The key is made of the n rows of its group, positions pos - n + 1 .. pos. At
 * ratio 128, n = 128. At ratio 4, n = 8: the older 4 rows give columns [0, dim)
 * of kv and of score, the newer 4 columns [dim, 2 dim). A position below 0 has
 * no row.
 *
 * 1. Weighted mean, in each column: c = (sum of kv * w) / (sum of w), w =
 *    exp2((score - m) * log2 e), m the largest score. Both sums are made in
 *    this order:
 *    - each 8 rows are added to 0, row after row, with weights relative to
 *      their own largest score, m8;
 *    - each result is multiplied by exp2((m8 - m) * log2 e);
 *    - at ratio 128 the 16 results are added by the tree 8, 4, 2, 1.
 *    A score of NaN or +inf, or only scores of -inf, make c NaN.
 * 2. Norm: y = (c * r) * norm_weight, r = 1 / sqrt(mean of c^2 + norm_eps). The
 *    sum of the mean runs in 16 lanes (lane l adds l, l + 16, .. to 0), then in
 *    the tree 8, 4, 2, 1.
 * 3. Rope: the last 64 values are rotated, interleaved, by row pos / ratio *
 *    ratio of cos_sin, unfused; then all values are rounded to bf16.
 * 4. Store.
 *    - V4_FP8: for each 64 of the first 448 values, s = the next power of two
 *      from max(amax, 1e-4) / 448 (NaN ignored), code = e4m3(y / s), and the
 *      byte of s; then a byte 0; and the 64 rope values.
 *    - INDEX_FP8: the same with one s for all 128 values, as f32.
 *    - INDEX_MXFP4: for each 32 values, s = the next power of two from
 *      max(amax, 6 * 2^-126) / 6, at most 2^127, code = e2m1(y / s), and the
 *      byte of s.
 *    - V4_BF16: y. V4_E4M3: e4m3(y / e4m3_scale).
 *    With cache.encoding FNUZ (V4_FP8, V4_E4M3, INDEX_FP8) codes are FNUZ. In
 *    scales that follow from amax 224 takes the place of 448.
 *
 * A NaN is 0x7fc0 as bf16 and 7 as e2m1, whatever its sign; an infinity is 6 of
 * its sign as e2m1. See spmla_e4m3 for both as e4m3.
 *
 * Rows. The row of a position is its entry of `state`. With RING, positions of
 * this call are read from kv and score + ape[p % ratio], not from `state`; the
 * bits are the same. Position p belongs to the call if token t - (pos - p) has
 * the same table row, position p and a context. So compress_state_save runs
 * before this operation with PAGED, after it with RING.
 *
 * Bad data skips the token: a slot past the cache (FAULT_SLOT), else a position
 * below 0 or a group outside cos_sin (FAULT_POSITION), a row outside the table
 * (FAULT_ROW). Reports name the token's row of the table, or the token if the
 * table has no such row. If a column of the group is not written or a page is
 * outside the state (FAULT_PAGE, once per token), y is 0: readers find a key of
 * zeros, not the bytes of an earlier key.
 * If a slot occurs twice in one call, each value and scale comes from one of
 * the two keys; which one is unspecified, and on a GPU it may differ within the
 * key.
 *
 * split_keys, aligned to 16 bytes, makes keys of STATE_512 faster where few of
 * a call's tokens end a group; the bits are the same. Overlapping calls need
 * buffers of their own. Buffers that are not 0 give wrong or missing keys until
 * they are 0 again; such a call may take half a second per key, but does not
 * hang.
 *
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * Exact: except exp2, whose last bits differ by platform. c is within 1e-5 of
 * (sum of |kv| * w) / (sum of w) (some 20 roundings in either sum, a few units
 * in the last place of an exponent, 2 factors). Weights and factors below
 * 2^-126 may flush. So a code may be off by one, and so may a scale whose amax
 * is next to a power of two times 448 or 6. If the scores of each column are
 * equal, every weight is 1: the key is then the same on all platforms.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE, E_UNSUPPORTED (another ratio).
 * Source: vLLM compress_norm_rope_store. */
spmla_status spmla_kv_compress(spmla_ctx *ctx,
			       const spmla_kv_compress_args *args,
			       spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
