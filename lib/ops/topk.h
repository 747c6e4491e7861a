/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: the k best keys of each ragged row of scores.
 */
#ifndef SPMLA_OPS_TOPK_H
#define SPMLA_OPS_TOPK_H

#include "spmla/ops/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which positions win if several scores equal the k-th. */
typedef enum spmla_ties {
	SPMLA_TIES_LOWER = 0,
	SPMLA_TIES_HIGHER = 1,
	SPMLA_TIES_FORCE_32 = 0x7fffffff
} spmla_ties;

typedef struct spmla_topk_args {
	uint32_t struct_bytes;
	uint32_t rows;
	uint32_t k;            /* >= 1 */
	uint32_t ties;         /* spmla_ties */
	const void *logits;    /* f32 or bf16 */
	uint64_t logits_elems; /* elements behind logits */
	/* [rows]: first element of each row; NULL: row i begins at element i *
	 * row_stride_elems and ends before row i + 1 */
	const int64_t *row_starts;
	const int32_t *context_lens;  /* [rows]: elements of each row */
	int32_t *indices;             /* [rows][indices_stride_elems] */
	int64_t indices_stride_elems; /* >= k */
	int32_t *lens; /* [rows]: min(length, k), entries set; NULL: none */
	int64_t row_stride_elems; /* >= 1; not read with row_starts */
	uint32_t logits_dtype;    /* spmla_real_dtype */
	uint32_t reserved;
	/* What index_map does next with the indices; struct_bytes 0: nothing.
	 * map.tokens equals rows; map.k, map.indices and their stride equal the
	 * fields above. */
	spmla_index_map_args map;
} spmla_topk_args;

/* The exact set of the k largest scores of each row, as positions relative to
 * the row's start, ascending, then -1. Ties take the lower or the higher
 * positions, as `ties` says; -0 equals +0; a NaN of either sign ranks above
 * +inf and equals any other NaN. A row of at most k elements is 0, 1, ...; its
 * scores are not read. A row outside logits gives only -1: FAULT_LOGITS.
 * Without row_starts a length past the row's end is clamped to it:
 * FAULT_LOGITS.
 * With `map` the results are as if spmla_index_map followed this call. On
 * Hopper both are one launch for scores of f32, unless map has an indptr,
 * workspace_ids, first_cols, a slot_mapping or entries_before.
 * No rows: nothing else is checked, nothing is enqueued.
 * Alias: map.slots may be indices. Order: enqueues; capturable.
 * Exact: integers, the same on every backend and in every run.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE; the errors of index_map.
 * Source: vLLM top_k_per_row, with the order and the ties pinned. */
spmla_status spmla_topk(spmla_ctx *ctx, const spmla_topk_args *args,
			spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
