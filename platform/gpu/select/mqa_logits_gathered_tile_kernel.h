/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered by products of tiles, for keys of either layout in a
 * dense buffer. It uses the scores of mqa_logits_tile_kernel.h, so it gives the
 * same bits. Its line of units is as in mqa_logits_gathered_kernel.h.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_TILE_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_device.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"

#define SPMLA_K_mqa_logits_gathered_tile(P, S) SPMLA_K_mqa_logits_gathered(P, S)
typedef spmla_k_mqa_logits_gathered_scalars
	spmla_k_mqa_logits_gathered_tile_scalars;
#define SPMLA_K_mqa_logits_gathered_mxfp4_tile(P, S) \
	SPMLA_K_mqa_logits_gathered_mxfp4(P, S)
typedef spmla_k_mqa_logits_gathered_scalars
	spmla_k_mqa_logits_gathered_mxfp4_tile_scalars;

#ifdef SPMLA_GPU_KERNELS

/* The scale of key n's score. With MXFP4 it is 1, or -inf for a missing key. */
FN float
gathered_tile_scale(GLOBAL const float *k_scales, uint32_t n,
		    const uint32_t mxfp4)
{
	if (!mxfp4)
		return k_scales[n];
	return ((GLOBAL const uint32_t *)k_scales)[n] == SPMLA_INDEX_MISSING
		       ? G_MINUS_INF
		       : 1.0f;
}

/* Scores a unit of token t, the keys from `first` on. `stage`: the token's
 * heads are not in shared memory yet. Has barriers. */
FN void
gathered_tile_unit(const PRIVATE gathered_job *job,
		   LOCAL mqa_tile_shared *shared, uint32_t t, uint32_t first,
		   uint32_t stage, const uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_gathered_scalars *s = &job->s;
	const uint32_t key = first + mqa_tile_own();
	const uint32_t is_key = key < (uint32_t)job->ends[t];
	const uint32_t aligned = ((uint64_t)job->k & 15u) == 0;
	const uint32_t key_bytes = mxfp4 ? MQA_DIM / 2 : MQA_DIM;
	const uint64_t head = (uint64_t)t * s->heads;
	GLOBAL const uint8_t *codes =
		is_key ? job->k + (uint64_t)key * key_bytes : job->k;
	uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS];
	int64_t at = (int64_t)t * s->logits_stride + key;
	float sum;

	if (stage)
		mqa_tile_stage(job->q + head * key_bytes,
			       mxfp4 ? job->q_scales + head : job->q_scales,
			       mxfp4, s->q_fnuz,
			       job->weights + (int64_t)t * s->weights_stride,
			       s->heads, shared);
	if (mxfp4)
		mqa_tile_load_mxfp4(
			b, codes, (GLOBAL const uint32_t *)job->k_scales + key,
			is_key, aligned);
	else
		mqa_tile_load(b, codes, is_key, aligned, s->fnuz, 16);
	sum = mqa_tile_sum(b, shared, s->heads);
	if (!mqa_tile_writes() || !is_key)
		return;
	if (s->compressed)
		at -= job->starts[t];
	g_put_real(
		job->logits, s->logits_bf16, at,
		gathered_score(gathered_tile_scale(job->k_scales, key, mxfp4),
			       sum));
}

/* The kernel, of either layout; `mxfp4` is a constant. */
FN void
gathered_tile_all(const PRIVATE gathered_job *job, const uint32_t mxfp4,
		  LOCAL mqa_tile_shared *shared)
{
	const PRIVATE spmla_k_mqa_logits_gathered_scalars *s = &job->s;
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
			gathered_tile_unit(job, shared, token, line.first,
					   stage, mxfp4);
		}
	}
	if (s->clean)
		gathered_clean(job->starts, job->ends, job->logits,
			       s->logits_stride, s->tokens, s->keys, s->columns,
			       s->logits_bf16, MQA_ITEMS);
}

SPMLA_KERNEL(mqa_logits_gathered_tile)
void
spmla_k_mqa_logits_gathered_tile(SPMLA_KERNEL_ARGS(mqa_logits_gathered_tile))
{
	LOCAL_ARRAY(mqa_tile_shared, shared, 1);
	const gathered_job job = {SPMLA_KERNEL_VALUES(mqa_logits_gathered_tile),
				  0, 0};

	gathered_tile_all(&job, 0, shared);
}

SPMLA_KERNEL(mqa_logits_gathered_mxfp4_tile)
void
spmla_k_mqa_logits_gathered_mxfp4_tile(
	SPMLA_KERNEL_ARGS(mqa_logits_gathered_mxfp4_tile))
{
	LOCAL_ARRAY(mqa_tile_shared, shared, 1);
	const gathered_job job = {SPMLA_KERNEL_VALUES(mqa_logits_gathered),
				  q_scales, 0};

	gathered_tile_all(&job, 1, shared);
}

#endif
#endif
