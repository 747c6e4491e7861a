/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of mqa_logits_gathered: keys of e4m3, and of INDEX_MXFP4.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_mqa_logits_gathered_args *a = args;

	const uint32_t mxfp4 = draw_variant(d, 2);
	/* 2^-15 of ten times what the terms of a head sum to. */
	const double bound = (mxfp4 ? 256 : 64) * 0x1p-15;
	uint64_t n;

	a->tokens = draw_tokens(d);
	a->heads = draw_index_heads(d);
	a->keys = draw_many(d, 40, 700);
	a->form = draw_choice(d, 3);
	a->columns = a->keys + draw_choice(d, 6);
	if (a->form == SPMLA_LOGITS_COMPRESSED && d->kind == DRAW_BAD)
		a->columns = draw_size(d, a->keys);
	a->weights_stride_elems = draw_stride(d, a->heads);
	a->weights = draw_f32(
		d, draw_strided(a->tokens, a->weights_stride_elems, a->heads));
	if (mxfp4) {
		a->layout = SPMLA_LAYOUT_INDEX_MXFP4;
		a->q = draw_bytes(d, (uint64_t)a->tokens * a->heads * 64);
		a->q_scales = draw_ue8m0(d, (uint64_t)a->tokens * a->heads);
		a->k = (const uint8_t *)draw_i32(d, a->keys * UINT64_C(16),
						 INT32_MIN, INT32_MAX);
		a->k_scales = (const float *)(void *)draw_ue8m0(d, a->keys);
	} else {
		a->q = draw_codes(d, (uint64_t)a->tokens * a->heads * 128);
		a->k = draw_codes(d, a->keys * UINT64_C(128));
		a->k_scales = draw_f32(d, a->keys);
		a->k_encoding =
			draw_choice(d, 2) ? SPMLA_E4M3_FNUZ : SPMLA_E4M3_FN;
		a->q_encoding = draw_choice(d, 2);
	}
	a->starts = draw_i32(d, a->tokens, 0, a->keys + INT64_C(1));
	a->ends = draw_i32(d, a->tokens, 0, a->keys + INT64_C(1));
	a->logits_stride_elems = draw_stride(d, a->columns);
	n = draw_strided(a->tokens, a->logits_stride_elems, a->columns);
	if (draw_choice(d, 3) == 2) {
		a->logits_dtype = SPMLA_REAL_BF16;
		a->logits = draw_out_bf16(d, n, bound * a->heads, 0x1p-7);
	} else {
		a->logits = draw_out_f32(d, n, bound * a->heads, 0);
	}
}

static const arg_error errors[] = {
	BAD_LEAST(mqa_logits_gathered, heads, 0, 1),
	BAD_MOST(mqa_logits_gathered, heads, 5, 4),
	BAD_ENUM(mqa_logits_gathered, form, 3, "0, 1 or 2"),
	BAD_ENUM(mqa_logits_gathered, layout, 1, "0, 3 or 7"),
	BAD_LEAST(mqa_logits_gathered, columns, 39, 40),
	BAD_ARGS(mqa_logits_gathered, form, SPMLA_LOGITS_COMPRESSED, columns, 0,
		 SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: mqa_logits_gathered.columns: got 0, want at "
		 "least 1"),
	BAD_ARG(mqa_logits_gathered, keys, 41, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: mqa_logits_gathered.columns: got 40, want at "
		"least 41"),
	BAD_ARG(mqa_logits_gathered, columns, 41, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: mqa_logits_gathered.logits_stride_elems: got "
		"40, want at least 41"),
	BAD_STRIDE(mqa_logits_gathered, weights_stride_elems, 3, 4),
	BAD_STRIDE(mqa_logits_gathered, logits_stride_elems, 39, 40),
	BAD_NULL(mqa_logits_gathered, q),
	BAD_NULL(mqa_logits_gathered, weights),
	BAD_NULL(mqa_logits_gathered, k),
	BAD_NULL(mqa_logits_gathered, k_scales),
	BAD_NULL(mqa_logits_gathered, starts),
	BAD_NULL(mqa_logits_gathered, ends),
	BAD_NULL(mqa_logits_gathered, logits),
	BAD_ENUM(mqa_logits_gathered, logits_dtype, 2, "0 or 1"),
	BAD_MOST(mqa_logits_gathered, k_encoding, 2, 1),
	BAD_MOST(mqa_logits_gathered, q_encoding, 2, 1),
};

static const arg_error mxfp4_errors[] = {
	BAD_NULL(mqa_logits_gathered, q_scales),
	BAD_MULTIPLE(mqa_logits_gathered, k, 18, 4),
	BAD_MOST(mqa_logits_gathered, k_encoding, 1, 0),
	BAD_MOST(mqa_logits_gathered, q_encoding, 1, 0),
};

OP_ENTRY(mqa_logits_gathered, .errors = {ERRORS(errors), ERRORS(mxfp4_errors)},
	 .none = {ARG(mqa_logits_gathered, tokens, 0)}, .is_spread = 1);
