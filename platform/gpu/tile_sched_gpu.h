/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: one block. With C the prefix sum of what requests cost, a part
 * that starts at x ends where C passes x plus its payload, and the next starts
 * there: one subgroup walks the parts. Two ideas make that short. The walk
 * touches registers alone, where each lane has the C of one of the next
 * requests as 32 bits past the first one's; rows and num_splits are made from
 * where parts start, by the block. And requests that all cost the same, which
 * they do as long as contexts hold more than topk keys, need no walk: parts go
 * on by the payload until one would leave less of a request than a split costs,
 * hence starts at the next, and from there all is as it was at the start. That
 * period each item tries for a number of parts of its own, and the rest is
 * arithmetic.
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

enum {
	TILE_SCHED_KEYS = 64,
	TILE_SCHED_ROW = 8,
	/* For the parts of a window and the next one: request and block of each
	 * start, then of each how many have split a request. */
	TILE_SCHED_STARTS = 3 * (TILE_SCHED_ITEMS + 1),
	TILE_SCHED_BEFORES = TILE_SCHED_ITEMS + 1,
	TILE_SCHED_STATE = 2
};

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

/* What a call of tile_sched_make works on, and what its block shares. */
typedef struct tile_sched_job {
	GLOBAL const int32_t *lens;
	GLOBAL const int32_t *extra_lens;
	GLOBAL int32_t *rows;
	GLOBAL int32_t *num_splits;
	LOCAL uint64_t *sums;    /* G_SCAN_SUBGROUPS */
	LOCAL uint64_t *befores; /* TILE_SCHED_BEFORES */
	LOCAL uint32_t *starts;  /* TILE_SCHED_STARTS */
	LOCAL uint32_t *state;   /* TILE_SCHED_STATE */
} tile_sched_job;

/* The row of a part, from where it and the next one start. */
FN void
tile_sched_part(const PRIVATE tile_sched_job *job,
		const PRIVATE spmla_k_tile_sched_scalars *s, uint64_t share,
		uint32_t part, uint32_t req, uint32_t block, uint32_t to,
		uint32_t to_block)
{
	const uint32_t end = to - (to_block == 0); /* ~0: none */

	/* Starts that split the request lie a share apart. */
	tile_sched_row(
		job->rows + (uint64_t)part * TILE_SCHED_ROW, s->old_rows, req,
		block, to, to_block,
		end < s->batch
			? tile_sched_blocks(job->lens, job->extra_lens, s, end)
			: 0,
		block ? (uint32_t)((block - 1) / share) + 1 : 0);
}

/* The first 1 <= m <= parts for which m shares of `share` end within overhead
 * below a multiple of cost; parts + 1: none. */
FN uint32_t
tile_sched_period(LOCAL uint32_t *state, uint32_t parts, uint32_t cost,
		  uint64_t share, uint32_t overhead)
{
	const uint64_t step = share % cost;
	uint32_t first, least = 0;

	if (g_item() == 0)
		state[0] = parts + 1;
	BARRIER();
	for (first = 1; first <= parts; first += TILE_SCHED_ITEMS) {
		const uint32_t m = first + g_item();
		const uint32_t left =
			cost - 1 - (uint32_t)((m * step + cost - 1) % cost);

		if (m <= parts && left <= overhead)
			(void)g_local_min(&state[0], m);
		BARRIER();
		least = state[0];
		BARRIER();
		if (least <= parts)
			break;
	}
	return least;
}

/* Requests of one cost: parts m of a period start at m * share, and a period is
 * `period` parts and `turn` requests. */
FN void
tile_sched_even(const PRIVATE tile_sched_job *job,
		const PRIVATE spmla_k_tile_sched_scalars *s, uint32_t cost,
		uint64_t share)
{
	uint32_t period = tile_sched_period(job->state, s->parts, cost, share,
					    s->overhead);
	uint64_t turn = s->batch;
	uint32_t p, r;

	if (period <= s->parts)
		turn = (period * share + cost - 1) / cost;
	else
		period = s->parts; /* none of them starts anew */
	for (p = g_item(); p < s->parts; p += TILE_SCHED_ITEMS) {
		uint32_t req[2], block[2], i;

		UNROLL
		for (i = 0; i < 2; i++) {
			const uint64_t m = (p + i) % period;
			const uint64_t x =
				(p + i) / period * turn * cost + m * share;
			const uint64_t at = x / cost;

			req[i] = at < s->batch ? (uint32_t)at : s->batch;
			block[i] = at < s->batch ? (uint32_t)(x % cost) : 0;
		}
		tile_sched_part(job, s, share, p, req[0], block[0], req[1],
				block[1]);
	}
	for (r = g_item(); r < s->batch; r += TILE_SCHED_ITEMS) {
		const uint64_t end = (r % turn + 1) * cost;
		const uint64_t here = (end - 1) / share;
		const uint64_t most = period - 1;

		job->num_splits[r + 1] = (int32_t)(r + 1 + r / turn * most +
						   (here < most ? here : most));
	}
}

