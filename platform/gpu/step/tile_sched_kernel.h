/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched: one block. C is the prefix sum of the requests' costs, and
 * `share` the average of C for a part; a part's payload is `overhead` more. A
 * part that starts at x is followed by one at x + share, with one exception:
 * if x + share lies at most `overhead` before the end of a request, the next
 * request starts the next part. That is a fresh start. Between fresh starts
 * the chain of parts is arithmetic, so only they must be found. Two ideas make
 * that fast.
 *
 * From a fresh start at the end k of a request, j > k can be the next one if
 * C[j] - C[k] modulo share is at most `overhead`. Requests cost more than
 * that, so no two compete, and the first such j is it. All threads find side by
 * side what follows each k, as far as it is near; then one thread goes from
 * fresh start to fresh start.
 *
 * Requests of one cost need not even that, and they all cost the same as long
 * as contexts hold more than topk keys: from the first fresh start on the
 * chain repeats. To find the period each thread tries a number of parts of its
 * own.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_TILE_SCHED_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_TILE_SCHED_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/decode_blocks_device.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_tile_sched(P, S)            \
	SPMLA_K_FAULT(P)                    \
	P(const int32_t, topk_lens)         \
	P(const int32_t, extra_topk_lens)   \
	P(int32_t, tile_scheduler_metadata) \
	P(int32_t, num_splits)              \
	S(uint32_t, batch)                  \
	S(uint32_t, first_request)          \
	S(uint32_t, parts)                  \
	S(uint32_t, overhead)               \
	S(uint32_t, topk)                   \
	S(uint32_t, extra_topk)             \
	S(spmla_g_divisor, lens_tokens)     \
	S(uint32_t, list_form)              \
	S(uint32_t, extra_list_form)        \
	S(uint32_t, old_rows)
SPMLA_KERNEL_SCALARS(tile_sched)

enum { TILE_SCHED_ITEMS = SPMLA_ITEMS_tile_sched };

#ifdef SPMLA_GPU_KERNELS

enum {
	TILE_SCHED_ROW = 8,
	/* How many requests behind its own a thread looks at. */
	TILE_SCHED_PROBES = 64,
	TILE_SCHED_AT_ONCE = 8,
	/* The start of a window and the ends of its requests, room for looking
	 * on, and where the chain of parts was fresh before the window. */
	TILE_SCHED_ORIGIN = TILE_SCHED_ITEMS + 1 + TILE_SCHED_AT_ONCE,
	TILE_SCHED_BOUNDS = TILE_SCHED_ORIGIN + 1
};

/* Shared memory. */
typedef struct tile_sched_shared {
	uint64_t sums[G_SCAN_SUBGROUPS];
	/* C at each boundary: whole shares, and the two words of the rest. */
	uint32_t turns[TILE_SCHED_BOUNDS];
	uint32_t lows[TILE_SCHED_BOUNDS];
	uint32_t highs[TILE_SCHED_BOUNDS];
	union {
		/* nexts, pairs: the next fresh start, parts up to it. Once
		 * these are used, ends: parts before the end of a request, its
		 * hop. */
		uint32_t nexts[2 * TILE_SCHED_BOUNDS];
		uint32_t ends[2 * TILE_SCHED_BOUNDS];
	} by;
	uint32_t hops[2 * TILE_SCHED_BOUNDS]; /* pairs: a fresh start, its
					       * part */
	uint32_t starts[2 * (TILE_SCHED_ITEMS + 1)]; /* pairs: request, block */
	uint32_t state; /* a period, or how many hops there are */
} tile_sched_shared;

/* What the kernel was given. */
typedef struct tile_sched_job {
	SPMLA_KERNEL_FIELDS(tile_sched)
	LOCAL tile_sched_shared *shared;
} tile_sched_job;

