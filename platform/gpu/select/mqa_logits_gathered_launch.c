/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered: chooses a kernel and fills its arguments. As for
 * mqa_logits, the choice depends on nothing that differs between tokens. Both
 * operations give the same bits, except with Hopper's kernels, and except where
 * only one of the two uses matrix instructions. A kernel that takes only some
 * tokens is launched several times.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(
	sizeof(spmla_k_mqa_logits_gathered_params) ==
			sizeof(spmla_k_mqa_logits_gathered_mma_params) &&
		sizeof(spmla_k_mqa_logits_gathered_params) ==
			sizeof(spmla_k_mqa_logits_gathered_tile_params) &&
		sizeof(spmla_k_mqa_logits_gathered_params) ==
			sizeof(spmla_k_mqa_logits_gathered_wgmma_params),
	"one struct binds all kernels");
SPMLA_STATIC_ASSERT(sizeof(spmla_k_mqa_logits_gathered_mxfp4_params) ==
			    offsetof(spmla_k_mqa_logits_gathered_mxfp4_params,
				     fault_state) +
				    sizeof(spmla_k_mqa_logits_gathered_params),
		    "MXFP4's has one more pointer in front");

/* Kinds: the kernel that mqa_logits takes. Rows: the tokens of a launch.
 * Example: with MXFP4 keys mqa_logits takes mma.sync on Hopper; here such a
 * call takes the portable kernel, all tokens in one launch. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_wgmma,
	 .kind = SPMLA_KERNEL_mqa_logits_wgmma,
	 .rows = GATHERED_WGMMA_TOKENS},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_mma,
	 .kind = SPMLA_KERNEL_mqa_logits_mma,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_tile,
	 .kind = SPMLA_KERNEL_mqa_logits_tile,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_mxfp4_tile,
	 .kind = SPMLA_KERNEL_mqa_logits_mxfp4_tile,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_mxfp4,
	 .kind = SPMLA_KERNEL_mqa_logits_mxfp4_mma,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered_mxfp4,
	 .kind = SPMLA_KERNEL_mqa_logits_mxfp4,
	 .rows = UINT32_MAX},
	{.kernel = SPMLA_KERNEL_mqa_logits_gathered, .rows = UINT32_MAX},
};

/* Tokens first .. first + tokens - 1. */
static void
fill_tokens(spmla_k_mqa_logits_gathered_params *p,
	    const spmla_mqa_logits_gathered_args *a, uint32_t first,
	    uint32_t tokens)
{
	const int64_t logit_bytes = a->logits_dtype == SPMLA_REAL_BF16 ? 2 : 4;

	p->q = a->q + (uint64_t)first * a->heads * SPMLA_INDEX_DIM;
	p->weights = a->weights + first * a->weights_stride_elems;
	p->starts = a->starts + first;
	p->ends = a->ends + first;
	p->logits = (float *)((char *)a->logits +
			      first * a->logits_stride_elems * logit_bytes);
	p->s.first_token = first;
	p->s.tokens = tokens;
}

spmla_status
spmla_i_gpu_mqa_logits_gathered(const spmla_i_gpu_queue *queue,
				const void *args)
{
	const spmla_mqa_logits_gathered_args *a = args;
	const uint32_t mxfp4 = a->layout == SPMLA_LAYOUT_INDEX_MXFP4;
	const spmla_i_kernel kind = spmla_i_gpu_mqa_logits_kernel(
		queue, mxfp4 ? a->layout : SPMLA_LAYOUT_INDEX_FP8, a->heads,
		a->logits_dtype, a->q_encoding, a->k_encoding);
	const spmla_i_gpu_variant *by = spmla_i_gpu_choose(
		queue, variants, SPMLA_I_COUNT(variants), kind, a->heads, 0);
	const size_t at =
		offsetof(spmla_k_mqa_logits_gathered_mxfp4_params, fault_state);
	spmla_k_mqa_logits_gathered_mxfp4_params all;
	spmla_k_mqa_logits_gathered_params p;
	spmla_status s = SPMLA_OK;
	uint32_t first, n;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.k = a->k;
	p.k_scales = a->k_scales;
	p.s.weights_stride = a->weights_stride_elems;
	p.s.logits_stride = a->logits_stride_elems;
	p.s.heads = a->heads;
	p.s.keys = a->keys;
	p.s.columns = a->columns;
	p.s.clean = a->form == SPMLA_LOGITS_CLEAN;
	p.s.fnuz = a->k_encoding == SPMLA_E4M3_FNUZ;
	p.s.q_fnuz = a->q_encoding == SPMLA_E4M3_FNUZ;
	p.s.logits_bf16 = a->logits_dtype == SPMLA_REAL_BF16;
	p.s.compressed = a->form == SPMLA_LOGITS_COMPRESSED;
	if (mxfp4) {
		fill_tokens(&p, a, 0, a->tokens);
		all.q_scales = (const uint32_t *)a->q_scales;
		memcpy((char *)&all + at, &p, sizeof p);
		return spmla_i_gpu_launch(queue, by->kernel, UINT32_MAX, &all);
	}
	for (first = 0; s == SPMLA_OK && first < a->tokens; first += n) {
		n = a->tokens - first < by->rows ? a->tokens - first : by->rows;
		fill_tokens(&p, a, first, n);
		s = spmla_i_gpu_launch(queue, by->kernel, UINT32_MAX, &p);
	}
	return s;
}
