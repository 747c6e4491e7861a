/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of topk_by_kernel.h are made of: a block's memory,
 * histograms of a block, and positions out of bits.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_BY_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_BY_DEVICE_H

#include "spmla/platform/gpu/dialect/wgmma.h"
#include "spmla/platform/gpu/select/topk_kernel.h"

enum {
	TOPK_BY_BINS = 8192,
	TOPK_BY_BITS = 13,       /* of a bin */
	TOPK_BY_CLOSE = 256,     /* keys of one bin that are compared */
	TOPK_BY_CHUNK = 8,       /* scores that a thread has of a chunk */
	TOPK_BY_SHORT = 8,       /* and of a row that one block has whole, */
	TOPK_BY_SHORT_HALF = 16, /* if it has half of the threads */
	TOPK_BY_MOST = 8,        /* blocks of a cluster */
	TOPK_BY_PIECE = 32,      /* scores of a piece, and of a word of bits */
	TOPK_BY_AHEAD = 3,       /* turns; a chunk's second load lies ahead */
	/* Bins of keys: magnitudes up to 2^-40, as bits, are one; the others
	 * have 2^17 keys each. */
	TOPK_BY_TINY = (127 - 40) << 23,
	TOPK_BY_FINE = 17,
	/* Words of bits, and scores in the list. */
	TOPK_BY_WORDS = 8192,
	TOPK_BY_LIST = 12288,
	TOPK_BY_HALF_WORDS = 4096,
	TOPK_BY_HALF_LIST = 7168
};

/* What a block tells the first one of its share. */
typedef struct topk_by_share {
	uint32_t listed; /* ~0: there is no threshold */
	uint32_t low;    /* the key that is the threshold */
	uint32_t most;   /* of the first chunk the largest key */
	uint32_t unused;
} topk_by_share;

typedef struct topk_by_head {
	uint32_t bins[TOPK_BY_BINS];
	uint32_t sums[2][32];
	/* A bin, how many are taken of it, and how many are not; or a key and
	 * its place. */
	uint32_t found[4];
	uint32_t told[4]; /* what the first block found */
	uint32_t listed;
	uint32_t low;
	uint32_t most;
	uint32_t close_count;
	uint32_t is_done; /* unless the first block says otherwise */
	uint32_t guess;   /* if so: a key that may be the k-th, or 0 */
	uint32_t rank;    /* of the threshold, or 0 */
	uint32_t buckets;
	/* In the first block: where the others' shares come to. */
	g_mbarrier shares;
	uint32_t parity; /* of its phase */
	uint32_t unused;
	topk_by_share share[TOPK_BY_MOST];
	uint32_t close[2 * TOPK_BY_CLOSE]; /* keys and places */
} topk_by_head;

enum {
	TOPK_SHORT_BYTES = (int)sizeof(topk_by_head),
	TOPK_BY_BYTES = (int)sizeof(topk_by_head) + 4 * TOPK_BY_WORDS +
			8 * TOPK_BY_LIST,
	TOPK_BY_HALF_BYTES = (int)sizeof(topk_by_head) +
			     4 * TOPK_BY_HALF_WORDS + 8 * TOPK_BY_HALF_LIST
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* A block and its memory. Places count scores from 128 aligned bytes on, in
 * which the row starts behind `pad` others. */
typedef struct topk_by {
	LOCAL topk_by_head *head;
	LOCAL uint32_t *bits;
	LOCAL uint32_t *list; /* of the first block: bits of a score, place */
	uint32_t words;
	uint32_t entries; /* of a block's share of the list */
	uint32_t items;
	uint32_t cluster;
} topk_by;

/* The row and what is wanted of it. */
typedef struct topk_by_row {
	topk_row row;
	uint32_t k;
	uint32_t last_ties;
	uint32_t pieces;
	const PRIVATE topk_args *a;
	uint32_t index;
} topk_by_row;

/* Where the row's indices go, computed anew each time. */
FN GLOBAL int32_t *
topk_by_out(const PRIVATE topk_by_row *r)
{
	return r->a->indices + (int64_t)r->index * r->a->s.indices_stride;
}

/* Which of the cluster's blocks this is, computed anew each time. */
FN uint32_t
topk_by_own(topk_by m)
{
	return m.cluster > 1 ? g_block() % m.cluster : 0;
}

/* A barrier of `blocks` blocks: of the cluster or of this one alone. */
FN void
topk_by_meet(uint32_t blocks)
{
	if (blocks > 1)
		g_cluster_sync();
	else
		BARRIER();
}

FN void
topk_by_clear(topk_by m)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < TOPK_BY_BINS / 4; i += m.items) {
		LOCAL uint32_t *bins = m.head->bins + 4 * (i + g_item());

		bins[0] = bins[1] = bins[2] = bins[3] = 0;
	}
}

