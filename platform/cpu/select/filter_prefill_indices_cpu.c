/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices on the CPU. An output may be the input: an index is
 * read before either is written.
 */
#include "spmla/platform/cpu/core/cpu.h"

static void
filter_row(const spmla_filter_prefill_indices_args *a, uint32_t t)
{
	const int32_t *row = a->indices + t * a->indices_stride_elems;
	const int32_t len = a->context_lens[t];
	uint32_t i;

	for (i = 0; i < a->k; i++) {
		const int32_t index = row[i];
		int32_t old = -1, fresh = -1;

		if (len >= 0 && index >= len)
			fresh = index - len;
		else if (len >= 0 && index >= 0)
			old = index;
		if (a->context_indices)
			a->context_indices[t * a->context_indices_stride_elems +
					   i] = old;
		if (a->new_indices)
			a->new_indices[t * a->new_indices_stride_elems + i] =
				fresh;
	}
}

void
spmla_i_cpu_filter_prefill_indices(spmla_ctx *ctx, const void *args)
{
	const spmla_filter_prefill_indices_args *a = args;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		if (a->context_lens[t] < 0)
			spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_LENGTH);
		filter_row(a, t);
	}
}
