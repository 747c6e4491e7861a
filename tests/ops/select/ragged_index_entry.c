/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of ragged_index.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_ragged_index_args *a = args;

	a->tokens = draw_tokens(d);
	a->width = draw_many(d, 12, 37);
	a->num_slots = draw_there(d) ? draw_odd(d, 30, UINT32_MAX) : 0;
	a->capacity_elems = a->tokens * a->width;
	if (d->kind == DRAW_BAD)
		a->capacity_elems -= draw_choice(d, a->capacity_elems);
	a->indices_stride_elems = draw_stride(d, a->width);
	a->indices = draw_i32(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->width),
		-1, 40);
	if (draw_there(d))
		a->lens = draw_i32(d, a->tokens, 0, a->width + INT64_C(1));
	a->ragged_indptr = draw_out(d, a->tokens + UINT64_C(1), 4);
	a->ragged_indices = draw_out(d, a->capacity_elems, 4);
}

static const arg_error errors[] = {
	BAD_MOST(ragged_index, width, 2147483648, 2147483647),
	BAD_MOST(ragged_index, capacity_elems, 2147483648, 2147483647),
	BAD_STRIDE(ragged_index, indices_stride_elems, 11, 12),
	BAD_NULL(ragged_index, indices),
	BAD_NULL(ragged_index, ragged_indptr),
	BAD_NULL(ragged_index, ragged_indices),
};

OP_ENTRY(ragged_index, .errors = {ERRORS(errors)}, .is_spread = 1);
