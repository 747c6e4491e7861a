/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norms: from its args to its kernel.
 */
#include "spmla/platform/gpu/launch.h"

/* Whether every octet of x, weight and out is aligned to 16 bytes. */
static uint32_t
is_wide(const void *x, int64_t x_stride, const void *weight, const void *out,
	int64_t out_stride)
{
	return spmla_i_gpu_aligned(x, x_stride, 0, 2, 16) &&
	       spmla_i_gpu_aligned(weight, 0, 0, 2, 16) &&
	       spmla_i_gpu_aligned(out, out_stride, 0, 2, 16);
}

spmla_status
spmla_i_gpu_rms_norms(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_rms_norms_args *a = args;
	spmla_k_rms_norms_params p;

	memset(&p, 0, sizeof p);
	p.q = a->q;
	p.q_weight = a->q_weight;
	p.q_out = a->q_out;
	p.kv = a->kv;
	p.kv_weight = a->kv_weight;
	p.kv_out = a->kv_out;
	p.s.q_stride = a->q_stride_elems;
	p.s.q_out_stride = a->q_out_stride_elems;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.kv_out_stride = a->kv_out_stride_elems;
	p.s.q_rows = a->q_rows;
	p.s.q_width = a->q_width;
	p.s.q_wide = is_wide(a->q, a->q_stride_elems, a->q_weight, a->q_out,
			     a->q_out_stride_elems);
	p.s.kv_rows = a->kv_rows;
	p.s.kv_width = a->kv_width;
	p.s.kv_wide = is_wide(a->kv, a->kv_stride_elems, a->kv_weight,
			      a->kv_out, a->kv_out_stride_elems);
	p.s.norm_eps = a->norm_eps;
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_rms_norms,
				  (uint64_t)a->q_rows + a->kv_rows, &p);
}
