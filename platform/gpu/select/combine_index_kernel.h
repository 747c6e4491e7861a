/* SPDX-License-Identifier: Apache-2.0
 *
 * combine_index: one subgroup for each token, without a barrier. Tokens go to
 * different blocks first. A token's time is round trips to memory, so there are
 * only two. The first loads what the token's keys depend on, and the lengths of
 * the first requests before the token's own request is known. The second loads
 * its top-k. Usually every entry of the top-k counts and keeps its place. From
 * the first entry that does not count, ballots find the places.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_COMBINE_INDEX_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_COMBINE_INDEX_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/select/window_device.h"
#include "spmla/platform/gpu/step/fault_device.h"

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

enum {
	COMBINE_LOADS = 16,  /* indices that a thread asks for at a time, */
	COMBINE_BALLOTS = 4, /* where they may not all count, */
	COMBINE_STORES = 4   /* and what else it writes */
};

/* What a token sees; as in combine_index_cpu.c. */
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

/* What a token of context n > 0 and request b < requests sees; it is in image
 * [first, last]. */
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

/* Copies the top-k as long as all of a step's indices count; returns how far.
 * By all of the subgroup together. */
FN uint32_t
combine_whole(const PRIVATE combine_sight *k, GLOBAL const int32_t *in,
	      GLOBAL int32_t *out)
{
	const uint32_t width = g_width(), step = COMBINE_LOADS * width;
	uint32_t first, i;

	for (first = 0; k->taken - first >= step; first += step) {
		GLOBAL const int32_t *from = in + first + g_lane();
		GLOBAL int32_t *to = out + first + g_lane();
		uint32_t x[COMBINE_LOADS], most = 0;

		UNROLL
		for (i = 0; i < COMBINE_LOADS; i++)
			x[i] = (uint32_t)from[i * width];
		UNROLL
		for (i = 0; i < COMBINE_LOADS; i++)
			most = x[i] > most ? x[i] : most;
		if (g_ballot(most >= k->whole))
			break;
		UNROLL
		for (i = 0; i < COMBINE_LOADS; i++)
			to[i * width] = (int32_t)(k->base + x[i]);
	}
	return first;
}

/* Copies those indices of the top-k, from `first` on, that count; returns where
 * they end. *bad counts the indices that the lane has to report. The whole
 * subgroup calls it. */
FN uint32_t
combine_some(const PRIVATE combine_sight *k, GLOBAL const int32_t *in,
	     GLOBAL int32_t *out, uint32_t first, PRIVATE uint32_t *bad)
{
	const uint32_t lane = g_lane(), width = g_width();
	uint32_t len = first, i;

	for (; first < k->taken; first += COMBINE_BALLOTS * width) {
		uint32_t x[COMBINE_BALLOTS];

		UNROLL
		for (i = 0; i < COMBINE_BALLOTS; i++) {
			const uint32_t at = first + i * width + lane;

			x[i] = at < k->taken ? (uint32_t)in[at] : 0xffffffffu;
		}
		UNROLL
		for (i = 0; i < COMBINE_BALLOTS; i++) {
			const uint32_t kept = x[i] < k->whole;
			const uint64_t all = g_ballot(kept);
			const uint64_t below =
				all & (((uint64_t)1 << lane) - 1);

			if (kept)
				out[len + g_popcount64(below)] =
					(int32_t)(k->base + x[i]);
			else
				*bad += x[i] < 0x80000000u;
			len += g_popcount64(all);
		}
	}
	return len;
}

/* Writes out[e] = value + step * e for each e < n. */
FN void
combine_fill(GLOBAL int32_t *out, uint32_t n, uint32_t value, uint32_t step)
{
	const uint32_t width = g_width();
	uint32_t e, i;

	for (e = g_lane(); e < n; e += COMBINE_STORES * width) {
		GLOBAL int32_t *to = out + e;

		UNROLL
		for (i = 0; i < COMBINE_STORES; i++)
			if (i * width < n - e)
				to[i * width] =
					(int32_t)(value +
						  step * (e + i * width));
	}
}

SPMLA_KERNEL(combine_index)
void
spmla_k_combine_index(SPMLA_KERNEL_ARGS(combine_index))
{
	const uint32_t subgroups = SPMLA_ITEMS_combine_index / g_width();
	const uint32_t lane = g_lane();
	uint32_t t;

	for (t = g_item() / g_width() * g_blocks() + g_block(); t < s.tokens;
	     t += subgroups * g_blocks()) {
		const uint32_t b = (uint32_t)req_id_per_token[t];
		const int32_t n = context_lens[t];
		const uint32_t near = lane < s.requests;
		uint32_t seq = near ? (uint32_t)seq_lens[lane] : 0;
		uint32_t gathered = near ? (uint32_t)gather_lens[lane] : 0;
		const int32_t first =
			s.has_images ? image_spans[2 * (uint64_t)t] : 0;
		const int32_t last =
			s.has_images ? image_spans[2 * (uint64_t)t + 1] : -1;
		GLOBAL const int32_t *in =
			topk_indices + (int64_t)t * s.topk_stride;
		GLOBAL int32_t *out = indices + (int64_t)t * s.indices_stride;
		combine_sight k = combine_nothing(n > 0 ? G_FAULT_ROW : 0);
		uint32_t len, bad = 0;

		seq = g_broadcast(seq, b % g_width());
		gathered = g_broadcast(gathered, b % g_width());
		if (n > 0 && b < s.requests) {
			if (b >= g_width()) {
				seq = (uint32_t)seq_lens[b];
				gathered = (uint32_t)gather_lens[b];
			}
			k = combine_sight_of(&s, n, b, (int32_t)seq,
					     (int32_t)gathered, first, last);
		}
		len = combine_some(&k, in, out, combine_whole(&k, in, out),
				   &bad);
		combine_fill(out + len, k.window, k.first, 1);
		len += k.window;
		combine_fill(out + len, s.width - len, 0xffffffffu, 0);
		if (lane == 0) {
			lens[t] = (int32_t)len;
			bad += k.fault != 0;
		}
		for (; bad; bad--)
			g_fault(fault_state, fault_status, t,
				k.fault ? k.fault : (uint32_t)G_FAULT_INDEX);
	}
}

#endif
#endif
