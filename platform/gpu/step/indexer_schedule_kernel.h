/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: one block. The units of all requests form a line. The unit
 * with which an SM starts follows from their number alone, so each SM looks
 * its place up by itself. A request is known by its last row: the scan of
 * units counts it there, and a scan of the largest start tells where its run
 * of rows began.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_INDEXER_SCHEDULE_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_INDEXER_SCHEDULE_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_indexer_schedule(P, S)  \
	SPMLA_K_FAULT(P)                \
	P(const int32_t, context_lens)  \
	P(const int32_t, indices)       \
	P(int32_t, schedule)            \
	S(int64_t, context_lens_stride) \
	S(uint32_t, sm90)               \
	S(uint32_t, runs)               \
	S(uint32_t, batch)              \
	S(uint32_t, next_n)             \
	S(uint32_t, num_sms)
SPMLA_KERNEL_SCALARS(indexer_schedule)

enum { INDEXER_SCHEDULE_ITEMS = SPMLA_ITEMS_indexer_schedule };

#ifdef SPMLA_GPU_KERNELS

enum { INDEXER_SCHEDULE_SPLIT = 256 };

/* The length of a row's last token. */
FN int32_t
indexer_schedule_len(GLOBAL const int32_t *context_lens,
		     const PRIVATE spmla_k_indexer_schedule_scalars *s,
		     uint32_t i)
{
	return context_lens[(int64_t)i * s->context_lens_stride + s->next_n -
			    1];
}

/* Splits of a row's last token. */
FN uint32_t
indexer_schedule_segs(int32_t len)
{
	return len > 0 ? ((uint32_t)len + INDEXER_SCHEDULE_SPLIT - 1) /
				 INDEXER_SCHEDULE_SPLIT
		       : 0;
}

/* x / by. Most x are below 2^32; larger ones go bit by bit, because the
 * compiler's 64-bit division is a call, which needs a stack. */
FN uint64_t
indexer_schedule_divide(uint64_t x, uint64_t by)
{
	uint64_t quotient = 0, rest = 0;
	uint32_t i;

	if (((x | by) >> 32) == 0)
		return (uint32_t)x / (uint32_t)by;
	NO_UNROLL
	for (i = 64; i; i--) {
		rest = rest << 1 | (x >> (i - 1) & 1u);
		quotient <<= 1;
		if (rest >= by) {
			rest -= by;
			quotient |= 1u;
		}
	}
	return quotient;
}

/* The unit that an SM starts with. */
FN uint64_t
indexer_schedule_first(uint64_t units, uint32_t num_sms, uint32_t sm,
		       uint32_t sm90)
{
	const uint64_t each = indexer_schedule_divide(units, num_sms);
	const uint64_t rest = units - each * num_sms;
	const uint64_t pivot = num_sms - rest;

	if (sm90)
		return sm * each + (sm > pivot ? sm - pivot : 0);
	return sm * each + (sm < rest ? sm : rest);
}

/* Shared memory: a tile of rows, one a thread, and of each where its units end,
 * the first row of its run and the splits of its last token. */
typedef struct indexer_schedule_shared {
	uint64_t ends[INDEXER_SCHEDULE_ITEMS];
	uint32_t starts[INDEXER_SCHEDULE_ITEMS];
	uint32_t segs[INDEXER_SCHEDULE_ITEMS];
	uint64_t sums[G_SCAN_SUBGROUPS]; /* of the scans */
} indexer_schedule_shared;

typedef struct indexer_schedule_job {
	SPMLA_KERNEL_FIELDS(indexer_schedule)
	LOCAL indexer_schedule_shared *shared;
	uint32_t height; /* atoms or tokens of a row */
} indexer_schedule_job;

/* Puts the tile of rows from `first` on into shared memory, its units behind
 * `base`; returns how many units it has. *run is the first row of the run in
 * which the tile begins; it becomes the first row of the run in which the tile
 * ends. Has a barrier at the end. */
