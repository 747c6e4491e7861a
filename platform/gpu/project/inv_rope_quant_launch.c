/* SPDX-License-Identifier: Apache-2.0
 *
 * inv_rope_quant: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_inv_rope_quant(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_inv_rope_quant_args *a = args;
	const uint32_t elem_bytes = a->quant == SPMLA_O_BF16 ? 2 : 1;
	spmla_k_inv_rope_quant_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.o = a->o;
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.cos_sin = a->cos_sin;
	p.out = a->out;
	p.scales = a->scales;
	p.s.o_token_stride = a->o_token_stride_elems;
	p.s.o_head_stride = a->o_head_stride_elems;
	p.s.out_token_stride = a->out_token_stride_elems;
	p.s.out_group_stride = a->out_group_stride_elems;
	p.s.scale_stride = a->scale_stride_elems;
	p.s.scale_group_stride = a->scale_group_stride_elems;
	p.s.tokens = a->tokens;
	p.s.groups = a->groups;
	p.s.heads_per_group = a->heads_per_group;
	p.s.bf16 = a->quant == SPMLA_O_BF16;
	p.s.packed = a->quant == SPMLA_O_FP8_PACKED;
	p.s.has_rope = a->rope_style != SPMLA_ROPE_NONE;
	p.s.neox = a->rope_style == SPMLA_ROPE_NEOX;
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.o_aligned = spmla_i_gpu_aligned(a->o, a->o_token_stride_elems,
					    a->o_head_stride_elems, 2, 16);
	p.s.out_aligned =
		spmla_i_gpu_aligned(a->out, a->out_token_stride_elems,
				    a->out_group_stride_elems, elem_bytes, 8);
	p.s.rope_form = spmla_i_gpu_reals(a->cos_sin, a->cos_sin_dtype);
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_inv_rope_quant,
		((uint64_t)(a->tokens - 1) / INV_ROPE_TOKENS + 1) *
			((a->groups * a->heads_per_group - 1) / INV_ROPE_HEADS +
			 1),
		&p);
}
