/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: a subgroup a token, dealt out over the blocks first. Entries
 * are compacted by ballots alone: no barrier, so that the row may be made
 * anywhere.
 */
#ifndef SPMLA_PLATFORM_GPU_COMBINE_INDEX_H
#define SPMLA_PLATFORM_GPU_COMBINE_INDEX_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/window_gpu.h"

#define SPMLA_K_combine_index(P, S)        \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, req_id_per_token) \
	P(const int32_t, context_lens)     \
	P(const int32_t, seq_lens)         \
	P(const int32_t, gather_lens)      \
	P(const int32_t, topk_indices)     \
	P(const int32_t, image_spans)      \
	P(int32_t, indices)                \
	P(int32_t, lens)                   \
	S(int64_t, topk_stride)            \
	S(int64_t, indices_stride)         \
	S(uint32_t, tokens)                \
	S(uint32_t, requests)              \
	S(uint32_t, window)                \
	S(uint32_t, ratio)                 \
	S(uint32_t, topk)                  \
	S(uint32_t, width)                 \
	S(uint32_t, request_rows)          \
	S(uint32_t, window_row)            \
	S(uint32_t, max_image)             \
	S(uint32_t, has_images)
SPMLA_KERNEL_SCALARS(combine_index)

#ifdef SPMLA_GPU_KERNELS

enum { COMBINE_LOADS = 4 }; /* indices that an item asks for at a time */

/* What a token sees, as the CPU's sight. */
typedef struct combine_sight {
	uint32_t base;
	uint32_t whole;
	uint32_t taken;
	uint32_t first;
	uint32_t window;
	uint32_t fault;
} combine_sight;

FN combine_sight
combine_nothing(uint32_t fault)
{
	combine_sight k;

	k.base = 0;
	k.whole = 0;
	k.taken = 0;
	k.first = 0;
	k.window = 0;
	k.fault = fault;
	return k;
}

/* Of a token with n > 0 of request b < requests, in an image of [first, last].
 */
FN combine_sight
combine_sight_of(const PRIVATE spmla_k_combine_index_scalars *s, int32_t n,
		 uint32_t b, int32_t seq, int32_t gathered, int32_t first,
		 int32_t last)
{
	combine_sight k;
	uint32_t from;
	g_window w;

	if (n > seq || gathered < 0 || gathered > seq ||
	    (uint32_t)gathered > s->request_rows - s->window_row ||
	    seq - gathered >= n)
		return combine_nothing(G_FAULT_LENGTH);
	from = (uint32_t)(seq - gathered);
	w = g_window_of(n - 1, s->window, first, last, s->max_image, from,
			s->window + s->max_image);
	w.end = w.end < (uint32_t)seq ? w.end : (uint32_t)seq;
	k.base = b * s->request_rows;
	k.whole = (uint32_t)n / s->ratio;
	k.taken = k.whole < s->topk ? k.whole : s->topk;
	k.whole = k.whole < s->window_row ? k.whole : s->window_row;
	k.first = k.base + s->window_row + (w.start - from);
	k.window = w.end - w.start;
	k.fault = 0;
	return k;
}

/* The row by one subgroup; returns its length. `token` is for reports. */
FN uint32_t
combine_row(const PRIVATE g_reporter *to, const PRIVATE combine_sight *k,
	    uint32_t token, GLOBAL const int32_t *in, GLOBAL int32_t *out,
	    uint32_t width)
{
	const uint32_t lane = g_lane(), lanes = g_width();
	uint32_t len = 0, first, i, e;

	for (first = 0; first < k->taken; first += COMBINE_LOADS * lanes) {
		int32_t index[COMBINE_LOADS];

		UNROLL
		for (i = 0; i < COMBINE_LOADS; i++) {
			const uint32_t at = first + i * lanes + lane;

			index[i] = at < k->taken ? in[at] : -1;
		}
		UNROLL
		for (i = 0; i < COMBINE_LOADS; i++) {
			const uint32_t kept =
				index[i] >= 0 && (uint32_t)index[i] < k->whole;
			const uint64_t all = g_ballot(kept);
			const uint64_t below =
				all & (((uint64_t)1 << lane) - 1);

			if (kept)
				out[len + g_popcount64(below)] =
					(int32_t)(k->base + (uint32_t)index[i]);
			else if (index[i] >= 0)
				g_report(to, token, G_FAULT_INDEX);
			len += g_popcount64(all);
		}
	}
	for (e = lane; e < k->window; e += lanes)
		out[len + e] = (int32_t)(k->first + e);
	len += k->window;
	for (e = len + lane; e < width; e += lanes)
		out[e] = -1;
	return len;
}

SPMLA_KERNEL(combine_index)
{
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const uint32_t subgroups = SPMLA_ITEMS_combine_index / g_width();
	uint32_t t;

	for (t = g_item() / g_width() * g_blocks() + g_block(); t < s.tokens;
	     t += subgroups * g_blocks()) {
		const uint32_t b = (uint32_t)req_id_per_token[t];
		const int32_t n = context_lens[t];
		const uint32_t known = n > 0 && b < s.requests;
		combine_sight k = combine_nothing(n > 0 ? G_FAULT_ROW : 0);
		uint32_t len;

		if (known)
			k = combine_sight_of(
				&s, n, b, seq_lens[b], gather_lens[b],
				s.has_images ? image_spans[2 * (uint64_t)t] : 0,
				s.has_images ? image_spans[2 * (uint64_t)t + 1]
					     : -1);
		len = combine_row(
			&to, &k, t, topk_indices + (int64_t)t * s.topk_stride,
			indices + (int64_t)t * s.indices_stride, s.width);
		if (g_lane() != 0)
			continue;
		lens[t] = (int32_t)len;
		if (k.fault)
			g_report(&to, t, k.fault);
	}
}

#endif
#endif
