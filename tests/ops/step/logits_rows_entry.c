/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of logits_rows.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_logits_rows_args *a = args;

	a->tokens = draw_tokens(d);
	a->capacity_elems = draw_odd(d, a->tokens * 768, UINT32_MAX);
	if (d->kind == DRAW_BAD && draw_choice(d, 2))
		a->capacity_elems = draw_size(d, 1000);
	a->token_row = draw_there(d) ? draw_i32(d, a->tokens, 0, 8) : NULL;
	a->context_lens = draw_changed(d, draw_i32(d, a->tokens, 0, 700));
	a->row_starts = draw_out(d, a->tokens + UINT64_C(1), 8);
}

static const arg_error errors[] = {
	BAD_NULL(logits_rows, context_lens),
	BAD_NULL(logits_rows, row_starts),
	BAD_RANGE(logits_rows, capacity_elems, UINT64_C(1) << 63,
		  "got 9223372036854775808, want at most 9223372036854775807"),
};

OP_ENTRY(logits_rows, .errors = {ERRORS(errors)},
	 .none = {ARG(logits_rows, tokens, 0)});
