/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: from its args to its kernel, and the cut of a step at fixed
 * splits.
 */
#include "spmla/internal/splits.h"
#include "spmla/platform/gpu/launch.h"

/* What the parameters of both kernels have in common. */
#define FILL(p, queue, a)                                                    \
	do {                                                                 \
		memset(p, 0, sizeof *(p));                                   \
		SPMLA_I_GPU_FAULT(p, queue);                                 \
		(p)->topk_lens = (a)->indptr ? (a)->indptr : (a)->topk_lens; \
		(p)->extra_topk_lens = (a)->extra_indptr                     \
					       ? (a)->extra_indptr           \
					       : (a)->extra_topk_lens;       \
		(p)->tile_scheduler_metadata = (a)->tile_scheduler_metadata; \
		(p)->num_splits = (a)->num_splits;                           \
		(p)->s.batch = (a)->batch;                                   \
		(p)->s.first_request = (a)->first_request;                   \
		(p)->s.parts = (a)->parts;                                   \
		(p)->s.topk = (a)->topk;                                     \
		(p)->s.extra_topk = (a)->extra_topk;                         \
		(p)->s.lens_tokens = spmla_i_gpu_divisor(                    \
			(a)->lens_tokens ? (a)->lens_tokens : 1);            \
		(p)->s.list_form =                                           \
			spmla_i_gpu_list_form((a)->topk_lens, (a)->indptr);  \
		if ((a)->extra_topk)                                         \
			(p)->s.extra_list_form = spmla_i_gpu_list_form(      \
				(a)->extra_topk_lens, (a)->extra_indptr);    \
		(p)->s.old_rows = (a)->row_format == SPMLA_TILE_ROW_OLD;     \
	} while (0)

/* Kind 1: fixed splits. Example: 64 requests of 2048 keys with split_blocks 8
 * and 256 parts are 4 splits each, one part a split; without split_blocks, 132
 * parts and overhead_blocks 5 a part does 23 blocks' worth of work. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_tile_sched_fixed, .kind = 1},
	{.kernel = SPMLA_KERNEL_tile_sched},
};

static spmla_status
launch_fixed(const spmla_i_gpu_queue *queue, const spmla_tile_sched_args *a)
{
	spmla_k_tile_sched_fixed_params p;

	FILL(&p, queue, a);
	p.s.split_blocks = a->split_blocks;
	p.s.most_splits = a->batch ? a->parts / a->batch : 0;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_tile_sched_fixed, 1, &p);
}

spmla_status
spmla_i_gpu_fixed_splits(const spmla_i_gpu_queue *queue, uint32_t tokens)
{
	const spmla_ctx *ctx = queue->ctx;
	const uint32_t keys = spmla_i_cut_keys(&ctx->plan);
	const uint32_t most = spmla_i_fixed_splits(&ctx->plan, keys);
	spmla_k_tile_sched_fixed_params p;

	if (!most)
		return SPMLA_OK;
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.topk_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	p.tile_scheduler_metadata = ctx->buf[SPMLA_BUF_TILE_SCHEDULER_METADATA];
	p.num_splits = ctx->buf[SPMLA_BUF_NUM_SPLITS];
	p.s.batch = tokens;
	p.s.parts = tokens * most;
	p.s.split_blocks = spmla_i_split_blocks(&ctx->plan, keys);
	p.s.most_splits = most;
	p.s.topk = keys;
	p.s.contexts = 1;
	p.s.lens_tokens = spmla_i_gpu_divisor(1);
	p.s.list_form = DECODE_LENS;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_tile_sched_fixed, 1, &p);
}

spmla_status
spmla_i_gpu_tile_sched(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_tile_sched_args *a = args;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->split_blocks > 0, a->batch, 0);
	spmla_k_tile_sched_params p;

	if (by->kernel == SPMLA_KERNEL_tile_sched_fixed)
		return launch_fixed(queue, a);
	FILL(&p, queue, a);
	p.s.overhead = a->overhead_blocks;
	return spmla_i_gpu_launch(queue, by->kernel, 1, &p);
}
