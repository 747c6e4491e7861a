/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of mqa_logits_gathered share: their arguments, the keys that
 * a token sees, and the columns without a key.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_DEVICE_H

#include "spmla/platform/gpu/select/mqa_logits_device.h"

#define SPMLA_K_mqa_logits_gathered(P, S) \
	SPMLA_K_FAULT(P)                  \
	P(const uint8_t, q)               \
	P(const float, weights)           \
	P(const uint8_t, k)               \
	P(const float, k_scales)          \
	P(const int32_t, starts)          \
	P(const int32_t, ends)            \
	P(float, logits)                  \
	S(int64_t, weights_stride)        \
	S(int64_t, logits_stride)         \
	S(uint32_t, first_token)          \
	S(uint32_t, tokens)               \
	S(uint32_t, heads)                \
	S(uint32_t, keys)                 \
	S(uint32_t, columns)              \
	S(uint32_t, clean)                \
	S(uint32_t, compressed)           \
	S(uint32_t, logits_bf16)          \
	S(uint32_t, fnuz)                 \
	S(uint32_t, q_fnuz)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered)

/* Kernels of INDEX_MXFP4 have the scales of the queries too. */
#define SPMLA_K_mqa_logits_gathered_mxfp4(P, S) \
	P(const uint32_t, q_scales)             \
	SPMLA_K_mqa_logits_gathered(P, S)
typedef spmla_k_mqa_logits_gathered_scalars
	spmla_k_mqa_logits_gathered_mxfp4_scalars;

#ifdef SPMLA_GPU_KERNELS

/* Keys [first, end) of a token; a bad one has none. */
typedef struct gathered_row {
	uint32_t first;
	uint32_t end;
	uint32_t fault;
} gathered_row;

FN gathered_row
gathered_row_of(GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
		uint32_t keys, uint32_t columns, uint32_t compressed,
		uint32_t t)
{
	const int32_t start = starts[t], end = ends[t];
	gathered_row row;

	row.first = row.end = row.fault = 0;
	if (start < 0 || (uint32_t)start > keys || end < 0 ||
	    (uint32_t)end > keys) {
		row.fault = G_FAULT_INDEX;
	} else if (start < end && compressed &&
		   (uint32_t)(end - start) > columns) {
		row.fault = G_FAULT_LOGITS;
	} else if (start < end) {
		row.first = (uint32_t)start;
		row.end = (uint32_t)end;
	}
	return row;
}

/* Writes -inf to those columns of the block's rows that have no key. */
FN void
gathered_clean(GLOBAL const int32_t *starts, GLOBAL const int32_t *ends,
	       GLOBAL float *logits, int64_t stride, uint32_t tokens,
	       uint32_t keys, uint32_t columns, uint32_t bf16, uint32_t items)
{
	uint32_t t, i;

	for (t = g_block(); t < tokens; t += g_blocks()) {
		const gathered_row row =
			gathered_row_of(starts, ends, keys, columns, 0, t);
		const int64_t to = (int64_t)t * stride;

		for (i = g_item(); i < columns; i += items)
			if (i < row.first || i >= row.end)
				g_put_real(logits, bf16, to + i, G_MINUS_INF);
	}
}

/* The score of a key: its sum over heads times `scale`, or -inf if that is
 * -inf. */
FN float
gathered_score(float scale, float sum)
{
	return scale == G_MINUS_INF ? scale : scale * sum;
}

/* The arguments of the kernels. */
typedef struct gathered_job {
	SPMLA_KERNEL_FIELDS(mqa_logits_gathered)
	GLOBAL const uint32_t *q_scales; /* MXFP4 */
	LOCAL struct mqa_shared *shared;
} gathered_job;

/* How many units token t has. The first block reports its fault, if any. */
FN uint32_t
gathered_units(const PRIVATE gathered_job *job, uint32_t t)
{
	const gathered_row row =
		gathered_row_of(job->starts, job->ends, job->s.keys,
				job->s.columns, job->s.compressed, t);

	if (row.fault && g_block() == 0)
		g_fault(job->fault_state, job->fault_status, t, row.fault);
	return (row.end - row.first + MQA_UNIT - 1) / MQA_UNIT;
}

#endif
#endif
