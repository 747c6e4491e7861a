/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: one block. Units of the requests are a line; where an SM
 * starts on it follows from their count alone, so SMs look themselves up side
 * by side. A request is known by its last row: there the scan has its units,
 * and a scan of the largest start tells where it began.
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

/* The unit that an SM starts with. */
FN uint64_t
indexer_schedule_first(uint64_t units, uint32_t num_sms, uint32_t sm,
		       uint32_t sm90)
{
	const uint64_t each = units / num_sms;
	const uint64_t rest = units - each * num_sms;
	const uint64_t pivot = num_sms - rest;

	if (sm90)
		return sm * each + (sm > pivot ? sm - pivot : 0);
	return sm * each + (sm < rest ? sm : rest);
}

SPMLA_KERNEL(indexer_schedule)
void
spmla_k_indexer_schedule(SPMLA_KERNEL_ARGS(indexer_schedule))
{
	LOCAL_ARRAY(uint64_t, ends, INDEXER_SCHEDULE_ITEMS);
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	LOCAL_ARRAY(uint32_t, starts, INDEXER_SCHEDULE_ITEMS);
	/* Atoms or tokens of a row. */
	const uint32_t height = s.sm90 ? s.next_n / 2 + s.next_n % 2 : s.next_n;
	uint64_t units = 0;
	uint32_t pass, first, sm;

	/* First all units are counted, then every SM finds its place. */
	for (pass = 0; pass < 2; pass++) {
		uint64_t base = 0;
		uint32_t carry = 0; /* start of the run that goes on */

		for (first = 0; first < s.batch;
		     first += INDEXER_SCHEDULE_ITEMS) {
			const uint32_t i = first + g_item();
			const uint32_t n =
				s.batch - first < INDEXER_SCHEDULE_ITEMS
					? s.batch - first
					: INDEXER_SCHEDULE_ITEMS;
			uint32_t begins = i < s.batch, ends_here = begins;
			uint32_t start, last;
			uint64_t total, mine = 0;
			int32_t len = 0;

			if (i < s.batch)
				len = indexer_schedule_len(context_lens, &s, i);
			if (i < s.batch && s.runs) {
				begins = i == 0 || indices[i] != indices[i - 1];
				ends_here = i + 1 == s.batch ||
					    indices[i] != indices[i + 1];
			}
			if (pass == 0 && len < 0)
				g_fault(fault_state, fault_status, i,
					G_FAULT_LENGTH);
			start = g_scan_max(begins ? i : carry,
					   INDEXER_SCHEDULE_ITEMS, sums, &last);
			carry = last;
			if (ends_here)
				mine = (uint64_t)indexer_schedule_segs(len) *
				       height * (i - start + 1);
			mine += g_scan_sum(mine, INDEXER_SCHEDULE_ITEMS, sums,
					   &total);
			ends[g_item()] = base + mine;
			starts[g_item()] = start;
			BARRIER();
			for (sm = g_item(); pass && sm <= s.num_sms;
			     sm += INDEXER_SCHEDULE_ITEMS) {
				const uint64_t unit = indexer_schedule_first(
					units, s.num_sms, sm, s.sm90);
				uint32_t low = 0, high = n, q, split;
				uint64_t at;

				if (unit < base || unit >= base + total)
					continue;
				while (low < high) {
					const uint32_t middle =
						(low + high) / 2;

					if (ends[middle] > unit)
						high = middle;
					else
						low = middle + 1;
				}
				at = unit - (low ? ends[low - 1] : base);
				q = starts[low] * height;
				if (s.sm90) {
					/* Its last row's, read once more. */
					split = indexer_schedule_segs(
						indexer_schedule_len(
							context_lens, &s,
							first + low));
					q += (uint32_t)(at / split);
					split = (uint32_t)(at % split);
				} else {
					split = (uint32_t)(at /
							   ((uint64_t)height *
							    (first + low + 1 -
							     starts[low])));
				}
				schedule[2 * (uint64_t)sm] = (int32_t)q;
				schedule[2 * (uint64_t)sm + 1] = (int32_t)split;
			}
			base += total;
			BARRIER();
		}
		units = base;
	}
	for (sm = g_item(); sm <= s.num_sms; sm += INDEXER_SCHEDULE_ITEMS)
		if (indexer_schedule_first(units, s.num_sms, sm, s.sm90) >=
		    units) {
			schedule[2 * (uint64_t)sm] =
				(int32_t)(s.batch * height);
			schedule[2 * (uint64_t)sm + 1] = 0;
		}
}

#endif
#endif
