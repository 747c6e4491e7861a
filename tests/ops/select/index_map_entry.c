/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of index_map: slots of their own, in place, and ragged.
 */
#include "tests/harness/registry.h"

enum { OWN, IN_PLACE, RAGGED, VARIANTS };

static void
make_optional(draw *d, spmla_index_map_args *a, uint32_t reach)
{
	a->lens = draw_there(d) ? draw_i32(d, a->tokens, 0, a->k + INT64_C(1))
				: NULL;
	a->valid_counts = draw_there(d) ? draw_out(d, a->tokens, 4) : NULL;
	if (draw_there(d)) {
		a->workspaces = draw_size(d, 4);
		a->workspace_ids = draw_i32(d, a->tokens, -1, a->workspaces);
		a->workspace_starts = draw_i32(d, a->workspaces, 0, 900);
	}
	if (draw_choice(d, 3) == 1)
		a->first_cols = draw_i32(d, a->tokens, 0, 2);
	if (draw_there(d)) /* past every index */
		a->context_lens =
			draw_i32(d, a->tokens, reach, reach + INT64_C(5));
	a->slot_mapping = draw_there(d) ? draw_i64(d, a->tokens, -1, 4) : NULL;
	a->compact = draw_choice(d, 2);
	a->whole = draw_choice(d, 2);
	if (draw_there(d)) {
		a->other_lens = draw_i32(d, a->tokens, 0, 9);
		a->kept_lens = draw_out(d, a->tokens, 4);
	}
	a->entries_before = draw_odd(d, draw_choice(d, 9), INT32_MAX - a->k);
}

static void
make(draw *d, void *args)
{
	spmla_index_map_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t pool = draw_size(d, 20), page = draw_size(d, 16);
	uint32_t reach;
	draw_table t;

	a->tokens = draw_tokens(d);
	a->k = draw_many(d, 9, 37);
	a->page_tokens = draw_odd(d, page, UINT32_MAX);
	a->page_stride_rows =
		draw_choice(d, 2) && a->page_tokens == page ? page + 3 : 0;
	a->pool_pages = draw_choice(d, 4) ? 0 : pool;
	t = draw_pages(d, draw_many(d, 4, 6), draw_many(d, 6, 20), pool);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	reach = a->columns * page;
	a->token_row = draw_i32(d, a->tokens, 0, a->rows);
	a->indices_stride_elems = draw_stride(d, a->k);
	a->indices = draw_i32(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->k), -1,
		reach);
	if (variant == RAGGED) {
		a->capacity_elems = a->tokens * a->k;
		if (d->kind == DRAW_BAD)
			a->capacity_elems = draw_size(d, a->capacity_elems);
		a->slots =
			draw_changed(d, draw_i32(d, a->tokens * a->k, -1, 9));
		a->indptr = draw_out(d, a->tokens + UINT64_C(1), 4);
	} else if (variant == IN_PLACE) {
		a->slots = draw_changed(d, a->indices);
		a->slots_stride_elems = a->indices_stride_elems;
	} else {
		a->slots_stride_elems = draw_stride(d, a->k);
		a->slots = draw_out(
			d, draw_strided(a->tokens, a->slots_stride_elems, a->k),
			4);
	}
	make_optional(d, a, reach);
}

static const arg_error errors[] = {
	BAD_LEAST(index_map, k, 0, 1),
	BAD_LEAST(index_map, rows, 0, 1),
	BAD_LEAST(index_map, columns, 0, 1),
	BAD_LEAST(index_map, table_stride_elems, 5, 6),
	BAD_LEAST(index_map, page_tokens, 0, 1),
	BAD_LEAST(index_map, page_stride_rows, 15, 16),
	BAD_LEAST(index_map, workspaces, 0, 1),
	BAD_MOST(index_map, compact, 2, 1),
	BAD_MOST(index_map, whole, 2, 1),
	BAD_MOST(index_map, entries_before, 2147483639, 2147483638),
	BAD_MOST(index_map, entries_before, 4294967295, 2147483638),
	BAD_STRIDE(index_map, indices_stride_elems, 8, 9),
	BAD_STRIDE(index_map, slots_stride_elems, 8, 9),
	BAD_NULL(index_map, token_row),
	BAD_NULL(index_map, block_table),
	BAD_NULL(index_map, indices),
	BAD_NULL(index_map, slots),
	BAD_NULL(index_map, workspace_starts),
	BAD_NULL(index_map, other_lens),
	BAD_NULL(index_map, kept_lens),
};

static const arg_error in_place_errors[] = {
	BAD_EQUAL(index_map, slots_stride_elems, 10, 9),
};

static const arg_error ragged_errors[] = {
	BAD_MOST(index_map, capacity_elems, 2147483648, 2147483647),
};

OP_ENTRY(index_map,
	 .errors = {ERRORS(errors), ERRORS(in_place_errors),
		    ERRORS(ragged_errors)},
	 .none = {ARG(index_map, tokens, 0)}, .is_spread = 1);
