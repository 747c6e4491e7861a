/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of tile_sched: lengths of rows, and ragged lists.
 */
#include "tests/harness/registry.h"

enum { ROWS, RAGGED, VARIANTS };

static void
make(draw *d, void *args)
{
	spmla_tile_sched_args *a = args;

	const uint32_t variant = draw_variant(d, VARIANTS);
	uint32_t lens;

	a->batch = draw_many(d, 8, 40);
	a->lens_tokens = draw_choice(d, 3);
	lens = a->lens_tokens ? (a->batch + a->lens_tokens - 1) / a->lens_tokens
			      : a->batch;
	a->parts = draw_size(d, 16);
	a->overhead_blocks = draw_odd(d, draw_size(d, 6), 1 << 20);
	a->row_format = draw_choice(d, 2);
	a->first_request = draw_choice(d, 3);
	a->topk = draw_odd(d, draw_size(d, 2048), INT32_MAX);
	a->extra_topk = draw_there(d) ? draw_odd(d, 500, INT32_MAX) : 0;
	if (draw_there(d))
		a->topk_lens = draw_i32(d, lens, 0, a->topk + INT64_C(1));
	if (draw_there(d))
		a->extra_topk_lens =
			draw_i32(d, lens, 0, a->extra_topk + INT64_C(1));
	if (variant == RAGGED) {
		a->topk = draw_size(d, 2048);
		a->indptr = draw_starts(d, a->batch, a->topk);
		a->extra_topk = draw_size(d, 500);
		if (draw_choice(d, 2))
			a->extra_indptr =
				draw_starts(d, a->batch, a->extra_topk);
		else
			a->extra_topk_lens = NULL;
	}
	a->tile_scheduler_metadata =
		draw_out(d, (uint64_t)a->parts * SPMLA_TILE_ROW_ELEMS, 4);
	a->num_splits = draw_out(d, a->batch + UINT64_C(1), 4);
}

static const arg_error errors[] = {
	BAD_MOST(tile_sched, batch, 1073741825, 1073741824),
	BAD_LEAST(tile_sched, parts, 0, 1),
	BAD_MOST(tile_sched, parts, 4294967295, 1073741824),
	BAD_ARGS(tile_sched, batch, 1, split_blocks, 67108865, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: tile_sched.split_blocks: got 67108865, want "
		 "at most 67108864"),
	BAD_MOST(tile_sched, overhead_blocks, 1048577, 1048576),
	BAD_ENUM(tile_sched, row_format, 2, "0 or 1"),
	BAD_LEAST(tile_sched, topk, 0, 1),
	BAD_MOST(tile_sched, topk, 2147483648, 2147483647),
	BAD_MOST(tile_sched, extra_topk, 2147483648, 2147483647),
	BAD_NULL(tile_sched, tile_scheduler_metadata),
	BAD_NULL(tile_sched, num_splits),
};

OP_ENTRY(tile_sched, .errors = {ERRORS(errors)});
