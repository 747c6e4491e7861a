/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of c128a_index.
 */
#include "tests/harness/registry.h"

static void
make_decode(draw *d, spmla_c128a_index_args *a)
{
	draw_table t;

	a->page_entries = draw_size(d, 5);
	a->page_stride_rows = draw_choice(d, 2) ? a->page_entries + 2 : 0;
	a->pool_pages = draw_choice(d, 4) ? 0 : 64;
	t = draw_pages(d, draw_size(d, 4),
		       (a->width - 1) / a->page_entries + draw_size(d, 3), 64);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	a->token_row = draw_i32(d, a->decode_tokens, 0, a->rows);
	a->decode_stride_elems = draw_stride(d, a->width);
	a->decode_slots =
		draw_out(d,
			 draw_strided(a->decode_tokens, a->decode_stride_elems,
				      a->width),
			 4);
	a->decode_lens = draw_out(d, a->decode_tokens, 4);
	a->entries_before = draw_choice(d, 9);
}

static void
make(draw *d, void *args)
{
	spmla_c128a_index_args *a = args;
	uint32_t prefill;

	a->tokens = draw_tokens(d);
	a->decode_tokens = d->kind == DRAW_EXAMPLE
				   ? a->tokens / 2
				   : draw_choice(d, a->tokens + 1);
	prefill = a->tokens - a->decode_tokens;
	a->ratio = draw_size(d, 5);
	a->width = draw_many(d, 12, 40);
	a->positions = draw_i32(d, a->tokens, 0, 250);
	a->slot_mapping = draw_i64(d, a->tokens, -1, 8);
	if (a->decode_tokens > 0)
		make_decode(d, a);
	if (d->kind != DRAW_EXAMPLE && draw_choice(d, 3) == 0) {
		a->entries = draw_i32(d, a->tokens, -2, (int32_t)a->width + 3);
		if (draw_choice(d, 2))
			a->decode_lens = NULL;
	}
	if (prefill == 0)
		return;
	a->prefill_stride_elems = draw_stride(d, a->width);
	a->prefill_indices = draw_out(
		d, draw_strided(prefill, a->prefill_stride_elems, a->width), 4);
	a->prefill_lens = draw_there(d) ? draw_out(d, prefill, 4) : NULL;
}

static const arg_error errors[] = {
	BAD_MOST(c128a_index, decode_tokens, 5, 4),
	BAD_LEAST(c128a_index, ratio, 0, 1),
	BAD_LEAST(c128a_index, width, 0, 1),
	BAD_MOST(c128a_index, width, 2147483648, 2147483647),
	BAD_LEAST(c128a_index, rows, 0, 1),
	BAD_LEAST(c128a_index, columns, 0, 1),
	BAD_LEAST(c128a_index, table_stride_elems, 4, 5),
	BAD_LEAST(c128a_index, page_entries, 0, 1),
	BAD_MOST(c128a_index, page_entries, 2147483648, 2147483647),
	BAD_LEAST(c128a_index, page_stride_rows, 4, 5),
	BAD_STRIDE(c128a_index, decode_stride_elems, 11, 12),
	BAD_STRIDE(c128a_index, prefill_stride_elems, 11, 12),
	BAD_MOST(c128a_index, entries_before, 2147483636, 2147483635),
	BAD_MOST(c128a_index, entries_before, 4294967295, 2147483635),
	BAD_NULL(c128a_index, positions),
	BAD_ENUM(c128a_index, positions_dtype, 2, "0 or 1"),
	BAD_NULL(c128a_index, slot_mapping),
	BAD_NULL(c128a_index, token_row),
	BAD_NULL(c128a_index, block_table),
	BAD_NULL(c128a_index, decode_slots),
	BAD_NULL(c128a_index, decode_lens),
	BAD_NULL(c128a_index, prefill_indices),
};

OP_ENTRY(c128a_index,
	 .inputs = {INPUT_INT(c128a_index, positions, positions_dtype)},
	 .errors = {ERRORS(errors)}, .none = {ARG(c128a_index, tokens, 0)},
	 .is_spread = 1);