/* Where a bin's count is. Scores with a step have bins a power of two apart, all
 * in one bank. Two blocks on a multiprocessor would both wait for it, so their
 * bins are spread over the banks. Four bins from a multiple of 4 on stay side by
 * side. */
FN LOCAL uint32_t *
topk_by_spot(topk_by m, uint32_t bin)
{
	return m.head->bins +
	       (m.items < SPMLA_WIDE_BLOCK ? bin ^ (bin >> 3 & 0x1cu) : bin);
}

/* Adds up the warps' sums: returns the sum of all warps before the caller's,
 * and sets *all to the sum of all. A warp's sum is `sum` in its lane 31. Has
 * one barrier; the caller has another between two uses of sums. */
FN uint32_t
topk_by_warps(topk_by m, LOCAL uint32_t *sums, uint32_t sum,
	      PRIVATE uint32_t *all)
{
	const uint32_t own = g_item() / 32;
	uint32_t other;

	if (g_lane() == 31)
		sums[own] = sum;
	BARRIER();
	other = g_lane() < m.items / 32 ? sums[g_lane()] : 0;
	*all = g_warp_sum(other);
	return g_warp_sum(g_lane() < own ? other : 0);
}

/* Finds the bin at which, from the largest bin down, `rest` elements are
 * reached. It goes to found[0], how many are taken from it to found[1], and how
 * many are left in it to found[2]. If there are fewer than `rest`, found stays
 * as it is. A barrier at the end, none before. */
FN void
topk_by_pick(topk_by m, uint32_t rest)
{
	const uint32_t warps = m.items / 32, own = TOPK_BY_BINS / warps;
	const uint32_t rounds = own / 128;
	const uint32_t first = TOPK_BY_BINS - (g_item() / 32 + 1) * own;
	const uint32_t mine = first + 4 * g_lane();
	uint32_t here[32], sum = 0, round = ~0u, above, all, i;

	UNROLL
	for (i = 0; i < rounds; i++) {
		LOCAL const uint32_t *b = topk_by_spot(m, mine + 128 * i);

		here[i] = b[0] + b[1] + b[2] + b[3];
		sum += here[i];
	}
	sum = g_warp_sum(sum);
	above = topk_by_warps(m, m.head->sums[0], sum, &all);
	if (above < rest && above + sum >= rest) {
		LOCAL const uint32_t *bins;
		uint32_t count[4], upto;

		UNROLL
		for (i = rounds; i-- > 0;) {
			sum = g_warp_sum(here[i]);
			if (round != ~0u)
				continue;
			if (above + sum >= rest)
				round = i;
			else
				above += sum;
		}
		bins = topk_by_spot(m, mine + 128 * round);
		UNROLL
		for (i = 0; i < 4; i++)
			count[i] = bins[i];
		sum = count[0] + count[1] + count[2] + count[3];
		upto = g_warp_upto(sum);
		above += g_shuffle(upto, 31) - upto;
		UNROLL
		for (i = 4; i-- > 0;) {
			if (above < rest && above + count[i] >= rest) {
				m.head->found[0] =
					first + 128 * round + 4 * g_lane() + i;
				m.head->found[1] = rest - above;
				m.head->found[2] = above + count[i] - rest;
			}
			above += count[i];
		}
	}
	BARRIER();
}

/* Counts `bin` if `is` is not 0, for lanes that are likely to have the same. */
FN void
topk_by_add(topk_by m, uint32_t bin, uint32_t is)
{
	uint32_t left = (uint32_t)g_ballot(is), i;

	UNROLL
	for (i = 0; i < 2 && left; i++) {
		const uint32_t lead = 31 - g_clz(left & (0u - left));
		const uint32_t same = g_shuffle(bin, lead);
		const uint32_t who = (uint32_t)g_ballot(is && bin == same);

		if (g_lane() == lead)
			g_local_add(topk_by_spot(m, same), g_popcount(who));
		is = bin == same ? 0 : is;
		left &= ~who;
	}
	if (is)
		g_local_add(topk_by_spot(m, bin), 1);
}

/* By how many bits the values of a range are shifted to fit the bins. */
FN uint32_t
topk_by_shift(uint32_t range)
{
	const uint32_t bits = 32 - g_clz(range);

	return bits > TOPK_BY_BITS ? bits - TOPK_BY_BITS : 0;
}

/* A key that is close to the k-th. */
FN void
topk_by_near(topk_by m, uint32_t key, uint32_t at)
{
	const uint32_t n = g_local_add(&m.head->close_count, 1);

	if (n < TOPK_BY_CLOSE) {
		m.head->close[2 * n] = key;
		m.head->close[2 * n + 1] = at;
	}
}

