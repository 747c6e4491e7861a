/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_index: packs rows of indices one behind the other (indptr and
 * indices).
 */
#ifndef SPMLA_OPS_RAGGED_INDEX_H
#define SPMLA_OPS_RAGGED_INDEX_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spmla_ragged_index_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t width; /* entries of a row, < 2^31 */
	/* entries outside [0, num_slots) become -1; 0: every entry stays as it
	 * is */
	uint32_t num_slots;
	uint32_t capacity_elems; /* of ragged_indices, < 2^31 */
	uint32_t reserved;
	const int32_t *indices;       /* [tokens][indices_stride_elems] */
	int64_t indices_stride_elems; /* >= width */
	const int32_t *lens;          /* [tokens]; NULL: width */
	int32_t *ragged_indptr;       /* [tokens + 1] */
	int32_t *ragged_indices;      /* [capacity_elems] */
} spmla_ragged_index_args;

/* With n = lens clamped to [0, width], ragged_indptr is the exclusive prefix
 * sum of n, its last element the sum. The first n entries of row t lie from
 * ragged_indices[ragged_indptr[t]] on. Elements behind the last entry are left
 * alone. Entries outside [0, num_slots) are not reported: they are no error of
 * this step.
 * A row that would end past the capacity has no entries: ragged_indptr does not
 * pass capacity_elems, and the room left before it holds -1. Each such row with
 * n > 0 gives one FAULT_LENGTH, which names the token.
 * No tokens: ragged_indptr[0] = 0.
 * index_map makes the ragged top-k of a step by itself. To leave out entries
 * without a slot, call index_map with compact, then ragged_index with its
 * valid_counts. For a prefill, call combine_index, then ragged_index.
 * Alias: none. Order: enqueues; capturable. Exact: integers.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: vLLM build_ragged_indices_from_dense (num_slots is its num_rows). */
spmla_status spmla_ragged_index(spmla_ctx *ctx,
				const spmla_ragged_index_args *args,
				spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
