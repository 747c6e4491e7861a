/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of indexer_q_prep: queries as e4m3, and as MXFP4.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_indexer_q_prep_args *a = args;
	draw_strides s;
	uint64_t rows;

	a->q_format = draw_variant(d, 2);
	a->tokens = draw_tokens(d);
	a->heads = draw_index_heads(d);
	a->scale_floor = draw_choice(d, 3);
	a->weights_dtype =
		draw_choice(d, 2) ? SPMLA_DTYPE_F32 : SPMLA_DTYPE_BF16;
	a->softmax_scale = draw_scale(d);
	a->head_scale = draw_scale(d);
	a->rope_part = draw_choice(d, 2);
	s = draw_rows(d, a->tokens, a->heads, 128);
	a->q = draw_bf16(d, s.elems);
	a->q_token_stride_elems = s.token;
	a->q_head_stride_elems = s.head;
	a->weights_stride_elems = draw_stride(d, a->heads);
	rows = draw_strided(a->tokens, a->weights_stride_elems, a->heads);
	a->weights = a->weights_dtype == SPMLA_DTYPE_F32
			     ? (const void *)draw_f32(d, rows)
			     : draw_bf16(d, rows);
	if (draw_there(d)) {
		a->rope_style = SPMLA_ROPE_NEOX + draw_choice(d, 2);
		a->cos_sin_rows = draw_size(d, 20);
		a->positions = draw_i32(d, a->tokens, 0, a->cos_sin_rows);
		a->cos_sin = draw_cos_sin(d, a->cos_sin_rows);
	}
	rows = (uint64_t)a->tokens * a->heads;
	a->q_out = draw_out(d, rows * (a->q_format ? 64 : 128), 1);
	a->weights_out = draw_out(d, rows, 4);
	a->q_scales = a->q_format ? draw_out(d, rows, 4) : NULL;
	if (!a->q_format)
		a->q_encoding = draw_choice(d, 2);
}

static const arg_error errors[] = {
	BAD_LEAST(indexer_q_prep, heads, 0, 1),
	BAD_MOST(indexer_q_prep, heads, 129, 128),
	BAD_ENUM(indexer_q_prep, rope_style, 3, "0, 1 or 2"),
	BAD_ENUM(indexer_q_prep, scale_floor, 3, "0, 1 or 2"),
	BAD_ENUM(indexer_q_prep, weights_dtype, 1, "0 or 2"),
	BAD_ENUM(indexer_q_prep, weights_dtype, 3, "0 or 2"),
	BAD_LEAST(indexer_q_prep, cos_sin_rows, 0, 1),
	BAD_FLOAT(indexer_q_prep, softmax_scale),
	BAD_FLOAT(indexer_q_prep, head_scale),
	BAD_BITS(indexer_q_prep, head_scale, 0x80000000),
	BAD_NULL(indexer_q_prep, q),
	BAD_STRIDE(indexer_q_prep, q_token_stride_elems, 127, 128),
	BAD_STRIDE(indexer_q_prep, q_head_stride_elems, 127, 128),
	BAD_NULL(indexer_q_prep, weights),
	BAD_STRIDE(indexer_q_prep, weights_stride_elems, 3, 4),
	BAD_NULL(indexer_q_prep, positions),
	BAD_ENUM(indexer_q_prep, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(indexer_q_prep, cos_sin_dtype, 2, "0 or 1"),
	BAD_NULL(indexer_q_prep, cos_sin),
	BAD_NULL(indexer_q_prep, q_out),
	BAD_NULL(indexer_q_prep, weights_out),
	BAD_ENUM(indexer_q_prep, rope_part, 2, "0 or 1"),
	BAD_ENUM(indexer_q_prep, q_format, 2, "0 or 1"),
	BAD_MOST(indexer_q_prep, q_encoding, 2, 1),
};

static const arg_error mxfp4_errors[] = {
	BAD_NULL(indexer_q_prep, q_scales),
	BAD_MOST(indexer_q_prep, q_encoding, 1, 0),
};

OP_ENTRY(indexer_q_prep,
	 .inputs = {INPUT_INT(indexer_q_prep, positions, positions_dtype),
		    INPUT_REAL(indexer_q_prep, cos_sin, cos_sin_dtype)},
	 .errors = {ERRORS(errors), ERRORS(mxfp4_errors)},
	 .none = {ARG(indexer_q_prep, tokens, 0)}, .is_spread = 1);