/* Finds the best `rest` of the close keys; a warp has a key at a time. If
 * `sets`, sets a bit for each of the best. The last of them goes to found[2],
 * its place to found[3]. A barrier at the end. */
FN void
topk_by_compare(topk_by m, uint32_t rest, uint32_t last_ties, uint32_t sets)
{
	LOCAL const uint32_t *close = m.head->close;
	const uint32_t n = m.head->close_count;
	const uint32_t flip = last_ties ? ~0u : 0;
	uint32_t own, i;

	NO_UNROLL
	for (own = g_item() / 32; own < n; own += m.items / 32) {
		const uint32_t key = close[2 * own], at = close[2 * own + 1];
		uint32_t better = 0;

		UNROLL_BY(2)
		for (i = g_lane(); i < n; i += 32) {
			const uint32_t other = close[2 * i];
			const uint32_t place = close[2 * i + 1];

			better += other > key || (other == key &&
						  (place ^ flip) < (at ^ flip));
		}
		better = g_warp_sum(better);
		if (better >= rest || g_lane() != 0)
			continue;
		if (sets)
			g_local_add(&m.bits[at / 32], 1u << (at & 31u));
		if (better == rest - 1) {
			m.head->found[2] = key;
			m.head->found[3] = at;
		}
	}
	BARRIER();
}

/* Writes to bins[i] how many bits are set before word i, plus `done`, for each
 * of `words` words. Returns how many bits all have. Words up to the next
 * multiple of 4 are 0. A barrier in between and at the end. */
FN uint32_t
topk_by_before(topk_by m, uint32_t words, uint32_t done)
{
	const uint32_t quads = (words + 3) / 4;
	const uint32_t each = (quads + m.items - 1) / m.items * 4;
	const uint32_t from = g_item() * each;
	const uint32_t end = from + each < 4 * quads ? from + each : 4 * quads;
	uint32_t n = 0, upto, all, to, i;

	NO_UNROLL
	for (i = from; i < end; i += 4)
		n += g_popcount(m.bits[i]) + g_popcount(m.bits[i + 1]) +
		     g_popcount(m.bits[i + 2]) + g_popcount(m.bits[i + 3]);
	upto = g_warp_upto(n);
	to = done + topk_by_warps(m, m.head->sums[1], upto, &all) + upto - n;
	NO_UNROLL
	for (i = from; i < end; i += 4) {
		const uint32_t a = g_popcount(m.bits[i]);
		const uint32_t b = a + g_popcount(m.bits[i + 1]);
		const uint32_t c = b + g_popcount(m.bits[i + 2]);

		m.head->bins[i] = to;
		m.head->bins[i + 1] = to + a;
		m.head->bins[i + 2] = to + b;
		m.head->bins[i + 3] = to + c;
		to += c + g_popcount(m.bits[i + 3]);
	}
	BARRIER();
	return all;
}

/* Writes the positions of the bits of `words` words behind the `done` positions
 * that are written. The first bit is place 32 * first. Returns how many there
 * are. Consecutive words go to different warps, and a warp writes a word of
 * many bits together. Barriers in between. */
FN uint32_t
topk_by_emit(topk_by m, const PRIVATE topk_by_row *r, uint32_t first,
	     uint32_t words, uint32_t done)
{
	const uint32_t all = topk_by_before(m, words, done);
	const uint32_t warps = m.items / 32, lane = g_lane();
	GLOBAL int32_t *out = topk_by_out(r);
	uint32_t i;

	NO_UNROLL
	for (i = 0; i < words; i += m.items) {
		/* As the lanes' words, too, in different banks. */
		const uint32_t own =
			i + lane * warps + (g_item() / 32 + lane) % warps;
		const uint32_t mine = own < words ? m.bits[own] : 0;
		const uint32_t base = own < words ? m.head->bins[own] : 0;
		const uint32_t many = g_popcount(mine) > 8;
		uint32_t left = (uint32_t)g_ballot(many);
		uint32_t few = many ? 0 : mine, to = base;

		NO_UNROLL
		while (left) {
			const uint32_t from = 31 - g_clz(left);
			const uint32_t word = g_shuffle(mine, from);
			const uint32_t begin = g_shuffle(base, from);
			const uint32_t at = g_shuffle(own, from);

			if (word >> lane & 1u)
				out[begin +
				    g_popcount(word & ((1u << lane) - 1u))] =
					(int32_t)(32 * (first + at) + lane -
						  r->row.pad);
			left ^= 1u << from;
		}
		NO_UNROLL
		while (few) {
			const uint32_t bit = few & (0u - few);

			out[to++] = (int32_t)(32 * (first + own) + 31 -
					      g_clz(bit) - r->row.pad);
			few ^= bit;
		}
	}
	return all;
}

#endif
#endif
