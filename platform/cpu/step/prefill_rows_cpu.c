/* SPDX-License-Identifier: Apache-2.0
 *
 * prefill_rows on the CPU.
 */
#include "spmla/platform/cpu/core/cpu.h"

/* The prefix sum over the requests that fit. */
static void
place_requests(spmla_ctx *ctx, const spmla_prefill_rows_args *a)
{
	uint32_t used = 0, b;

	for (b = 0; b < a->requests; b++) {
		const int32_t len = a->seq_lens[b];

		a->workspace_starts[b] = (int32_t)used;
		if (a->query_start_loc[b + 1] <= a->query_start_loc[b])
			continue;
		if (len < 0 || (uint32_t)len > a->keys - used)
			spmla_i_cpu_fault(ctx, (uint32_t)a->req_row[b],
					  SPMLA_FAULT_LENGTH);
		else
			used += (uint32_t)len;
	}
	a->workspace_starts[a->requests] = (int32_t)used;
}

/* The number of keys that token t sees, or 0. */
static int32_t
keys_of(spmla_ctx *ctx, const spmla_prefill_rows_args *a, uint32_t t)
{
	const uint32_t b = (uint32_t)a->req_id_per_token[t];
	const int32_t n = a->context_lens[t];
	int32_t rows;

	if (n <= 0 || b >= a->requests)
		return 0;
	rows = a->workspace_starts[b + 1] - a->workspace_starts[b];
	if (n <= rows)
		return n;
	if (rows > 0) /* else the request was reported */
		spmla_i_cpu_fault(ctx, (uint32_t)a->req_row[b],
				  SPMLA_FAULT_LENGTH);
	return 0;
}

void
spmla_i_cpu_prefill_rows(spmla_ctx *ctx, const void *args)
{
	const spmla_prefill_rows_args *a = args;
	uint32_t t;

	place_requests(ctx, a);
	for (t = 0; t < a->tokens; t++) {
		const int32_t n = keys_of(ctx, a, t);
		const int32_t first =
			n > 0 ? a->workspace_starts[a->req_id_per_token[t]] : 0;

		a->context_lens[t] = n;
		a->key_starts[t] = first;
		a->key_ends[t] = first + n;
		a->row_starts[t] =
			(int64_t)(t % a->piece_tokens * a->piece_stride_elems);
	}
}
