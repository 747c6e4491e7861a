/* SPDX-License-Identifier: Apache-2.0
 *
 * A row that one block has whole, in registers: every score goes into the
 * histogram, and no list is needed. The hard idea is that every warp issues
 * every instruction. So marks of keys are comparisons without branches, and
 * what random scores do not need, such as the search in a bin with many keys, is
 * one loop.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_SHORT_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_SHORT_DEVICE_H

#include "spmla/platform/gpu/select/topk_by_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The first of the 4 scores of load i of a short row, of which a thread has
 * `each`. */
FN uint32_t
topk_by_place(uint32_t each, uint32_t i)
{
	return (g_item() / 32 * (each / 4) + i) * 128 + 4 * g_lane();
}

/* ---- positions ---------------------------------------------------------- */

/* Where marks of the thread stand among all of the block's, in the order of
 * places. A byte for each load: a warp has at most 128 marks of one. */
typedef struct topk_by_order {
	uint32_t before; /* in the warp, of each load */
	uint32_t sum;    /* of the warp, of each load */
	uint32_t first;  /* before the warp */
	uint32_t all;
} topk_by_order;

/* One barrier; `sums` as in topk_by_warps. */
FN topk_by_order
topk_by_order_of(topk_by m, uint32_t each, uint32_t marks, LOCAL uint32_t *sums)
{
	uint32_t n = 0, all = 0, i;
	topk_by_order o;

	UNROLL
	for (i = 0; i < each; i += 4)
		n |= g_popcount(marks >> i & 15u) << 2 * i;
	o.before = g_warp_upto(n);
	o.sum = g_shuffle(o.before, 31);
	o.before -= n;
	UNROLL
	for (i = 0; i < each; i += 4)
		all += o.sum >> 2 * i & 0xffu;
	o.first = topk_by_warps(m, sums, all, &o.all);
	return o;
}

/* How many marks come before the thread's score i, the first of a load. Called
 * for each load in turn. */
FN uint32_t
topk_by_next(PRIVATE topk_by_order *o, uint32_t i)
{
	const uint32_t n = o->first + (o->before >> 2 * i & 0xffu);

	o->first += o->sum >> 2 * i & 0xffu;
	return n;
}

/* The thread's keys from the k-th on, a bit each; with `exact` without those
 * equal to it that are not among the best. */
FN uint32_t
topk_by_marks(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
	      const PRIVATE uint32_t *keys, uint32_t exact)
{
	const uint32_t kth = m.head->found[2];
	uint32_t marks = 0, i;

	UNROLL
	for (i = 0; i < each; i++)
		marks |= (uint32_t)(keys[i] >= kth) << i;
	if (exact) {
		const uint32_t flip = r->last_ties ? ~0u : 0;
		const uint32_t last = m.head->found[3] ^ flip;

		UNROLL
		for (i = 0; i < each; i++) {
			const uint32_t at = topk_by_place(each, i / 4) + i % 4;
			const uint32_t is =
				keys[i] == kth && (at ^ flip) > last;

			marks &= ~(is << i);
		}
	}
	return marks;
}

/* Writes the positions of the k best. They are put in order in shared memory
 * first, in the place of the bins. `ties`: many keys are equal to the k-th. */
FN void
topk_by_put(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
	    const PRIVATE uint32_t *keys, uint32_t ties)
{
	const uint32_t at = topk_by_place(each, 0) - r->row.pad;
	LOCAL uint32_t *list = m.head->bins;
	GLOBAL int32_t *out;
	uint32_t marks, i;
	g_local_place to = g_local_at(list);
	topk_by_order o;

	NO_UNROLL
	for (;; ties = 1) {
		marks = topk_by_marks(m, r, each, keys, ties);
		o = topk_by_order_of(m, each, marks, m.head->sums[ties]);
		/* More than k only if some are equal to the k-th. */
		if (ties || o.all == r->k)
			break;
	}
	UNROLL
	for (i = 0; i < each; i++) {
		if (i % 4 == 0)
			to = g_local_at(list + topk_by_next(&o, i));
		g_local_push_if(&to, at + (i / 4 * 128 + i % 4),
				marks & 1u << i);
	}
	BARRIER();
	out = topk_by_out(r);
	NO_UNROLL
	for (i = g_item(); i < r->k; i += m.items)
		out[i] = (int32_t)list[i];
}

