/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill: a block of threads has 16 heads of a token; the rest is in
 * attend_device.h. An indptr that falls, or that leads outside, is a fault.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_KERNEL_H

#include "spmla/platform/gpu/attend/sparse_prefill_device.h"

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(sparse_prefill)
void
spmla_k_sparse_prefill(SPMLA_KERNEL_ARGS(sparse_prefill))
{
	LOCAL_ARRAY(attend_local, shared, 1);
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	uint64_t work;

	for (work = g_block(); work < (uint64_t)s.tokens * groups;
	     work += g_blocks()) {
		const uint32_t t = (uint32_t)(work / groups);
		const uint32_t head = (uint32_t)(work % groups) * ATTEND_HEADS +
				      g_item() / ATTEND_LANES;
		const uint32_t active = head < s.heads;
		const decode_list found =
			decode_list_of(topk_lens, s.list_form, s.lens_tokens,
				       s.indices_stride, s.topk, t);
		GLOBAL const int32_t *list = indices + found.first;
		const int64_t at = (int64_t)t * s.lse_token_stride +
				   (int64_t)head * s.lse_head_stride;
		attend_state st;
		uint32_t first, n;

		attend_start(&st,
			     q + (int64_t)t * s.q_token_stride +
				     (int64_t)head * s.q_head_stride,
			     s.dim, active, s.scale);
		if (found.faults && head == 0 && attend_lane() == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_INDEX);
		for (first = 0; first < found.len; first += n) {
			n = found.len - first < ATTEND_KEYS ? found.len - first
							    : ATTEND_KEYS;
			BARRIER(); /* all have read the last block */
			sparse_prefill_rows(
				&s, sparse_prefill_index(list + first, n),
				&shared->rows);
			attend_block(&st, shared, (GLOBAL const uint8_t *)kv,
				     attend_bf16_layout(s.layout), n);
		}
		if (!active)
			continue;
		attend_out(&st, s.has_sink, s.has_sink ? attn_sink[head] : 0.0f,
			   out + (int64_t)t * s.out_token_stride +
				   (int64_t)head * s.out_head_stride);
		if (attend_lane() != 0)
			continue;
		if (s.has_max_logits)
			max_logits[at] = attend_empty(&st) ? G_MINUS_INF
					 : s.base2         ? st.largest * st.c
						   : st.largest * s.scale;
		if (s.has_lse)
			lse[at] = attend_result_lse(
				&st, s.base2, s.empty_lse, s.scale, s.lse_sink,
				s.lse_sink ? attn_sink[head] : 0.0f);
	}
}

#endif
#endif
