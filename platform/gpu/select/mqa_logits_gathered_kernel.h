/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered without matrix instructions: the scores of
 * mqa_logits_kernel.h, and so its bits, for keys of either layout that lie in a
 * row. Work is the same line of units, but a token's first unit begins at its
 * first key.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_kernel.h"

/* For all kernels of the operation. */
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
	S(uint32_t, fnuz)
SPMLA_KERNEL_SCALARS(mqa_logits_gathered)
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

/* -inf to the columns of the block's rows that no key has. */
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

/* The score of a key with this scale, out of its sum over heads. */
FN float
gathered_score(float scale, float sum)
{
	return scale == G_MINUS_INF ? scale : scale * sum;
}

/* The lane's four keys from `first` on. MXFP4 has no factor, but 1. */
FN void
gathered_load(PRIVATE mqa_keys *keys, GLOBAL const uint8_t *k,
	      GLOBAL const float *k_scales, uint32_t first, uint32_t end,
	      uint32_t fnuz, const uint32_t mxfp4)
{
	const uint32_t lane = g_item() % MQA_LANES;
	const uint32_t aligned = ((uint64_t)k & 3u) == 0;
	uint32_t b;

	keys->scale = mxfp4 ? 1.0f : 0.0f;
	if (mxfp4 && lane < MQA_KEYS && first + lane < end &&
	    ((GLOBAL const uint32_t *)k_scales)[first + lane] ==
		    SPMLA_INDEX_MISSING)
		keys->scale = G_MINUS_INF;
	UNROLL
	for (b = 0; b < MQA_KEYS; b++) {
		const uint32_t is_key = first + b < end;

		if (mxfp4) {
			mqa_load_mxfp4(
				keys->k[b],
				k + (uint64_t)(first + b) * (MQA_DIM / 2),
				(GLOBAL const uint32_t *)k_scales + first + b,
				is_key);
			continue;
		}
		mqa_load_key(keys->k[b],
			     is_key ? k + (uint64_t)(first + b) * MQA_DIM : k,
			     is_key, aligned, fnuz, 16);
		if (lane == b && is_key)
			keys->scale = k_scales[first + b];
	}
}

typedef struct gathered_job {
	SPMLA_KERNEL_FIELDS(mqa_logits_gathered)
	GLOBAL const uint32_t *q_scales; /* MXFP4 */
	LOCAL mqa_shared *shared;
} gathered_job;

/* The units of token t; the first block reports why there are none. */
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

/* A unit of token t, its keys from `first` on. `stage`: shared memory does not
 * hold the token's heads yet. */
FN void
gathered_unit(const PRIVATE gathered_job *job, uint32_t t, uint32_t first,
	      uint32_t stage, const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_gathered_scalars *s = &job->s;
	const uint64_t head = (uint64_t)t * s->heads;
	const uint32_t lane = g_item() % MQA_LANES;
	const uint32_t end = (uint32_t)job->ends[t];
	uint32_t key;
	float score;
	mqa_keys keys;

	gathered_load(&keys, job->k, job->k_scales, first + mqa_own(), end,
		      s->fnuz, mxfp4);
	score = mqa_score_all(
		&keys, job->q + head * (mxfp4 ? MQA_DIM / 2 : MQA_DIM),
		mxfp4 ? job->q_scales + head : job->q_scales, mxfp4,
		job->weights + (int64_t)t * s->weights_stride, s->heads, stage,
		first + mqa_subgroup() < end, &job->shared->heads);
	key = first + mqa_own() + lane;
	if (lane >= MQA_KEYS || key >= end)
		return;
	if (s->compressed)
		key -= (uint32_t)job->starts[t];
	g_put_real(job->logits, s->logits_bf16,
		   (int64_t)t * s->logits_stride + key,
		   gathered_score(keys.scale, score));
}

/* The kernel, of either layout. */
FN void
gathered_all(const PRIVATE gathered_job *job, const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_gathered_scalars *s = &job->s;
	LOCAL mqa_shared *shared = job->shared;
	uint32_t base;

	for (base = 0; base < s->tokens; base += MQA_ITEMS) {
		const uint32_t count = s->tokens - base < MQA_ITEMS
					       ? s->tokens - base
					       : MQA_ITEMS;
		mqa_place at = {0, 0, 0};
		uint32_t units = 0, left;
		uint64_t before, total, last;

		if (g_item() < count)
			units = gathered_units(job, base + g_item());
		before = g_scan_sum(units, MQA_ITEMS, shared->sums, &total);
		shared->ends[g_item()] = before + units;
		BARRIER();
		last = total * (g_block() + 1) / g_blocks();
		left = (uint32_t)(last - total * g_block() / g_blocks());
		for (; left; left--, at.rest--, at.first += MQA_UNIT) {
			const uint32_t stage = at.rest == 0;

			if (stage) {
				mqa_seek(&at, shared->ends, count, last - left);
				at.first +=
					(uint32_t)job->starts[base + at.token];
			}
			gathered_unit(job, base + at.token, at.first, stage,
				      mxfp4);
		}
	}
	if (s->clean)
		gathered_clean(job->starts, job->ends, job->logits,
			       s->logits_stride, s->tokens, s->keys, s->columns,
			       s->logits_bf16, MQA_ITEMS);
}

/* Two blocks an SM: for three, as ptxas would have it, registers spill. */
SPMLA_KERNEL_BLOCKS(mqa_logits_gathered, 2)
void
spmla_k_mqa_logits_gathered(SPMLA_KERNEL_ARGS(mqa_logits_gathered))
{
	LOCAL_ARRAY(mqa_shared, shared, 1);
	const gathered_job job = {SPMLA_KERNEL_VALUES(mqa_logits_gathered), 0,
				  shared};

	gathered_all(&job, 0);
}

SPMLA_KERNEL(mqa_logits_gathered_mxfp4)
void
spmla_k_mqa_logits_gathered_mxfp4(SPMLA_KERNEL_ARGS(mqa_logits_gathered_mxfp4))
{
	LOCAL_ARRAY(mqa_shared, shared, 1);
	const gathered_job job = {SPMLA_KERNEL_VALUES(mqa_logits_gathered),
				  q_scales, shared};

	gathered_all(&job, 1);
}

#endif
#endif
