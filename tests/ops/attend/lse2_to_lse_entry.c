/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of lse2_to_lse: a result of its own, and in place.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_lse2_to_lse_args *a = args;
	const uint32_t in_place = draw_variant(d, 2);

	a->count = draw_size(d, 300);
	a->lse2 = draw_f32(d, a->count);
	a->lse = in_place ? draw_changed(d, a->lse2) : draw_out(d, a->count, 4);
}

static const arg_error errors[] = {
	BAD_NULL(lse2_to_lse, lse2),
	BAD_NULL(lse2_to_lse, lse),
};

OP_ENTRY(lse2_to_lse, .errors = {ERRORS(errors)},
	 .none = {ARG(lse2_to_lse, count, 0)});
