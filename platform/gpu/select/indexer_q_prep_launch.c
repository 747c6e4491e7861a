/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_q_prep: from its args to one of its kernels.
 */
#include "spmla/platform/gpu/launch.h"

/* Kinds: formats. Rows: the heads of a block. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_indexer_q_prep_mxfp4,
	 .kind = SPMLA_INDEX_Q_MXFP4,
	 .rows = Q_PREP_HEADS},
	{.kernel = SPMLA_KERNEL_indexer_q_prep, .rows = Q_PREP_HEADS},
};

spmla_status
spmla_i_gpu_indexer_q_prep(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_indexer_q_prep_args *a = args;
	const uint32_t mxfp4 = a->q_format == SPMLA_INDEX_Q_MXFP4;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   a->q_format, a->heads, 0);
	spmla_k_indexer_q_prep_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q = a->q;
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.cos_sin = a->cos_sin;
	p.q_out = a->q_out;
	p.q_scales = (uint8_t *)a->q_scales;
	p.weights_out = a->weights_out;
	p.weights16 = a->weights;
	p.weights32 = a->weights;
	p.s.q_token_stride = a->q_token_stride_elems;
	p.s.q_head_stride = a->q_head_stride_elems;
	p.s.weights_stride = a->weights_stride_elems;
	p.s.tokens = a->tokens;
	p.s.heads = a->heads;
	p.s.has_rope = a->rope_style != SPMLA_ROPE_NONE;
	p.s.neox = a->rope_style == SPMLA_ROPE_NEOX;
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.rope_first = a->rope_part == SPMLA_ROPE_LAST
				 ? SPMLA_INDEX_DIM - SPMLA_INDEX_ROPE
				 : 0;
	p.s.least = a->scale_floor == SPMLA_Q_SCALE_V4 ? 1e-4f : 1e-10f;
	p.s.group_floor = a->scale_floor == SPMLA_Q_SCALE_GROUP;
	p.s.fnuz = a->q_encoding == SPMLA_E4M3_FNUZ;
	p.s.weights_f32 = a->weights_dtype == SPMLA_DTYPE_F32;
	p.s.softmax_scale = a->softmax_scale;
	p.s.head_scale = a->head_scale;
	p.s.rope_form = spmla_i_gpu_reals(a->cos_sin, a->cos_sin_dtype);
	p.s.wide = SPMLA_I_PTR(a->q) % 16 == 0 &&
		   a->q_token_stride_elems % 8 == 0 &&
		   a->q_head_stride_elems % 8 == 0 &&
		   SPMLA_I_PTR(a->q_out) % (mxfp4 ? 4 : 8) == 0 &&
		   p.s.rope_form == G_REALS_WIDE;
	return spmla_i_gpu_launch(
		queue, by->kernel,
		(uint64_t)a->tokens * ((a->heads - 1) / by->rows + 1), &p);
}
