/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of compress_state_save: paged states, and rings.
 */
#include "tests/harness/registry.h"

static const uint32_t layouts[4] = {
	SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_STATE_512,
	SPMLA_LAYOUT_STATE_128};

/* Columns that hold a group, each of a page of its own; bad pages are none. */
static void
make_ring(draw *d, spmla_compress_state_save_args *a, uint32_t layout)
{
	const uint32_t entries = a->ratio == 4 ? draw_size(d, 8) : 64;
	const uint32_t columns = (a->ratio == 4 ? 8 : 128) / entries + 1;
	const uint32_t rows = draw_size(d, 3), pages = rows * columns;
	const draw_table t = draw_pages(d, rows, columns, pages);
	uint32_t row, c;

	a->rows = t.rows;
	a->columns = columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	for (row = 0; !d->in && row < rows; row++)
		for (c = 0; c < columns; c++) {
			int32_t *page = &t.pages[row * t.stride + c];

			if (*page >= 0 && *page < (int32_t)pages)
				*page = (int32_t)(row * columns + c);
		}
	a->state = draw_cache_of(d, layout, entries, pages, DRAW_OUT);
	a->context_lens = draw_i32(d, a->tokens, 0, 5);
	a->token_row = draw_i32(d, a->tokens, 0, rows);
}

/* Tokens of a row one behind the other: a place is written once. Bad rows stay
 * bad. */
static void
number_tokens(draw *d, const spmla_compress_state_save_args *a,
	      int32_t *positions)
{
	int32_t *rows = (int32_t *)(uintptr_t)a->token_row;
	uint32_t t;

	for (t = 0; !d->in && t < a->tokens; t++) {
		const uint32_t row = t * a->rows / a->tokens;

		if (rows[t] >= 0 && rows[t] < (int32_t)a->rows)
			rows[t] = (int32_t)row;
		if (t > 0 && (t - 1) * a->rows / a->tokens == row)
			positions[t] = positions[t - 1] + 1;
		else if (positions[t] > 1 << 20)
			positions[t] = 1 << 20;
	}
}

static void
make(draw *d, void *args)
{
	spmla_compress_state_save_args *a = args;
	const uint32_t layout = layouts[draw_choice(d, 4)];
	const uint32_t width = spmla_layout_entry_bytes(layout) / 8;
	int32_t *positions;

	a->form = draw_variant(d, 2);
	a->tokens = draw_tokens(d);
	a->ratio = width == 512 || width == 128 ? 128 : 4;
	a->kv_stride_elems = draw_stride(d, width);
	a->score_stride_elems = draw_stride(d, width);
	a->kv = draw_f32(d, draw_strided(a->tokens, a->kv_stride_elems, width));
	a->score = draw_f32(
		d, draw_strided(a->tokens, a->score_stride_elems, width));
	a->ape = draw_f32(d, (uint64_t)a->ratio * width);
	a->positions = positions = draw_i32(d, a->tokens, 0, 900);
	if (a->form == SPMLA_STATE_RING) {
		make_ring(d, a, layout);
		number_tokens(d, a, positions);
		return;
	}
	a->state = draw_cache_out(d, layout, a->tokens);
	a->slot_mapping = draw_slots(d, a->tokens,
				     (uint64_t)a->state.pages *
					     a->state.entries_per_page);
}

static const arg_error errors[] = {
	BAD_ARG(compress_state_save, ratio, 8, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: compress_state_save.ratio: got 8, want "
		"4 or 128"),
	BAD_ARG(compress_state_save, ratio, 0, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: compress_state_save.ratio: got 0, want "
		"4 or 128"),
	BAD_ARG(compress_state_save, ratio, 128, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: compress_state_save.state.layout: got 10, want "
		"9 or 12"),
	BAD_ENUM(compress_state_save, form, 2, "0 or 1"),
	BAD_RANGE(compress_state_save, state.layout, SPMLA_LAYOUT_STATE_512,
		  "got 9, want 8 or 10"),
	BAD_CACHE(compress_state_save, state, "8 or 10", 40944, 40960, 16),
	BAD_MOST(compress_state_save, state.encoding, 1, 0),
	BAD_NULL(compress_state_save, kv),
	BAD_NULL(compress_state_save, score),
	BAD_STRIDE(compress_state_save, kv_stride_elems, 1023, 1024),
	BAD_STRIDE(compress_state_save, score_stride_elems, 1023, 1024),
	BAD_NULL(compress_state_save, ape),
	BAD_NULL(compress_state_save, positions),
	BAD_ENUM(compress_state_save, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(compress_state_save, kv_dtype, 2, "0 or 1"),
	BAD_NULL(compress_state_save, slot_mapping),
};

/* The 8 tokens of a group in pages of 7 need two columns. */
static const arg_error ring_errors[] = {
	BAD_LEAST(compress_state_save, rows, 0, 1),
	BAD_LEAST(compress_state_save, columns, 0, 1),
	BAD_ARGS(compress_state_save, state.entries_per_page, 7, columns, 1,
		 SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: compress_state_save.columns: got 1, want at "
		 "least 2"),
	BAD_LEAST(compress_state_save, table_stride_elems, 1, 2),
	BAD_NULL(compress_state_save, token_row),
	BAD_NULL(compress_state_save, block_table),
	BAD_NULL(compress_state_save, context_lens),
};

OP_ENTRY(compress_state_save,
	 .inputs = {INPUT_INT(compress_state_save, positions, positions_dtype),
		    INPUT_REAL(compress_state_save, kv, kv_dtype),
		    INPUT_REAL(compress_state_save, score, kv_dtype)},
	 .errors = {ERRORS(errors), ERRORS(ring_errors)},
	 .none = {ARG(compress_state_save, tokens, 0)}, .is_spread = 1);
