/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of any length whose scores are counted by a cluster. A pass sets a bit
 * for each score above a key and, in another list, for each equal to it. The
 * first pass is for a guess of the k-th key; its bits tell whether it is right.
 * If it is wrong, exact histograms of 13 bits give the key. The hard idea is
 * that a piece of 32 scores is a word of bits, so that no block waits for
 * another to know where its own go.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_COUNT_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_COUNT_DEVICE_H

#include "spmla/platform/gpu/select/topk_by_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { TOPK_BY_LOADS = 4 /* of 4 scores, that a thread has in flight */ };

/* The pieces from one load of the row to the next. */
FN uint32_t
topk_by_turn(topk_by m, uint32_t blocks)
{
	return m.items / 8 * blocks;
}

/* Loads the thread's keys of TOPK_BY_LOADS turns, from `piece` on. Returns a
 * bit for each key that is in the row. */
FN uint32_t
topk_by_keys(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	     uint32_t piece, PRIVATE uint32_t *keys)
{
	const uint32_t own = g_item() / 8 * blocks + topk_by_own(m);
	const uint32_t at = 32 * (piece + own) + g_item() % 8 * 4;
	const uint32_t step = 32 * topk_by_turn(m, blocks);
	uint32_t is = 0, i;

	UNROLL
	for (i = 0; i < TOPK_BY_LOADS; i++)
		topk_fetch4(r->row, (at + i * step) / 4, keys + 4 * i);
	UNROLL
	for (i = 0; i < 4 * TOPK_BY_LOADS; i++) {
		const uint32_t place = at + i / 4 * step + i % 4;

		is |= (uint32_t)(place - r->row.pad < r->row.len) << i;
		keys[i] = topk_key(keys[i]);
	}
	return is;
}

/* The first block tells all blocks what it found. */
FN void
topk_by_tell(topk_by m, uint32_t blocks, uint32_t kth, uint32_t rest,
	     uint32_t left)
{
	if (g_item() < blocks) {
		const g_cluster_place to = g_cluster_at(m.head->told, g_item());

		g_cluster_store2_if(to, kth, rest, 1);
		g_cluster_store(to + 8, left);
	}
}

/* Counts the keys that begin with `prefix` by their next bits, in a histogram
 * in the first block. Tells all blocks the bin at which, from above, `rest`
 * keys are reached. */
FN void
topk_by_digit(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	      uint32_t prefix, uint32_t mask, uint32_t shift, uint32_t rest)
{
	uint32_t keys[4 * TOPK_BY_LOADS], piece, turn, i;

	topk_by_clear(m);
	topk_by_meet(blocks);
	NO_UNROLL
	for (piece = 0; piece < r->pieces;
	     piece += TOPK_BY_LOADS * topk_by_turn(m, blocks)) {
		const uint32_t is = topk_by_keys(m, r, blocks, piece, keys);

		/* The keys move, so that the loop is no longer than a turn. */
		NO_UNROLL
		for (turn = 0; turn < 4 * TOPK_BY_LOADS; turn += 4) {
			UNROLL
			for (i = 0; i < 4; i++)
				topk_by_add(m,
					    keys[i] >> shift &
						    (TOPK_BY_BINS - 1),
					    (is >> (turn + i) & 1u) &&
						    (keys[i] & mask) == prefix);
			UNROLL
			for (i = 0; i < 4 * TOPK_BY_LOADS - 4; i++)
				keys[i] = keys[i + 4];
		}
	}
	BARRIER();
	if (topk_by_own(m) != 0) {
		NO_UNROLL
		for (i = g_item(); i < TOPK_BY_BINS; i += m.items) {
			const uint32_t n = m.head->bins[i];

			if (n)
				g_cluster_add(g_cluster_at(&m.head->bins[i], 0),
					      n);
		}
	}
	if (blocks > 1)
		g_cluster_sync();
	if (topk_by_own(m) == 0) {
		topk_by_pick(m, rest);
		topk_by_tell(m, blocks, prefix | m.head->found[0] << shift,
			     m.head->found[1], m.head->found[2]);
	}
	topk_by_meet(blocks);
}

/* The k-th key, exactly; told as above. */
FN uint32_t
topk_by_kth(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks)
{
	uint32_t prefix = 0, mask = 0, shift = 19, rest = r->k;

	NO_UNROLL
	for (;;) {
		topk_by_digit(m, r, blocks, prefix, mask, shift, rest);
		prefix = m.head->told[0];
		mask = ~0u << shift;
		rest = m.head->told[1];
		if (shift == 0 || m.head->told[2] == 0)
			return prefix;
		shift = shift > TOPK_BY_BITS ? shift - TOPK_BY_BITS : 0;
	}
}

/* Sets `count` of the bits in `equal`, from the first-th on; `done` came before
 * them. Returns how many bits `equal` has. */
