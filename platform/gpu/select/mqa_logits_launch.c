/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits: chooses a kernel and fills its arguments. The choice depends on
 * nothing that differs between tokens, so a row's bits do not depend on the
 * other rows. A kernel that takes only some tokens is launched several times.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(MQA_WGMMA_STAGES % MQA_WGMMA_COPIERS == 0 &&
			    MQA_WGMMA_STAGES % MQA_WGMMA_SUMMERS == 0 &&
			    MQA_WGMMA_FEW_STAGES % MQA_WGMMA_COPIERS == 0 &&
			    MQA_WGMMA_FEW_STAGES % MQA_WGMMA_SUMMERS == 0,
		    "a stage has one copier and one summer");
SPMLA_STATIC_ASSERT((int)SPMLA_ITEMS_mqa_logits_wgmma == (int)MQA_WGMMA_ITEMS,
		    "a block has all of the kernel's roles");

SPMLA_STATIC_ASSERT(sizeof(spmla_k_mqa_logits_params) ==
				    sizeof(spmla_k_mqa_logits_mma_params) &&
			    sizeof(spmla_k_mqa_logits_params) ==
				    sizeof(spmla_k_mqa_logits_tile_params) &&
			    sizeof(spmla_k_mqa_logits_params) ==
				    sizeof(spmla_k_mqa_logits_wgmma_params),
		    "one struct binds all kernels");
SPMLA_STATIC_ASSERT(sizeof(spmla_k_mqa_logits_mxfp4_params) ==
			    offsetof(spmla_k_mqa_logits_mxfp4_params,
				     fault_state) +
				    sizeof(spmla_k_mqa_logits_params),
		    "MXFP4's has one more pointer in front");

static void
fill(spmla_k_mqa_logits_params *p, const spmla_i_gpu_queue *queue,
     const spmla_mqa_logits_args *a)
{
	memset(p, 0, sizeof *p);
	SPMLA_I_GPU_FAULT(p, queue);
	p->block_table = a->block_table;
	p->table_cols = a->table_cols;
	p->cache = a->cache.base;
	p->logits = a->logits;
	p->s.logits_elems = a->logits_elems;
	p->s.page_stride_bytes = a->cache.page_stride_bytes;
	p->s.rows = a->rows;
	p->s.columns = a->columns;
	p->s.stride = a->table_stride_elems;
	p->s.pool_pages = a->cache.pages;
	p->s.page_tokens = a->cache.entries_per_page;
	p->s.has_cols = a->table_cols != NULL;
	p->s.heads = a->heads;
	p->s.tiled = a->cache.layout == SPMLA_LAYOUT_INDEX_FP8_TILED;
	p->s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p->s.q_fnuz = a->q_encoding == SPMLA_E4M3_FNUZ;
	p->s.logits_bf16 = a->logits_dtype == SPMLA_REAL_BF16;
}

/* Tokens first .. first + tokens - 1. */
static void
fill_tokens(spmla_k_mqa_logits_params *p, const spmla_mqa_logits_args *a,
	    uint32_t first, uint32_t tokens)
{
	const uint64_t first_head = (uint64_t)first * a->heads;

	p->q = a->q + first_head * (a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4
					    ? SPMLA_INDEX_DIM / 2
					    : SPMLA_INDEX_DIM);
	p->weights = a->weights + first_head;
	p->token_row = a->token_row + first;
	p->context_lens = a->context_lens + first;
	if (a->row_starts) {
		p->row_starts = a->row_starts + first;
	} else {
		const uint64_t before = first * (uint64_t)a->row_stride_elems;

		p->s.row_stride = a->row_stride_elems;
		p->logits = (float *)a->logits + before;
		p->s.logits_elems =
			a->logits_elems > before ? a->logits_elems - before : 0;
	}
	p->s.first_token = first;
	p->s.tokens = tokens;
}

