/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of V4's front end. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_V4_FRONT_H
#define TESTS_FUZZ_OPS_V4_FRONT_H

#include "tests/fuzz/ops_input.h"

CALL(rms_norms)
static void
make_rms_norms(input *in, void *args)
{
	spmla_rms_norms_args *a = args;

	a->norm_eps = scale_of(in);
	a->q_rows = in_below(in, 4);
	a->q_width = 8 * in_below(in, 40);
	a->q_stride_elems = stride_of(in, a->q_width);
	a->q_out_stride_elems = stride_of(in, a->q_width);
	a->q = bytes_of(in, strided(a->q_rows, a->q_stride_elems, a->q_width),
			2);
	a->q_weight = bytes_of(in, a->q_width, 2);
	a->q_out = bytes_of(
		in, strided(a->q_rows, a->q_out_stride_elems, a->q_width), 2);
	a->kv_rows = in_below(in, 4);
	a->kv_width = 8 * in_below(in, 9);
	a->kv_stride_elems = stride_of(in, a->kv_width);
	a->kv_out_stride_elems = stride_of(in, a->kv_width);
	a->kv = bytes_of(
		in, strided(a->kv_rows, a->kv_stride_elems, a->kv_width), 2);
	a->kv_weight = bytes_of(in, a->kv_width, 2);
	a->kv_out = bytes_of(
		in, strided(a->kv_rows, a->kv_out_stride_elems, a->kv_width),
		2);
}

CALL(qnorm_rope_kv_insert)
static void
make_qnorm_rope_kv_insert(input *in, void *args)
{
	spmla_qnorm_rope_kv_insert_args *a = args;
	const uint32_t tokens = a->tokens = in_below(in, 4);

	a->kv_tokens = in_below(in, tokens + 2);
	a->heads = in_below(in, 4);
	a->padded_heads = a->heads + in_below(in, 3);
	a->cos_sin_rows = in_below(in, 5);
	a->norm_eps = scale_of(in);
	a->kv_scale = scale_of(in);
	a->q_head_stride_elems = stride_of(in, SPMLA_V4_DIM);
	a->q_token_stride_elems = stride_of(in, a->heads * SPMLA_V4_DIM);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, a->heads,
			       a->q_head_stride_elems, SPMLA_V4_DIM),
			2);
	a->q_out_head_stride_elems = stride_of(in, SPMLA_V4_DIM);
	a->q_out_token_stride_elems =
		stride_of(in, a->padded_heads * SPMLA_V4_DIM);
	a->q_out = bytes_of(in,
			    nested(tokens, a->q_out_token_stride_elems,
				   a->padded_heads, a->q_out_head_stride_elems,
				   SPMLA_V4_DIM),
			    2);
	a->kv_stride_elems = stride_of(in, SPMLA_V4_DIM);
	a->kv = bytes_of(
		in, strided(a->kv_tokens, a->kv_stride_elems, SPMLA_V4_DIM), 2);
	a->slot_mapping = i64_of(in, a->kv_tokens);
	a->positions = i32_of(in, tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_V4_ROPE);
	a->cache = cache_of(in, SPMLA_LAYOUT_V4_FP8 + in_below(in, 3));
}

#endif
