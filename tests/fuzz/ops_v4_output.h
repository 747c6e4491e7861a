/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of V4's output projection. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_V4_OUTPUT_H
#define TESTS_FUZZ_OPS_V4_OUTPUT_H

#include "tests/fuzz/ops_input.h"

CALL(inv_rope_quant)
static void
make_inv_rope_quant(input *in, void *args)
{
	spmla_inv_rope_quant_args *a = args;
	const uint32_t tokens = a->tokens = in_below(in, 6);
	const uint32_t groups = a->groups = in_below(in, 3);
	const uint32_t per = a->heads_per_group = in_below(in, 3);
	const uint32_t padded = (tokens + 3) / 4 * 4;

	a->quant = in_below(in, 4);
	a->rope_style = in_below(in, 4);
	a->cos_sin_rows = in_below(in, 5);
	a->o_head_stride_elems = stride_of(in, SPMLA_V4_DIM);
	a->o_token_stride_elems = stride_of(in, groups * per * SPMLA_V4_DIM);
	a->o = bytes_of(in,
			nested(tokens, a->o_token_stride_elems, groups * per,
			       a->o_head_stride_elems, SPMLA_V4_DIM),
			2);
	a->positions = i32_of(in, tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_V4_ROPE);
	a->out_group_stride_elems = stride_of(in, per * SPMLA_V4_DIM);
	a->out_token_stride_elems = stride_of(in, groups * per * SPMLA_V4_DIM);
	a->out = bytes_of(in,
			  nested(tokens, a->out_token_stride_elems, groups,
				 a->out_group_stride_elems, per * SPMLA_V4_DIM),
			  a->quant == SPMLA_O_BF16 ? 2 : 1);
	a->scale_stride_elems = stride_of(in, padded);
	a->scale_group_stride_elems =
		stride_of(in, padded ? 4 * per * (padded + 16) : 0);
	a->scales = f32_of(in, nested(groups, a->scale_group_stride_elems,
				      4 * per, a->scale_stride_elems, padded));
}

CALL(o_group_proj)
static void
make_o_group_proj(input *in, void *args)
{
	spmla_o_group_proj_args *a = args;
	const uint32_t tokens = a->tokens = in_below(in, 4);
	const uint32_t groups = a->groups = in_below(in, 3);
	const uint32_t inner = a->inner = 128 * in_below(in, 6);
	const uint32_t columns = a->columns = 128 * in_below(in, 2);
	const uint32_t bytes = (a->quant = in_below(in, 4)) ? 1 : 2;
	const uint32_t rows = inner / (a->quant == SPMLA_O_FP8 ? 128 : 512);

	a->o_group_stride_elems = stride_of(in, inner);
	a->o_token_stride_elems = stride_of(in, groups * inner);
	a->o = bytes_of(in,
			nested(tokens, a->o_token_stride_elems, groups,
			       a->o_group_stride_elems, inner),
			bytes);
	a->o_scale_stride_elems = stride_of(in, tokens);
	a->o_scale_group_stride_elems = stride_of(in, rows * (tokens + 16));
	a->o_scales = f32_of(in, nested(groups, a->o_scale_group_stride_elems,
					rows, a->o_scale_stride_elems, tokens));
	a->w_row_stride_elems = stride_of(in, inner);
	a->w_group_stride_elems = stride_of(in, columns * (inner + 16));
	a->w = bytes_of(in,
			nested(groups, a->w_group_stride_elems, columns,
			       a->w_row_stride_elems, inner),
			bytes);
	a->w_scale_row_stride_elems = stride_of(in, inner / 128);
	a->w_scale_group_stride_elems = stride_of(in, inner / 128 + 16);
	a->w_scales = f32_of(
		in, nested(groups, a->w_scale_group_stride_elems, columns / 128,
			   a->w_scale_row_stride_elems, inner / 128));
	a->z_group_stride_elems = stride_of(in, columns);
	a->z_token_stride_elems = stride_of(in, groups * columns);
	a->z = bytes_of(in,
			nested(tokens, a->z_token_stride_elems, groups,
			       a->z_group_stride_elems, columns),
			2);
}

#endif
