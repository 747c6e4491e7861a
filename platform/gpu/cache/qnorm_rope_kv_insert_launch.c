/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

spmla_status
spmla_i_gpu_qnorm_rope_kv_insert(const spmla_i_gpu_queue *queue,
				 const void *args)
{
	const spmla_qnorm_rope_kv_insert_args *a = args;
	const uint64_t tiles =
		((uint64_t)a->padded_heads + V4_ROWS - 1) / V4_ROWS;
	spmla_k_qnorm_rope_kv_insert_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.q = a->q;
	p.q_out = a->q_out;
	p.kv = a->kv;
	p.slot_mapping = a->slot_mapping;
	p.positions = a->positions;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.cos_sin = a->cos_sin;
	p.cache = a->cache.base;
	p.s.q_token_stride = a->q_token_stride_elems;
	p.s.q_head_stride = a->q_head_stride_elems;
	p.s.out_token_stride = a->q_out_token_stride_elems;
	p.s.out_head_stride = a->q_out_head_stride_elems;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.tokens = a->tokens;
	p.s.kv_tokens = a->kv_tokens;
	p.s.heads = a->heads;
	p.s.padded_heads = a->padded_heads;
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.layout = a->cache.layout;
	p.s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p.s.page_entries = a->cache.entries_per_page;
	p.s.pages = a->cache.pages;
	p.s.wide_q = spmla_i_gpu_aligned(a->q, a->q_head_stride_elems,
					 a->q_token_stride_elems, 2, 16);
	p.s.wide_out = spmla_i_gpu_aligned(a->q_out, a->q_out_head_stride_elems,
					   a->q_out_token_stride_elems, 2, 16);
	p.s.wide_kv = spmla_i_gpu_aligned(a->kv, a->kv_stride_elems, 0, 2, 16);
	p.s.rope_form = spmla_i_gpu_reals(a->cos_sin, a->cos_sin_dtype);
	p.s.norm_eps = a->norm_eps;
	if (a->cache.layout == SPMLA_LAYOUT_V4_E4M3)
		p.s.kv_inverse = a->kv_scale_at ? 0.0f : 1.0f / a->kv_scale;
	p.scale_at = a->kv_scale_at;
	p.s.has_scale_at = a->kv_scale_at != NULL;
	return spmla_i_gpu_launch(
		queue, SPMLA_KERNEL_qnorm_rope_kv_insert,
		a->tokens * tiles + (a->kv_tokens + UINT64_C(7)) / V4_ROWS, &p);
}