/* Starts of parts as far as the n requests go whose C is in job->befores, the
 * n + 1st being the end; at most as many as fit, and `parts`. On entry a part
 * starts at (req, block) and reaches up to `paid`; on return the last one
 * found does. Returns how many parts end. By one subgroup. */
FN uint32_t
tile_sched_walk(const PRIVATE tile_sched_job *job, uint32_t first, uint32_t n,
		uint32_t last, uint32_t parts, uint64_t share,
		uint32_t overhead, PRIVATE uint32_t *req,
		PRIVATE uint32_t *block, PRIVATE uint64_t *paid)
{
	/* 63 requests cost less. */
	const uint32_t never = ~0u, most = ~0u - 1;
	const uint64_t payload = share + overhead;
	const uint32_t pay = payload < most ? (uint32_t)payload : most;
	const uint32_t width = g_width(), lane = g_lane();
	uint32_t at = 0, count = 0, mine = 0, y = 0, held = 0;
	uint64_t origin = 0;

	if (lane == 0) {
		job->starts[0] = *req;
		job->starts[1] = *block;
	}
	while (count < parts && count < TILE_SCHED_ITEMS) {
		uint32_t passed, begin, x;

		if (!held) { /* the lanes' requests: the part ends there */
			while (at + width - 1 <= n &&
			       job->befores[at + width - 1] <= *paid)
				at += width - 1;
			origin = job->befores[at];
			mine = at + lane > n
				       ? never
				       : (uint32_t)(job->befores[at + lane] -
						    origin);
			y = *paid - origin < most ? (uint32_t)(*paid - origin)
						  : most;
			held = 1;
		}
		passed = g_popcount64(g_ballot(mine <= y));
		if (passed == width) {
			held = 0;
			continue;
		}
		if (at + passed > n) { /* all that are here */
			if (!last)
				break;
			*req = first + n;
			*block = 0;
			count++;
			if (lane == 0) {
				job->starts[2 * count] = *req;
				job->starts[2 * count + 1] = 0;
			}
			break;
		}
		begin = g_broadcast(mine, passed - 1);
		x = y > begin + overhead ? y - overhead : begin;
		y = x < most - pay ? x + pay : most;
		*paid = origin + x + payload;
		*req = first + at + passed - 1;
		*block = x - begin;
		count++;
		if (lane == 0) {
			job->starts[2 * count] = *req;
			job->starts[2 * count + 1] = *block;
		}
	}
	return count;
}

/* The last of `count` + 1 starts that is in a request up to r; 0: none but the
 * first. */
FN uint32_t
tile_sched_find(LOCAL const uint32_t *starts, uint32_t count, uint32_t r)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		const uint32_t middle = high - (high - low) / 2;

		if (starts[2 * middle] <= r)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Requests of any cost, a window of them and of starts after the other. */
