/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of few tokens: which calls take it, and by which kernel.
 */
#include "spmla/internal/few.h"
#include "spmla/platform/gpu/launch.h"

static const spmla_i_kernel kernels[SPMLA_I_FEW_COUNT] = {
	[SPMLA_I_FEW_V32_16] = SPMLA_KERNEL_sparse_decode_few_v32_16,
	[SPMLA_I_FEW_V32_32] = SPMLA_KERNEL_sparse_decode_few_v32_32,
	[SPMLA_I_FEW_V4_8] = SPMLA_KERNEL_sparse_decode_few_v4_8,
	[SPMLA_I_FEW_V4_16] = SPMLA_KERNEL_sparse_decode_few_v4_16,
	[SPMLA_I_FEW_LONG_16] = SPMLA_KERNEL_sparse_decode_few_long_16,
	[SPMLA_I_FEW_LONG_32] = SPMLA_KERNEL_sparse_decode_few_long_32,
};

/* Whether queries can be read, and results written, 16 bytes at a time. */
static uint32_t
is_aligned(const spmla_sparse_decode_args *a)
{
	const int64_t q = a->next_n ? a->q_request_stride_elems : 0;
	const int64_t out = a->next_n ? a->out_request_stride_elems : 0;

	return SPMLA_I_PTR(a->workspace) % 16 == 0 && q % 8 == 0 &&
	       out % 8 == 0 &&
	       spmla_i_gpu_aligned(a->q, a->q_token_stride_elems,
				   a->q_head_stride_elems, 2, 16) &&
	       spmla_i_gpu_aligned(a->out, a->out_token_stride_elems,
				   a->out_head_stride_elems, 2, 16);
}

spmla_status
spmla_i_gpu_decode_few(const spmla_i_gpu_queue *queue,
		       const spmla_sparse_decode_args *a,
		       const spmla_k_sparse_decode_params *p, uint32_t *does)
{
	const uint32_t way =
		spmla_i_few_choose(&queue->ctx->plan.device, a->cache.layout,
				   a->tokens, a->heads, spmla_i_few_entries(a));
	spmla_k_sparse_decode_few_v32_16_params few;
	uint64_t blocks;

	*does = 0;
	if (!a->workspace || a->parts || way == SPMLA_I_FEW_COUNT ||
	    queue->ctx->plan.config.flags & SPMLA_CONFIG_BATCH_INVARIANT ||
	    a->workspace_bytes / 4 <
		    spmla_i_few_words(way, a->tokens, a->heads) ||
	    !is_aligned(a))
		return SPMLA_OK;
	blocks = spmla_i_few_blocks(way, a->tokens, a->heads);
	if (queue->resident_blocks[kernels[way]] < blocks)
		return SPMLA_OK;
	*does = 1;
	memset(&few, 0, sizeof few);
	/* The same pointers and scalars, and then more of both. */
	memcpy(&few, p, offsetof(spmla_k_sparse_decode_params, s));
	memcpy(&few.s, &p->s, sizeof p->s);
	few.workspace = a->workspace;
	few.s.entries = a->indptr ? a->longest : a->topk;
	if (a->extra_topk)
		few.s.extra_entries =
			a->extra_indptr ? a->extra_longest : a->extra_topk;
	return spmla_i_gpu_launch(queue, kernels[way], blocks, &few);
}
