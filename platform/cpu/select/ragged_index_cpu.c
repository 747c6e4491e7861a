/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index on the CPU: first the prefix sum, then the rows, which are
 * independent.
 */
#include "spmla/platform/cpu/core/parallel_cpu.h"

static uint32_t
length_of(const spmla_ragged_index_args *a, uint32_t t)
{
	if (!a->lens)
		return a->width;
	if (a->lens[t] <= 0)
		return 0;
	return (uint32_t)a->lens[t] < a->width ? (uint32_t)a->lens[t]
					       : a->width;
}

static void
copy_row(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_ragged_index_args *a = args;
	const int32_t *in = a->indices + (int64_t)t * a->indices_stride_elems;
	const int32_t start = a->ragged_indptr[t];
	const uint32_t room = (uint32_t)(a->ragged_indptr[t + 1] - start);
	const uint32_t whole = room == length_of(a, t);
	uint32_t k;

	(void)worker;
	if (!whole)
		spmla_i_cpu_fault(ctx, t, SPMLA_FAULT_LENGTH);
	for (k = 0; k < room; k++) {
		const int32_t x = whole ? in[k] : -1;
		const uint32_t none =
			a->num_slots && (uint32_t)x >= a->num_slots;

		a->ragged_indices[start + (int32_t)k] = none ? -1 : x;
	}
}

void
spmla_i_cpu_ragged_index(spmla_ctx *ctx, const void *args)
{
	const spmla_ragged_index_args *a = args;
	uint64_t end = 0;
	uint32_t t;

	a->ragged_indptr[0] = 0;
	for (t = 0; t < a->tokens; t++) {
		end += length_of(a, t);
		a->ragged_indptr[t + 1] =
			(int32_t)(end < a->capacity_elems ? end
							  : a->capacity_elems);
	}
	spmla_i_cpu_for(ctx, a, a->tokens, copy_row);
}