/* ---- bins --------------------------------------------------------------- */

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

/* A thread with many keys has two bins in a word, or registers would not do.
 * This packs them, if so. */
FN void
topk_by_pack(uint32_t each, PRIVATE uint32_t *bins)
{
	uint32_t i;

	if (each == TOPK_BY_SHORT)
		return;
	UNROLL
	for (i = 0; i < each; i += 2)
		bins[i / 2] = (bins[i] & 0xffffu) | bins[i + 1] << 16;
}

FN uint32_t
topk_by_packed(uint32_t each, const PRIVATE uint32_t *bins, uint32_t i)
{
	if (each == TOPK_BY_SHORT)
		return bins[i];
	return bins[i / 2] >> i % 2 * 16 & 0xffffu;
}

/* Counts the packed bins of those scores that have a bit in `in`, in a loop: the
 * bins move from one turn to the next, and are in place at the end. */
FN void
topk_by_add_all(topk_by m, uint32_t each, PRIVATE uint32_t *bins, uint32_t in)
{
	const uint32_t half = each > TOPK_BY_SHORT ? 16 : 0;
	const uint32_t words = half ? each / 2 : each;
	uint32_t turn, i;

	NO_UNROLL
	for (turn = 0; turn < each; turn++) {
		const uint32_t first = bins[0];

		topk_by_add(m, topk_by_packed(each, bins, 0), in >> turn & 1u);
		UNROLL
		for (i = 0; i < words; i++) {
			const uint32_t next =
				i + 1 < words ? bins[i + 1] : first;

			bins[i] = half ? bins[i] >> half | next << half : next;
		}
	}
}

/* Which of the thread's packed bins is the one that was found, a bit each. */
FN uint32_t
topk_by_found(topk_by m, uint32_t each, const PRIVATE uint32_t *bins)
{
	const uint32_t found = m.head->found[0];
	uint32_t in = 0, i;

	UNROLL
	for (i = 0; i < each; i++)
		in |= (uint32_t)(topk_by_packed(each, bins, i) == found) << i;
	return in;
}

/* Counts the row's scores, and writes the thread's keys, or 0, to `keys`.
 * Returns which of them are in the bin that was found. */
FN uint32_t
topk_by_first_bin(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
		  PRIVATE uint32_t *keys)
{
	uint32_t bins[TOPK_BY_SHORT_HALF], same, skewed, in = 0, i;

	UNROLL
	for (i = 0; i < each; i += 4)
		topk_fetch4(r->row, topk_by_place(each, i / 4) / 4, keys + i);
	topk_by_clear(m);
	if (g_item() == 0)
		m.head->close_count = 0;
	BARRIER();
	UNROLL
	for (i = 0; i < each; i++) {
		const uint32_t at =
			topk_by_place(each, i / 4) + i % 4 - r->row.pad;

		/* No score has bin 0: -inf, the smallest, has bin 127. */
		bins[i] = at < r->row.len ? topk_by_half_bin(keys[i]) : 0;
		keys[i] = at < r->row.len ? topk_key(keys[i]) : 0;
	}
	same = g_shuffle(bins[0], 0);
	skewed = g_popcount64(g_ballot(bins[0] == same)) > 8;
	if (!skewed) {
		UNROLL
		for (i = 0; i < each; i++)
			g_local_add(topk_by_spot(m, bins[i]), 1);
	}
	topk_by_pack(each, bins);
	if (UNLIKELY(skewed)) {
		UNROLL
		for (i = 0; i < each; i++)
			in |= (uint32_t)(keys[i] != 0) << i;
		topk_by_add_all(m, each, bins, in);
	}
	BARRIER();
	topk_by_pick(m, r->k);
	return topk_by_found(m, each, bins);
}

/* ---- many keys in a bin ------------------------------------------------- */

/* The smallest and the largest of the block's keys with a bit in `in`. Clears
 * the bins. Barriers, one of them at the begin. */
