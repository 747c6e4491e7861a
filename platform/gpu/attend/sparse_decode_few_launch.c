/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode of few tokens: which calls use it, and which kernel they take.
 */
#include "spmla/internal/few.h"
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(SPMLA_ITEMS_sparse_decode_few_v32_64 == 32 * FEW_WARPS,
		    "all warps of FEW_WGMMA_HEADS have keys and 64 columns");
SPMLA_STATIC_ASSERT(SPMLA_ITEMS_sparse_decode_few_long_16 == 32 * (9 + 1) &&
			    SPMLA_ITEMS_sparse_decode_few_long_32 ==
				    32 * (9 + 1),
		    "few_warps says so of nine warps with keys");
SPMLA_STATIC_ASSERT(sizeof(spmla_k_sparse_decode_few_v32_16_params) ==
			    sizeof(spmla_k_sparse_decode_params),
		    "one struct binds all kernels");

SPMLA_STATIC_ASSERT(FEW_P_BYTES(0, 8, 16) <= 8 * FEW_KEYS * FEW_TAIL,
		    "P lies in the place of the tails");
SPMLA_STATIC_ASSERT(2 * (FEW_BYTES(0, 8, 16) + 1024) <= 228 * 1024,
		    "an SM of Hopper has room for two blocks of V32_16");

/* There is no list of variants as in sparse_decode_launch.c: the plan chooses
 * the kernel of a call, because it must know the workspace (few.h). */
static const spmla_i_kernel kernels[SPMLA_I_FEW_COUNT] = {
	[SPMLA_I_FEW_V32_16] = SPMLA_KERNEL_sparse_decode_few_v32_16,
	[SPMLA_I_FEW_V32_32] = SPMLA_KERNEL_sparse_decode_few_v32_32,
	[SPMLA_I_FEW_V32_64] = SPMLA_KERNEL_sparse_decode_few_v32_64,
	[SPMLA_I_FEW_V4_8] = SPMLA_KERNEL_sparse_decode_few_v4_8,
	[SPMLA_I_FEW_V4_16] = SPMLA_KERNEL_sparse_decode_few_v4_16,
	[SPMLA_I_FEW_V4_32] = SPMLA_KERNEL_sparse_decode_few_v4_32,
	[SPMLA_I_FEW_V4_64] = SPMLA_KERNEL_sparse_decode_few_v4_64,
	[SPMLA_I_FEW_LONG_16] = SPMLA_KERNEL_sparse_decode_few_long_16,
	[SPMLA_I_FEW_LONG_32] = SPMLA_KERNEL_sparse_decode_few_long_32,
};

spmla_status
spmla_i_gpu_decode_few(const spmla_i_gpu_queue *queue,
		       const spmla_sparse_decode_args *a,
		       const spmla_k_sparse_decode_params *p, uint32_t *does)
{
	const uint32_t way = spmla_i_few_takes(&queue->ctx->plan, a);
	spmla_k_sparse_decode_params few = *p;
	uint64_t blocks;

	*does = 0;
	if (way == SPMLA_I_FEW_COUNT)
		return SPMLA_OK;
	blocks = spmla_i_few_blocks(way, a->tokens, a->heads);
	/* V32_16 may have more blocks than run at the same time. Others would be
	 * slower then than what else there is. */
	if (queue->resident_blocks[kernels[way]] <
	    (way == SPMLA_I_FEW_V32_16 ? 1 : blocks))
		return SPMLA_OK;
	*does = 1;
	few.workspace = a->workspace;
	few.s.entries = a->indptr ? a->longest : a->topk;
	if (a->extra_topk)
		few.s.extra_entries =
			a->extra_indptr ? a->extra_longest : a->extra_topk;
	/* A block has one unit, so the launch has exactly this many. */
	return queue->launch(queue, kernels[way], (uint32_t)blocks, &few);
}
