/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: a block a row. The hard idea is that of the CPU's: a monotone map from
 * f32 to uint32 makes the k-th largest score an integer that three histograms
 * (11, 11 and 10 bits) find exactly; one pass in index order then writes
 * everything above it and the first few equal to it where a running count of
 * (above, equal) says, so the output is ascending with no sort.
 */
#ifndef SPMLA_PLATFORM_GPU_TOPK_H
#define SPMLA_PLATFORM_GPU_TOPK_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"

#define SPMLA_K_topk(P, S)             \
	SPMLA_K_FAULT(P)               \
	P(const float, logits)         \
	P(const int64_t, row_starts)   \
	P(const int32_t, context_lens) \
	P(int32_t, indices)            \
	P(int32_t, lens)               \
	S(uint64_t, logits_elems)      \
	S(int64_t, indices_stride)     \
	S(uint32_t, rows)              \
	S(uint32_t, k)                 \
	S(uint32_t, has_lens)
SPMLA_KERNEL_SCALARS(topk)

#ifdef SPMLA_GPU_KERNELS

enum {
	TOPK_BINS = 2048,
	TOPK_ITEMS = SPMLA_ITEMS_topk,
	TOPK_ROUNDS = 8, /* elements that an item has in flight */
	TOPK_CHUNK = TOPK_ROUNDS * TOPK_ITEMS
};

/* Order of scores as unsigned integers: NaN 0, then -inf up to +inf; -0 and +0
 * are one value. */
