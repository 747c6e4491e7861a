/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map: one block. A scan of the largest clamps start locations, as many
 * requests at a time as there are threads, into shared memory. Tokens then look
 * their request up there, so one long request takes no longer than many short
 * ones.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_TOKEN_MAP_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_TOKEN_MAP_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_token_map(P, S)           \
	SPMLA_K_FAULT(P)                  \
	P(const int32_t, query_start_loc) \
	P(const int32_t, seq_lens)        \
	P(const int32_t, req_row)         \
	P(int32_t, req_id_per_token)      \
	P(int32_t, token_row)             \
	P(int32_t, positions)             \
	P(int32_t, context_lens)          \
	S(uint32_t, requests)             \
	S(uint32_t, tokens)
SPMLA_KERNEL_SCALARS(token_map)

enum { TOKEN_MAP_ITEMS = SPMLA_ITEMS_token_map };

#ifdef SPMLA_GPU_KERNELS

/* The whole op by one block. `ends` has an entry a thread; `sums` is the
 * scans'. The arrays were written before a barrier. */
FN void
token_map_block(const PRIVATE g_reporter *to,
		GLOBAL const int32_t *query_start_loc,
		GLOBAL const int32_t *seq_lens, GLOBAL const int32_t *req_row,
		GLOBAL int32_t *req_id_per_token, GLOBAL int32_t *token_row,
		GLOBAL int32_t *positions, GLOBAL int32_t *context_lens,
		uint32_t requests, uint32_t tokens, uint32_t items,
		LOCAL uint32_t *ends, LOCAL uint64_t *sums)
{
	uint32_t done = 0, first, t;

	for (first = 0; first < requests; first += items) {
		const uint32_t b = first + g_item();
		const uint32_t n =
			requests - first < items ? requests - first : items;
		const int32_t end = b < requests ? query_start_loc[b + 1] : 0;
		uint32_t stop = end < 0 ? 0 : (uint32_t)end, last;

		stop = stop < tokens ? stop : tokens;
		stop = g_scan_max(stop > done ? stop : done, items, sums,
				  &last);
		ends[g_item()] = stop;
		BARRIER();
		if (b < requests) {
			const uint32_t start =
				g_item() ? ends[g_item() - 1] : done;
			const int32_t len = seq_lens[b];

			if (stop > start && len != 0 &&
			    (len < 0 || (uint32_t)len < stop - start))
				g_report(to, (uint32_t)req_row[b],
					 G_FAULT_LENGTH);
		}
		for (t = done + g_item(); t < last; t += items) {
			const uint32_t low = g_first_above(ends, 0, n, t);
			uint32_t start, len, p;

			start = low ? ends[low - 1] : done;
			len = (uint32_t)seq_lens[first + low];
			p = len - (ends[low] - t);
			/* A negative length is above every count of tokens. */
			if (len > 0x7fffffffu || len < ends[low] - start)
				p = 0xffffffffu;
			req_id_per_token[t] = (int32_t)(first + low);
			token_row[t] = req_row[first + low];
			positions[t] = p + 1 ? (int32_t)p : 0;
			context_lens[t] = (int32_t)(p + 1);
		}
		done = last;
		BARRIER();
	}
	for (t = done + g_item(); t < tokens; t += items) {
		req_id_per_token[t] = 0;
		token_row[t] = 0;
		positions[t] = 0;
		context_lens[t] = 0;
	}
}

/* Shared memory of the kernel. */
typedef struct token_map_shared {
	uint32_t ends[TOKEN_MAP_ITEMS];
	uint64_t sums[G_SCAN_SUBGROUPS];
} token_map_shared;

SPMLA_KERNEL(token_map)
void
spmla_k_token_map(SPMLA_KERNEL_ARGS(token_map))
{
	LOCAL_ARRAY(token_map_shared, shared, 1);
	const g_reporter to = g_reporter_of(fault_state, fault_status);

	token_map_block(&to, query_start_loc, seq_lens, req_row,
			req_id_per_token, token_row, positions, context_lens,
			s.requests, s.tokens, TOKEN_MAP_ITEMS, shared->ends,
			shared->sums);
}

#endif
#endif
