/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_prefill on the CPU: like sparse_decode, but the keys are dense bf16
 * rows, and an index outside them is no error. An indptr that leads outside is.
 */
#include <math.h>

#include "spmla/platform/cpu/attend/attend_cpu.h"

/* Packs the rows that count among n entries; returns their number. `left`
 * entries remain, n or more: those behind are only prefetched. */
static uint32_t
gather(const spmla_sparse_prefill_args *a, const int32_t *indices, uint32_t n,
       uint32_t left, const spmla_i_cpu_attend *w)
{
	uint32_t count = 0, i;

	for (i = 0; i < n; i++) {
		const int32_t ahead =
			left - i > SPMLA_I_CPU_ASK_AHEAD
				? indices[i + SPMLA_I_CPU_ASK_AHEAD]
				: -1;
		const uint16_t *row;

		if (ahead >= 0 && (uint32_t)ahead < a->kv_rows)
			spmla_i_cpu_ask(
				(const uint8_t *)(a->kv +
						  ahead * a->kv_stride_elems),
				a->dim * sizeof *a->kv);
		if (indices[i] < 0 || (uint32_t)indices[i] >= a->kv_rows)
			continue;
		row = a->kv + indices[i] * a->kv_stride_elems;
		w->kernels->load_bf16((const uint8_t *)row, a->dim,
				      spmla_i_cpu_attend_key(w, count));
		count++;
	}
	return count;
}

/* Writes one head's max_logits and lse. */
static void
put_lse(const spmla_sparse_prefill_args *a, const spmla_i_cpu_attend *w,
	uint32_t token, uint32_t head)
{
	const int64_t at = token * a->lse_token_stride_elems +
			   head * a->lse_head_stride_elems;
	const spmla_i_cpu_lse form = {a->lse_base, a->empty_lse,
				      a->lse_sink ? a->attn_sink : NULL};
	const float unit = a->lse_base == SPMLA_LSE_BASE2 ? w->c : w->scale;

	if (a->max_logits)
		a->max_logits[at] = spmla_i_cpu_attend_empty(w, head)
					    ? -INFINITY
					    : w->max[head] * unit;
	if (a->lse)
		a->lse[at] = spmla_i_cpu_attend_result_lse(w, head, &form);
}

static void
attend_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_sparse_prefill_args *a = args;
	const spmla_i_cpu_attend w = spmla_i_cpu_attend_open(
		ctx, worker, a->heads, a->dim, a->softmax_scale);
	const spmla_i_cpu_list list =
		spmla_i_cpu_list_of(a->indices, a->indices_stride_elems,
				    a->topk_lens, 1, a->indptr, a->topk, t);
	uint32_t h, first, n;

	if (list.is_bad)
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_INDEX);
	spmla_i_cpu_attend_start(
		&w, list.len > 0 ? a->q + t * a->q_token_stride_elems : NULL,
		a->q_head_stride_elems);
	for (first = 0; first < list.len; first += n) {
		n = spmla_i_cpu_block_len(first, list.len);
		spmla_i_cpu_attend_block(&w, gather(a, list.entries + first, n,
						    list.len - first, &w));
	}
	for (h = 0; h < a->heads; h++) {
		spmla_i_cpu_attend_out(&w, h,
				       a->attn_sink ? &a->attn_sink[h] : NULL,
				       a->out + t * a->out_token_stride_elems +
					       h * a->out_head_stride_elems);
		put_lse(a, &w, t, h);
	}
}

void
spmla_i_cpu_sparse_prefill(spmla_ctx *ctx, const void *args)
{
	const spmla_sparse_prefill_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, attend_token);
}
