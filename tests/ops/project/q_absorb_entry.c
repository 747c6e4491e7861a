/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of q_absorb: with a rope part, and without.
 *
 * The bound: the last bit of bf16, and twice 2^-16 of a hundred in terms.
 */
#include "tests/harness/registry.h"

static void
make_rope(draw *d, spmla_q_absorb_args *a)
{
	const draw_strides s = draw_rows(d, a->tokens, a->heads, 64);

	a->q_pe = draw_bf16(d, s.elems);
	a->q_pe_token_stride_elems = s.token;
	a->q_pe_head_stride_elems = s.head;
	if (!draw_there(d))
		return;
	a->rope_style = SPMLA_ROPE_NEOX + draw_choice(d, 2);
	a->cos_sin_rows = draw_size(d, 20);
	a->positions = draw_i32(d, a->tokens, 0, a->cos_sin_rows);
	a->cos_sin = draw_cos_sin(d, a->cos_sin_rows);
}

static void
make(draw *d, void *args)
{
	spmla_q_absorb_args *a = args;
	const uint32_t plain = draw_variant(d, 2);
	draw_strides s;

	a->tokens = draw_tokens(d);
	a->heads = draw_size(d, 2);
	s = draw_rows(d, a->tokens, a->heads, 128);
	a->q_nope = draw_bf16(d, s.elems);
	a->q_nope_token_stride_elems = s.token;
	a->q_nope_head_stride_elems = s.head;
	s = draw_rows(d, a->heads, 128, 512);
	a->w_uk_t = draw_bf16(d, s.elems);
	a->w_head_stride_elems = s.token;
	a->w_row_stride_elems = s.head;
	if (!plain)
		make_rope(d, a);
	s = draw_rows(d, a->tokens, a->heads, plain ? 512 : 576);
	a->q = draw_out_bf16(d, s.elems, 4e-3, 0x1p-7);
	a->q_token_stride_elems = s.token;
	a->q_head_stride_elems = s.head;
}

static const arg_error errors[] = {
	BAD_LEAST(q_absorb, heads, 0, 1),
	BAD_ENUM(q_absorb, rope_style, 3, "0, 1 or 2"),
	BAD_LEAST(q_absorb, cos_sin_rows, 0, 1),
	BAD_NULL(q_absorb, q_nope),
	BAD_STRIDE(q_absorb, q_nope_token_stride_elems, 127, 128),
	BAD_STRIDE(q_absorb, q_nope_head_stride_elems, 127, 128),
	BAD_NULL(q_absorb, w_uk_t),
	BAD_STRIDE(q_absorb, w_head_stride_elems, 511, 512),
	BAD_STRIDE(q_absorb, w_row_stride_elems, 511, 512),
	BAD_STRIDE(q_absorb, q_pe_token_stride_elems, 63, 64),
	BAD_STRIDE(q_absorb, q_pe_head_stride_elems, 63, 64),
	BAD_NULL(q_absorb, q_pe),
	BAD_NULL(q_absorb, positions),
	BAD_ENUM(q_absorb, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(q_absorb, cos_sin_dtype, 2, "0 or 1"),
	BAD_NULL(q_absorb, cos_sin),
	BAD_NULL(q_absorb, q),
	BAD_STRIDE(q_absorb, q_token_stride_elems, 575, 576),
	BAD_STRIDE(q_absorb, q_head_stride_elems, 575, 576),
};

static const arg_error plain_errors[] = {
	BAD_STRIDE(q_absorb, q_token_stride_elems, 511, 512),
	BAD_STRIDE(q_absorb, q_head_stride_elems, 511, 512),
};

OP_ENTRY(q_absorb,
	 .inputs = {INPUT_INT(q_absorb, positions, positions_dtype),
		    INPUT_REAL(q_absorb, cos_sin, cos_sin_dtype)},
	 .errors = {ERRORS(errors), ERRORS(plain_errors)},
	 .none = {ARG(q_absorb, tokens, 0)});