FN uint32_t
topk_by_ties(topk_by m, LOCAL const uint32_t *equal, uint32_t words,
	     uint32_t first, uint32_t count, uint32_t done)
{
	const uint32_t each = (words + m.items - 1) / m.items;
	const uint32_t from = g_item() * each;
	const uint32_t end = from + each < words ? from + each : words;
	uint32_t n = 0, upto, all, before, i;

	NO_UNROLL
	for (i = from; i < end; i++)
		n += g_popcount(equal[i]);
	upto = g_warp_upto(n);
	before =
		done + topk_by_warps(m, m.head->sums[0], upto, &all) + upto - n;
	NO_UNROLL
	for (i = from; i < end; i++) {
		uint32_t word = equal[i], taken = 0;

		n = g_popcount(word);
		if (before >= first && before + n <= first + count) {
			taken = word;
			before += n;
		} else if (before + n <= first || before >= first + count) {
			before += n;
		} else {
			NO_UNROLL
			while (word) {
				const uint32_t bit = word & (0u - word);

				if (before++ - first < count)
					taken |= bit;
				word ^= bit;
			}
		}
		m.bits[i] |= taken;
	}
	return all;
}

/* Joins the 4 bits of each of 8 threads into a word. */
FN uint32_t
topk_by_word(uint32_t bits)
{
	uint32_t i;

	bits = (bits & 15u) << g_lane() % 8 * 4;
	UNROLL
	for (i = 1; i < 8; i <<= 1)
		bits |= g_shuffle_xor(bits, i);
	return bits;
}

/* For `words` pieces from `first` on, sets the bits of the keys above kth and,
 * in `equal`, the bits of the keys equal to it. */
FN void
topk_by_mark(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	     uint32_t first, uint32_t words, uint32_t kth,
	     LOCAL uint32_t *equal)
{
	const uint32_t turn = topk_by_turn(m, blocks);
	const uint32_t own = g_item() / 8 * blocks + topk_by_own(m);
	uint32_t keys[4 * TOPK_BY_LOADS], piece, i;

	NO_UNROLL
	for (piece = 0; piece < words; piece += TOPK_BY_LOADS * turn) {
		const uint32_t is =
			topk_by_keys(m, r, blocks, first + piece, keys);
		uint32_t above = 0, same = 0;

		UNROLL
		for (i = 0; i < 4 * TOPK_BY_LOADS; i++) {
			above |= (uint32_t)(keys[i] > kth) << i;
			same |= (uint32_t)(keys[i] == kth) << i;
		}
		above &= is;
		same &= is;
		UNROLL
		for (i = 0; i < TOPK_BY_LOADS; i++) {
			const uint32_t word = piece + i * turn + own;
			const uint32_t a = topk_by_word(above >> 4 * i);
			const uint32_t b = topk_by_word(same >> 4 * i);

			if (g_lane() % 8 != 0 || word >= words)
				continue;
			g_cluster_store(g_cluster_at(m.bits + word, 0), a);
			g_cluster_store(g_cluster_at(equal + word, 0), b);
		}
	}
}

/* Sets the bits as if the k-th key were `guess`. Returns 0, in all blocks, if
 * it is another. The row has at most m.words pieces. */
FN uint32_t
topk_by_try(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	    uint32_t guess)
{
	uint32_t above = 0, same = 0, i;

	topk_by_mark(m, r, blocks, 0, r->pieces, guess, m.list);
	if (g_item() == 0)
		m.head->bins[0] = m.head->bins[1] = 0;
	topk_by_meet(blocks);
	if (topk_by_own(m) == 0) {
		NO_UNROLL
		for (i = g_item(); i < r->pieces; i += m.items) {
			above += g_popcount(m.bits[i]);
			same += g_popcount(m.list[i]);
		}
		above = g_warp_sum(above);
		same = g_warp_sum(same);
		if (g_lane() == 0) {
			g_local_add(&m.head->bins[0], above);
			g_local_add(&m.head->bins[1], same);
		}
		BARRIER();
		above = m.head->bins[0];
		same = m.head->bins[1];
		if (above < r->k && above + same >= r->k)
			topk_by_tell(m, blocks, guess, r->k - above,
				     above + same - r->k);
		else
			topk_by_tell(m, blocks, 0, 0, 0);
	}
	topk_by_meet(blocks);
	return m.head->told[0];
}

/* Selects the k best of any row with the cluster's `blocks` blocks. `guess` may
 * be the k-th key, or is 0. */
FN void
topk_by_count(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	      uint32_t guess)
{
	const uint32_t is_set = guess && topk_by_try(m, r, blocks, guess);
	const uint32_t kth = is_set ? guess : topk_by_kth(m, r, blocks);
	const uint32_t rest = m.head->told[1], left = m.head->told[2];
	uint32_t done = 0, equal = 0, first;

	NO_UNROLL
	for (first = 0; first < r->pieces; first += m.words) {
		const uint32_t to = r->pieces - first;
		const uint32_t words = to < m.words ? to : m.words;

		if (!is_set) {
			topk_by_mark(m, r, blocks, first, words, kth, m.list);
			topk_by_meet(blocks);
		}
		/* Up to a multiple of 4 words. */
		if (topk_by_own(m) == 0 && g_item() < (0u - words) % 4)
			m.bits[words + g_item()] = 0;
		if (topk_by_own(m) == 0) {
			equal += topk_by_ties(m, m.list, words,
					      r->last_ties ? left : 0, rest,
					      equal);
			BARRIER();
			done += topk_by_emit(m, r, first, words, done);
		}
		topk_by_meet(blocks);
	}
}

#endif
#endif