/* One launch, for tokens that are filled in. */
static spmla_status
launch(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
       const spmla_mqa_logits_args *a, const spmla_k_mqa_logits_params *p)
{
	const size_t at =
		offsetof(spmla_k_mqa_logits_mxfp4_params, fault_state);
	spmla_k_mqa_logits_mxfp4_params all;

	if (a->cache.layout != SPMLA_LAYOUT_INDEX_MXFP4)
		return spmla_i_gpu_launch(queue, kernel, UINT32_MAX, p);
	all.q_scales = (const uint32_t *)a->q_scales +
		       (size_t)p->s.first_token * a->heads;
	memcpy((char *)&all + at, p, sizeof *p);
	return spmla_i_gpu_launch(queue, kernel, UINT32_MAX, &all);
}

/* Kinds: layouts, with OTHER for scores of bf16 or codes in FNUZ, and with ODD
 * for pages that do not begin at multiples of 16 bytes. Sizes: heads. Rows: the
 * most tokens of a launch; with OTHER or ODD one launch takes all. Example:
 * 5000 tokens with 64 heads and FP8 keys are three launches by wgmma on Hopper,
 * of 2048, 2048 and 904 tokens. */
enum { OTHER = 0x100, ODD = 0x200 };

static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_mqa_logits_wgmma,
	 .kind = SPMLA_LAYOUT_INDEX_FP8,
	 .most = MQA_WGMMA_HEADS,
	 .rows = MQA_WGMMA_TOKENS},
	{.kernel = SPMLA_KERNEL_mqa_logits_mma,
	 .kind = SPMLA_LAYOUT_INDEX_FP8,
	 .most = MQA_MMA_HEADS,
	 .rows = MQA_MMA_TOKENS},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4_mma,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4,
	 .most = MQA_MMA_HEADS,
	 .rows = MQA_MMA_TOKENS},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4_tile,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4_tile,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4 | OTHER,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4 | OTHER,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_mxfp4,
	 .kind = SPMLA_LAYOUT_INDEX_MXFP4 | ODD,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_tile,
	 .kind = SPMLA_LAYOUT_INDEX_FP8,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_tile,
	 .kind = SPMLA_LAYOUT_INDEX_FP8 | OTHER,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_tile,
	 .kind = SPMLA_LAYOUT_INDEX_FP8_TILED,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_tile,
	 .kind = SPMLA_LAYOUT_INDEX_FP8_TILED | OTHER,
	 .most = MQA_TILE_HEADS,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits, .rows = UINT32_MAX},
};

static const spmla_i_gpu_variant *
choose(const spmla_i_gpu_queue *queue, uint32_t kind, uint32_t heads)
{
	return spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				  kind, heads, 0);
}

static uint32_t
other_of(uint32_t logits_dtype, uint32_t q_encoding, uint32_t k_encoding)
{
	return logits_dtype == SPMLA_REAL_F32 && !q_encoding && !k_encoding
		       ? 0
		       : OTHER;
}

spmla_i_kernel
spmla_i_gpu_mqa_logits_kernel(const spmla_i_gpu_queue *queue, uint32_t layout,
			      uint32_t heads, uint32_t logits_dtype,
			      uint32_t q_encoding, uint32_t k_encoding)
{
	const uint32_t other = other_of(logits_dtype, q_encoding, k_encoding);

	return choose(queue, layout | other, heads)->kernel;
}

spmla_status
spmla_i_gpu_mqa_logits(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_mqa_logits_args *a = args;
	const uint32_t other =
		a->cache.page_stride_bytes % SPMLA_PAGE_STRIDE_ALIGN
			? ODD
			: other_of(a->logits_dtype, a->q_encoding,
				   a->cache.encoding);
	const spmla_i_gpu_variant *by =
		choose(queue, a->cache.layout | other, a->heads);
	spmla_k_mqa_logits_params p;
	spmla_status s = SPMLA_OK;
	uint32_t first, n;

	fill(&p, queue, a);
	for (first = 0; s == SPMLA_OK && first < a->tokens; first += n) {
		n = a->tokens - first < by->rows ? a->tokens - first : by->rows;
		fill_tokens(&p, a, first, n);
		s = launch(queue, by->kernel, a, &p);
	}
	return s;
}
