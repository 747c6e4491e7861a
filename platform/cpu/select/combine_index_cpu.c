/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index on the CPU. The hard idea: the gathered rows of a request are
 * known before anything is written, so no row lies outside its own request,
 * however wrong lengths and indices are.
 */
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/select/window_cpu.h"

/* The rows that a token sees, all of its own request. */
typedef struct sight {
	uint32_t base;   /* the request's first row */
	uint32_t whole;  /* compressed entries that it may see */
	uint32_t taken;  /* columns of top-k that count */
	uint32_t first;  /* row of the window's first key */
	uint32_t window; /* its keys; 0: no token, or bad data */
} sight;

/* Whether the token's lengths fit the gathered rows. */
static int
fits(const spmla_combine_index_args *a, int32_t n, int32_t seq,
     int32_t gathered)
{
	return n <= seq && gathered >= 0 && gathered <= seq &&
	       (uint32_t)gathered <= a->request_rows - a->window_row &&
	       seq - gathered < n;
}

static sight
sight_of(spmla_ctx *ctx, const spmla_combine_index_args *a, uint32_t t)
{
	const uint32_t b = (uint32_t)a->req_id_per_token[t];
	const int32_t n = a->context_lens[t];
	const int32_t *span =
		a->image_spans ? a->image_spans + 2 * (uint64_t)t : NULL;
	uint32_t gathered_from;
	spmla_i_cpu_window w;
	sight s = {0, 0, 0, 0, 0};

	if (n <= 0)
		return s;
	if (b >= a->requests) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_ROW);
		return s;
	}
	if (!fits(a, n, a->seq_lens[b], a->gather_lens[b])) {
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_LENGTH);
		return s;
	}
	gathered_from = (uint32_t)(a->seq_lens[b] - a->gather_lens[b]);
	w = spmla_i_cpu_window_of(n - 1, a->window, span, a->max_image,
				  gathered_from,
				  a->window + (span ? a->max_image : 0));
	if (w.end > (uint32_t)a->seq_lens[b])
		w.end = (uint32_t)a->seq_lens[b];
	s.base = b * a->request_rows;
	s.whole = (uint32_t)n / a->ratio;
	s.taken = s.whole < a->topk ? s.whole : a->topk;
	if (s.whole > a->window_row)
		s.whole = a->window_row;
	s.first = s.base + a->window_row + (w.start - gathered_from);
	s.window = w.end - w.start;
	return s;
}

static void
one_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_combine_index_args *a = args;
	int32_t *out = a->indices + (int64_t)t * a->indices_stride_elems;
	const sight s = sight_of(ctx, a, t);
	uint32_t len = 0, k;

	(void)worker;
	for (k = 0; k < s.taken; k++) {
		const int32_t i =
			a->topk_indices[(int64_t)t * a->topk_stride_elems + k];

		if (i >= 0 && (uint32_t)i < s.whole)
			out[len++] = (int32_t)(s.base + (uint32_t)i);
		else if (i >= 0)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_INDEX);
	}
	for (k = 0; k < s.window; k++)
		out[len++] = (int32_t)(s.first + k);
	a->lens[t] = (int32_t)len;
	for (k = len; k < a->width; k++)
		out[k] = -1;
}

void
spmla_i_cpu_combine_index(spmla_ctx *ctx, const void *args)
{
	const spmla_combine_index_args *a = args;

	spmla_i_cpu_for(ctx, a, a->tokens, one_token);
}
