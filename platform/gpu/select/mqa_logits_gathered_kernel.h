/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered without matrix instructions, for keys of either layout in
 * a dense buffer. It uses the scores of mqa_logits_kernel.h, so it gives the
 * same bits. The line of units is the same too, but a token's first unit begins
 * at its first key.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_device.h"
#include "spmla/platform/gpu/select/mqa_logits_kernel.h"

#ifdef SPMLA_GPU_KERNELS

/* Loads the lane's four keys from `first` on. With MXFP4 a key's scale is 1. */
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

/* Scores a unit of token t, the keys from `first` on. `stage`: the token's
 * heads are not in shared memory yet. */
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
		mxfp4 ? job->q_scales + head : job->q_scales, mxfp4, s->q_fnuz,
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
		const uint32_t t = base + g_item();
		mqa_line line =
			mqa_share(s->tokens - base,
				  t < s->tokens ? gathered_units(job, t) : 0,
				  shared->ends, shared->sums);

		for (; line.left; mqa_step(&line)) {
			const uint32_t stage = mqa_seek(&line, shared->ends);
			const uint32_t token = base + line.token;

			if (stage)
				line.first += (uint32_t)job->starts[token];
			gathered_unit(job, token, line.first, stage, mxfp4);
		}
	}
	if (s->clean)
		gathered_clean(job->starts, job->ends, job->logits,
			       s->logits_stride, s->tokens, s->keys, s->columns,
			       s->logits_bf16, MQA_ITEMS);
}

/* Two blocks per SM: ptxas would choose three, and then registers spill. */
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