/* The lists of request i. Only their lengths are known. */
FN decode_list
tile_sched_list(const PRIVATE tile_sched_job *job, uint32_t i)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;

	return decode_list_of(job->topk_lens, s->list_form, s->lens_tokens, 0,
			      s->topk, i);
}

FN decode_list
tile_sched_extra(const PRIVATE tile_sched_job *job, uint32_t i)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;

	return decode_list_of(job->extra_topk_lens, s->extra_list_form,
			      s->lens_tokens, 0, s->extra_topk, i);
}

/* Blocks of request i, at least 1 and at most 2^26. */
FN uint32_t
tile_sched_blocks(const PRIVATE tile_sched_job *job, uint32_t i)
{
	return decode_blocks(tile_sched_list(job, i).len, 1) +
	       decode_blocks(tile_sched_extra(job, i).len, 0);
}

/* Whether a length is outside of [0, most]. */
FN uint32_t
tile_sched_outside(GLOBAL const int32_t *lens, uint32_t form, uint32_t most,
		   uint32_t at)
{
	return form == DECODE_LENS && (uint32_t)lens[at] > most;
}

FN uint32_t
tile_sched_bad(const PRIVATE tile_sched_job *job, uint32_t i)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;
	const uint32_t at = g_divide(i, s->lens_tokens);

	return tile_sched_list(job, i).faults ||
	       tile_sched_extra(job, i).faults ||
	       tile_sched_outside(job->topk_lens, s->list_form, s->topk, at) ||
	       tile_sched_outside(job->extra_topk_lens, s->extra_list_form,
				  s->extra_topk, at);
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

