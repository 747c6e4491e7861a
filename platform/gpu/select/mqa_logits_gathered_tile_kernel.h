/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered by products of tiles: the scores of
 * mqa_logits_tile_kernel.h, and so its bits, for keys of INDEX_FP8 that lie in a
 * row. Work is the line of units of mqa_logits_gathered_kernel.h.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_GATHERED_TILE_KERNEL_H

#include "spmla/platform/gpu/select/mqa_logits_gathered_device.h"
#include "spmla/platform/gpu/select/mqa_logits_tile_kernel.h"

#define SPMLA_K_mqa_logits_gathered_tile(P, S) SPMLA_K_mqa_logits_gathered(P, S)
typedef spmla_k_mqa_logits_gathered_scalars
	spmla_k_mqa_logits_gathered_tile_scalars;

#ifdef SPMLA_GPU_KERNELS

/* A unit of token t, its keys from `first` on. `stage`: shared memory does not
 * hold the token's heads yet. Barriers. */
FN void
gathered_tile_unit(const PRIVATE gathered_job *job,
		   LOCAL mqa_tile_shared *shared, uint32_t t, uint32_t first,
		   uint32_t stage)
{
	const PRIVATE spmla_k_mqa_logits_gathered_scalars *s = &job->s;
	const uint32_t key = first + mqa_tile_own();
	const uint32_t is_key = key < (uint32_t)job->ends[t];
	uint32_t b[MQA_TILE_STEPS][G_TILE_WORDS];
	int64_t at = (int64_t)t * s->logits_stride + key;
	float sum;

	if (stage)
		mqa_tile_stage(job->q + (uint64_t)t * s->heads * MQA_DIM,
			       job->weights + (int64_t)t * s->weights_stride,
			       s->heads, shared);
	mqa_tile_load(b, is_key ? job->k + (uint64_t)key * MQA_DIM : job->k,
		      is_key, ((uint64_t)job->k & 15u) == 0, s->fnuz, 16);
	sum = mqa_tile_sum(b, shared, s->heads);
	if (!mqa_tile_writes() || !is_key)
		return;
	if (s->compressed)
		at -= job->starts[t];
	g_put_real(job->logits, s->logits_bf16, at,
		   gathered_score(job->k_scales[key], sum));
}

SPMLA_KERNEL(mqa_logits_gathered_tile)
void
spmla_k_mqa_logits_gathered_tile(SPMLA_KERNEL_ARGS(mqa_logits_gathered_tile))
{
	LOCAL_ARRAY(mqa_tile_shared, shared, 1);
	const gathered_job job = {SPMLA_KERNEL_VALUES(mqa_logits_gathered_tile),
				  0, 0};
	uint32_t base;

	for (base = 0; base < s.tokens; base += MQA_ITEMS) {
		const uint32_t count = s.tokens - base < MQA_ITEMS
					       ? s.tokens - base
					       : (uint32_t)MQA_ITEMS;
		mqa_place at = {0, 0, 0};
		uint32_t units = 0, left;
		uint64_t before, total, last;

		if (g_item() < count)
			units = gathered_units(&job, base + g_item());
		before = g_scan_sum(units, MQA_ITEMS, shared->sums, &total);
		shared->ends[g_item()] = before + units;
		BARRIER();
		last = total * (g_block() + 1) / g_blocks();
		left = (uint32_t)(last - total * g_block() / g_blocks());
		for (; left; left--, at.rest--, at.first += MQA_UNIT) {
			const uint32_t stage = at.rest == 0;

			if (stage) {
				mqa_seek(&at, shared->ends, count, last - left);
				at.first += (uint32_t)starts[base + at.token];
			}
			gathered_tile_unit(&job, shared, base + at.token,
					   at.first, stage);
		}
	}
	if (s.clean)
		gathered_clean(starts, ends, logits, s.logits_stride, s.tokens,
			       s.keys, s.columns, s.logits_bf16, MQA_ITEMS);
}

#endif
#endif
