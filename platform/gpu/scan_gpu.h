/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over a block of up to 1024 items, exact integers. The hard idea: with
 * xor-shuffles alone a lane can keep the sum of its aligned group of 2^k lanes
 * and what of it lies before the lane; the next step adds the neighbour group,
 * and that counts as before if the lane's bit says so.
 */
#ifndef SPMLA_PLATFORM_GPU_SCAN_H
#define SPMLA_PLATFORM_GPU_SCAN_H

#include "spmla/platform/gpu/dialect_gpu.h"

enum { G_SCAN_SUBGROUPS = 64 }; /* entries of the array that scans need */

#ifdef SPMLA_GPU_KERNELS

FN uint64_t
g_shuffle_xor64(uint64_t x, uint32_t mask)
{
	const uint32_t low = g_shuffle_xor((uint32_t)x, mask);

	return (uint64_t)g_shuffle_xor((uint32_t)(x >> 32), mask) << 32 | low;
}

/* The sum of x over the items of the block before this one; *total is the sum
 * over all `items`. A barrier at both ends. */
FN uint64_t
g_scan_sum(uint64_t x, uint32_t items, LOCAL uint64_t *sums,
	   PRIVATE uint64_t *total)
{
	const uint32_t width = g_width(), own = g_item() / width;
	uint64_t group = x, before = 0, all = 0;
	uint32_t step, i;

	for (step = 1; step < width; step <<= 1) {
		const uint64_t other = g_shuffle_xor64(group, step);

		before += g_lane() & step ? other : 0;
		group += other;
	}
	BARRIER();
	if (g_lane() == 0)
		sums[own] = group;
	BARRIER();
	for (i = 0; i < items / width; i++) {
		before += i < own ? sums[i] : 0;
		all += sums[i];
	}
	*total = all;
	return before;
}

/* The largest x over the items up to this one, itself included; *largest over
 * all. */
FN uint32_t
g_scan_max(uint32_t x, uint32_t items, LOCAL uint64_t *sums,
	   PRIVATE uint32_t *largest)
{
	const uint32_t width = g_width(), own = g_item() / width;
	uint32_t group = x, upto = x, all = 0, step, i;

	for (step = 1; step < width; step <<= 1) {
		const uint32_t other = g_shuffle_xor(group, step);

		if ((g_lane() & step) && other > upto)
			upto = other;
		group = other > group ? other : group;
	}
	BARRIER();
	if (g_lane() == 0)
		sums[own] = group;
	BARRIER();
	for (i = 0; i < items / width; i++) {
		const uint32_t most = (uint32_t)sums[i];

		upto = i < own && most > upto ? most : upto;
		all = most > all ? most : all;
	}
	*largest = all;
	return upto;
}

/* How many items before this one have a flag (0 or 1); *total of all `items`
 * do. A barrier at both ends. */
FN uint32_t
g_scan_flags(uint32_t flag, uint32_t items, LOCAL uint64_t *sums,
	     PRIVATE uint32_t *total)
{
	const uint32_t width = g_width(), own = g_item() / width;
	const uint64_t flags = g_ballot(flag);
	uint32_t before, all = 0, i;

	before = g_popcount64(flags & (((uint64_t)1 << g_lane()) - 1));
	BARRIER();
	if (g_lane() == 0)
		sums[own] = g_popcount64(flags);
	BARRIER();
	for (i = 0; i < items / width; i++) {
		before += i < own ? (uint32_t)sums[i] : 0;
		all += (uint32_t)sums[i];
	}
	*total = all;
	return before;
}

/* Whether x is not 0 for any item of the block. */
FN uint32_t
g_any(uint32_t x, uint32_t items, LOCAL uint64_t *sums)
{
	uint64_t total;

	(void)g_scan_sum(x != 0, items, sums, &total);
	return total != 0;
}

#endif
#endif
