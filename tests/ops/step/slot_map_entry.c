/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of slot_map.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	static const uint32_t ratios[4] = {0, 1, 2, 4};
	spmla_slot_map_args *a = args;
	draw_table t;

	a->tokens = draw_tokens(d);
	a->compress_ratio = ratios[draw_choice(d, 4)];
	a->page_tokens = a->compress_ratio > 1
				 ? a->compress_ratio * draw_size(d, 4)
				 : draw_odd(d, draw_size(d, 16), UINT32_MAX);
	a->pool_pages = draw_odd(d, draw_size(d, 20), UINT32_MAX);
	a->ring = draw_choice(d, 2);
	if (a->compress_ratio <= 1 && draw_choice(d, 4) == 3) {
		a->dcp_ranks = 2 + draw_choice(d, 3);
		a->dcp_rank = draw_choice(d, a->dcp_ranks);
		a->dcp_interleave = draw_size(d, 5);
	}
	t = draw_pages(d, draw_size(d, 4), draw_size(d, 6), a->pool_pages);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	a->token_row = draw_i32(d, a->tokens, 0, a->rows);
	a->positions = draw_i32(
		d, a->tokens, 0,
		a->ring ? 5000 : (int64_t)a->columns * (a->page_tokens & 15));
	a->context_lens = draw_changed(d, draw_i32(d, a->tokens, 0, 3));
	a->slot_mapping = draw_out(d, a->tokens, 8);
}

static const arg_error errors[] = {
	BAD_LEAST(slot_map, rows, 0, 1),
	BAD_LEAST(slot_map, columns, 0, 1),
	BAD_LEAST(slot_map, page_tokens, 0, 1),
	BAD_LEAST(slot_map, pool_pages, 0, 1),
	BAD_MOST(slot_map, ring, 2, 1),
	BAD_MOST(slot_map, dcp_ranks, 65537, 65536),
	BAD_MOST(slot_map, dcp_rank, 1, 0),
	BAD_ARG(slot_map, dcp_ranks, 2, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: slot_map.dcp_interleave: got 0, want at least "
		"1"),
	BAD_LEAST(slot_map, table_stride_elems, 5, 6),
	BAD_ARG(slot_map, compress_ratio, 5, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: slot_map.page_tokens: got 16, want a multiple "
		"of 5"),
	BAD_NULL(slot_map, token_row),
	BAD_NULL(slot_map, positions),
	BAD_ENUM(slot_map, positions_dtype, 2, "0 or 1"),
	BAD_NULL(slot_map, block_table),
	BAD_NULL(slot_map, context_lens),
	BAD_NULL(slot_map, slot_mapping),
};

OP_ENTRY(slot_map, .inputs = {INPUT_INT(slot_map, positions, positions_dtype)},
	 .errors = {ERRORS(errors)}, .none = {ARG(slot_map, tokens, 0)});
