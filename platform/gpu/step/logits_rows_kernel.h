/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows: one block. A row that does not fit takes no room, so the starts
 * behind it are no plain prefix sum. That is rare: then one thread walks over
 * all rows.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_LOGITS_ROWS_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_LOGITS_ROWS_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_logits_rows(P, S)   \
	SPMLA_K_FAULT(P)            \
	P(const int32_t, token_row) \
	P(int32_t, context_lens)    \
	P(int64_t, row_starts)      \
	S(uint64_t, capacity)       \
	S(uint32_t, tokens)         \
	S(uint32_t, has_token_row)
SPMLA_KERNEL_SCALARS(logits_rows)

enum { LOGITS_ROWS_ITEMS = SPMLA_ITEMS_logits_rows };

#ifdef SPMLA_GPU_KERNELS

FN uint64_t
logits_rows_length(GLOBAL const int32_t *context_lens, uint32_t t)
{
	return context_lens[t] > 0 ? (uint64_t)context_lens[t] : 0;
}

/* One thread's walk over all tokens. */
FN void
logits_rows_walk(const PRIVATE g_reporter *to, GLOBAL const int32_t *token_row,
		 uint32_t has_token_row, GLOBAL int32_t *context_lens,
		 GLOBAL int64_t *row_starts, uint64_t capacity, uint32_t tokens)
{
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	uint64_t start = 0;
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		const uint64_t len = logits_rows_length(context_lens, t);

		row_starts[t] = (int64_t)start;
		if (len > capacity - start) {
			g_report(to, has_token_row ? (uint32_t)token_row[t] : t,
				 G_FAULT_LOGITS);
			context_lens[t] = 0;
			continue;
		}
		start += (len + align - 1) / align * align;
		start = start < capacity ? start : capacity;
	}
	row_starts[tokens] = (int64_t)start;
}

/* The whole op by one block. */
FN void
logits_rows_block(const PRIVATE g_reporter *to, GLOBAL const int32_t *token_row,
		  uint32_t has_token_row, GLOBAL int32_t *context_lens,
		  GLOBAL int64_t *row_starts, uint64_t capacity,
		  uint32_t tokens, uint32_t items, LOCAL uint64_t *sums)
{
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	uint64_t done = 0;
	uint32_t first, over = 0;

	for (first = 0; first < tokens; first += items) {
		const uint32_t t = first + g_item();
		const uint64_t len =
			t < tokens ? logits_rows_length(context_lens, t) : 0;
		uint64_t start, total;

		start = done + g_scan_sum((len + align - 1) / align * align,
					  items, sums, &total);
		over |= start > capacity || len > capacity - start;
		if (t < tokens)
			row_starts[t] = (int64_t)start;
		done += total;
	}
	if (g_any(over, items, sums)) {
		if (g_item() == 0)
			logits_rows_walk(to, token_row, has_token_row,
					 context_lens, row_starts, capacity,
					 tokens);
	} else if (g_item() == 0) {
		row_starts[tokens] =
			(int64_t)(done < capacity ? done : capacity);
	}
}

SPMLA_KERNEL(logits_rows)
void
spmla_k_logits_rows(SPMLA_KERNEL_ARGS(logits_rows))
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);

	logits_rows_block(&to, token_row, s.has_token_row, context_lens,
			  row_starts, s.capacity, s.tokens, LOGITS_ROWS_ITEMS,
			  sums);
}

#endif
#endif
