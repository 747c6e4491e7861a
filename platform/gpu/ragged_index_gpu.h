/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: one launch without a word between blocks. Each block has a run
 * of tokens and adds up the lengths before it by itself, a read of 4 bytes a
 * token from the cache. What it then writes is one piece of memory, and its
 * items take elements of that, whichever row they are of, so that long and
 * short rows cost what they hold.
 */
#ifndef SPMLA_PLATFORM_GPU_RAGGED_INDEX_H
#define SPMLA_PLATFORM_GPU_RAGGED_INDEX_H

#include "spmla/platform/gpu/dialect_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"

#define SPMLA_K_ragged_index(P, S) \
	SPMLA_K_FAULT(P)           \
	P(const int32_t, indices)  \
	P(const int32_t, lens)     \
	P(int32_t, ragged_indptr)  \
	P(int32_t, ragged_indices) \
	S(int64_t, indices_stride) \
	S(uint32_t, tokens)        \
	S(uint32_t, width)         \
	S(uint32_t, num_slots)     \
	S(uint32_t, capacity)      \
	S(uint32_t, has_lens)
SPMLA_KERNEL_SCALARS(ragged_index)

enum { RAGGED_ITEMS = SPMLA_ITEMS_ragged_index, RAGGED_LOADS = 4 };

#ifdef SPMLA_GPU_KERNELS

FN uint32_t
ragged_length(GLOBAL const int32_t *lens, uint32_t has_lens, uint32_t width,
	      uint32_t t)
{
	int32_t len;

	if (!has_lens)
		return width;
	len = lens[t] > 0 ? lens[t] : 0;
	return (uint32_t)len < width ? (uint32_t)len : width;
}

/* Tokens [first, first + n), n <= RAGGED_ITEMS, by one block; *from entries lie
 * before them, and then before those behind. `ends` holds an entry an item,
 * `sums` is of the scans. */
FN void
ragged_piece(const PRIVATE g_reporter *to, GLOBAL const int32_t *indices,
	     int64_t stride, GLOBAL const int32_t *lens, uint32_t has_lens,
	     uint32_t width, uint32_t num_slots, uint32_t capacity,
	     GLOBAL int32_t *indptr, GLOBAL int32_t *out, uint32_t first,
	     uint32_t n, PRIVATE uint64_t *from, LOCAL uint32_t *ends,
	     LOCAL uint64_t *sums)
{
	const uint32_t own = g_item(), mine = own < n;
	const uint32_t len =
		mine ? ragged_length(lens, has_lens, width, first + own) : 0;
	const uint32_t base = *from < capacity ? (uint32_t)*from : capacity;
	uint32_t whole = n, stop, e, i; /* rows that fit, and their end */
	uint64_t end, total;

	end = *from + g_scan_sum(len, RAGGED_ITEMS, sums, &total) + len;
	*from += total;
	stop = end < capacity ? (uint32_t)end : capacity;
	ends[own] = stop;
	if (mine) {
		indptr[first + own + 1] = (int32_t)stop;
		if (end > capacity && len > 0)
			g_report(to, first + own, G_FAULT_LENGTH);
	}
	if (*from > capacity)
		(void)g_scan_flags(mine && end <= capacity, RAGGED_ITEMS, sums,
				   &whole);
	BARRIER();
	stop = ends[n - 1];
	for (e = base + own; e < stop; e += RAGGED_LOADS * RAGGED_ITEMS) {
		int32_t x[RAGGED_LOADS];

		UNROLL
		for (i = 0; i < RAGGED_LOADS; i++) {
			const uint32_t at = e + i * RAGGED_ITEMS;
			uint32_t low = 0, high = n - 1; /* first end above at */

			x[i] = -1;
			if (at >= stop)
				continue;
			while (low < high) {
				const uint32_t middle = (low + high) / 2;

				if (ends[middle] > at)
					high = middle;
				else
					low = middle + 1;
			}
			if (low < whole)
				x[i] = indices[(int64_t)(first + low) * stride +
					       (at -
						(low ? ends[low - 1] : base))];
		}
		UNROLL
		for (i = 0; i < RAGGED_LOADS; i++) {
			const uint32_t at = e + i * RAGGED_ITEMS;

			if (num_slots && (uint32_t)x[i] >= num_slots)
				x[i] = -1;
			if (at < stop)
				out[at] = x[i];
		}
	}
	BARRIER();
}

SPMLA_KERNEL(ragged_index)
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint32_t, ends, RAGGED_ITEMS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);
	const uint32_t begin =
		(uint32_t)((uint64_t)s.tokens * g_block() / g_blocks());
	const uint32_t end =
		(uint32_t)((uint64_t)s.tokens * (g_block() + 1) / g_blocks());
	uint64_t before = 0, from;
	uint32_t t;

	for (t = g_item(); t < begin; t += RAGGED_ITEMS)
		before += ragged_length(lens, s.has_lens, s.width, t);
	(void)g_scan_sum(before, RAGGED_ITEMS, sums, &from);
	if (g_block() == 0 && g_item() == 0)
		ragged_indptr[0] = 0;
	for (t = begin; t < end; t += RAGGED_ITEMS)
		ragged_piece(&to, indices, s.indices_stride, lens, s.has_lens,
			     s.width, s.num_slots, s.capacity, ragged_indptr,
			     ragged_indices, t,
			     end - t < RAGGED_ITEMS ? end - t : RAGGED_ITEMS,
			     &from, ends, sums);
}

#endif
#endif
