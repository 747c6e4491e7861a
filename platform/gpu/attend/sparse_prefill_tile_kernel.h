/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill by products of tiles, on AMD's and Intel's GPUs: the portable
 * kernel with the inner loop of attend_tile_device.h.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_TILE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_TILE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_tile_device.h"
#include "spmla/platform/gpu/attend/sparse_prefill_device.h"

#define SPMLA_K_sparse_prefill_tile(P, S) SPMLA_K_sparse_prefill(P, S)
typedef spmla_k_sparse_prefill_scalars spmla_k_sparse_prefill_tile_scalars;

#ifdef SPMLA_GPU_KERNELS

/* The lse of any head, empty or not. With lse_sink its sum includes the sink.
 */
FN float
sparse_prefill_tile_lse(const PRIVATE attend_tile_state *st,
			const PRIVATE spmla_k_sparse_prefill_scalars *s,
			float sink)
{
	const float natural = attend_tile_lse(st, s->scale);

	if (!attend_tile_empty(st) && !s->base2 && !s->lse_sink)
		return natural;
	return decode_result_lse(attend_tile_empty(st), attend_tile_lse2(st),
				 natural, s->empty_lse, s->base2, s->lse_sink,
				 sink);
}

SPMLA_KERNEL(sparse_prefill_tile)
void
spmla_k_sparse_prefill_tile(SPMLA_KERNEL_ARGS(sparse_prefill_tile))
{
	LOCAL_ARRAY(attend_tile_local, shared, 1);
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t layout = attend_bf16_layout(s.layout);
	uint64_t work;

	for (work = g_block(); work < (uint64_t)s.tokens * groups;
	     work += g_blocks()) {
		const uint32_t t = (uint32_t)(work / groups);
		const uint32_t first_head =
			(uint32_t)(work % groups) * ATTEND_HEADS;
		const uint32_t head = first_head + g_item() / ATTEND_LANES;
		const uint32_t active = head < s.heads;
		const decode_list found =
			decode_list_of(topk_lens, s.list_form, s.lens_tokens,
				       s.indices_stride, s.topk, t);
		const float sink =
			s.has_sink && active ? attn_sink[head] : 0.0f;
		const int64_t at = (int64_t)t * s.lse_token_stride +
				   (int64_t)head * s.lse_head_stride;
		attend_tile_state st;
		uint32_t first, n;

		attend_tile_start(&st, shared,
				  q + (int64_t)t * s.q_token_stride +
					  (int64_t)head * s.q_head_stride,
				  s.dim, active, s.scale);
		if (found.faults && head == 0 && attend_lane() == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_INDEX);
		for (first = 0; first < found.len; first += n) {
			n = found.len - first < ATTEND_KEYS ? found.len - first
							    : ATTEND_KEYS;
			BARRIER(); /* all have read the last block */
			sparse_prefill_rows(&s, indices + found.first + first,
					    n, &shared->rows);
			attend_tile_block(&st, shared,
					  (GLOBAL const uint8_t *)kv, layout,
					  n);
		}
		attend_tile_divide(&st, shared,
				   s.has_sink ? g_sink_weight(sink, st.reach)
					      : 0.0f);
		attend_tile_out(&st,
				out + (int64_t)t * s.out_token_stride +
					(int64_t)first_head * s.out_head_stride,
				s.out_head_stride, s.heads - first_head);
		if (!active || attend_lane() != 0)
			continue;
		if (s.has_max_logits)
			max_logits[at] = attend_tile_empty(&st) ? G_MINUS_INF
					 : s.base2 ? st.largest * st.c
						   : st.largest * s.scale;
		if (s.has_lse)
			lse[at] = sparse_prefill_tile_lse(&st, &s, sink);
	}
}

#endif
#endif