FN void
tile_sched_odd(const PRIVATE tile_sched_job *job,
	       const PRIVATE spmla_k_tile_sched_scalars *s, uint64_t share)
{
	LOCAL uint32_t *starts = job->starts, *state = job->state;
	LOCAL uint32_t *inners = starts + 2 * (TILE_SCHED_ITEMS + 1);
	uint64_t base = 0, paid = share + s->overhead, total;
	uint32_t first = 0, part = 0; /* of the window */
	uint32_t inner = 0;           /* starts so far that split a request */
	uint32_t req = 0, block = 0, i;

	do {
		const uint32_t n = s->batch - first < TILE_SCHED_ITEMS
					   ? s->batch - first
					   : TILE_SCHED_ITEMS;
		uint32_t count, requests, splits;
		uint64_t cost = 0, before;

		if (g_item() < n)
			cost = (uint64_t)tile_sched_blocks(job->lens,
							   job->extra_lens, s,
							   first + g_item()) +
			       s->overhead;
		before = g_scan_sum(cost, TILE_SCHED_ITEMS, job->sums, &total);
		job->befores[g_item()] = base + before;
		if (g_item() == 0)
			job->befores[TILE_SCHED_ITEMS] = base + total;
		BARRIER();
		if (g_item() < g_width()) {
			count = tile_sched_walk(
				job, first, n, first + n == s->batch,
				s->parts - part, share, s->overhead, &req,
				&block, &paid);
			/* All requests of the window have their parts, or those
			 * before the last start. */
			requests = count == TILE_SCHED_ITEMS ||
						   count == s->parts - part
					   ? req - first
					   : n;
			if (g_item() == 0) {
				state[0] = count;
				state[1] = requests;
			}
		}
		BARRIER();
		count = state[0];
		requests = state[1];
		i = g_item();
		splits = i < count && starts[2 * i + 1] != 0;
		inners[i] = inner + splits +
			    (uint32_t)g_scan_sum(splits, TILE_SCHED_ITEMS,
						 job->sums, &total);
		BARRIER();
		if (i < count)
			tile_sched_part(job, s, share, part + i, starts[2 * i],
					starts[2 * i + 1], starts[2 * i + 2],
					starts[2 * i + 3]);
		if (i < requests) {
			const uint32_t p =
				tile_sched_find(starts, count, first + i);

			/* The last start is of the next window, too. */
			splits = inner + (uint32_t)total +
				 (starts[2 * count + 1] != 0);
			job->num_splits[first + i + 1] =
				(int32_t)(first + i + 1 +
					  (p < count ? inners[p] : splits));
		}
		base = job->befores[requests];
		inner += (uint32_t)total;
		part += count;
		first += requests;
		BARRIER();
	} while (first < s->batch && part < s->parts);
	for (i = part + g_item(); i < s->parts; i += TILE_SCHED_ITEMS)
		tile_sched_part(job, s, 1, i, s->batch, 0, s->batch, 0);
}

/* The plan, by the whole block. */
FN void
tile_sched_make(const PRIVATE tile_sched_job *job,
		const PRIVATE spmla_k_tile_sched_scalars *s,
		GLOBAL spmla_g_state *fault_state,
		GLOBAL spmla_g_status *fault_status)
{
	const uint32_t odd_bit = 40; /* 1024 costs are below, their count not
				      * past 64 */
	uint64_t all = 0, odd = 0, total, share;
	uint32_t first, cost = 0;

	if (s->batch)
		cost = tile_sched_blocks(job->lens, job->extra_lens, s, 0) +
		       s->overhead;
	for (first = 0; first < s->batch; first += TILE_SCHED_ITEMS) {
		const uint32_t i = first + g_item();
		uint64_t x = 0;

		if (i < s->batch) {
			x = (uint64_t)tile_sched_blocks(job->lens,
							job->extra_lens, s, i) +
			    s->overhead;
			x |= (uint64_t)(x != cost) << odd_bit;
			if (tile_sched_bad(job->lens, job->extra_lens, s, i))
				g_fault(fault_state, fault_status, i,
					G_FAULT_LENGTH);
		}
		(void)g_scan_sum(x, TILE_SCHED_ITEMS, job->sums, &total);
		all += total & (((uint64_t)1 << odd_bit) - 1);
		odd |= total >> odd_bit;
	}
	share = all / s->parts + (all % s->parts != 0);
	if (g_item() == 0)
		job->num_splits[0] = 0;
	if (s->batch && !odd)
		tile_sched_even(job, s, cost, share);
	else
		tile_sched_odd(job, s, share);
}

SPMLA_KERNEL(tile_sched)
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint64_t, befores, TILE_SCHED_BEFORES);
	LOCAL_ARRAY(uint32_t, starts, TILE_SCHED_STARTS);
	LOCAL_ARRAY(uint32_t, state, TILE_SCHED_STATE);
	tile_sched_job job;

	job.lens = topk_lens;
	job.extra_lens = extra_topk_lens;
	job.rows = tile_scheduler_metadata;
	job.num_splits = num_splits;
	job.sums = sums;
	job.befores = befores;
	job.starts = starts;
	job.state = state;
	tile_sched_make(&job, &s, fault_state, fault_status);
}

#endif
#endif
