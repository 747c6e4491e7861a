/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of split_combine.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_split_combine_args *a = args;
	draw_strides s;

	a->tokens = draw_tokens(d);
	a->heads = draw_heads(d);
	a->split_rows = draw_many(d, 9, 80);
	a->empty_lse = draw_choice(d, 2);
	a->num_splits = draw_starts(d, a->tokens, a->split_rows);
	a->split_out = draw_f32(d, (uint64_t)a->split_rows * a->heads * 512);
	a->split_lse = draw_f32(d, (uint64_t)a->split_rows * a->heads);
	a->attn_sink = draw_there(d) ? draw_f32(d, a->heads) : NULL;
	s = draw_rows(d, a->tokens, a->heads, 512);
	a->out = draw_out_bf16(d, s.elems, 2.02 / 256, 0);
	a->out_token_stride_elems = s.token;
	a->out_head_stride_elems = s.head;
	if (!draw_there(d))
		return;
	s = draw_rows(d, a->tokens, a->heads, 1);
	a->lse = draw_out_f32(d, s.elems, 2e-6, 2e-6);
	a->lse_token_stride_elems = s.token;
	a->lse_head_stride_elems = s.head;
}

static const arg_error errors[] = {
	BAD_LEAST(split_combine, heads, 0, 1),
	BAD_LEAST(split_combine, split_rows, 0, 1),
	BAD_ENUM(split_combine, empty_lse, 2, "0 or 1"),
	BAD_NULL(split_combine, num_splits),
	BAD_NULL(split_combine, split_out),
	BAD_NULL(split_combine, split_lse),
	BAD_NULL(split_combine, out),
	BAD_STRIDE(split_combine, out_token_stride_elems, 511, 512),
	BAD_STRIDE(split_combine, out_head_stride_elems, 511, 512),
	BAD_STRIDE(split_combine, lse_token_stride_elems, 0, 1),
	BAD_STRIDE(split_combine, lse_head_stride_elems, 0, 1),
};

OP_ENTRY(split_combine, .errors = {ERRORS(errors)},
	 .none = {ARG(split_combine, tokens, 0)});
