/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of prefill. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_PREFILL_H
#define TESTS_FUZZ_OPS_PREFILL_H

#include "tests/fuzz/ops_input.h"

/* ---- Prefill ----------------------------------------------------------- */

CALL(sparse_prefill)
static void
make_sparse_prefill(input *in, void *args)
{
	spmla_sparse_prefill_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 4);
	const uint32_t tokens = a->tokens = in_below(in, 3);
	const uint32_t dim = a->dim = in_below(in, 2) ? 512 : 576;

	a->topk = in_below(in, 70);
	a->kv_rows = in_below(in, 6);
	a->lse_base = in_below(in, 3);
	a->empty_lse = in_below(in, 3);
	a->softmax_scale = scale_of(in);
	a->q_head_stride_elems = stride_of(in, dim);
	a->q_token_stride_elems = stride_of(in, heads * dim);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, heads,
			       a->q_head_stride_elems, dim),
			2);
	a->kv_stride_elems = stride_of(in, dim);
	a->kv = bytes_of(in, strided(a->kv_rows, a->kv_stride_elems, dim), 2);
	a->indices_stride_elems = stride_of(in, a->topk);
	a->indices =
		i32_of(in, strided(tokens, a->indices_stride_elems, a->topk));
	a->topk_lens = maybe(in) ? i32_of(in, tokens) : NULL;
	a->attn_sink = maybe(in) ? f32_of(in, heads) : NULL;
	a->out_head_stride_elems = stride_of(in, SPMLA_MLA_LATENT);
	a->out_token_stride_elems = stride_of(in, heads * SPMLA_MLA_LATENT);
	a->out = bytes_of(in,
			  nested(tokens, a->out_token_stride_elems, heads,
				 a->out_head_stride_elems, SPMLA_MLA_LATENT),
			  2);
	a->lse_head_stride_elems = stride_of(in, 1);
	a->lse_token_stride_elems = stride_of(in, heads);
	if (maybe(in))
		a->lse = f32_of(in, nested(tokens, a->lse_token_stride_elems,
					   heads, a->lse_head_stride_elems, 1));
	if (maybe(in))
		a->max_logits =
			f32_of(in, nested(tokens, a->lse_token_stride_elems,
					  heads, a->lse_head_stride_elems, 1));
}

CALL(mqa_logits_gathered)
static void
make_mqa_logits_gathered(input *in, void *args)
{
	spmla_mqa_logits_gathered_args *a = args;

	a->tokens = in_below(in, 4);
	a->heads = in_below(in, 5);
	a->keys = in_below(in, 9);
	a->form = in_below(in, 4);
	a->columns = in_below(in, 12);
	a->q = bytes_of(in, (int64_t)a->tokens * a->heads, SPMLA_INDEX_DIM);
	a->weights_stride_elems = stride_of(in, a->heads);
	a->weights = f32_of(
		in, strided(a->tokens, a->weights_stride_elems, a->heads));
	a->k = bytes_of(in, a->keys, SPMLA_INDEX_DIM);
	a->k_scales = f32_of(in, a->keys);
	a->starts = i32_of(in, a->tokens);
	a->ends = i32_of(in, a->tokens);
	a->logits_stride_elems = stride_of(in, a->columns);
	a->logits = f32_of(
		in, strided(a->tokens, a->logits_stride_elems, a->columns));
}

CALL(q_absorb)
static void
make_q_absorb(input *in, void *args)
{
	spmla_q_absorb_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 3);
	const uint32_t tokens = a->tokens = in_below(in, 3);
	const uint32_t rope = maybe(in);
	const uint32_t width = rope ? SPMLA_MLA_DIM : SPMLA_MLA_LATENT;

	a->rope_style = in_below(in, 4);
	a->cos_sin_rows = in_below(in, 5);
	a->q_nope_head_stride_elems = stride_of(in, 128);
	a->q_nope_token_stride_elems = stride_of(in, heads * 128);
	a->q_nope = bytes_of(in,
			     nested(tokens, a->q_nope_token_stride_elems, heads,
				    a->q_nope_head_stride_elems, 128),
			     2);
	a->w_row_stride_elems = stride_of(in, 512);
	a->w_head_stride_elems = stride_of(in, 128 * 512);
	a->w_uk_t = bytes_of(in,
			     nested(heads, a->w_head_stride_elems, 128,
				    a->w_row_stride_elems, 512),
			     2);
	a->q_pe_head_stride_elems = stride_of(in, 64);
	a->q_pe_token_stride_elems = stride_of(in, heads * 64);
	if (rope)
		a->q_pe = bytes_of(in,
				   nested(tokens, a->q_pe_token_stride_elems,
					  heads, a->q_pe_head_stride_elems, 64),
				   2);
	a->positions = i32_of(in, tokens);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * SPMLA_INDEX_ROPE);
	a->q_head_stride_elems = stride_of(in, width);
	a->q_token_stride_elems = stride_of(in, heads * width);
	a->q = bytes_of(in,
			nested(tokens, a->q_token_stride_elems, heads,
			       a->q_head_stride_elems, width),
			2);
}

CALL(v_up)
static void
make_v_up(input *in, void *args)
{
	spmla_v_up_args *a = args;
	const uint32_t heads = a->heads = in_below(in, 3);
	const uint32_t tokens = a->tokens = in_below(in, 3);

	a->latent_head_stride_elems = stride_of(in, 512);
	a->latent_token_stride_elems = stride_of(in, heads * 512);
	a->latent = bytes_of(in,
			     nested(tokens, a->latent_token_stride_elems, heads,
				    a->latent_head_stride_elems, 512),
			     2);
	a->w_row_stride_elems = stride_of(in, 128);
	a->w_head_stride_elems = stride_of(in, 512 * 128);
	a->w_uv = bytes_of(in,
			   nested(heads, a->w_head_stride_elems, 512,
				  a->w_row_stride_elems, 128),
			   2);
	a->out_token_stride_elems = stride_of(in, heads * 128);
	a->out = bytes_of(
		in, strided(tokens, a->out_token_stride_elems, heads * 128), 2);
}

CALL(lse2_to_lse)
static void
make_lse2_to_lse(input *in, void *args)
{
	spmla_lse2_to_lse_args *a = args;

	a->count = in_below(in, 20);
	a->lse2 = f32_of(in, (int64_t)a->count);
	a->lse = maybe(in) ? f32_of(in, (int64_t)a->count)
			   : (float *)(uintptr_t)a->lse2; /* in place */
}

CALL(filter_prefill_indices)
static void
make_filter_prefill_indices(input *in, void *args)
{
	spmla_filter_prefill_indices_args *a = args;
	const uint32_t tokens = a->tokens = in_below(in, 5);

	a->k = in_below(in, 9);
	a->indices_stride_elems = stride_of(in, a->k);
	a->indices = i32_of(in, strided(tokens, a->indices_stride_elems, a->k));
	a->context_lens = i32_of(in, tokens);
	a->context_indices_stride_elems = stride_of(in, a->k);
	a->new_indices_stride_elems = stride_of(in, a->k);
	if (maybe(in))
		a->context_indices = i32_of(
			in,
			strided(tokens, a->context_indices_stride_elems, a->k));
	if (maybe(in))
		a->new_indices = i32_of(
			in, strided(tokens, a->new_indices_stride_elems, a->k));
}

#endif
