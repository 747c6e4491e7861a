/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent reference of a DeepSeek V4 layer: keys of the window and
 * compressed ones, index queries, attention and what goes into the output
 * projection, in double. Tables, numbers and the selection are reference.h's,
 * whose conventions hold here.
 *
 * The one idea: an f32 evaluation of a compressed key is not exact, but each
 * value lies between two doubles, and rounding keeps their order. So a stored
 * code is right if it lies between the codes of both; then the stored key, and
 * no other, is what is attended to.
 */
#ifndef TESTS_REFERENCE_REFERENCE_V4_H
#define TESTS_REFERENCE_REFERENCE_V4_H

#include "tests/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	REF_V4_DIM = 512, /* 448, then 64 that are rotated; K and V */
	REF_V4_NOPE = 448,
	REF_V4_GROUP = 64,      /* values of a scale */
	REF_V4_ROW_BYTES = 576, /* 448 e4m3, 64 bf16 */
	REF_V4_SCALE_BYTES = 8, /* 7 ue8m0 and a 0 */
	REF_V4_MOST_ROWS = 128  /* of a compressed key */
};

/* A key before it is quantised: bf16 numbers that its values lie between. */
typedef struct ref_v4_key {
	uint32_t dim; /* 512, of an index key 128 */
	double low[REF_V4_DIM];
	double high[REF_V4_DIM];
} ref_v4_key;

/* A key of the window: kv bf16 [512], its last 64 rotated. Exact. */
void ref_v4_window_key(ref_v4_key *key, const uint16_t *kv,
		       const float *cos_sin);

/* What a compressed key is made of: row i gives kv[i], score[i] and ape[i],
 * each [dim], in the order of positions; kv NULL: before the first. */
typedef struct ref_v4_group {
	uint32_t rows;
	uint32_t dim;
	const float *kv[REF_V4_MOST_ROWS];
	const float *score[REF_V4_MOST_ROWS];
	const float *ape[REF_V4_MOST_ROWS];
	const float *norm_weight; /* [dim] */
	double norm_eps;
	const float *cos_sin; /* of the position that its last group starts */
} ref_v4_group;

/* In each column the mean of kv by softmax of score + ape, an f32 sum; then
 * RMS norm, the last 64 rotated. Off by what spmla_kv_compress promises. */
void ref_v4_compress(ref_v4_key *key, const ref_v4_group *g);

/* Whether what is stored is the key: values[576] and scales[8] of a V4_FP8 row;
 * codes[128] and a scale of INDEX_FP8; codes[64] and scales[4] of MXFP4. */
int ref_v4_check_row(const ref_v4_key *key, const uint8_t *values,
		     const uint8_t *scales, ref_miss *miss);
int ref_v4_check_index(const ref_v4_key *key, const uint8_t *codes,
		       double scale, ref_miss *miss);
int ref_v4_check_mxfp4(const ref_v4_key *key, const uint8_t *codes,
		       const uint8_t *scales, ref_miss *miss);

/* The same as numbers. MXFP4: values with their scales, scale 1. */
void ref_v4_read_row(double *row, const uint8_t *values, const uint8_t *scales);
void ref_v4_read_index(ref_index_key *key, const uint8_t *codes, double scale);
void ref_v4_read_mxfp4(ref_index_key *key, const uint8_t *codes,
		       const uint8_t *scales);

/* Whether got[512] is q[512] normed by its root mean square, its last 64
 * rotated, rounded to bf16; an f32 evaluation may be off by 2^-20. */
int ref_v4_check_query(const uint16_t *q, double norm_eps, const float *cos_sin,
		       const uint16_t *got, ref_miss *miss);

/* ref_index_q of V4: the last 64 are rotated, the scale is max(amax, 1e-4) /
 * 448 rounded up to a power of two. rule->floor and rope are not looked at.
 * mxfp4: values have their scales, and weights do not. */
void ref_v4_index_q(const uint16_t *q, uint64_t stride_elems,
		    const float *weights, const ref_index_q_rule *rule,
		    int mxfp4, double *values, double *out_weights);

/* Dense attention of one head, q bf16 [512], over rows[n][512]. probs has room
 * for n. sink as in ref_attend. */
void ref_v4_attend(const uint16_t *q, const double *rows, uint32_t n,
		   double softmax_scale, const float *sink, double *probs,
		   ref_attend_result *result);

/* A head's o[512] rotated back and quantised, each 128 by a scale of their own,
 * max(amax, 1e-10) / 448 rounded up to a power of two: the values again. */
void ref_v4_output(const uint16_t *o, const float *cos_sin, double *values);

#ifdef __cplusplus
}
#endif
#endif
