/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: from its args to one of its kernels.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_sparse_decode_mma_params) ==
				    sizeof(spmla_k_sparse_decode_params) &&
			    sizeof(spmla_k_sparse_decode_wgmma_params) ==
				    sizeof(spmla_k_sparse_decode_params),
		    "one struct binds all kernels");

static void
fill_extra(spmla_k_sparse_decode_params *p, const spmla_sparse_decode_args *a)
{
	/* Kernels divide by it before they look. */
	p->s.extra_page = spmla_i_gpu_divisor(1);
	if (a->extra_topk) {
		p->extra_slots = a->extra_slots;
		p->extra_topk_lens = a->extra_topk_lens;
		p->extra_cache = a->extra_cache.base;
		p->s.extra_slots_stride = a->extra_slots_stride_elems;
		p->s.extra_page_stride_bytes = a->extra_cache.page_stride_bytes;
		p->s.extra_topk = a->extra_topk;
		p->s.extra_page =
			spmla_i_gpu_divisor(a->extra_cache.entries_per_page);
		p->s.extra_pages = a->extra_cache.pages;
		p->s.has_extra_lens = a->extra_topk_lens != NULL;
	}
	if (a->parts) {
		p->tile_scheduler_metadata = a->tile_scheduler_metadata;
		p->num_splits = a->num_splits;
		p->split_out = a->split_out;
		p->split_lse = a->split_lse;
		p->s.parts = a->parts;
		p->s.split_rows = a->split_rows;
	}
}

static void
fill(spmla_k_sparse_decode_params *p, const spmla_i_gpu_queue *queue,
     const spmla_sparse_decode_args *a)
{
	memset(p, 0, sizeof *p);
	SPMLA_I_GPU_FAULT(p, queue);
	p->q = a->q;
	p->slots = a->slots;
	p->topk_lens = a->topk_lens;
	p->attn_sink = a->attn_sink;
	p->cache = a->cache.base;
	p->out = a->out;
	p->lse = a->lse;
	p->s.q_token_stride = a->q_token_stride_elems;
	p->s.q_head_stride = a->q_head_stride_elems;
	p->s.slots_stride = a->slots_stride_elems;
	p->s.out_token_stride = a->out_token_stride_elems;
	p->s.out_head_stride = a->out_head_stride_elems;
	p->s.lse_token_stride = a->lse_token_stride_elems;
	p->s.lse_head_stride = a->lse_head_stride_elems;
	p->s.page_stride_bytes = a->cache.page_stride_bytes;
	p->s.tokens = a->tokens;
	p->s.heads = a->heads;
	p->s.dim = a->cache.layout == SPMLA_LAYOUT_V4_FP8 ? SPMLA_V4_DIM
							  : SPMLA_MLA_DIM;
	p->s.layout = a->cache.layout;
	p->s.topk = a->topk;
	p->s.page = spmla_i_gpu_divisor(a->cache.entries_per_page);
	p->s.pages = a->cache.pages;
	p->s.has_lens = a->topk_lens != NULL;
	p->s.has_sink = a->attn_sink != NULL;
	p->s.has_lse = a->lse != NULL;
	p->s.empty_minus_inf = a->empty_lse == SPMLA_EMPTY_LSE_MINUS_INF;
	p->s.scale = a->softmax_scale;
	fill_extra(p, a);
}

/* A kernel, the layout that it reads, whether it is for small calls only, and
 * the heads that a block of it has. */
typedef struct choice {
	uint32_t layout, small, heads;
	spmla_i_kernel kernel;
} choice;

/* With parts, so many times 16 heads of a token are a small call: its blocks
 * are done sooner with 16 heads each than with 64. */
enum { SMALL_GROUPS = 16 };

/* Of no more than 16 heads every call is small; of more it is parts that may
 * make it so, as bits depend on them anyway. */
static uint32_t
is_small(const spmla_sparse_decode_args *a)
{
	const uint32_t groups =
		(a->heads + DECODE_MMA_FEW - 1) / DECODE_MMA_FEW;

	return groups == 1 ||
	       (a->parts && (uint64_t)a->tokens * groups <= SMALL_GROUPS);
}

/* The first of them that the device has, last the portable one, which all
 * have. */
static choice
choose(const spmla_i_gpu_queue *queue, const spmla_sparse_decode_args *a)
{
#define CHOICE(layout, small, heads, stem)                               \
	{                                                                \
		SPMLA_LAYOUT_##layout, small, heads, SPMLA_KERNEL_##stem \
	}
	static const choice choices[] = {
		CHOICE(FP8_DS_MLA, 1, DECODE_MMA_FEW, sparse_decode_mma_few),
		CHOICE(FP8_DS_MLA, 0, DECODE_HEADS, sparse_decode_wgmma),
		CHOICE(FP8_DS_MLA, 0, DECODE_HEADS, sparse_decode_mma),
		CHOICE(FP8_DS_MLA, 0, DECODE_MMA_FEW, sparse_decode_mma_few),
		CHOICE(V4_FP8, 1, DECODE_MMA_FEW, sparse_decode_mma_v4_few),
		CHOICE(V4_FP8, 0, DECODE_HEADS, sparse_decode_wgmma_v4),
		CHOICE(V4_FP8, 0, DECODE_HEADS, sparse_decode_mma_v4),
		CHOICE(V4_FP8, 0, DECODE_MMA_FEW, sparse_decode_mma_v4_few),
		CHOICE(MLA_BF16, 0, DECODE_HEADS, sparse_bf16_wgmma),
		CHOICE(MLA_BF16, 0, DECODE_MMA_FEW, sparse_bf16_mma),
	};
#undef CHOICE
	const uint32_t small = is_small(a);
	const choice portable = {a->cache.layout, 0, ATTEND_HEADS,
				 SPMLA_KERNEL_sparse_decode};
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(choices); i++)
		if (choices[i].layout == portable.layout &&
		    choices[i].small <= small &&
		    queue->resident_blocks[choices[i].kernel])
			return choices[i];
	return portable;
}

spmla_status
spmla_i_gpu_sparse_decode(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_sparse_decode_args *a = args;
	const choice by = choose(queue, a);
	const uint32_t groups = (a->heads + by.heads - 1) / by.heads;
	spmla_k_sparse_decode_params p;

	fill(&p, queue, a);
	return spmla_i_gpu_launch(
		queue, by.kernel,
		(uint64_t)(a->parts ? a->parts : a->tokens) * groups, &p);
}
