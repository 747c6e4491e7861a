/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of any length whose scores are counted, by a cluster or by one of its
 * blocks alone: exact histograms of 13 bits give the k-th key, a last pass sets
 * a bit for each score above it and, apart, for each equal to it. The hard idea
 * is that a piece of 32 scores is a word of bits, so that no block waits for
 * another to know where its own go.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_COUNT_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_COUNT_DEVICE_H

#include "spmla/platform/gpu/select/topk_by_device.h"

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* The keys of a load of the block's share, from place `at` on; a bit of the
 * result for each that is of the row. */
FN uint32_t
topk_by_keys(const PRIVATE topk_by_row *r, uint32_t at, PRIVATE uint32_t *keys)
{
	uint32_t is = 0, i;

	topk_fetch4(r->row, at / 4, keys);
	UNROLL
	for (i = 0; i < 4; i++) {
		is |= (uint32_t)(at + i - r->row.pad < r->row.len) << i;
		keys[i] = topk_key(keys[i]);
	}
	return is;
}

/* Counts, in the first block, the keys that begin with `prefix`, by their next
 * bits, and tells all blocks where `rest` are reached. */
FN void
topk_by_digit(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	      uint32_t prefix, uint32_t mask, uint32_t shift, uint32_t rest)
{
	const uint32_t turn = m.items / 8 * blocks;
	const uint32_t own = g_item() / 8 * blocks + topk_by_own(m);
	uint32_t keys[4], piece, i;

	topk_by_clear(m);
	topk_by_meet(blocks);
	NO_UNROLL
	for (piece = 0; piece < r->pieces; piece += turn) {
		const uint32_t is = topk_by_keys(
			r, 32 * (piece + own) + g_item() % 8 * 4, keys);

		UNROLL
		for (i = 0; i < 4; i++)
			topk_by_add(m, keys[i] >> shift & (TOPK_BY_BINS - 1),
				    (is >> i & 1u) &&
					    (keys[i] & mask) == prefix);
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
		if (g_item() < blocks) {
			const g_cluster_place to =
				g_cluster_at(m.head->told, g_item());

			g_cluster_store2_if(to, m.head->found[0],
					    m.head->found[1], 1);
			g_cluster_store(to + 8, m.head->found[2]);
		}
	}
	topk_by_meet(blocks);
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
	upto = topk_by_upto(n);
	before =
		done + topk_by_warps(m, m.head->sums[0], upto, &all) + upto - n;
	NO_UNROLL
	for (i = from; i < end; i++) {
		uint32_t word = equal[i], taken = 0;

		NO_UNROLL
		while (word) {
			const uint32_t bit = word & (0u - word);

			if (before++ - first < count)
				taken |= bit;
			word ^= bit;
		}
		m.bits[i] |= taken;
	}
	return all;
}

/* Sets the bits of `words` pieces from `first` on: of those above kth, and, in
 * `equal`, of those equal to it. */
FN void
topk_by_mark(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks,
	     uint32_t first, uint32_t words, uint32_t kth,
	     LOCAL uint32_t *equal)
{
	const uint32_t turn = m.items / 8 * blocks;
	const uint32_t own = g_item() / 8 * blocks + topk_by_own(m);
	uint32_t keys[4], piece, i;

	NO_UNROLL
	for (piece = 0; piece < words; piece += turn) {
		const uint32_t word = piece + own;
		const uint32_t is = topk_by_keys(
			r, 32 * (first + word) + g_item() % 8 * 4, keys);
		uint32_t above = 0, same = 0;

		UNROLL
		for (i = 0; i < 4; i++) {
			above |= (uint32_t)(keys[i] > kth) << i;
			same |= (uint32_t)(keys[i] == kth) << i;
		}
		above = (above & is) << g_lane() % 8 * 4;
		same = (same & is) << g_lane() % 8 * 4;
		UNROLL
		for (i = 1; i < 8; i <<= 1) {
			above |= g_shuffle_xor(above, i);
			same |= g_shuffle_xor(same, i);
		}
		if (g_lane() % 8 == 0 && word < words) {
			g_cluster_store(g_cluster_at(m.bits + word, 0), above);
			g_cluster_store(g_cluster_at(equal + word, 0), same);
		}
	}
}

/* The k best of any row, by `blocks` blocks: the cluster's or this one. */
FN void
topk_by_count(topk_by m, const PRIVATE topk_by_row *r, uint32_t blocks)
{
	uint32_t prefix = 0, mask = 0, shift = 19, rest = r->k;
	uint32_t done = 0, equal = 0, first;

	for (;;) {
		topk_by_digit(m, r, blocks, prefix, mask, shift, rest);
		prefix |= m.head->told[0] << shift;
		mask = ~0u << shift;
		rest = m.head->told[1];
		if (shift == 0 || m.head->told[2] == 0)
			break;
		shift = shift > TOPK_BY_BITS ? shift - TOPK_BY_BITS : 0;
	}
	for (first = 0; first < r->pieces; first += m.words) {
		const uint32_t left = r->pieces - first;
		const uint32_t words = left < m.words ? left : m.words;

		topk_by_mark(m, r, blocks, first, words, prefix, m.list);
		topk_by_meet(blocks);
		if (topk_by_own(m) == 0) {
			equal +=
				topk_by_ties(m, m.list, words,
					     r->last_ties ? m.head->told[2] : 0,
					     rest, equal);
			BARRIER();
			done += topk_by_emit(m, r, first, words, done);
		}
		topk_by_meet(blocks);
	}
}

#endif
#endif
