/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of swa_index: long tables, rings, and tokens of images.
 */
#include "tests/harness/registry.h"

enum { LONG, RING, IMAGES, VARIANTS };

static void
make_table(draw *d, spmla_swa_index_args *a)
{
	const uint32_t most = a->window + a->max_image;
	draw_table t;

	a->page_tokens = draw_size(d, 5);
	a->page_stride_rows = draw_choice(d, 2) ? a->page_tokens + 2 : 0;
	a->pool_pages = draw_choice(d, 4) ? 0 : 64;
	t = draw_pages(d, draw_size(d, 4),
		       a->ring ? (most + a->page_tokens - 2) / a->page_tokens +
					 1
			       : 3 + draw_size(d, 5),
		       64);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
}

/* The images' ends are no more than three positions away, and in the table. */
static int32_t *
spans_of(draw *d, const spmla_swa_index_args *a, int32_t reach)
{
	int32_t *spans = draw_i32(d, 2 * (uint64_t)a->tokens, 0, 4);
	const int32_t *positions = a->positions;
	uint32_t t;

	for (t = 0; d->kind != DRAW_BAD && t < a->tokens; t++) {
		int32_t *s = spans + 2 * t;

		s[0] = positions[t] > s[0] ? positions[t] - s[0] : 0;
		s[1] += positions[t];
		s[1] = s[1] < reach ? s[1] : reach - 1;
	}
	return spans;
}

static void
make_requests(draw *d, spmla_swa_index_args *a)
{
	a->requests = draw_size(d, a->rows);
	a->query_start_loc = draw_starts(d, a->requests, a->tokens);
	a->seq_lens = draw_i32(d, a->requests, a->tokens + INT64_C(3),
			       a->tokens + INT64_C(60));
	a->req_row =
		draw_there(d) ? draw_i32(d, a->requests, 0, a->rows) : NULL;
	a->gather_lens = draw_out(d, a->requests, 4);
}

static void
make(draw *d, void *args)
{
	spmla_swa_index_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	int32_t reach;

	a->tokens = draw_tokens(d);
	a->window = draw_size(d, 6);
	a->max_image = variant == IMAGES ? draw_size(d, 4) : 0;
	a->width = a->window + a->max_image + draw_choice(d, 5);
	a->ring = variant == RING;
	make_table(d, a);
	reach = a->ring ? 5000 : (int32_t)(a->columns * a->page_tokens);
	a->positions = draw_i32(d, a->tokens, 2, reach);
	a->token_row = draw_i32(d, a->tokens, 0, a->rows);
	a->slot_mapping = draw_i64(d, a->tokens, -1, 8);
	a->replay_starts = draw_there(d) ? draw_i32(d, a->rows, 0, 3) : NULL;
	if (variant == IMAGES)
		a->image_spans = spans_of(d, a, reach);
	a->padded_lens = draw_choice(d, 2);
	a->indices_stride_elems = draw_stride(d, a->width);
	a->indices = draw_out(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->width),
		4);
	a->lens = draw_out(d, a->tokens, 4);
	if (draw_there(d))
		make_requests(d, a);
}

static const arg_error errors[] = {
	BAD_LEAST(swa_index, window, 0, 1),
	BAD_LEAST(swa_index, width, 5, 6),
	BAD_MOST(swa_index, width, 2147483648, 2147483647),
	BAD_LEAST(swa_index, rows, 0, 1),
	BAD_LEAST(swa_index, columns, 0, 1),
	BAD_LEAST(swa_index, table_stride_elems, 7, 8),
	BAD_LEAST(swa_index, page_tokens, 0, 1),
	BAD_MOST(swa_index, page_tokens, 2147483648, 2147483647),
	BAD_LEAST(swa_index, page_stride_rows, 4, 5),
	BAD_MOST(swa_index, ring, 2, 1),
	BAD_STRIDE(swa_index, indices_stride_elems, 5, 6),
	BAD_MOST(swa_index, padded_lens, 2, 1),
	BAD_NULL(swa_index, positions),
	BAD_ENUM(swa_index, positions_dtype, 2, "0 or 1"),
	BAD_NULL(swa_index, token_row),
	BAD_NULL(swa_index, slot_mapping),
	BAD_NULL(swa_index, block_table),
	BAD_NULL(swa_index, indices),
	BAD_NULL(swa_index, lens),
	BAD_NULL(swa_index, query_start_loc),
	BAD_NULL(swa_index, seq_lens),
	BAD_NULL(swa_index, gather_lens),
};

/* Windows of 6 in pages of 4, anywhere: (6 + 4 - 2) / 4 + 1 columns; of 10 with
 * images of 4 in pages of 5: (10 + 5 - 2) / 5 + 1. */
static const arg_error ring_errors[] = {
	BAD_ARGS(swa_index, page_tokens, 4, columns, 2, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: swa_index.columns: got 2, want at least 3"),
};

static const arg_error image_errors[] = {
	BAD_LEAST(swa_index, max_image, 0, 1),
	BAD_ARG(swa_index, max_image, 5, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: swa_index.width: got 10, want at least 11"),
	BAD_ARGS(swa_index, ring, 1, columns, 2, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: swa_index.columns: got 2, want at least 3"),
};

OP_ENTRY(swa_index,
	 .inputs = {INPUT_INT(swa_index, positions, positions_dtype)},
	 .errors = {ERRORS(errors), ERRORS(ring_errors), ERRORS(image_errors)},
	 .none = {ARG(swa_index, tokens, 0), ARG(swa_index, requests, 0)},
	 .is_spread = 1);
