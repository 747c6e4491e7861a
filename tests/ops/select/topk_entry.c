/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of topk: ragged rows, and rows of one stride.
 */
#include "tests/harness/registry.h"

enum { RAGGED, DENSE, VARIANTS };

static void
make(draw *d, void *args)
{
	spmla_topk_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t room = draw_many(d, 70, 330);

	a->rows = draw_tokens(d);
	a->k = draw_many(d, 20, 37);
	a->logits_elems = (uint64_t)a->rows * room;
	a->logits = draw_f32(d, a->logits_elems);
	a->ties = draw_choice(d, 2);
	a->row_stride_elems = room;
	if (variant == RAGGED)
		a->row_starts = draw_i64(d, a->rows, 0,
					 (int64_t)a->logits_elems - room + 1);
	a->context_lens = draw_i32(d, a->rows, 0, room + INT64_C(1));
	a->indices_stride_elems = draw_stride(d, a->k);
	a->indices = draw_out(
		d, draw_strided(a->rows, a->indices_stride_elems, a->k), 4);
	a->lens = draw_there(d) ? draw_out(d, a->rows, 4) : NULL;
}

static const arg_error errors[] = {
	BAD_LEAST(topk, k, 0, 1),
	BAD_NULL(topk, logits),
	BAD_ENUM(topk, logits_dtype, 2, "0 or 1"),
	BAD_RANGE(topk, ties, 2, "got 2, want 0 or 1"),
	BAD_NULL(topk, context_lens),
	BAD_NULL(topk, indices),
	BAD_STRIDE(topk, indices_stride_elems, 19, 20),
};

static const arg_error dense_errors[] = {
	BAD_STRIDE(topk, row_stride_elems, 0, 1),
	BAD_RANGE(topk, row_stride_elems, INT64_MAX / 4 + 1,
		  "got 2305843009213693952, want at most "
		  "2305843009213693951"),
};

OP_ENTRY(topk, .inputs = {INPUT_REAL(topk, logits, logits_dtype)},
	 .errors = {ERRORS(errors), ERRORS(dense_errors)},
	 .none = {ARG(topk, rows, 0)}, .is_spread = 1);
