/* SPDX-License-Identifier: Apache-2.0
 *
 * index_map on the CPU. The hard idea: every slot is computed in 64 bits and
 * only then narrowed, so that no table entry, stride or workspace start can
 * wrap into a slot that looks valid.
 */
#include "spmla/platform/cpu/core/parallel_cpu.h"

/* A slot as the 32 bits of the output. */
static int32_t
narrow(int64_t slot, spmla_fault *fault)
{
	if (slot >= 0 && slot <= INT32_MAX)
		return (int32_t)slot;
	*fault = SPMLA_FAULT_INDEX;
	return -1;
}

/* The page of a column, -1 for none. */
static int32_t
find_page(const spmla_index_map_args *a, const spmla_i_cpu_table *table,
	  int32_t row, int64_t col, spmla_fault *fault)
{
	int32_t page;

	if (row < 0 || (uint32_t)row >= a->rows) {
		*fault = SPMLA_FAULT_ROW;
		return -1;
	}
	page = col < 0 ? -1
		       : spmla_i_cpu_page(table, (uint32_t)row, (uint32_t)col);
	if (page < 0)
		*fault = SPMLA_FAULT_PAGE;
	return page;
}

static int32_t
map_paged(const spmla_index_map_args *a, const spmla_i_cpu_table *table,
	  int32_t row, int64_t col, uint32_t index, spmla_fault *fault)
{
	const uint32_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	const int32_t page = find_page(a, table, row, col, fault);

	if (page < 0)
		return -1;
	return narrow((int64_t)page * stride + index % a->page_tokens, fault);
}

static int32_t
map_workspace(const spmla_index_map_args *a, const spmla_i_cpu_table *table,
	      int32_t id, int32_t row, int64_t col, uint32_t index,
	      spmla_fault *fault)
{
	if ((uint32_t)id >= a->workspaces) {
		*fault = SPMLA_FAULT_ROW;
		return -1;
	}
	if (a->whole && find_page(a, table, row, col, fault) < 0)
		return -1;
	return narrow((int64_t)a->workspace_starts[id] + index, fault);
}

/* Entries of a token's indices that are read. */
static uint32_t
len_of(const spmla_index_map_args *a, uint32_t token)
{
	if (a->slot_mapping && a->slot_mapping[token] < 0)
		return 0;
	if (!a->lens)
		return a->k;
	if (a->lens[token] <= 0)
		return 0;
	return (uint32_t)a->lens[token] < a->k ? (uint32_t)a->lens[token]
					       : a->k;
}

/* Whether the table has the row of a token. */
static uint32_t
row_is_known(const spmla_index_map_args *a, uint32_t token)
{
	return a->token_row[token] >= 0 &&
	       (uint32_t)a->token_row[token] < a->rows;
}

/* Makes indptr. */
static void
cut_rows(spmla_ctx *ctx, const spmla_index_map_args *a)
{
	uint64_t end = 0;
	uint32_t t;

	a->indptr[0] = 0;
	for (t = 0; t < a->tokens; t++) {
		const uint32_t n = len_of(a, t);

		end += n;
		a->indptr[t + 1] =
			(int32_t)(end < a->capacity_elems ? end
							  : a->capacity_elems);
		if (n > 0 && end > a->capacity_elems)
			spmla_i_cpu_fault(ctx,
					  row_is_known(a, t)
						  ? (uint32_t)a->token_row[t]
						  : t,
					  SPMLA_FAULT_LENGTH);
	}
}

/* Maps one token's row. Returns the number of valid slots; *empty is set if a
 * page that is missing empties the token. */
static uint32_t
map_row(spmla_ctx *ctx, const spmla_index_map_args *a,
	const spmla_i_cpu_table *table, uint32_t token, uint32_t *empty)
{
	const int32_t *in =
		a->indices + (int64_t)token * a->indices_stride_elems;
	const uint32_t width =
		a->indptr ? (uint32_t)(a->indptr[token + 1] - a->indptr[token])
			  : a->k;
	int32_t *out = a->slots + (a->indptr ? a->indptr[token]
					     : token * a->slots_stride_elems);
	const int64_t first = a->first_cols ? a->first_cols[token] : 0;
	const int32_t id = a->workspace_ids ? a->workspace_ids[token] : -1;
	const int32_t row = a->token_row[token];
	int64_t context = INT64_MAX;
	uint32_t len = len_of(a, token), valid = 0, j;

	if (a->context_lens)
		context = a->context_lens[token];
	if (len > width) /* there is no room for the row */
		len = 0;
	for (j = 0; j < width; j++) {
		const int32_t index = j < len ? in[j] : -1;
		spmla_fault fault = SPMLA_FAULT_NONE;
		const int64_t col =
			first < 0 ? first
				  : first + (uint32_t)index / a->page_tokens;
		int32_t slot = -1;

		if (index >= 0 && index >= context)
			fault = SPMLA_FAULT_INDEX;
		else if (index >= 0 && col < a->columns)
			slot = id >= 0 ? map_workspace(a, table, id, row, col,
						       (uint32_t)index, &fault)
				       : map_paged(a, table, row, col,
						   (uint32_t)index, &fault);
		if (fault != SPMLA_FAULT_NONE)
			spmla_i_cpu_fault(ctx,
					  row_is_known(a, token) ? (uint32_t)row
								 : token,
					  fault);
		*empty |= a->whole && fault == SPMLA_FAULT_PAGE;
		/* This works in place too: no slot goes past its index. */
		if (!a->compact)
			out[j] = slot;
		else if (slot >= 0)
			out[valid] = slot;
		valid += slot >= 0;
	}
	valid = *empty ? 0 : valid;
	for (j = valid; (a->compact || *empty) && j < width; j++)
		out[j] = -1;
	return valid;
}

static void
map_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const spmla_index_map_args *a = args;
	const spmla_i_cpu_table table = {a->block_table,
					 a->table_cols,
					 a->rows,
					 a->columns,
					 a->table_stride_elems,
					 a->pool_pages ? a->pool_pages
						       : UINT32_C(1) << 31};
	const uint32_t is_token = !a->slot_mapping || a->slot_mapping[t] >= 0;
	uint32_t empty = 0;
	const uint32_t valid = map_row(ctx, a, &table, t, &empty);
	const uint32_t before = is_token && !empty ? a->entries_before : 0;

	(void)worker;
	if (a->valid_counts)
		a->valid_counts[t] = (int32_t)(before + valid);
	if (a->kept_lens)
		a->kept_lens[t] = empty ? 0 : a->other_lens[t];
}

void
spmla_i_cpu_index_map(spmla_ctx *ctx, const void *args)
{
	const spmla_index_map_args *a = args;

	if (a->indptr)
		cut_rows(ctx, a);
	spmla_i_cpu_for(ctx, a, a->tokens, map_token);
}
