/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of split_combine.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_split_combine_args *a = args;
	uint32_t of, requests; /* tokens of a request */
	draw_strides s;

	a->tokens = draw_tokens(d);
	a->heads = draw_heads(d);
	a->split_rows = draw_many(d, 9, 80);
	a->empty_lse = draw_choice(d, 3);
	a->lse_base = draw_choice(d, 2);
	a->lse_sink = draw_choice(d, 2);
	a->next_n = draw_choice(d, 4);
	of = a->next_n ? a->next_n : a->tokens;
	requests = (a->tokens + of - 1) / of;
	a->whole_tokens = draw_choice(d, a->tokens + 1);
	a->num_splits =
		draw_starts(d, a->tokens - a->whole_tokens, a->split_rows);
	a->split_out = draw_f32(d, (uint64_t)a->split_rows * a->heads * 512);
	a->split_lse = draw_f32(d, (uint64_t)a->split_rows * a->heads);
	a->attn_sink = draw_there(d) ? draw_f32(d, a->heads) : NULL;
	s = draw_rows(d, of, a->heads, 512);
	a->out = draw_out_bf16(d, s.elems * requests, 2.02 / 256, 0);
	a->out_request_stride_elems = (int64_t)s.elems;
	a->out_token_stride_elems = s.token;
	a->out_head_stride_elems = s.head;
	if (!draw_there(d))
		return;
	s = draw_rows(d, of, a->heads, 1);
	a->lse = draw_out_f32(d, s.elems * requests, 3e-6, 2e-6);
	a->lse_request_stride_elems = (int64_t)s.elems;
	a->lse_token_stride_elems = s.token;
	a->lse_head_stride_elems = s.head;
}

#define BAD_OF_REQUESTS(what, got, want)                                     \
	BAD_ARGS(split_combine, next_n, 1, what##_request_stride_elems, got, \
		 SPMLA_E_RANGE,                                              \
		 "SPMLA_E_RANGE: split_combine." #what                       \
		 "_request_stride_elems: got " #got ", want at least " #want)

static const arg_error errors[] = {
	BAD_LEAST(split_combine, heads, 0, 1),
	BAD_LEAST(split_combine, split_rows, 0, 1),
	BAD_ENUM(split_combine, empty_lse, 3, "0, 1 or 2"),
	BAD_ENUM(split_combine, lse_base, 2, "0 or 1"),
	BAD_MOST(split_combine, lse_sink, 2, 1),
	BAD_MOST(split_combine, whole_tokens, 5, 4),
	BAD_RANGE(split_combine, reserved, 1, "got 1, want 0"),
	BAD_NULL(split_combine, num_splits),
	BAD_NULL(split_combine, split_out),
	BAD_NULL(split_combine, split_lse),
	BAD_NULL(split_combine, out),
	BAD_STRIDE(split_combine, out_token_stride_elems, 511, 512),
	BAD_STRIDE(split_combine, out_head_stride_elems, 511, 512),
	BAD_STRIDE(split_combine, lse_token_stride_elems, 0, 1),
	BAD_STRIDE(split_combine, lse_head_stride_elems, 0, 1),
	BAD_OF_REQUESTS(out, 511, 512),
	BAD_OF_REQUESTS(lse, 0, 1),
};

OP_ENTRY(split_combine, .errors = {ERRORS(errors)},
	 .none = {ARG(split_combine, tokens, 0)});