/* The row of a part, from where it and the next one start. */
FN void
tile_sched_part(const PRIVATE tile_sched_job *job, uint64_t share,
		uint32_t part, uint32_t req, uint32_t block, uint32_t to,
		uint32_t to_block)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;
	const uint32_t end = to - (to_block == 0); /* ~0: none */

	/* Starts that split the request lie a share apart. */
	tile_sched_row(job->tile_scheduler_metadata +
			       (uint64_t)part * TILE_SCHED_ROW,
		       s->old_rows, req, block, to, to_block,
		       end < s->batch ? tile_sched_blocks(job, end) : 0,
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
tile_sched_even(const PRIVATE tile_sched_job *job, uint32_t cost,
		uint64_t share)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;
	uint32_t period = tile_sched_period(&job->shared->state, s->parts, cost,
					    share, s->overhead);
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
		tile_sched_part(job, share, p, req[0], block[0], req[1],
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

/* C at a boundary, less its whole shares. */
FN uint64_t
tile_sched_rest(const PRIVATE tile_sched_job *job, uint32_t i)
{
	return (uint64_t)job->shared->highs[i] << 32 | job->shared->lows[i];
}

FN void
tile_sched_set(const PRIVATE tile_sched_job *job, uint32_t i, uint32_t turn,
	       uint64_t rest)
{
	job->shared->turns[i] = turn;
	job->shared->lows[i] = (uint32_t)rest;
	job->shared->highs[i] = (uint32_t)(rest >> 32);
}

/* Whether a chain that is fresh at boundary k can be so again at j > k: some
 * number of shares behind k there are at most `overhead` left up to j. */
FN uint32_t
tile_sched_meets(const PRIVATE tile_sched_job *job, uint32_t k, uint32_t j,
		 uint64_t share, uint32_t overhead)
{
	const uint64_t left = tile_sched_rest(job, j) - tile_sched_rest(job, k);

	return left <= overhead || left + share <= overhead;
}

/* How many parts that number is. */
FN uint32_t
tile_sched_between(const PRIVATE tile_sched_job *job, uint32_t k, uint32_t j,
		   uint64_t share, uint32_t overhead)
{
	uint64_t left = tile_sched_rest(job, j) - tile_sched_rest(job, k);
	uint32_t parts = job->shared->turns[j] - job->shared->turns[k];

	if (left > overhead) {
		left += share;
		parts--;
	}
	/* Fewer shares can do, too. */
	if (share <= overhead)
		parts -= (overhead - (uint32_t)left) / (uint32_t)share;
	return parts;
}

/* How many boundaries behind a fresh start are looked at beforehand: by their
 * low words, which tell only what is far below 2^32. */
FN uint32_t
tile_sched_probes(uint64_t share)
{
	return share >> 31 ? 0 : TILE_SCHED_PROBES;
}

/* For each boundary as a fresh start, finds the next fresh start and the parts
 * up to it; 0 if none is near. */
FN void
tile_sched_probe(const PRIVATE tile_sched_job *job, uint32_t n, uint64_t share,
		 uint32_t overhead)
{
	const uint32_t k = g_item(), low_share = (uint32_t)share;
	uint32_t next = 0, parts = 0, i, j;

	if (k == 0) {
		job->shared->by.nexts[2 * n] = 0;
		job->shared->by.nexts[2 * TILE_SCHED_ORIGIN] = 0;
	}
	if (k < n) {
		const uint32_t low = job->shared->lows[k];
		const uint32_t far = k + tile_sched_probes(share);
		const uint32_t last = far < n ? far : n;

		for (i = k + 1; i <= last && !next; i += TILE_SCHED_AT_ONCE) {
			UNROLL
			for (j = TILE_SCHED_AT_ONCE; j-- > 0;) {
				const uint32_t left =
					job->shared->lows[i + j] - low;

				if (left <= overhead ||
				    left + low_share <= overhead)
					next = i + j;
			}
		}
		if (next > n) /* what was never written */
			next = 0;
		if (next)
			parts = tile_sched_between(job, k, next, share,
						   overhead);
		job->shared->by.nexts[2 * k] = next;
		job->shared->by.nexts[2 * k + 1] = parts;
	}
}

/* Writes the fresh starts of the chain to shared->hops, from boundary `at`,
 * where part `part` starts, up to boundary n. Returns how many follow the first
 * one. One subgroup calls it. */
FN uint32_t
tile_sched_walk(const PRIVATE tile_sched_job *job, uint32_t at, uint32_t part,
		uint32_t n, uint64_t share, uint32_t overhead)
{
	uint32_t count = 0;

	for (;;) {
		uint32_t next = 0, first;

		/* One lane alone is faster where there is nothing to find. */
		while (g_lane() == 0) {
			job->shared->hops[2 * count] = at;
			job->shared->hops[2 * count + 1] = part;
			next = job->shared->by.nexts[2 * at];
			if (!next)
				break;
			part += job->shared->by.nexts[2 * at + 1];
			at = next;
			count++;
		}
		at = g_broadcast(at, 0);
		part = g_broadcast(part, 0);
		count = g_broadcast(count, 0);
		first = at == TILE_SCHED_ORIGIN
				? 1
				: at + 1 + tile_sched_probes(share);
		for (; first <= n; first += g_width()) {
			const uint32_t j = first + g_lane();
			const uint64_t met = g_ballot(
				j <= n &&
				tile_sched_meets(job, at, j, share, overhead));

			if (met) {
				next = first + g_lowest64(met);
				break;
			}
		}
		if (first > n)
			return count;
		part += tile_sched_between(job, at, next, share, overhead);
		at = next;
		count++;
	}
}

/* How many of `count` pairs have a first word of at most x; these ascend. */
FN uint32_t
tile_sched_find(LOCAL const uint32_t *pairs, uint32_t count, uint32_t x)
{
	uint32_t found = 0, step;

	for (step = 1u << (31 - g_clz(count | 1)); step; step >>= 1)
		if (found + step <= count && pairs[2 * (found + step - 1)] <= x)
			found += step;
	return found;
}

/* For request i of the window the parts that start before its end, to
 * job->shared->by.ends, with the last hop up to the request. */
FN void
tile_sched_end(const PRIVATE tile_sched_job *job, uint32_t count, uint32_t i)
{
	const uint32_t hop = tile_sched_find(job->shared->hops + 2, count, i);
	const uint32_t k = job->shared->hops[2 * hop],
		       part = job->shared->hops[2 * hop + 1];
	uint32_t parts =
		job->shared->turns[i + 1] - job->shared->turns[k] +
		(tile_sched_rest(job, i + 1) > tile_sched_rest(job, k));

	if (hop < count && parts > job->shared->hops[2 * hop + 3] - part)
		parts = job->shared->hops[2 * hop + 3] - part;
	job->shared->by.ends[2 * i] = part + parts;
	job->shared->by.ends[2 * i + 1] = hop;
}

/* Where part p starts: request, from the window's first, and block; (n, 0) if
 * all n end before. */
FN void
tile_sched_start(const PRIVATE tile_sched_job *job, uint32_t n, uint64_t share,
		 uint32_t p, PRIVATE uint32_t *req, PRIVATE uint32_t *block)
{
	const uint32_t i = tile_sched_find(job->shared->by.ends, n, p);

	*req = i;
	*block = 0;
	if (i < n) {
		const uint32_t hop = job->shared->by.ends[2 * i + 1];
		const uint32_t k = job->shared->hops[2 * hop];
		const uint32_t turn = job->shared->turns[k] -
				      job->shared->turns[i] + p -
				      job->shared->hops[2 * hop + 1];

		*block = (uint32_t)(turn * share + tile_sched_rest(job, k) -
				    tile_sched_rest(job, i));
	}
}

/* C at the end of the thread's request, the i-th of a window of n that begins
 * with request `first`. *base is C before the window, then behind it. */
FN uint64_t
tile_sched_upto(const PRIVATE tile_sched_job *job, uint32_t first, uint32_t n,
		PRIVATE uint64_t *base)
{
	uint64_t upto, cost = 0, total;

	if (g_item() < n)
		cost = (uint64_t)tile_sched_blocks(job, first + g_item()) +
		       job->s.overhead;
	upto = *base + cost +
	       g_scan_sum(cost, TILE_SCHED_ITEMS, job->shared->sums, &total);
	*base += total;
	return upto;
}

/* Parts `done` .. end - 1 of a window of n requests from `first` on. A part's
 * row is written when the next one's start is known, by the thread that has it.
 */
FN void
tile_sched_rows(const PRIVATE tile_sched_job *job, uint64_t share,
		uint32_t first, uint32_t n, uint32_t done, uint32_t end)
{
	LOCAL uint32_t *starts = job->shared->starts;
	const uint32_t i = g_item();
	uint32_t p;

	for (p = done; p < end; p += TILE_SCHED_ITEMS) {
		uint32_t req = 0, block = 0;

		if (p + i < end) {
			tile_sched_start(job, n, share, p + i, &req, &block);
			req += first;
			starts[2 * i + 2] = req;
			starts[2 * i + 3] = block;
		}
		BARRIER();
		if (p + i < end && p + i > 0)
			tile_sched_part(job, share, p + i - 1, starts[2 * i],
					starts[2 * i + 1], req, block);
		BARRIER();
		if (p + i + 1 == end ||
		    (p + i + 1 < end && i + 1 == TILE_SCHED_ITEMS)) {
			starts[0] = req;
			starts[1] = block;
		}
	}
}

/* Requests of any cost, a window of them after the other. If one window holds
 * all, `upto` is C at the end of the thread's request. */
FN void
tile_sched_odd(const PRIVATE tile_sched_job *job, uint64_t share, uint64_t upto)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;
	LOCAL uint32_t *hops = job->shared->hops;
	uint64_t base = 0;
	uint32_t first = 0;
	uint32_t done = 0;  /* parts whose start is known */
	uint32_t part = 0;  /* the last one with a fresh start, */
	uint32_t fresh = 1; /* and how many have one up to it */

	if (g_item() == 0)
		tile_sched_set(job, 0, 0, 0);
	for (;;) {
		const uint32_t i = g_item(), left = s->batch - first;
		const uint32_t n =
			left < TILE_SCHED_ITEMS ? left : TILE_SCHED_ITEMS;
		uint32_t count, end;

		if (s->batch > TILE_SCHED_ITEMS)
			upto = tile_sched_upto(job, first, n, &base);
		if (i < n) {
			const uint64_t turn = upto / share;

			tile_sched_set(job, i + 1, (uint32_t)turn,
				       upto - turn * share);
		}
		BARRIER();
		tile_sched_probe(job, n, share, s->overhead);
		BARRIER();
		if (i < g_width()) {
			count = tile_sched_walk(job,
						first ? TILE_SCHED_ORIGIN : 0,
						part, n, share, s->overhead);
			if (i == 0)
				job->shared->state = count;
		}
		BARRIER();
		count = job->shared->state;
		if (i < n) {
			tile_sched_end(job, count, i);
			job->num_splits[first + i + 1] =
				(int32_t)(first + i + 1 +
					  job->shared->by.ends[2 * i] - fresh -
					  job->shared->by.ends[2 * i + 1]);
		}
		BARRIER();
		end = n < left ? job->shared->by.ends[2 * n - 2] : s->parts + 1;
		tile_sched_rows(job, share, first, n, done, end);
		first += n;
		if (first == s->batch)
			break;
		done = end;
		part = hops[2 * count + 1];
		fresh += count;
		BARRIER();
		if (i == 0) { /* for the next window */
			const uint32_t k = hops[2 * count];

			tile_sched_set(job, TILE_SCHED_ORIGIN,
				       job->shared->turns[k],
				       tile_sched_rest(job, k));
			tile_sched_set(job, 0, job->shared->turns[n],
				       tile_sched_rest(job, n));
		}
		BARRIER();
	}
}

/* The plan, by the whole block. */
FN void
tile_sched_make(const PRIVATE tile_sched_job *job)
{
	const PRIVATE spmla_k_tile_sched_scalars *s = &job->s;
	const uint32_t odd_bit = 40; /* 1024 costs are below, their count not
				      * past 64 */
	uint64_t all = 0, odd = 0, upto = 0, total, share;
	uint32_t first, cost = 0;

	if (s->batch)
		cost = tile_sched_blocks(job, 0) + s->overhead;
	for (first = 0; first < s->batch; first += TILE_SCHED_ITEMS) {
		const uint32_t i = first + g_item();
		uint64_t x = 0;

		if (i < s->batch) {
			x = (uint64_t)tile_sched_blocks(job, i) + s->overhead;
			x |= (uint64_t)(x != cost) << odd_bit;
			if (tile_sched_bad(job, i))
				g_fault(job->fault_state, job->fault_status,
					s->first_request + i, G_FAULT_LENGTH);
		}
		upto = x + g_scan_sum(x, TILE_SCHED_ITEMS, job->shared->sums,
				      &total);
		all += total & ~(~(uint64_t)0 << odd_bit);
		odd |= total >> odd_bit;
	}
	share = (all + s->parts - 1) / s->parts;
	if (g_item() == 0)
		job->num_splits[0] = 0;
	if (s->batch && !odd)
		tile_sched_even(job, cost, share);
	else
		tile_sched_odd(job, share, upto & ~(~(uint64_t)0 << odd_bit));
}

SPMLA_KERNEL(tile_sched)
void
spmla_k_tile_sched(SPMLA_KERNEL_ARGS(tile_sched))
{
	LOCAL_ARRAY(tile_sched_shared, shared, 1);
	const tile_sched_job job = {SPMLA_KERNEL_VALUES(tile_sched), shared};

	tile_sched_make(&job);
}

#endif
#endif
