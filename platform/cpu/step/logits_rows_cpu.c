/* SPDX-License-Identifier: Apache-2.0
 *
 * logits_rows on the CPU.
 */
#include "spmla/platform/cpu/core/cpu.h"

void
spmla_i_cpu_logits_rows(spmla_ctx *ctx, const void *args)
{
	const spmla_logits_rows_args *a = args;
	const uint64_t align = SPMLA_LOGITS_ROW_ALIGN;
	uint64_t start = 0;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const uint64_t len = a->context_lens[t] > 0
					     ? (uint64_t)a->context_lens[t]
					     : 0;

		a->row_starts[t] = (int64_t)start;
		if (len > a->capacity_elems - start) {
			spmla_i_cpu_fault(
				ctx,
				a->token_row ? (uint32_t)a->token_row[t] : t,
				SPMLA_FAULT_LOGITS);
			a->context_lens[t] = 0;
			continue;
		}
		start += (len + align - 1) / align * align;
		if (start > a->capacity_elems) /* the last row's padding */
			start = a->capacity_elems;
	}
	a->row_starts[a->tokens] = (int64_t)start;
}
