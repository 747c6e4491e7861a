/* SPDX-License-Identifier: Apache-2.0
 *
 * See attend_cpu.h. The hard idea: weights are rounded to bf16 relative to the
 * maximum of their own block and only then brought to the running maximum. So
 * the contribution of a block does not depend on the blocks before it, as in a
 * split kernel in which each block is a split.
 */
#include "spmla/platform/cpu/attend/attend_cpu.h"

#include <float.h>
#include <math.h>

spmla_i_cpu_attend
spmla_i_cpu_attend_open(const spmla_ctx *ctx, uint32_t worker, uint32_t heads,
			uint32_t dim, float softmax_scale)
{
	spmla_i_cpu_attend w;

	w.kernels = spmla_i_cpu_kernels_of(ctx);
	w.heads = heads;
	w.dim = dim;
	w.scale = softmax_scale;
	w.c = softmax_scale * SPMLA_I_LOG2_E;
	w.keys = spmla_i_cpu_attend_scratch(ctx, worker);
	w.q = w.keys + (uint64_t)SPMLA_I_CPU_BLOCK_KEYS * dim;
	w.o = w.q + (uint64_t)heads * dim;
	w.p = w.o + (uint64_t)heads * SPMLA_MLA_LATENT;
	w.max = w.p + (uint64_t)heads * SPMLA_I_CPU_BLOCK_KEYS;
	w.sum = w.max + heads;
	w.rescale = w.sum + heads;
	return w;
}

void
spmla_i_cpu_attend_start(const spmla_i_cpu_attend *w, const uint16_t *q,
			 int64_t q_head_stride_elems)
{
	uint32_t h;

	for (h = 0; h < w->heads; h++) {
		w->max[h] = -FLT_MAX;
		w->sum[h] = 0.0f;
		if (q)
			w->kernels->load_bf16(
				(const uint8_t *)(q + h * q_head_stride_elems),
				w->dim, w->q + (uint64_t)h * w->dim);
	}
	if (q)
		memset(w->o, 0,
		       (uint64_t)w->heads * SPMLA_MLA_LATENT * sizeof *w->o);
}

void
spmla_i_cpu_attend_block(const spmla_i_cpu_attend *w, uint32_t count)
{
	if (count > 0)
		w->kernels->attend_block(w, count);
}

/* The term that a sink adds to L, which is relative to `reach`, in log2 units.
 * Large scores overflow in log2 units, and a difference of two infinities is
 * undefined, so an infinite sink is handled alone. */
static float
sink_weight(float sink, float reach)
{
	const float x = sink * SPMLA_I_LOG2_E;

	return exp2f(isinf(x) ? x : x - reach);
}

void
spmla_i_cpu_attend_out(const spmla_i_cpu_attend *w, uint32_t head,
		       const float *sink, uint16_t *out)
{
	float total = w->sum[head];

	if (spmla_i_cpu_attend_empty(w, head)) {
		memset(out, 0, SPMLA_MLA_LATENT * sizeof *out);
		return;
	}
	if (sink)
		total += sink_weight(*sink, w->max[head] * w->c);
	w->kernels->attend_divide(w->o + (uint64_t)head * SPMLA_MLA_LATENT,
				  total, out);
}

void
spmla_i_cpu_attend_partial(const spmla_i_cpu_attend *w, uint32_t head,
			   float *out)
{
	const float *o = w->o + (uint64_t)head * SPMLA_MLA_LATENT;
	const float sum = w->sum[head];
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d++)
		out[d] = spmla_i_cpu_attend_empty(w, head) ? 0.0f : o[d] / sum;
}

float
spmla_i_cpu_attend_lse2(const spmla_i_cpu_attend *w, uint32_t head)
{
	return log2f(w->sum[head]) + w->max[head] * w->c;
}

float
spmla_i_cpu_attend_lse(const spmla_i_cpu_attend *w, uint32_t head)
{
	return log2f(w->sum[head]) * SPMLA_I_LN_2 + w->max[head] * w->scale;
}

float
spmla_i_cpu_lse2_with_sink(float lse2, float sink)
{
	const float x = sink * SPMLA_I_LOG2_E;
	const float most = lse2 > x ? lse2 : x;

	if (isinf(most))
		return most;
	return log2f(exp2f(lse2 - most) + exp2f(x - most)) + most;
}

float
spmla_i_cpu_empty_lse(uint32_t empty_lse)
{
	switch (empty_lse) {
	case SPMLA_EMPTY_LSE_PLUS_INF:
		return INFINITY;
	case SPMLA_EMPTY_LSE_MINUS_INF:
		return -INFINITY;
	default:
		return -1e30f;
	}
}

float
spmla_i_cpu_attend_result_lse(const spmla_i_cpu_attend *w, uint32_t head,
			      const spmla_i_cpu_lse *form)
{
	float lse2;

	if (spmla_i_cpu_attend_empty(w, head))
		return spmla_i_cpu_empty_lse(form->empty);
	if (!form->sinks && form->base == SPMLA_LSE_NATURAL)
		return spmla_i_cpu_attend_lse(w, head);
	lse2 = spmla_i_cpu_attend_lse2(w, head);
	if (form->sinks)
		lse2 = spmla_i_cpu_lse2_with_sink(lse2, form->sinks[head]);
	if (form->base == SPMLA_LSE_BASE2)
		return lse2;
	if (!isinf(lse2))
		return lse2 * SPMLA_I_LN_2;
	/* Scores near the end of f32 are beyond it in log2 units. */
	return form->sinks && isinf(form->sinks[head] * SPMLA_I_LOG2_E) &&
			       form->sinks[head] > 0
		       ? INFINITY
		       : spmla_i_cpu_attend_lse(w, head);
}
