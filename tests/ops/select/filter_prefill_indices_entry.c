/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of filter_prefill_indices: both halves, and either one in
 * place of the input.
 */
#include "tests/harness/registry.h"

enum { BOTH, CONTEXT_IN_PLACE, NEW_IN_PLACE, VARIANTS };

static int32_t *
half(draw *d, const spmla_filter_prefill_indices_args *a, uint32_t in_place,
     int64_t *stride)
{
	*stride = in_place ? a->indices_stride_elems : draw_stride(d, a->k);
	return in_place
		       ? draw_changed(d, a->indices)
		       : draw_out(d, draw_strided(a->tokens, *stride, a->k), 4);
}

static void
make(draw *d, void *args)
{
	spmla_filter_prefill_indices_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);

	a->tokens = draw_tokens(d);
	a->k = draw_size(d, 70);
	a->indices_stride_elems = draw_stride(d, a->k);
	a->indices = draw_i32(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->k), -1,
		100);
	a->context_lens = draw_i32(d, a->tokens, 0, 100);
	if (variant != NEW_IN_PLACE || draw_there(d))
		a->context_indices = half(d, a, variant == CONTEXT_IN_PLACE,
					  &a->context_indices_stride_elems);
	if (variant == NEW_IN_PLACE || draw_there(d))
		a->new_indices = half(d, a, variant == NEW_IN_PLACE,
				      &a->new_indices_stride_elems);
}

static const arg_error errors[] = {
	BAD_LEAST(filter_prefill_indices, k, 0, 1),
	BAD_STRIDE(filter_prefill_indices, indices_stride_elems, 69, 70),
	BAD_STRIDE(filter_prefill_indices, context_indices_stride_elems, 69,
		   70),
	BAD_STRIDE(filter_prefill_indices, new_indices_stride_elems, 69, 70),
	BAD_NULL(filter_prefill_indices, indices),
	BAD_NULL(filter_prefill_indices, context_lens),
	BAD_ARGS(filter_prefill_indices, context_indices, 0, new_indices, 0,
		 SPMLA_E_NULL,
		 "SPMLA_E_NULL: filter_prefill_indices.context_indices: got "
		 "NULL, want a pointer"),
	BAD_ARGS(filter_prefill_indices, context_indices, 64, new_indices, 64,
		 SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: filter_prefill_indices.new_indices "
		 "(context_indices too): got 1, want 0"),
};

static const arg_error context_errors[] = {
	BAD_EQUAL(filter_prefill_indices, context_indices_stride_elems, 71, 70),
};

static const arg_error new_errors[] = {
	BAD_EQUAL(filter_prefill_indices, new_indices_stride_elems, 71, 70),
};

OP_ENTRY(filter_prefill_indices,
	 .errors = {ERRORS(errors), ERRORS(context_errors), ERRORS(new_errors)},
	 .none = {ARG(filter_prefill_indices, tokens, 0)});
