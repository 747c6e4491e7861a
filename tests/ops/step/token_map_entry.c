/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of token_map.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_token_map_args *a = args;

	a->tokens = draw_tokens(d);
	a->requests = draw_size(d, 5);
	a->query_start_loc = draw_starts(d, a->requests,
					 a->tokens - draw_choice(d, a->tokens));
	a->seq_lens =
		draw_i32(d, a->requests, a->tokens, a->tokens + INT64_C(90));
	a->req_row = draw_i32(d, a->requests, 0, 8);
	a->req_id_per_token = draw_out(d, a->tokens, 4);
	a->token_row = draw_out(d, a->tokens, 4);
	a->positions = draw_out(d, a->tokens, 4);
	a->context_lens = draw_out(d, a->tokens, 4);
}

static const arg_error errors[] = {
	BAD_NULL(token_map, query_start_loc),
	BAD_NULL(token_map, seq_lens),
	BAD_NULL(token_map, req_row),
	BAD_NULL(token_map, req_id_per_token),
	BAD_NULL(token_map, token_row),
	BAD_NULL(token_map, positions),
	BAD_NULL(token_map, context_lens),
};

OP_ENTRY(token_map, .errors = {ERRORS(errors)},
	 .none = {ARG(token_map, tokens, 0)});
