/* SPDX-License-Identifier: Apache-2.0
 *
 * token_map on the CPU: one walk over the requests, clamped so that any start
 * locations stay inside the outputs.
 */
#include "spmla/platform/cpu/core/cpu.h"

static void
put_token(const spmla_token_map_args *a, uint32_t t, uint32_t b, int32_t row,
	  int32_t position, int32_t len)
{
	a->req_id_per_token[t] = (int32_t)b;
	a->token_row[t] = row;
	a->positions[t] = position;
	a->context_lens[t] = len;
}

void
spmla_i_cpu_token_map(spmla_ctx *ctx, const void *args)
{
	const spmla_token_map_args *a = args;
	uint32_t t = 0, b;

	for (b = 0; b < a->requests; b++) {
		const int32_t end = a->query_start_loc[b + 1];
		const uint32_t first = t;
		const uint32_t stop =
			end < 0 ? 0
				: ((uint32_t)end < a->tokens ? (uint32_t)end
							     : a->tokens);
		const uint32_t query = stop > first ? stop - first : 0;
		const int32_t len = a->seq_lens[b];
		const uint32_t bad = len < 0 || (uint32_t)len < query;

		if (bad && len != 0 && query > 0)
			spmla_i_cpu_fault(ctx, (uint32_t)a->req_row[b],
					  SPMLA_FAULT_LENGTH);
		for (; t < stop; t++) {
			const int32_t p = bad ? 0 : len - (int32_t)(stop - t);

			put_token(a, t, b, a->req_row[b], p, bad ? 0 : p + 1);
		}
	}
	for (; t < a->tokens; t++)
		put_token(a, t, 0, 0, 0, 0);
}
