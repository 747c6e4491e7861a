/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows: one block. A request that does not fit takes no room, as in
 * logits_rows; then one thread walks over all requests.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_PREFILL_ROWS_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_PREFILL_ROWS_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_prefill_rows(P, S)         \
	SPMLA_K_FAULT(P)                   \
	P(const int32_t, query_start_loc)  \
	P(const int32_t, seq_lens)         \
	P(const int32_t, req_row)          \
	P(const int32_t, req_id_per_token) \
	P(int32_t, context_lens)           \
	P(int32_t, workspace_starts)       \
	P(int32_t, key_starts)             \
	P(int32_t, key_ends)               \
	P(int64_t, row_starts)             \
	S(uint64_t, piece_stride)          \
	S(uint32_t, requests)              \
	S(uint32_t, tokens)                \
	S(uint32_t, keys)                  \
	S(uint32_t, piece_tokens)
SPMLA_KERNEL_SCALARS(prefill_rows)

enum { PREFILL_ROWS_ITEMS = SPMLA_ITEMS_prefill_rows };

#ifdef SPMLA_GPU_KERNELS

/* One thread's walk over the requests. */
FN void
prefill_rows_walk(const PRIVATE g_reporter *to,
		  GLOBAL const int32_t *query_start_loc,
		  GLOBAL const int32_t *seq_lens, GLOBAL const int32_t *req_row,
		  GLOBAL int32_t *workspace_starts, uint32_t requests,
		  uint32_t keys)
{
	uint32_t used = 0, b;

	for (b = 0; b < requests; b++) {
		const int32_t len = seq_lens[b];

		workspace_starts[b] = (int32_t)used;
		if (query_start_loc[b + 1] <= query_start_loc[b])
			continue;
		if (len < 0 || (uint32_t)len > keys - used)
			g_report(to, (uint32_t)req_row[b], G_FAULT_LENGTH);
		else
			used += (uint32_t)len;
	}
	workspace_starts[requests] = (int32_t)used;
}

/* The prefix sum over the requests that fit. */
FN void
prefill_rows_place(const PRIVATE g_reporter *to,
		   GLOBAL const int32_t *query_start_loc,
		   GLOBAL const int32_t *seq_lens,
		   GLOBAL const int32_t *req_row,
		   GLOBAL int32_t *workspace_starts, uint32_t requests,
		   uint32_t keys, uint32_t items, LOCAL uint64_t *sums)
{
	uint64_t done = 0;
	uint32_t first, over = 0;

	for (first = 0; first < requests; first += items) {
		const uint32_t b = first + g_item();
		const uint32_t counts =
			b < requests &&
			query_start_loc[b + 1] > query_start_loc[b];
		const int32_t len = counts ? seq_lens[b] : 0;
		uint64_t start, total;

		start = done + g_scan_sum(len > 0 ? (uint64_t)len : 0, items,
					  sums, &total);
		over |= len < 0 || start + (uint64_t)(len > 0 ? len : 0) > keys;
		if (b < requests)
			workspace_starts[b] = (int32_t)start;
		done += total;
	}
	if (g_any(over, items, sums)) {
		if (g_item() == 0)
			prefill_rows_walk(to, query_start_loc, seq_lens,
					  req_row, workspace_starts, requests,
					  keys);
	} else if (g_item() == 0) {
		workspace_starts[requests] = (int32_t)done;
	}
	BARRIER();
}

/* The whole op by one block. */
FN void
prefill_rows_block(
	const PRIVATE g_reporter *to, GLOBAL const int32_t *query_start_loc,
	GLOBAL const int32_t *seq_lens, GLOBAL const int32_t *req_row,
	GLOBAL const int32_t *req_id_per_token, GLOBAL int32_t *context_lens,
	GLOBAL int32_t *workspace_starts, GLOBAL int32_t *key_starts,
	GLOBAL int32_t *key_ends, GLOBAL int64_t *row_starts, uint32_t requests,
	uint32_t tokens, uint32_t keys, uint32_t piece_tokens,
	uint64_t piece_stride, uint32_t items, LOCAL uint64_t *sums)
{
	uint32_t t;

	prefill_rows_place(to, query_start_loc, seq_lens, req_row,
			   workspace_starts, requests, keys, items, sums);
	for (t = g_item(); t < tokens; t += items) {
		const uint32_t b = (uint32_t)req_id_per_token[t];
		int32_t n = context_lens[t], start = 0, rows;

		if (n > 0 && b < requests) {
			start = workspace_starts[b];
			rows = workspace_starts[b + 1] - start;
			if (n > rows) {
				/* Without rows the request was reported. */
				if (rows > 0)
					g_report(to, (uint32_t)req_row[b],
						 G_FAULT_LENGTH);
				n = 0;
			}
		} else {
			n = 0;
		}
		start = n > 0 ? start : 0;
		context_lens[t] = n;
		key_starts[t] = start;
		key_ends[t] = start + n;
		row_starts[t] = (int64_t)(t % piece_tokens * piece_stride);
	}
}

SPMLA_KERNEL(prefill_rows)
void
spmla_k_prefill_rows(SPMLA_KERNEL_ARGS(prefill_rows))
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const g_reporter to = g_reporter_of(fault_state, fault_status);

	prefill_rows_block(&to, query_start_loc, seq_lens, req_row,
			   req_id_per_token, context_lens, workspace_starts,
			   key_starts, key_ends, row_starts, s.requests,
			   s.tokens, s.keys, s.piece_tokens, s.piece_stride,
			   PREFILL_ROWS_ITEMS, sums);
}

#endif
#endif
