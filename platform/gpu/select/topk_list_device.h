/* SPDX-License-Identifier: Apache-2.0
 *
 * The first block's part of topk_by_kernel.h: the k best of its list, in order.
 * The hard idea is that no entry waits for another: once a bit is set for each
 * of the best and the bits before each word are counted, an entry's place in
 * the output is a sum of two numbers.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_LIST_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_LIST_DEVICE_H

#include "spmla/platform/gpu/select/topk_by_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The bin of a listed score. Few are above `most`. */
FN uint32_t
topk_by_bin(uint32_t key, uint32_t low, uint32_t shift)
{
	const uint32_t bin = (key - low) >> shift;

	return bin < TOPK_BY_BINS ? bin : TOPK_BY_BINS - 1;
}

/* The keys that a list may have. */
typedef struct topk_by_range {
	uint32_t low;  /* the smallest of the thresholds */
	uint32_t most; /* the largest key of the first chunks */
} topk_by_range;

/* Sums up what the blocks told of their shares, a lane for each block. Returns
 * 0 if the list cannot hold the k best. */
FN uint32_t
topk_by_shares(topk_by m, uint32_t k, PRIVATE topk_by_range *range)
{
	const uint32_t is = g_lane() < m.cluster;
	const topk_by_share share = m.head->share[is ? g_lane() : 0];

	if (m.cluster == 1) {
		range->low = share.low;
		range->most = share.most;
		return share.listed <= m.entries && share.listed >= k;
	}
	range->low = ~g_warp_most(~share.low);
	range->most = g_warp_most(share.most);
	return g_warp_most(share.listed) <= m.entries &&
	       g_warp_sum(is ? share.listed : 0) >= k;
}

/* The largest of the thresholds: the k-th is not below it. */
FN uint32_t
topk_by_least(topk_by m)
{
	if (m.cluster == 1)
		return m.head->share[0].low;
	return g_warp_most(
		m.head->share[g_lane() < m.cluster ? g_lane() : 0].low);
}

/* Writes the positions of those entries that have a bit. They are put in order
 * in shared memory, in the place of the scores, because scattered stores to
 * memory take longer. Barriers in between. */
FN void
topk_by_put_listed(topk_by m, const PRIVATE topk_by_row *r)
{
	const uint32_t lanes = m.items / m.cluster;
	const uint32_t own = g_item() / lanes;
	LOCAL const uint32_t *list = m.list + 2 * own * m.entries;
	LOCAL const uint32_t *before = m.head->bins;
	GLOBAL int32_t *out = topk_by_out(r);
	uint32_t n, i;

	(void)topk_by_before(m, r->pieces, 0);
	n = m.head->share[own].listed;
	UNROLL_BY(2)
	for (i = g_item() % lanes; i < n; i += lanes) {
		const uint32_t at = list[2 * i + 1];
		const uint32_t word = m.bits[at / 32];
		const uint32_t bit = 1u << (at & 31u);
		const uint32_t to =
			before[at / 32] + g_popcount(word & (bit - 1));

		if (word & bit)
			m.list[2 * to] = at - r->row.pad;
	}
	BARRIER();
	UNROLL_BY(2)
	for (i = g_item(); i < r->k; i += m.items)
		out[i] = (int32_t)m.list[2 * i];
}

/* Which entries are looked at, and their bins. */
typedef struct topk_by_cut {
	uint32_t low, high; /* of the keys */
	uint32_t base, shift;
	uint32_t tied; /* the keys are equal, and the bins are of places */
} topk_by_cut;

/* What an entry is binned by. */
FN uint32_t
topk_by_what(const PRIVATE topk_by_cut *cut, uint32_t key, uint32_t at,
	     uint32_t last_ties)
{
	return !cut->tied ? key : last_ties ? at : ~at;
}

/* Finds the bin at which `rest` are reached; sets the bits of the entries above
 * it and lists those in it. The list is read. */
FN void
topk_by_round(topk_by m, const PRIVATE topk_by_row *r,
	      const PRIVATE topk_by_cut *cut, uint32_t rest)
{
	const uint32_t lanes = m.items / m.cluster;
	const uint32_t own = g_item() / lanes;
	LOCAL const uint32_t *list = m.list + 2 * own * m.entries;
	const uint32_t n = m.head->share[own].listed;
	uint32_t bin, i;

	UNROLL_BY(2)
	for (i = g_item() % lanes; i < n; i += lanes) {
		const uint32_t key = topk_key(list[2 * i]);
		const uint32_t x =
			topk_by_what(cut, key, list[2 * i + 1], r->last_ties);

		if (key - cut->low <= cut->high - cut->low)
			g_local_add(topk_by_spot(m, topk_by_bin(x, cut->base,
								cut->shift)),
				    1);
	}
	BARRIER();
	topk_by_pick(m, rest);
	bin = m.head->found[0];
	UNROLL_BY(2)
	for (i = g_item() % lanes; i < n; i += lanes) {
		const uint32_t key = topk_key(list[2 * i]);
		const uint32_t at = list[2 * i + 1];
		const uint32_t x = topk_by_what(cut, key, at, r->last_ties);
		const uint32_t is = topk_by_bin(x, cut->base, cut->shift);

		if (key - cut->low > cut->high - cut->low || is < bin)
			continue;
		if (is > bin)
			g_local_add(&m.bits[at / 32], 1u << (at & 31u));
		else
			topk_by_near(m, key, at);
	}
	BARRIER();
}

/* Narrows the cut to the bin that was found; returns 0 if that cannot be. */
FN uint32_t
topk_by_narrow(const PRIVATE topk_by_row *r, PRIVATE topk_by_cut *cut,
	       uint32_t bin)
{
	cut->low += bin << cut->shift;
	if (bin < TOPK_BY_BINS - 1)
		cut->high = cut->low + ((1u << cut->shift) - 1);
	cut->base = cut->low;
	if (cut->shift == 0) {
		if (cut->low != cut->high)
			return 0;
		cut->tied = 1;
		cut->base = r->last_ties ? 0 : 0u - 32 * r->pieces;
		cut->shift = topk_by_shift(32 * r->pieces - 1);
	} else {
		cut->shift = cut->shift > TOPK_BY_BITS
				     ? cut->shift - TOPK_BY_BITS
				     : 0;
	}
	return 1;
}

/* Sets the bits of the k best of the list, in the first block; returns 0 if
 * they are not the k best of the row. Usually one histogram leaves few keys
 * close to the k-th. If not, a second histogram is made of those keys and, if
 * many are equal, one of their places. */
FN uint32_t
topk_by_select(topk_by m, const PRIVATE topk_by_row *r)
{
	uint32_t rest = r->k;
	topk_by_range range;
	topk_by_cut cut;

	if (!topk_by_shares(m, r->k, &range))
		return 0;
	cut.base = cut.low = range.low;
	cut.high = ~0u;
	cut.shift = topk_by_shift(range.most - range.low);
	cut.tied = 0;
	NO_UNROLL
	for (;;) {
		topk_by_round(m, r, &cut, rest);
		rest = m.head->found[1];
		if (m.head->close_count <= TOPK_BY_CLOSE)
			break;
		if (!topk_by_narrow(r, &cut, m.head->found[0]))
			return 0;
		topk_by_clear(m);
		BARRIER(); /* the count of close ones is read */
		if (g_item() == 0)
			m.head->close_count = 0;
		BARRIER();
	}
	topk_by_compare(m, rest, r->last_ties, 1);
	return m.head->found[2] >= topk_by_least(m);
}

#endif
#endif
