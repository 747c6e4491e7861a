/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of prefill_rows.
 */
#include "tests/harness/registry.h"

/* The request of each token. */
static void
number_tokens(int32_t *ids, const int32_t *starts, uint32_t tokens)
{
	uint32_t t, b = 0;

	for (t = 0; t < tokens; t++) {
		while (starts[b + 1] <= (int32_t)t)
			b++;
		ids[t] = (int32_t)b;
	}
}

static void
make(draw *d, void *args)
{
	spmla_prefill_rows_args *a = args;
	int32_t *ids;

	a->tokens = draw_tokens(d);
	a->requests = draw_size(d, 5);
	a->keys = draw_odd(d, a->requests * 50, INT32_MAX);
	a->piece_tokens = draw_size(d, 4);
	a->piece_stride_elems = draw_odd(d, draw_size(d, 300), UINT32_MAX);
	a->query_start_loc = draw_starts(d, a->requests, a->tokens);
	a->seq_lens = draw_i32(d, a->requests, 20, 50);
	a->req_row = draw_i32(d, a->requests, 0, 8);
	a->req_id_per_token = ids = draw_i32(d, a->tokens, 0, a->requests);
	if (d->kind != DRAW_BAD)
		number_tokens(ids, a->query_start_loc, a->tokens);
	a->context_lens = draw_changed(d, draw_i32(d, a->tokens, 0, 21));
	a->workspace_starts = draw_out(d, a->requests + UINT64_C(1), 4);
	a->key_starts = draw_out(d, a->tokens, 4);
	a->key_ends = draw_out(d, a->tokens, 4);
	a->row_starts = draw_out(d, a->tokens, 8);
}

static const arg_error errors[] = {
	BAD_MOST(prefill_rows, keys, 2147483648, 2147483647),
	BAD_LEAST(prefill_rows, piece_tokens, 0, 1),
	BAD_MOST(prefill_rows, piece_stride_elems, 4294967296, 4294967295),
	BAD_NULL(prefill_rows, query_start_loc),
	BAD_NULL(prefill_rows, seq_lens),
	BAD_NULL(prefill_rows, req_row),
	BAD_NULL(prefill_rows, req_id_per_token),
	BAD_NULL(prefill_rows, context_lens),
	BAD_NULL(prefill_rows, workspace_starts),
	BAD_NULL(prefill_rows, key_starts),
	BAD_NULL(prefill_rows, key_ends),
	BAD_NULL(prefill_rows, row_starts),
};

OP_ENTRY(prefill_rows, .errors = {ERRORS(errors)},
	 .none = {ARG(prefill_rows, tokens, 0)});
