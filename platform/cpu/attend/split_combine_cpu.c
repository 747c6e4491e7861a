/* SPDX-License-Identifier: Apache-2.0
 *
 * split_combine on the CPU. The hard idea is the empty split: its weight would
 * be exp2(-inf - g), a NaN where g is infinite too. So it is left out and never
 * read. A row with only such splits is 0 whatever its g and sink are.
 */
#include <math.h>

#include "spmla/platform/cpu/attend/attend_cpu.h"

enum { LATENT = SPMLA_MLA_LATENT, PIECE = 128 };

/* Computes g over rows [first, end) of a head. */
static float
log_sum(const spmla_split_combine_args *a, uint32_t head, uint32_t first,
	uint32_t end)
{
	float max = -INFINITY, sum = 0.0f;
	uint32_t r;

	for (r = first; r < end; r++) {
		const float x = a->split_lse[(uint64_t)r * a->heads + head];

		max = x > max ? x : max;
	}
	if (max == -INFINITY)
		max = 0.0f;
	for (r = first; r < end; r++)
		sum += exp2f(a->split_lse[(uint64_t)r * a->heads + head] - max);
	return sum == 0.0f ? INFINITY : log2f(sum) + max;
}

/* Writes a head's out in pieces, so that the sums fit the stack. */
static void
put_out(const spmla_split_combine_args *a, uint32_t head, uint32_t first,
	uint32_t end, float g, uint16_t *out)
{
	float sum[PIECE];
	uint32_t at, r, d;

	for (at = 0; at < LATENT; at += PIECE) {
		memset(sum, 0, sizeof sum);
		for (r = first; r < end; r++) {
			const uint64_t row = (uint64_t)r * a->heads + head;
			const float *o = a->split_out + row * LATENT + at;
			float weight;

			if (a->split_lse[row] == -INFINITY)
				continue;
			weight = exp2f(a->split_lse[row] - g);
			for (d = 0; d < PIECE; d++)
				sum[d] += weight * o[d];
		}
		for (d = 0; d < PIECE; d++)
			out[at + d] = spmla_i_f32_to_bf16(sum[d]);
	}
}

/* A head's lse from its g before the sink. */
static float
lse_of(const spmla_split_combine_args *a, uint32_t head, float g)
{
	if (g == INFINITY)
		return spmla_i_cpu_empty_lse(a->empty_lse);
	if (a->lse_sink && a->attn_sink)
		g = spmla_i_cpu_lse2_with_sink(g, a->attn_sink[head]);
	return a->lse_base == SPMLA_LSE_BASE2 ? g : g * SPMLA_I_LN_2;
}

static void
combine_token(const spmla_split_combine_args *a, uint32_t t, uint32_t first,
	      uint32_t end)
{
	const int64_t out_at =
		spmla_i_cpu_token_at(t, a->next_n, a->out_request_stride_elems,
				     a->out_token_stride_elems);
	const int64_t lse_at =
		spmla_i_cpu_token_at(t, a->next_n, a->lse_request_stride_elems,
				     a->lse_token_stride_elems);
	uint32_t h;

	for (h = 0; h < a->heads; h++) {
		float g = log_sum(a, h, first, end);

		if (a->lse)
			a->lse[lse_at + h * a->lse_head_stride_elems] =
				lse_of(a, h, g);
		if (a->attn_sink)
			g += log2f(1.0f +
				   exp2f(a->attn_sink[h] * SPMLA_I_LOG2_E - g));
		put_out(a, h, first, end, g,
			a->out + out_at + h * a->out_head_stride_elems);
	}
}

void
spmla_i_cpu_split_combine(spmla_ctx *ctx, const void *args)
{
	const spmla_split_combine_args *a = args;
	uint32_t t;

	for (t = a->whole_tokens; t < a->tokens; t++) {
		const int32_t *rows = a->num_splits + (t - a->whole_tokens);
		int64_t first = rows[0], end = rows[1];

		if (end - first == 1)
			continue;
		if (first < 0 || end < first || end > a->split_rows) {
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_INDEX);
			first = end = 0;
		}
		combine_token(a, t, (uint32_t)first, (uint32_t)end);
	}
}