FN uint64_t
indexer_schedule_tile(const PRIVATE indexer_schedule_job *job, uint32_t first,
		      uint64_t base, uint32_t reports, PRIVATE uint32_t *run)
{
	const PRIVATE spmla_k_indexer_schedule_scalars *s = &job->s;
	GLOBAL const int32_t *indices = job->indices;
	LOCAL indexer_schedule_shared *shared = job->shared;
	const uint32_t i = first + g_item();
	uint32_t begins = i < s->batch, ends_here = begins, start, last;
	uint64_t units = 0, total;
	int32_t len = 0;

	if (i < s->batch)
		len = indexer_schedule_len(job->context_lens, s, i);
	if (i < s->batch && s->runs) {
		begins = i == 0 || indices[i] != indices[i - 1];
		ends_here = i + 1 == s->batch || indices[i] != indices[i + 1];
	}
	if (reports && len < 0)
		g_fault(job->fault_state, job->fault_status, i, G_FAULT_LENGTH);
	start = i;
	if (s->runs) {
		start = g_scan_max(begins ? i : *run, INDEXER_SCHEDULE_ITEMS,
				   shared->sums, &last);
		*run = last;
	}
	shared->segs[g_item()] = indexer_schedule_segs(len);
	if (ends_here)
		units = (uint64_t)indexer_schedule_segs(len) * job->height *
			(i - start + 1);
	units +=
		g_scan_sum(units, INDEXER_SCHEDULE_ITEMS, shared->sums, &total);
	shared->ends[g_item()] = base + units;
	shared->starts[g_item()] = start;
	BARRIER();
	return total;
}

/* Where the SM starts whose first unit is in the tile, which has `rows` rows
 * from `first` on and begins with unit `base`. */
FN void
indexer_schedule_place(const PRIVATE indexer_schedule_job *job, uint32_t sm,
		       uint64_t unit, uint32_t first, uint32_t rows,
		       uint64_t base)
{
	LOCAL const indexer_schedule_shared *shared = job->shared;
	const uint32_t low = g_first_above64(shared->ends, 0, rows, unit);
	const uint32_t last = first + low; /* row of the run */
	const uint64_t at = unit - (low ? shared->ends[low - 1] : base);
	const uint32_t runs = last + 1 - shared->starts[low];
	const uint64_t by =
		job->s.sm90 ? shared->segs[low] : (uint64_t)job->height * runs;
	const uint64_t whole = indexer_schedule_divide(at, by);
	uint32_t q = shared->starts[low] * job->height;
	uint32_t split = (uint32_t)whole;

	if (job->s.sm90) {
		q += (uint32_t)whole;
		split = (uint32_t)(at - whole * by);
	}
	job->schedule[2 * (uint64_t)sm] = (int32_t)q;
	job->schedule[2 * (uint64_t)sm + 1] = (int32_t)split;
}

/* All tiles: counts the units, or, if `places`, finds the place of every SM
 * that has one of `units`. Returns how many there are. */
FN uint64_t
indexer_schedule_walk(const PRIVATE indexer_schedule_job *job, uint32_t places,
		      uint64_t units)
{
	const PRIVATE spmla_k_indexer_schedule_scalars *s = &job->s;
	/* The only tile is still there when places are looked up. */
	const uint32_t makes = !places || s->batch > INDEXER_SCHEDULE_ITEMS;
	uint32_t run = 0, first, sm;
	uint64_t base = 0;

	for (first = 0; first < s->batch; first += INDEXER_SCHEDULE_ITEMS) {
		const uint32_t left = s->batch - first;
		const uint32_t rows = left < INDEXER_SCHEDULE_ITEMS
					      ? left
					      : INDEXER_SCHEDULE_ITEMS;
		const uint64_t total =
			makes ? indexer_schedule_tile(job, first, base, !places,
						      &run)
			      : units;

		for (sm = g_item(); places && sm <= s->num_sms;
		     sm += INDEXER_SCHEDULE_ITEMS) {
			const uint64_t unit = indexer_schedule_first(
				units, s->num_sms, sm, s->sm90);

			if (unit >= base && unit < base + total)
				indexer_schedule_place(job, sm, unit, first,
						       rows, base);
		}
		base += total;
		BARRIER();
	}
	return base;
}

SPMLA_KERNEL_BLOCKS(indexer_schedule, 1)
void
spmla_k_indexer_schedule(SPMLA_KERNEL_ARGS(indexer_schedule))
{
	LOCAL_ARRAY(indexer_schedule_shared, shared, 1);
	const indexer_schedule_job job = {
		SPMLA_KERNEL_VALUES(indexer_schedule), shared,
		s.sm90 ? s.next_n / 2 + s.next_n % 2 : s.next_n};
	uint64_t units = 0;
	uint32_t pass, sm;

	NO_UNROLL
	for (pass = 0; pass < 2; pass++)
		units = indexer_schedule_walk(&job, pass, units);
	/* SMs behind the last unit. */
	for (sm = g_item(); sm <= s.num_sms; sm += INDEXER_SCHEDULE_ITEMS)
		if (indexer_schedule_first(units, s.num_sms, sm, s.sm90) >=
		    units) {
			schedule[2 * (uint64_t)sm] =
				(int32_t)(s.batch * job.height);
			schedule[2 * (uint64_t)sm + 1] = 0;
		}
}

#endif
#endif