FN uint32_t
topk_key(float score)
{
	const uint32_t u = g_bits(score);

	if ((u & 0x7fffffffu) > 0x7f800000u)
		return 0;
	if (u == 0x80000000u)
		return 0x80000000u;
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

/* The keys of a chunk: element first + i * TOPK_ITEMS + item. */
FN void
topk_fetch(GLOBAL const float *row, uint32_t len, uint32_t first,
	   PRIVATE uint32_t *keys)
{
	float x[TOPK_ROUNDS];
	uint32_t i;

	UNROLL
	for (i = 0; i < TOPK_ROUNDS; i++) {
		const uint32_t at = first + i * TOPK_ITEMS + g_item();

		x[i] = at < len ? row[at] : 0.0f;
	}
	UNROLL
	for (i = 0; i < TOPK_ROUNDS; i++)
		keys[i] = topk_key(x[i]);
}

/* The sums of x over the items behind this one; sums holds an entry an item,
 * twice. */
FN uint32_t
topk_sum_behind(uint32_t x, LOCAL uint32_t *sums)
{
	const uint32_t i = g_item();
	LOCAL uint32_t *from = sums, *to = sums + TOPK_ITEMS;
	uint32_t step;

	from[i] = x;
	BARRIER();
	for (step = 1; step < TOPK_ITEMS; step <<= 1) {
		LOCAL uint32_t *other = to;

		to[i] = from[i] + (i + step < TOPK_ITEMS ? from[i + step] : 0);
		BARRIER();
		to = from;
		from = other;
	}
	x = from[i] - x;
	BARRIER();
	return x;
}

/* The bin at which, counting from the largest bin down, `rest` elements are
 * reached, to found[0], and how many are taken from it, to found[1]. */
FN void
topk_pick(LOCAL uint32_t *bins, LOCAL uint32_t *sums, LOCAL uint32_t *found,
	  uint32_t rest)
{
	enum { EACH = TOPK_BINS / TOPK_ITEMS };
	const uint32_t first = g_item() * EACH;
	uint32_t here = 0, above, i;

	for (i = 0; i < EACH; i++)
		here += bins[first + i];
	above = topk_sum_behind(here, sums);
	if (above < rest && above + here >= rest) {
		for (i = EACH; above + bins[first + i - 1] < rest; i--)
			above += bins[first + i - 1];
		found[0] = first + i - 1;
		found[1] = rest - above;
	}
	BARRIER();
}

/* The k-th largest key of a row of len > k; *ties = how many keys equal to it
 * are in the set. */
FN uint32_t
topk_kth(GLOBAL const float *row, uint32_t len, uint32_t k,
	 LOCAL uint32_t *bins, LOCAL uint32_t *sums, LOCAL uint32_t *found,
	 PRIVATE uint32_t *ties)
{
	uint32_t prefix = 0, mask = 0, rest = k, pass, first, i;

	for (pass = 0; pass < 3; pass++) {
		const uint32_t shift = pass == 0 ? 21 : pass == 1 ? 10 : 0;
		const uint32_t digit = pass == 2 ? 0x3ffu : 0x7ffu;

		for (i = g_item(); i < TOPK_BINS; i += TOPK_ITEMS)
			bins[i] = 0;
		BARRIER();
		for (first = 0; first < len; first += TOPK_CHUNK) {
			uint32_t keys[TOPK_ROUNDS];

			topk_fetch(row, len, first, keys);
			UNROLL
			for (i = 0; i < TOPK_ROUNDS; i++)
				if (first + i * TOPK_ITEMS + g_item() < len &&
				    (keys[i] & mask) == prefix)
					g_local_add(&bins[(keys[i] >> shift) &
							  digit],
						    1);
		}
		BARRIER();
		topk_pick(bins, sums, found, rest);
		prefix |= found[0] << shift;
		rest = found[1];
		mask |= digit << shift;
		BARRIER();
	}
	*ties = rest;
	return prefix;
}

/* Elements with a key above kth, and the first `ties` equal to it, in order.
 * A round's counts of a subgroup are one number, above << 32 | equal. */
FN void
topk_emit(GLOBAL const float *row, uint32_t len, uint32_t kth, uint32_t ties,
	  LOCAL uint64_t *counts, LOCAL uint64_t *sums, GLOBAL int32_t *out)
{
	const uint32_t width = g_width(), subgroups = TOPK_ITEMS / width;
	const uint64_t below = ((uint64_t)1 << g_lane()) - 1;
	uint64_t done = 0, all;
	uint32_t first, i;

	for (first = 0; first < len; first += TOPK_CHUNK) {
		uint32_t keys[TOPK_ROUNDS];

		topk_fetch(row, len, first, keys);
		UNROLL
		for (i = 0; i < TOPK_ROUNDS; i++) {
			const uint32_t in =
				first + i * TOPK_ITEMS + g_item() < len;
			const uint64_t a = g_ballot(in && keys[i] > kth);
			const uint64_t e = g_ballot(in && keys[i] == kth);

			if (g_lane() == 0)
				counts[i * subgroups + g_item() / width] =
					(uint64_t)g_popcount64(a) << 32 |
					g_popcount64(e);
		}
		BARRIER();
		{
			const uint32_t own = g_item() < TOPK_ROUNDS * subgroups;
			const uint64_t before =
				g_scan_sum(own ? counts[g_item()] : 0,
					   TOPK_ITEMS, sums, &all);

			if (own)
				counts[g_item()] = done + before;
		}
		BARRIER();
		UNROLL
		for (i = 0; i < TOPK_ROUNDS; i++) {
			const uint32_t at = first + i * TOPK_ITEMS + g_item();
			const uint32_t above = at < len && keys[i] > kth;
			const uint32_t equal = at < len && keys[i] == kth;
			const uint64_t a = g_ballot(above);
			const uint64_t e = g_ballot(equal);
			const uint64_t before =
				counts[i * subgroups + g_item() / width];
			const uint32_t n_above = (uint32_t)(before >> 32) +
						 g_popcount64(a & below);
			const uint32_t n_equal =
				(uint32_t)before + g_popcount64(e & below);

			if (above || (equal && n_equal < ties))
				out[n_above +
				    (n_equal < ties ? n_equal : ties)] =
					(int32_t)at;
		}
		done += all;
		BARRIER();
	}
}

SPMLA_KERNEL(topk)
{
	LOCAL_ARRAY(uint32_t, bins, TOPK_BINS);
	LOCAL_ARRAY(uint32_t, sums, 2 * TOPK_ITEMS);
	LOCAL_ARRAY(uint32_t, found, 2);
	LOCAL_ARRAY(uint64_t, counts, TOPK_ITEMS);
	LOCAL_ARRAY(uint64_t, scan, G_SCAN_SUBGROUPS);
	uint32_t r, i;

	for (r = g_block(); r < s.rows; r += g_blocks()) {
		GLOBAL int32_t *out = indices + (int64_t)r * s.indices_stride;
		const int64_t start = row_starts[r];
		uint32_t len =
			context_lens[r] > 0 ? (uint32_t)context_lens[r] : 0;
		uint32_t n;

		if (len > 0 && (start < 0 || (uint64_t)start > s.logits_elems ||
				len > s.logits_elems - (uint64_t)start)) {
			if (g_item() == 0)
				g_fault(fault_state, fault_status, r,
					G_FAULT_LOGITS);
			len = 0;
		}
		n = len < s.k ? len : s.k;
		if (len > s.k) {
			uint32_t ties;
			const uint32_t kth = topk_kth(logits + start, len, s.k,
						      bins, sums, found, &ties);

			topk_emit(logits + start, len, kth, ties, counts, scan,
				  out);
		} else {
			for (i = g_item(); i < len; i += TOPK_ITEMS)
				out[i] = (int32_t)i;
		}
		for (i = n + g_item(); i < s.k; i += TOPK_ITEMS)
			out[i] = -1;
		if (s.has_lens && g_item() == 0)
			lens[r] = (int32_t)n;
	}
}

#endif
#endif