FN void
topk_by_extremes(topk_by m, uint32_t each, const PRIVATE uint32_t *keys,
		 uint32_t in, PRIVATE uint32_t *low, PRIVATE uint32_t *high)
{
	uint32_t most = 0, least = 0, i;

	topk_by_clear(m);
	if (g_item() == 0)
		m.head->most = m.head->low = 0;
	BARRIER();
	UNROLL
	for (i = 0; i < each; i++)
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
	*high = m.head->most;
	*low = ~m.head->low;
}

/* Makes new bins between the smallest and the largest key that have a bit in
 * `in`. Returns which keys are in the bin that was found. */
FN uint32_t
topk_by_again(topk_by m, uint32_t each, const PRIVATE uint32_t *keys,
	      uint32_t in, uint32_t low, uint32_t high)
{
	const uint32_t shift = topk_by_shift(high - low);
	uint32_t bins[TOPK_BY_SHORT_HALF], i;

	UNROLL
	for (i = 0; i < each; i++)
		bins[i] = (keys[i] - low) >> shift;
	topk_by_pack(each, bins);
	topk_by_add_all(m, each, bins, in);
	BARRIER();
	topk_by_pick(m, m.head->found[1]);
	return in & topk_by_found(m, each, bins);
}

/* All keys with a bit in `in` are `key`. Finds the last of those that are among
 * the best. A barrier at the end. */
FN void
topk_by_tie(topk_by m, const PRIVATE topk_by_row *r, uint32_t each, uint32_t in,
	    uint32_t key)
{
	/* Its rank by place, from the first one on. */
	const uint32_t rank =
		r->last_ties ? m.head->found[2] : m.head->found[1] - 1;
	topk_by_order o = topk_by_order_of(m, each, in, m.head->sums[0]);
	uint32_t before = 0, i;

	UNROLL
	for (i = 0; i < each; i++) {
		if (i % 4 == 0)
			before = topk_by_next(&o, i);
		if (in >> i & 1u && before++ == rank) {
			m.head->found[2] = key;
			m.head->found[3] = topk_by_place(each, i / 4) + i % 4;
		}
	}
	BARRIER();
}

/* keys[i], by selects: an index would need a stack. */
FN uint32_t
topk_by_key_of(uint32_t each, const PRIVATE uint32_t *keys, uint32_t i)
{
	uint32_t x[TOPK_BY_SHORT_HALF], bit, k;

	UNROLL
	for (k = 0; k < each; k++)
		x[k] = keys[k];
	UNROLL
	for (bit = 1; bit < each; bit *= 2) {
		UNROLL
		for (k = 0; k < each; k += 2 * bit)
			x[k] = i & bit ? x[k + bit] : x[k];
	}
	return x[0];
}

/* Lists the keys with a bit in `in`, which are close to the k-th, and finds it
 * among them. A barrier at the end. */
FN void
topk_by_choose(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
	       const PRIVATE uint32_t *keys, uint32_t in)
{
	NO_UNROLL
	while (in) {
		const uint32_t bit = in & (0u - in), i = 31 - g_clz(bit);

		topk_by_near(m, topk_by_key_of(each, keys, i),
			     topk_by_place(each, i / 4) + i % 4);
		in ^= bit;
	}
	BARRIER();
	topk_by_compare(m, m.head->found[1], r->last_ties, 0);
}

/* Selects from a row that one block has whole: every score goes into the
 * histogram. While too many keys are in the bin that it finds, and differ, there
 * are finer ones. */
FN void
topk_by_short(topk_by m, const PRIVATE topk_by_row *r, uint32_t each)
{
	uint32_t keys[TOPK_BY_SHORT_HALF], ties = 0;
	uint32_t in = topk_by_first_bin(m, r, each, keys);

	NO_UNROLL
	while (UNLIKELY(m.head->found[1] + m.head->found[2] > TOPK_BY_CLOSE)) {
		uint32_t low, high;

		topk_by_extremes(m, each, keys, in, &low, &high);
		if (low == high) {
			topk_by_tie(m, r, each, in, low);
			ties = 1;
			break;
		}
		in = topk_by_again(m, each, keys, in, low, high);
	}
	if (!ties)
		topk_by_choose(m, r, each, keys, in);
	topk_by_put(m, r, each, keys, ties);
}

#endif
#endif
