/* SPDX-License-Identifier: Apache-2.0
 *
 * A row that one block has whole, in registers: every score goes into the
 * histogram, and no list is needed. The hard idea is that instructions cost
 * their fetch from memory. So what random scores do not need, such as the
 * search in a bin with many equal keys, is one loop behind all other code.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_SHORT_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_SHORT_DEVICE_H

#include "spmla/platform/gpu/select/topk_by_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The first of the 4 scores of load i of a short row. */
FN uint32_t
topk_by_place(uint32_t i)
{
	return (g_item() / 32 * (TOPK_BY_SHORT / 4) + i) * 128 + 4 * g_lane();
}

FN void
topk_by_put(topk_by m, const PRIVATE topk_by_row *r,
	    const PRIVATE uint32_t *keys)
{
	const uint32_t kth = m.head->found[2], last = m.head->found[3];
	GLOBAL int32_t *out = topk_by_out(r), *to = out;
	const int32_t at = (int32_t)(topk_by_place(0) - r->row.pad);
	const uint32_t flip = r->last_ties ? ~0u : 0;
	uint32_t marks = 0, n, upto, sum, all, first, i;

	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++) {
		const uint32_t place = topk_by_place(i / 4) + i % 4;

		if (keys[i] > kth ||
		    (keys[i] == kth && (place ^ flip) <= (last ^ flip)))
			marks |= 1u << i;
	}
	n = g_popcount(marks & 15u) | g_popcount(marks >> 4) << 16;
	upto = g_warp_upto(n);
	sum = g_shuffle(upto, 31);
	first = topk_by_warps(m, m.head->sums[1], (sum & 0xffffu) + (sum >> 16),
			      &all);
	upto -= n;
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++) {
		if (i == 0)
			to = out + first + (upto & 0xffffu);
		if (i == 4)
			to = out + first + (sum & 0xffffu) + (upto >> 16);
		if (marks >> i & 1u)
			*to++ = at + (int32_t)(i / 4 * 128 + i % 4);
	}
}

/* The bin of a score: the first bits of its f16. Bins have the order of keys,
 * and the scores of a key have one bin. */
FN uint32_t
topk_by_half_bin(uint32_t score)
{
	/* -0 becomes 0 */
	const uint32_t half = g_f32_to_f16(g_float(score) + 0.0f);

	return (half & 0x8000u ? ~half & 0xffffu : half | 0x8000u) >>
	       (16 - TOPK_BY_BITS);
}

/* Counts the bins of those scores that have a bit in `in`, in a loop: the
 * values move from one turn to the next, and are in place at the end. */
FN void
topk_by_add_all(topk_by m, PRIVATE uint32_t *bins, uint32_t in)
{
	uint32_t turn, i;

	NO_UNROLL
	for (turn = 0; turn < TOPK_BY_SHORT; turn++) {
		const uint32_t bin = bins[0];

		topk_by_add(m, bin, in >> turn & 1u);
		UNROLL
		for (i = 0; i + 1 < TOPK_BY_SHORT; i++)
			bins[i] = bins[i + 1];
		bins[TOPK_BY_SHORT - 1] = bin;
	}
}

/* Too many keys are in one bin: those with a bit in `in`. Makes new bins
 * between the smallest and the largest of them or, if all are equal, a bin for
 * each place. Returns which keys are in the bin that was found. */
FN uint32_t
topk_by_again(topk_by m, const PRIVATE topk_by_row *r,
	      const PRIVATE uint32_t *keys, uint32_t in)
{
	const uint32_t rest = m.head->found[1];
	uint32_t most = 0, least = 0, shift, bins[TOPK_BY_SHORT], i;

	topk_by_clear(m);
	if (g_item() == 0)
		m.head->most = m.head->low = 0;
	BARRIER();
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++)
		if (in >> i & 1u) {
			most = keys[i] > most ? keys[i] : most;
			least = ~keys[i] > least ? ~keys[i] : least;
		}
	most = g_warp_most(most);
	least = g_warp_most(least);
	if (g_lane() == 0) {
		g_local_max(&m.head->most, most);
		g_local_max(&m.head->low, least);
	}
	BARRIER();
	most = m.head->most;
	least = ~m.head->low;
	shift = topk_by_shift(most - least);
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++) {
		const uint32_t at = topk_by_place(i / 4) + i % 4 - r->row.pad;

		bins[i] = most != least  ? (keys[i] - least) >> shift
			  : r->last_ties ? at
					 : TOPK_BY_BINS - 1 - at;
	}
	topk_by_add_all(m, bins, in);
	BARRIER();
	topk_by_pick(m, rest);
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++)
		in &= ~((uint32_t)(bins[i] != m.head->found[0]) << i);
	return in;
}

/* Counts the row's scores, and writes the thread's keys, or 0, to `keys`.
 * Returns which of them are in the bin that was found. */
FN uint32_t
topk_by_first_bin(topk_by m, const PRIVATE topk_by_row *r,
		  PRIVATE uint32_t *keys)
{
	uint32_t bins[TOPK_BY_SHORT], same, in = 0, i;

	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i += 4)
		topk_fetch4(r->row, topk_by_place(i / 4) / 4, keys + i);
	topk_by_clear(m);
	if (g_item() == 0)
		m.head->close_count = 0;
	BARRIER();
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++) {
		const uint32_t at = topk_by_place(i / 4) + i % 4 - r->row.pad;

		bins[i] = topk_by_half_bin(keys[i]);
		keys[i] = at < r->row.len ? topk_key(keys[i]) : 0;
	}
	same = g_shuffle(bins[0], 0);
	if (UNLIKELY(g_popcount64(g_ballot(bins[0] == same)) > 8)) {
		UNROLL
		for (i = 0; i < TOPK_BY_SHORT; i++)
			in |= (uint32_t)(keys[i] != 0) << i;
		topk_by_add_all(m, bins, in);
		in = 0;
	} else {
		UNROLL
		for (i = 0; i < TOPK_BY_SHORT; i++)
			if (keys[i])
				g_local_add(&m.head->bins[bins[i]], 1);
	}
	BARRIER();
	topk_by_pick(m, r->k);
	same = m.head->found[0];
	UNROLL
	for (i = 0; i < TOPK_BY_SHORT; i++)
		in |= (uint32_t)(keys[i] && bins[i] == same) << i;
	return in;
}

/* Selects from the keys; those with a bit in `in` are close to the k-th. */
FN void
topk_by_choose(topk_by m, const PRIVATE topk_by_row *r,
	       const PRIVATE uint32_t *keys, uint32_t in)
{
	uint32_t n, i;

	if (in) {
		n = g_local_add(&m.head->close_count, g_popcount(in));
		UNROLL
		for (i = 0; i < TOPK_BY_SHORT; i++) {
			g_local_store2_if(&m.head->close[2 * n], keys[i],
					  topk_by_place(i / 4) + i % 4,
					  in >> i & 1u);
			n += in >> i & 1u;
		}
	}
	BARRIER();
	topk_by_compare(m, m.head->found[1], r->last_ties, 0);
	topk_by_put(m, r, keys);
}

/* Selects from a row that one block has whole: every score goes into the
 * histogram. */
FN void
topk_by_short(topk_by m, const PRIVATE topk_by_row *r)
{
	uint32_t keys[TOPK_BY_SHORT], in = topk_by_first_bin(m, r, keys);

	NO_UNROLL
	while (UNLIKELY(m.head->found[1] + m.head->found[2] > TOPK_BY_CLOSE))
		in = topk_by_again(m, r, keys, in);
	topk_by_choose(m, r, keys, in);
}

#endif
#endif
