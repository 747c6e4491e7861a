/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: weighted RMS norm of two sets of rows in one launch: V4's low-rank
 * queries and its keys, of different widths.
 */
#ifndef SPMLA_OPS_RMS_NORMS_H
#define SPMLA_OPS_RMS_NORMS_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPMLA_RMS_NORMS_WIDTH_UNIT = 8, SPMLA_RMS_NORMS_MAX_WIDTH = 4096 };

typedef struct spmla_rms_norms_args {
	uint32_t struct_bytes;
	uint32_t q_rows;   /* < 2^31; 0: none, no other field of q is read */
	uint32_t q_width;  /* multiple of 8, 8..4096; V4: 1024 or 1536 */
	uint32_t kv_rows;  /* as q_rows */
	uint32_t kv_width; /* as q_width; V4: 512 */
	float norm_eps;    /* of both, > 0, <= 2^126; 1e-6 in V4 */
	const uint16_t *q; /* bf16 [q_rows][q_width] */
	int64_t q_stride_elems;      /* >= q_width */
	const uint16_t *q_weight;    /* bf16 [q_width] */
	uint16_t *q_out;             /* bf16 [q_rows][q_width] */
	int64_t q_out_stride_elems;  /* >= q_width */
	const uint16_t *kv;          /* bf16 [kv_rows][kv_width] */
	int64_t kv_stride_elems;     /* >= kv_width */
	const uint16_t *kv_weight;   /* bf16 [kv_width] */
	uint16_t *kv_out;            /* bf16 [kv_rows][kv_width] */
	int64_t kv_out_stride_elems; /* >= kv_width */
} spmla_rms_norms_args;

/* For each row, in f32:
 *   r = 1 / sqrt(sum of x * x / width + norm_eps), quotients and root exact
 *   out = bf16(x * r * weight), from the left, rounded once; a NaN is 0x7fc0
 * The sum runs in 128 lanes: lane l adds the values v with v / 8 % 128 = l in
 * their order. Each 16 neighbouring lanes are summed by the tree 8, 4, 2, 1,
 * then the eight sums by the tree 4, 2, 1. Rows are independent of each other.
 * No rows in either set: nothing else is checked, nothing is enqueued.
 * Alias: q_out may be q, and kv_out may be kv, with the same stride (else
 * E_RANGE); otherwise none. Order: enqueues; capturable.
 * Exact: bit for bit on every backend. The source may use an approximate
 * reciprocal root; out then differs by one step of bf16.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM fused_q_kv_rmsnorm. */
spmla_status spmla_rms_norms(spmla_ctx *ctx, const spmla_rms_norms_args *args,
			     spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
