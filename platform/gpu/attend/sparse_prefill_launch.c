/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: chooses a kernel and fills its arguments. Kernels with matrix
 * instructions need a device that has them. CUDA's also need rows that can be
 * read 16 bytes at a time; Hopper's need the same of queries and results.
 * Otherwise the portable kernel runs.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_sparse_prefill_tile_params) ==
			    sizeof(spmla_k_sparse_prefill_params),
		    "one struct binds both kernels");

/* What is aligned to 16 bytes: rows, or everything in a call. */
enum { ROWS_ALIGNED = 1, ALL_ALIGNED };

/* Kinds are how many values a row has. Rows are the heads of a block. Example:
 * on Hopper 128 heads of V3.2 are two blocks a token by wgmma, or 8 by mma.sync
 * if only the rows of kv are aligned. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_sparse_bf16_wgmma,
	 .kind = SPMLA_MLA_DIM,
	 .aligned = ALL_ALIGNED,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_bf16_mma,
	 .kind = SPMLA_MLA_DIM,
	 .aligned = ROWS_ALIGNED,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_bf16_wgmma_512,
	 .kind = SPMLA_V4_DIM,
	 .aligned = ALL_ALIGNED,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_bf16_mma_512,
	 .kind = SPMLA_V4_DIM,
	 .aligned = ROWS_ALIGNED,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_prefill_tile,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .most = G_TILE,
	 .rows = G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_prefill_tile_32,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .most = 2 * G_TILE,
	 .rows = 2 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_prefill_tile_64,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .rows = 4 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_prefill_tile_32,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .rows = 2 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_prefill, .rows = ATTEND_HEADS},
};

static uint64_t
blocks_of(const spmla_i_gpu_variant *by, const spmla_sparse_prefill_args *a)
{
	return (uint64_t)a->tokens * ((a->heads + by->rows - 1) / by->rows);
}

/* For the matrix kernels a row is a page of one entry. */
static spmla_status
launch_matrix(const spmla_i_gpu_queue *queue, const spmla_i_gpu_variant *by,
	      const spmla_sparse_prefill_args *a)
{
	spmla_k_sparse_bf16_wgmma_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q = a->q;
	p.slots = a->indices;
	p.topk_lens = a->indptr ? a->indptr : a->topk_lens;
	p.attn_sink = a->attn_sink;
	p.cache = (const uint8_t *)a->kv;
	p.out = a->out;
	p.lse = a->lse;
	p.max_logits = a->max_logits;
	p.s.q_token_stride = a->q_token_stride_elems;
	p.s.q_head_stride = a->q_head_stride_elems;
	p.s.slots_stride = a->indptr ? 0 : a->indices_stride_elems;
	p.s.out_token_stride = a->out_token_stride_elems;
	p.s.out_head_stride = a->out_head_stride_elems;
	p.s.lse_token_stride = a->lse_token_stride_elems;
	p.s.lse_head_stride = a->lse_head_stride_elems;
	p.s.page_stride_bytes = 2 * (uint64_t)a->kv_stride_elems;
	p.s.tokens = p.s.whole_tokens = a->tokens;
	p.s.heads = a->heads;
	p.s.topk = a->topk;
	p.s.page = spmla_i_gpu_divisor(1);
	p.s.extra_page = spmla_i_gpu_divisor(1);
	p.s.next_n = spmla_i_gpu_divisor(1);
	p.s.q_request_stride = a->q_token_stride_elems;
	p.s.out_request_stride = a->out_token_stride_elems;
	p.s.lse_request_stride = a->lse_token_stride_elems;
	p.s.pages = a->kv_rows;
	p.s.list_form = spmla_i_gpu_list_form(a->topk_lens, a->indptr);
	p.s.has_sink = a->attn_sink != NULL;
	p.s.has_lse = a->lse != NULL;
	p.s.has_max_logits = a->max_logits != NULL;
	p.s.base2 = a->lse_base == SPMLA_LSE_BASE2;
	p.s.empty_lse = spmla_i_gpu_empty_lse(a->empty_lse);
	p.s.lse_sink = a->lse_sink && a->attn_sink;
	p.s.lens_tokens = spmla_i_gpu_divisor(1);
	p.s.quiet = 1;
	p.s.scale = a->softmax_scale;
	return spmla_i_gpu_launch(queue, by->kernel, blocks_of(by, a), &p);
}

/* What of a call is aligned. Hopper's kernels also count a row's place in units
 * of 16 bytes in 32 bits, and have few bits for groups of heads. */
static uint32_t
aligned(const spmla_sparse_prefill_args *a)
{
	if (!spmla_i_gpu_aligned(a->kv, a->kv_stride_elems, 0, 2, 16))
		return 0;
	return spmla_i_gpu_aligned(a->q, a->q_token_stride_elems,
				   a->q_head_stride_elems, 2, 16) &&
			       spmla_i_gpu_aligned(
				       a->out, a->out_token_stride_elems,
				       a->out_head_stride_elems, 2, 16) &&
			       (uint64_t)a->kv_stride_elems / 8 <
				       0xffffff00u /
					       ((uint64_t)a->kv_rows + 1) &&
			       a->heads <= DECODE_GROUPS * DECODE_HEADS
		       ? ALL_ALIGNED
		       : ROWS_ALIGNED;
}

spmla_status
spmla_i_gpu_sparse_prefill(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_sparse_prefill_args *a = args;
	/* Rows can be read four values at a time. */
	const uint32_t tight =
		spmla_i_gpu_aligned(a->kv, a->kv_stride_elems, 0, 2, 8);
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->dim, a->heads, aligned(a));
	spmla_k_sparse_prefill_params p;

	if (by->aligned)
		return launch_matrix(queue, by, a);
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q = a->q;
	p.kv = a->kv;
	p.indices = a->indices;
	p.topk_lens = a->indptr ? a->indptr : a->topk_lens;
	p.attn_sink = a->attn_sink;
	p.out = a->out;
	p.max_logits = a->max_logits;
	p.lse = a->lse;
	p.s.q_token_stride = a->q_token_stride_elems;
	p.s.q_head_stride = a->q_head_stride_elems;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.out_token_stride = a->out_token_stride_elems;
	p.s.out_head_stride = a->out_head_stride_elems;
	p.s.lse_token_stride = a->lse_token_stride_elems;
	p.s.lse_head_stride = a->lse_head_stride_elems;
	p.s.tokens = a->tokens;
	p.s.heads = a->heads;
	p.s.dim = a->dim;
	p.s.topk = a->topk;
	p.s.kv_rows = a->kv_rows;
	p.s.layout = tight ? (uint32_t)SPMLA_LAYOUT_MLA_BF16
			   : (uint32_t)ATTEND_LOOSE_BF16;
	p.s.list_form = spmla_i_gpu_list_form(a->topk_lens, a->indptr);
	p.s.has_sink = a->attn_sink != NULL;
	p.s.has_max_logits = a->max_logits != NULL;
	p.s.has_lse = a->lse != NULL;
	p.s.base2 = a->lse_base == SPMLA_LSE_BASE2;
	p.s.empty_lse = spmla_i_gpu_empty_lse(a->empty_lse);
	p.s.lse_sink = a->lse_sink && a->attn_sink;
	p.s.lens_tokens = spmla_i_gpu_divisor(1);
	p.s.scale = a->softmax_scale;
	return spmla_i_gpu_launch(queue, by->kernel, blocks_of(by, a), &p);
}
