/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of inv_rope_quant: scales as f32, packed, and none.
 */
#include "tests/harness/registry.h"

enum { FP8, PACKED, BF16, VARIANTS };

static void
make(draw *d, void *args)
{
	static const uint32_t quants[VARIANTS] = {
		SPMLA_O_FP8, SPMLA_O_FP8_PACKED, SPMLA_O_BF16};
	spmla_inv_rope_quant_args *a = args;
	uint32_t rows, padded;
	draw_strides s;

	a->quant = quants[draw_variant(d, VARIANTS)];
	a->tokens = draw_tokens(d);
	a->groups = draw_size(d, 2);
	a->heads_per_group = draw_size(d, 3);
	s = draw_rows(d, a->tokens, a->groups * a->heads_per_group, 512);
	a->o = draw_bf16(d, s.elems);
	a->o_token_stride_elems = s.token;
	a->o_head_stride_elems = s.head;
	if (draw_there(d)) {
		a->rope_style = SPMLA_ROPE_NEOX + draw_choice(d, 2);
		a->cos_sin_rows = draw_size(d, 20);
		a->positions = draw_i32(d, a->tokens, 0, a->cos_sin_rows);
		a->cos_sin = draw_cos_sin(d, a->cos_sin_rows);
	}
	s = draw_rows(d, a->tokens, a->groups, a->heads_per_group * 512);
	a->out = draw_out(d, s.elems, a->quant == SPMLA_O_BF16 ? 2 : 1);
	a->out_token_stride_elems = s.token;
	a->out_group_stride_elems = s.head;
	if (a->quant == SPMLA_O_BF16)
		return;
	rows = a->heads_per_group * (a->quant == SPMLA_O_FP8 ? 4 : 1);
	padded = (a->tokens + 3) / 4 * 4;
	s = draw_rows(d, a->groups, rows, padded);
	a->scales = draw_out(d, s.elems, 4);
	a->scale_group_stride_elems = s.token;
	a->scale_stride_elems = s.head;
}

static const arg_error errors[] = {
	BAD_LEAST(inv_rope_quant, groups, 0, 1),
	BAD_MOST(inv_rope_quant, groups, 257, 256),
	BAD_LEAST(inv_rope_quant, heads_per_group, 0, 1),
	BAD_MOST(inv_rope_quant, heads_per_group, 257, 256),
	BAD_ENUM(inv_rope_quant, quant, 3, "0, 1 or 2"),
	BAD_ENUM(inv_rope_quant, rope_style, 3, "0, 1 or 2"),
	BAD_LEAST(inv_rope_quant, cos_sin_rows, 0, 1),
	BAD_NULL(inv_rope_quant, o),
	BAD_STRIDE(inv_rope_quant, o_token_stride_elems, 511, 512),
	BAD_STRIDE(inv_rope_quant, o_head_stride_elems, 511, 512),
	BAD_NULL(inv_rope_quant, positions),
	BAD_ENUM(inv_rope_quant, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(inv_rope_quant, cos_sin_dtype, 2, "0 or 1"),
	BAD_NULL(inv_rope_quant, cos_sin),
	BAD_NULL(inv_rope_quant, out),
	BAD_STRIDE(inv_rope_quant, out_token_stride_elems, 1535, 1536),
	BAD_STRIDE(inv_rope_quant, out_group_stride_elems, 1535, 1536),
	BAD_NULL(inv_rope_quant, scales),
	BAD_STRIDE(inv_rope_quant, scale_stride_elems, 3, 4),
	BAD_STRIDE(inv_rope_quant, scale_group_stride_elems, 3, 4),
	/* The scales of five tokens have the room of eight. */
	BAD_ARG(inv_rope_quant, tokens, 5, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: inv_rope_quant.scale_stride_elems: got 4, want "
		"at least 8"),
};

static const arg_error packed_errors[] = {
	BAD_NULL(inv_rope_quant, scales),
};

OP_ENTRY(inv_rope_quant,
	 .inputs = {INPUT_INT(inv_rope_quant, positions, positions_dtype),
		    INPUT_REAL(inv_rope_quant, cos_sin, cos_sin_dtype)},
	 .errors = {ERRORS(errors), ERRORS(packed_errors)},
	 .none = {ARG(inv_rope_quant, tokens, 0)}, .is_spread = 1);
