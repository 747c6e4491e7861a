/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of v_up.
 *
 * The bound: the last bit of bf16, and twice 2^-16 of 250 in terms.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_v_up_args *a = args;
	draw_strides s;

	a->tokens = draw_tokens(d);
	a->heads = draw_size(d, 2);
	s = draw_rows(d, a->tokens, a->heads, 512);
	a->latent = draw_bf16(d, s.elems);
	a->latent_token_stride_elems = s.token;
	a->latent_head_stride_elems = s.head;
	s = draw_rows(d, a->heads, 512, 128);
	a->w_uv = draw_bf16(d, s.elems);
	a->w_head_stride_elems = s.token;
	a->w_row_stride_elems = s.head;
	a->out_token_stride_elems = draw_stride(d, a->heads * 128);
	a->out =
		draw_out_bf16(d,
			      draw_strided(a->tokens, a->out_token_stride_elems,
					   a->heads * 128),
			      8e-3, 0x1p-7);
}

static const arg_error errors[] = {
	BAD_LEAST(v_up, heads, 0, 1),
	BAD_NULL(v_up, latent),
	BAD_STRIDE(v_up, latent_token_stride_elems, 511, 512),
	BAD_STRIDE(v_up, latent_head_stride_elems, 511, 512),
	BAD_NULL(v_up, w_uv),
	BAD_STRIDE(v_up, w_head_stride_elems, 127, 128),
	BAD_STRIDE(v_up, w_row_stride_elems, 127, 128),
	BAD_NULL(v_up, out),
	BAD_STRIDE(v_up, out_token_stride_elems, 255, 256),
};

OP_ENTRY(v_up, .errors = {ERRORS(errors)}, .none = {ARG(v_up, tokens, 0)});
