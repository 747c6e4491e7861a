/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: one block. The hard idea is that of the CPU's: with C the prefix
 * sum of what requests cost, a part that starts at x ends where C passes x plus
 * its payload. The block makes C, 1024 requests at a time, in local memory; one
 * subgroup walks the parts, each step a search by all its lanes at once.
 */
#ifndef SPMLA_PLATFORM_GPU_TILE_SCHED_H
#define SPMLA_PLATFORM_GPU_TILE_SCHED_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"

#define SPMLA_K_tile_sched(P, S)            \
	SPMLA_K_FAULT(P)                    \
	P(const int32_t, topk_lens)         \
	P(const int32_t, extra_topk_lens)   \
	P(int32_t, tile_scheduler_metadata) \
	P(int32_t, num_splits)              \
	S(uint32_t, batch)                  \
	S(uint32_t, parts)                  \
	S(uint32_t, overhead)               \
	S(uint32_t, topk)                   \
	S(uint32_t, extra_topk)             \
	S(uint32_t, has_lens)               \
	S(uint32_t, has_extra_lens)         \
	S(uint32_t, old_rows)
SPMLA_KERNEL_SCALARS(tile_sched)

enum { TILE_SCHED_ITEMS = SPMLA_ITEMS_tile_sched };

#ifdef SPMLA_GPU_KERNELS

enum { TILE_SCHED_KEYS = 64, TILE_SCHED_ROW = 8 };

/* A length clamped to [low, most]. */
FN uint32_t
tile_sched_keys(int32_t len, uint32_t low, uint32_t most)
{
	const uint32_t n = len > 0 ? (uint32_t)len : 0;

	return n < low ? low : n > most ? most : n;
}

/* Blocks of request i, at least 1 and at most 2^26. */
FN uint32_t
tile_sched_blocks(GLOBAL const int32_t *lens, GLOBAL const int32_t *extra_lens,
		  const PRIVATE spmla_k_tile_sched_scalars *s, uint32_t i)
{
	const uint32_t most = TILE_SCHED_KEYS - 1;
	uint32_t keys = s->topk, blocks;

	if (s->has_lens)
		keys = tile_sched_keys(lens[i], 1, s->topk);
	blocks = keys / TILE_SCHED_KEYS + ((keys & most) != 0);
	if (s->extra_topk) {
		keys = s->extra_topk;
		if (s->has_extra_lens)
			keys = tile_sched_keys(extra_lens[i], 0, s->extra_topk);
		blocks += keys / TILE_SCHED_KEYS + ((keys & most) != 0);
	}
	return blocks;
}

FN uint32_t
tile_sched_bad(GLOBAL const int32_t *lens, GLOBAL const int32_t *extra_lens,
	       const PRIVATE spmla_k_tile_sched_scalars *s, uint32_t i)
{
	return (s->has_lens && (uint32_t)lens[i] > s->topk) ||
	       (s->extra_topk && s->has_extra_lens &&
		(uint32_t)extra_lens[i] > s->extra_topk);
}

/* A part that starts at (req, block) and ends at (to, to_block), whose last
 * request has `blocks`. */
FN void
tile_sched_row(GLOBAL int32_t *row, uint32_t old_rows, uint32_t req,
	       uint32_t block, uint32_t to, uint32_t to_block, uint32_t blocks,
	       uint32_t split)
{
	const int32_t end_req = (int32_t)to - (to_block == 0);
	const uint32_t end_block = to_block ? to_block : blocks;
	uint32_t first = block != 0, last = end_block != blocks;

	if ((int32_t)req == end_req)
		first = last = first | last;
	row[0] = (int32_t)req;
	row[1] = old_rows ? (int32_t)block : end_req;
	row[2] = old_rows ? end_req : (int32_t)block;
	row[3] = (int32_t)end_block;
	row[4] = (int32_t)split;
	row[5] = old_rows ? 0 : (int32_t)first;
	row[6] = old_rows ? 0 : (int32_t)last;
	row[7] = 0;
}

SPMLA_KERNEL(tile_sched)
{
	LOCAL_ARRAY(uint64_t, ends, TILE_SCHED_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const uint32_t width = g_width(), lane = g_lane();
	uint64_t all = 0, base = 0, total, payload;
	uint64_t start = 0; /* C of the request that the part starts in */
	uint32_t req = 0, block = 0, part = 0, first, at = 0, r;
	uint32_t inner = 0;  /* starts so far that split a request */
	uint32_t before = 0; /* of them, those in requests before req */

	for (first = 0; first < s.batch; first += TILE_SCHED_ITEMS) {
		const uint32_t i = first + g_item();
		uint64_t cost = 0;

		if (i < s.batch) {
			cost = (uint64_t)tile_sched_blocks(
				       topk_lens, extra_topk_lens, &s, i) +
			       s.overhead;
			if (tile_sched_bad(topk_lens, extra_topk_lens, &s, i))
				g_fault(fault_state, fault_status, i,
					G_FAULT_LENGTH);
		}
		(void)g_scan_sum(cost, TILE_SCHED_ITEMS, sums, &total);
		all += total;
	}
	payload = all / s.parts + (all % s.parts != 0) + s.overhead;
	if (g_item() == 0)
		num_splits[0] = 0;

	first = 0;
	do {
		const uint32_t i = first + g_item();
		const uint32_t n = s.batch - first < TILE_SCHED_ITEMS
					   ? s.batch - first
					   : TILE_SCHED_ITEMS;
		const uint64_t cost =
			i < s.batch
				? (uint64_t)tile_sched_blocks(
					  topk_lens, extra_topk_lens, &s, i) +
					  s.overhead
				: 0;

		ends[g_item()] =
			base + cost +
			g_scan_sum(cost, TILE_SCHED_ITEMS, sums, &total);
		BARRIER();
		while (g_item() < width && part < s.parts) {
			const uint64_t paid = start + block + payload;
			const uint64_t reach = paid - s.overhead;
			uint32_t to, to_block = 0, end, split;
			uint64_t to_start, found = 0;

			for (; at < first + n && !found;) {
				found = g_ballot(at + lane < first + n &&
						 ends[at + lane - first] >
							 paid);
				at += found ? 0 : width;
			}
			if (!found && first + n < s.batch) {
				at = first + n;
				break; /* it ends in the next requests */
			}
			to = found ? at + g_lowest64(found) : s.batch;
			to_start = to == first ? base : ends[to - 1 - first];
			if (n == 0)
				to_start = base;
			if (to < s.batch && reach > to_start)
				to_block = (uint32_t)(reach - to_start);
			inner += block != 0;
			split = inner - before;
			for (r = req + lane; r < to; r += width)
				num_splits[r + 1] = (int32_t)(r + 1 + inner);
			end = to - (to_block == 0); /* ~0: none */
			if (lane == 0)
				tile_sched_row(
					tile_scheduler_metadata +
						(uint64_t)part * TILE_SCHED_ROW,
					s.old_rows, req, block, to, to_block,
					end < s.batch ? tile_sched_blocks(
								topk_lens,
								extra_topk_lens,
								&s, end)
						      : 0,
					split);
			before = to > req ? inner : before;
			req = to;
			block = to_block;
			start = to_start;
			at = to;
			part++;
		}
		BARRIER();
		base = ends[TILE_SCHED_ITEMS - 1];
		BARRIER();
		first += TILE_SCHED_ITEMS;
	} while (first < s.batch);
}

#endif
#endif
