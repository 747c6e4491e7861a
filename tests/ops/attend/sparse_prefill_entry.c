/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of sparse_prefill: keys of 576 values, of 512, and ragged
 * lists of either.
 *
 * Bounds are twice the operation's, with values of at most 1 and scores
 * of at most 100 in terms.
 */
#include "tests/harness/registry.h"

enum { D576, D512, RAGGED, VARIANTS };

static void
make_outputs(draw *d, spmla_sparse_prefill_args *a)
{
	draw_strides s = draw_rows(d, a->tokens, a->heads, 512);

	a->out = draw_out_bf16(d, s.elems, 0.01, 6.02 / 128);
	a->out_token_stride_elems = s.token;
	a->out_head_stride_elems = s.head;
	s = draw_rows(d, a->tokens, a->heads, 1);
	a->lse_token_stride_elems = s.token;
	a->lse_head_stride_elems = s.head;
	if (draw_there(d))
		a->lse = draw_out_f32(d, s.elems, 3e-3, 4.02 / 65536);
	if (draw_there(d))
		a->max_logits = draw_out_f32(d, s.elems, 3e-3, 4.02 / 65536);
}

static void
make(draw *d, void *args)
{
	spmla_sparse_prefill_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t small =
		variant == D512 || (variant == RAGGED && draw_choice(d, 2));
	draw_strides s;

	a->dim = small ? 512 : 576;
	a->tokens = draw_tokens(d);
	a->heads = draw_heads(d);
	a->topk = draw_many(d, 70, 150);
	a->kv_rows = draw_there(d) ? draw_many(d, 40, 700) : 0;
	a->lse_base = draw_choice(d, 2);
	a->empty_lse = draw_choice(d, 3);
	a->lse_sink = draw_choice(d, 2);
	a->softmax_scale = draw_scale(d);
	s = draw_rows(d, a->tokens, a->heads, a->dim);
	a->q = draw_bf16(d, s.elems);
	a->q_token_stride_elems = s.token;
	a->q_head_stride_elems = s.head;
	a->kv_stride_elems = draw_stride(d, a->dim);
	a->kv = draw_bf16(d,
			  draw_strided(a->kv_rows, a->kv_stride_elems, a->dim));
	a->indices_stride_elems = draw_stride(d, a->topk);
	a->indices = draw_i32(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->topk),
		-2, a->kv_rows + INT64_C(2));
	if (draw_there(d))
		a->topk_lens = draw_i32(d, a->tokens, 0, a->topk + INT64_C(1));
	if (draw_there(d))
		a->attn_sink = draw_f32(d, a->heads);
	if (variant == RAGGED) {
		a->topk = draw_many(d, 300, 700);
		a->indices = draw_i32(d, a->topk, -2, a->kv_rows + INT64_C(2));
		a->indptr = draw_starts(d, a->tokens, a->topk);
	}
	make_outputs(d, a);
}

static const arg_error errors[] = {
	BAD_LEAST(sparse_prefill, heads, 0, 1),
	BAD_MOST(sparse_prefill, heads, 5, 4),
	BAD_ENUM(sparse_prefill, dim, 544, "576 or 512"),
	BAD_ENUM(sparse_prefill, dim, 0, "576 or 512"),
	BAD_LEAST(sparse_prefill, topk, 0, 1),
	BAD_ENUM(sparse_prefill, empty_lse, 3, "0, 1 or 2"),
	BAD_ENUM(sparse_prefill, lse_base, 2, "0 or 1"),
	BAD_MOST(sparse_prefill, lse_sink, 2, 1),
	BAD_FLOAT(sparse_prefill, softmax_scale),
	BAD_BITS(sparse_prefill, softmax_scale, 0x80000000),
	BAD_BITS(sparse_prefill, softmax_scale, 0xff800000),
	BAD_NULL(sparse_prefill, q),
	BAD_STRIDE(sparse_prefill, q_token_stride_elems, 575, 576),
	BAD_STRIDE(sparse_prefill, q_head_stride_elems, 575, 576),
	BAD_NULL(sparse_prefill, kv),
	BAD_STRIDE(sparse_prefill, kv_stride_elems, 575, 576),
	BAD_NULL(sparse_prefill, indices),
	BAD_STRIDE(sparse_prefill, indices_stride_elems, 69, 70),
	BAD_NULL(sparse_prefill, out),
	BAD_STRIDE(sparse_prefill, out_token_stride_elems, 511, 512),
	BAD_STRIDE(sparse_prefill, out_head_stride_elems, 511, 512),
	BAD_STRIDE(sparse_prefill, lse_token_stride_elems, 0, 1),
	BAD_STRIDE(sparse_prefill, lse_head_stride_elems, 0, 1),
};

static const arg_error v4_errors[] = {
	BAD_STRIDE(sparse_prefill, q_token_stride_elems, 511, 512),
	BAD_STRIDE(sparse_prefill, q_head_stride_elems, 511, 512),
	BAD_STRIDE(sparse_prefill, kv_stride_elems, 511, 512),
};

OP_ENTRY(sparse_prefill, .errors = {ERRORS(errors), ERRORS(v4_errors)},
	 .none = {ARG(sparse_prefill, tokens, 0)}, .is_spread = 1);
