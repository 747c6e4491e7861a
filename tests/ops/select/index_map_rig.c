/* SPDX-License-Identifier: Apache-2.0
 *
 * See index_map_rig.h.
 */
#include "tests/ops/select/index_map_rig.h"

#include <check.h>
#include <string.h>

enum { NO_SLOT = -100 };

void
index_map_open(index_map_rig *r)
{
	static const int32_t table[8] = {5, 3, 0x7777, 0x7777,
					 2, 7, 0x7777, 0x7777};
	spmla_config config;

	memset(r, 0, sizeof *r);
	memcpy(r->table, table, sizeof table);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
}

void
index_map_close(index_map_rig *r)
{
	fixture_close(&r->f);
}

/* A slot, minus the fault, or NO_SLOT where -1 is no error. */
static int64_t
oracle_slot(const spmla_index_map_args *a, uint32_t t, int64_t index)
{
	const int64_t stride =
		a->page_stride_rows ? a->page_stride_rows : a->page_tokens;
	const int64_t row = a->token_row[t], col = index / a->page_tokens;
	int64_t page, slot;

	if (index >= 0 && a->context_lens && index >= a->context_lens[t])
		return -SPMLA_FAULT_INDEX;
	if (index < 0 || col >= (int64_t)a->columns)
		return NO_SLOT;
	if (a->workspace_ids && a->workspace_ids[t] >= 0) {
		if (a->workspace_ids[t] >= (int64_t)a->workspaces)
			return -SPMLA_FAULT_ROW;
		slot = a->workspace_starts[a->workspace_ids[t]] + index;
	} else {
		if (row < 0 || row >= (int64_t)a->rows)
			return -SPMLA_FAULT_ROW;
		if (a->table_cols && col >= a->table_cols[row])
			return -SPMLA_FAULT_PAGE;
		page = a->block_table[row * a->table_stride_elems + col];
		if (page < 0 || (a->pool_pages && page >= a->pool_pages))
			return -SPMLA_FAULT_PAGE;
		slot = page * stride + index % a->page_tokens;
	}
	return slot < 0 || slot > INT32_MAX ? -SPMLA_FAULT_INDEX : slot;
}

/* want[] for the whole output, poison between rows. */
static uint32_t
oracle(const spmla_index_map_args *a, int32_t *want, int32_t *counts)
{
	uint32_t t, j, faults = 0;

	memset(want, 0x5A, INDEX_MAP_MAX * sizeof *want);
	for (t = 0; t < a->tokens; t++) {
		const int32_t *in = a->indices + t * a->indices_stride_elems;
		int32_t *out = want + t * a->slots_stride_elems;

		counts[t] = 0;
		for (j = 0; j < a->k; j++)
			out[j] = -1;
		for (j = 0; j < a->k; j++) {
			int64_t slot = NO_SLOT;

			if ((!a->lens || (int64_t)j < a->lens[t]) &&
			    (!a->slot_mapping || a->slot_mapping[t] >= 0))
				slot = oracle_slot(a, t, in[j]);
			faults += slot < 0 && slot != NO_SLOT;
			if (slot >= 0)
				out[a->compact ? (uint32_t)counts[t] : j] =
					(int32_t)slot;
			counts[t] += slot >= 0;
		}
	}
	return faults;
}

void
index_map_check(const index_map_rig *r, const spmla_index_map_args *given,
		uint32_t want_faults)
{
	static int32_t want[INDEX_MAP_MAX], got[INDEX_MAP_MAX];
	int32_t counts[64], got_counts[64];
	spmla_index_map_args a = *given;
	uint32_t in_place, t, faults;

	a.valid_counts = got_counts;
	for (in_place = 0; in_place < 2; in_place++) {
		a.slots_stride_elems = (int64_t)a.k + 3;
		a.slots = got;
		memset(got, 0x5A, sizeof got);
		if (in_place) {
			memcpy(got, given->indices,
			       a.tokens * (size_t)a.indices_stride_elems * 4);
			a.slots_stride_elems = a.indices_stride_elems;
		}
		faults = oracle(&a, want, counts);
		if (in_place)
			a.indices = got;
		memset(got_counts, 0x5A, sizeof got_counts);
		ck_assert_int_eq(spmla_index_map(r->f.ctx, &a, NULL), SPMLA_OK);
		if (!in_place)
			ck_assert_mem_eq(got, want, sizeof want);
		for (t = 0; in_place && t < a.tokens; t++)
			ck_assert_mem_eq(got + t * a.slots_stride_elems,
					 want + t * a.slots_stride_elems,
					 a.k * 4);
		ck_assert_mem_eq(got_counts, counts, a.tokens * 4);
		ck_assert_uint_eq(faults, want_faults);
		ck_assert_uint_eq(!fixture_status(&r->f).count, !want_faults);
		ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
	}
}

spmla_index_map_args
index_map_small(index_map_rig *r, const int32_t *indices, uint32_t k)
{
	const spmla_index_map_args a = {.struct_bytes = sizeof a,
					.tokens = 1,
					.k = k,
					.rows = 2,
					.columns = 2,
					.table_stride_elems = 4,
					.page_tokens = 4,
					.pool_pages = 8,
					.token_row = r->row_of,
					.block_table = r->table,
					.indices = indices,
					.indices_stride_elems = k};

	r->row_of[0] = 0;
	r->row_of[1] = 1;
	r->table[0] = 5;
	r->table[1] = 3;
	return a;
}

void
index_map_expect(const index_map_rig *r, const spmla_index_map_args *given,
		 const int32_t *want, uint32_t fault, uint32_t row)
{
	spmla_index_map_args a = *given;
	int32_t got[16];

	a.slots = got;
	a.slots_stride_elems = a.k;
	ck_assert_int_eq(spmla_index_map(r->f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_mem_eq(got, want, a.tokens * a.k * 4);
	ck_assert_str_eq(spmla_fault_name(fixture_status(&r->f).fault),
			 spmla_fault_name(fault));
	ck_assert_uint_eq(fixture_status(&r->f).row, row);
	ck_assert_int_eq(spmla_status_clear(r->f.ctx), SPMLA_OK);
}
