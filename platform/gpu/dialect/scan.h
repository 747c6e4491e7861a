/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact integer scans over a block of up to 1024 threads. The hard idea:
 * xor-shuffles alone suffice. A lane keeps the sum of its aligned group of 2^k
 * lanes and the part of that sum that lies before the lane. Each step adds the
 * neighbour group's sum; it counts as "before" if bit k of the lane is set.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_SCAN_H
#define SPMLA_PLATFORM_GPU_DIALECT_SCAN_H

#include "spmla/platform/gpu/dialect/dialect.h"

enum { G_SCAN_SUBGROUPS = 64 }; /* elements of `sums` */

#ifdef SPMLA_GPU_KERNELS

FN uint64_t
g_shuffle_xor64(uint64_t x, uint32_t mask)
{
	const uint32_t low = g_shuffle_xor((uint32_t)x, mask);

	return (uint64_t)g_shuffle_xor((uint32_t)(x >> 32), mask) << 32 | low;
}

/* The sum of x over the lanes before this one; *group is the sum over all. */
FN uint64_t
g_scan_lanes(uint64_t x, PRIVATE uint64_t *group)
{
	uint64_t before = 0, sum = x;
	uint32_t step;

	for (step = 1; step < g_width(); step <<= 1) {
		const uint64_t other = g_shuffle_xor64(sum, step);

		before += g_lane() & step ? other : 0;
		sum += other;
	}
	*group = sum;
	return before;
}

/* Whether every thread reads the sums of all subgroups. If there are many, the
 * first subgroup adds them up for all: one barrier more, but fewer registers
 * and reads. */
FN uint32_t
g_scan_few(uint32_t groups)
{
	return groups <= g_width() / 4;
}

/* The sum of x over the threads before this one in the block. *total is the sum
 * over all `items`. A barrier at both ends. */
FN uint64_t
g_scan_sum(uint64_t x, uint32_t items, LOCAL uint64_t *sums,
	   PRIVATE uint64_t *total)
{
	const uint32_t width = g_width(), own = g_item() / width;
	const uint32_t groups = items / width;
	uint64_t before, all = 0;
	uint32_t i;

	before = g_scan_lanes(x, &all);
	BARRIER();
	if (g_lane() == 0)
		sums[own] = all;
	BARRIER();
	if (g_scan_few(groups)) {
		all = 0;
		for (i = 0; i < groups; i++) {
			before += i < own ? sums[i] : 0;
			all += sums[i];
		}
		*total = all;
		return before;
	}
	if (own == 0) {
		const uint32_t each = (groups + width - 1) / width;
		const uint32_t first = g_lane() * each;
		uint64_t upto = 0;

		for (i = first; i < first + each && i < groups; i++)
			upto += sums[i];
		upto = g_scan_lanes(upto, &all);
		for (i = first; i < first + each && i < groups; i++) {
			upto += sums[i];
			sums[i] = upto;
		}
	}
	BARRIER();
	*total = sums[groups - 1];
	return before + (own ? sums[own - 1] : 0);
}

FN uint32_t
g_most(uint32_t x, uint32_t y)
{
	return x > y ? x : y;
}

/* The largest x over the lanes before this one, or 0. *group is the largest
 * over all. */
FN uint32_t
g_scan_max_lanes(uint32_t x, PRIVATE uint32_t *group)
{
	uint32_t before = 0, most = x, step;

	for (step = 1; step < g_width(); step <<= 1) {
		const uint32_t other = g_shuffle_xor(most, step);

		before = g_most(before, g_lane() & step ? other : 0);
		most = g_most(most, other);
	}
	*group = most;
	return before;
}

/* The largest x over the threads up to this one, itself included. *largest is
 * the largest over all. */
FN uint32_t
g_scan_max(uint32_t x, uint32_t items, LOCAL uint64_t *sums,
	   PRIVATE uint32_t *largest)
{
	const uint32_t width = g_width(), own = g_item() / width;
	const uint32_t groups = items / width;
	uint32_t upto, all = 0, i;

	upto = g_most(g_scan_max_lanes(x, &all), x);
	BARRIER();
	if (g_lane() == 0)
		sums[own] = all;
	BARRIER();
	if (g_scan_few(groups)) {
		all = 0;
		for (i = 0; i < groups; i++) {
			const uint32_t most = (uint32_t)sums[i];

			upto = i < own ? g_most(upto, most) : upto;
			all = g_most(all, most);
		}
		*largest = all;
		return upto;
	}
	if (own == 0) {
		const uint32_t each = (groups + width - 1) / width;
		const uint32_t first = g_lane() * each;
		uint32_t most = 0;

		for (i = first; i < first + each && i < groups; i++)
			most = g_most(most, (uint32_t)sums[i]);
		most = g_scan_max_lanes(most, &all);
		for (i = first; i < first + each && i < groups; i++) {
			most = g_most(most, (uint32_t)sums[i]);
			sums[i] = most;
		}
	}
	BARRIER();
	*largest = (uint32_t)sums[groups - 1];
	return own ? g_most(upto, (uint32_t)sums[own - 1]) : upto;
}

/* How many threads before this one have a flag (0 or 1). *total is how many of
 * all `items` have one. A barrier at both ends. */
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

/* Whether x is not 0 for any thread of the block. */
FN uint32_t
g_any(uint32_t x, uint32_t items, LOCAL uint64_t *sums)
{
	uint64_t total;

	(void)g_scan_sum(x != 0, items, sums, &total);
	return total != 0;
}

/* The index of the first of ends[low .. high - 1], which ascend, that is above
 * x; `high` if none is. */
FN uint32_t
g_first_above(LOCAL const uint32_t *ends, uint32_t low, uint32_t high,
	      uint32_t x)
{
	NO_UNROLL
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (ends[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The same for 64 bits. */
FN uint32_t
g_first_above64(LOCAL const uint64_t *ends, uint32_t low, uint32_t high,
		uint64_t x)
{
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (ends[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

#endif
#endif
