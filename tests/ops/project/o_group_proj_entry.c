/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of o_group_proj: scales as f32, packed, and none.
 *
 * The bound: the last bit of bf16, and twice (inner / 2 + 160) * 2^-24 of a
 * hundred in terms.
 */
#include "tests/harness/registry.h"

enum { FP8, PACKED, BF16, VARIANTS };

static void
make_scales(draw *d, spmla_o_group_proj_args *a)
{
	const uint32_t packed = a->quant == SPMLA_O_FP8_PACKED;
	draw_strides s = draw_rows(d, a->groups,
				   a->inner / (packed ? 512 : 128), a->tokens);

	a->o_scales = packed ? (const void *)draw_ue8m0(d, s.elems)
			     : draw_f32(d, s.elems);
	a->o_scale_group_stride_elems = s.token;
	a->o_scale_stride_elems = s.head;
	s = draw_rows(d, a->groups, a->columns / 128, a->inner / 128);
	a->w_scales = draw_f32(d, s.elems);
	a->w_scale_group_stride_elems = s.token;
	a->w_scale_row_stride_elems = s.head;
}

static void
make(draw *d, void *args)
{
	static const uint32_t quants[VARIANTS] = {
		SPMLA_O_FP8, SPMLA_O_FP8_PACKED, SPMLA_O_BF16};
	spmla_o_group_proj_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	draw_strides s;

	a->quant = quants[variant];
	a->tokens = draw_tokens(d);
	a->groups = draw_size(d, 2);
	a->inner = variant == PACKED ? 512 * draw_size(d, 2)
				     : 128 * draw_size(d, 5);
	a->columns = 128 * draw_size(d, 2);
	s = draw_rows(d, a->tokens, a->groups, a->inner);
	a->o = variant == BF16 ? (const void *)draw_bf16(d, s.elems)
			       : draw_codes(d, s.elems);
	a->o_token_stride_elems = s.token;
	a->o_group_stride_elems = s.head;
	s = draw_rows(d, a->groups, a->columns, a->inner);
	a->w = variant == BF16 ? (const void *)draw_bf16(d, s.elems)
			       : draw_codes(d, s.elems);
	a->w_group_stride_elems = s.token;
	a->w_row_stride_elems = s.head;
	if (variant != BF16)
		make_scales(d, a);
	s = draw_rows(d, a->tokens, a->groups, a->columns);
	a->z = draw_out_bf16(d, s.elems, (a->inner + 320) * 100 * 0x1p-24,
			     0x1p-7);
	a->z_token_stride_elems = s.token;
	a->z_group_stride_elems = s.head;
}

static const arg_error errors[] = {
	BAD_LEAST(o_group_proj, groups, 0, 1),
	BAD_MOST(o_group_proj, groups, 257, 256),
	BAD_ENUM(o_group_proj, quant, 3, "0, 1 or 2"),
	BAD_LEAST(o_group_proj, inner, 0, 128),
	BAD_MOST(o_group_proj, inner, 131200, 131072),
	BAD_MULTIPLE(o_group_proj, inner, 160, 128),
	BAD_LEAST(o_group_proj, columns, 0, 128),
	BAD_MOST(o_group_proj, columns, 65664, 65536),
	BAD_MULTIPLE(o_group_proj, columns, 160, 128),
	BAD_NULL(o_group_proj, o),
	BAD_STRIDE(o_group_proj, o_token_stride_elems, 639, 640),
	BAD_STRIDE(o_group_proj, o_group_stride_elems, 639, 640),
	BAD_NULL(o_group_proj, o_scales),
	BAD_STRIDE(o_group_proj, o_scale_stride_elems, 3, 4),
	BAD_STRIDE(o_group_proj, o_scale_group_stride_elems, 3, 4),
	BAD_NULL(o_group_proj, w),
	BAD_STRIDE(o_group_proj, w_group_stride_elems, 639, 640),
	BAD_STRIDE(o_group_proj, w_row_stride_elems, 639, 640),
	BAD_NULL(o_group_proj, w_scales),
	BAD_STRIDE(o_group_proj, w_scale_group_stride_elems, 4, 5),
	BAD_STRIDE(o_group_proj, w_scale_row_stride_elems, 4, 5),
	BAD_NULL(o_group_proj, z),
	BAD_STRIDE(o_group_proj, z_token_stride_elems, 255, 256),
	BAD_STRIDE(o_group_proj, z_group_stride_elems, 255, 256),
};

static const arg_error packed_errors[] = {
	BAD_LEAST(o_group_proj, inner, 0, 512),
	BAD_MULTIPLE(o_group_proj, inner, 640, 512),
};

OP_ENTRY(o_group_proj, .errors = {ERRORS(errors), ERRORS(packed_errors)},
	 .none = {ARG(o_group_proj, tokens, 0)}, .is_spread = 1);
