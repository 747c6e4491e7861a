/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of combine_index: windows alone, and tokens of images.
 */
#include "tests/harness/registry.h"

enum { LEAST_SEQ = 20, MOST_GATHER = 10, MOST_RATIO = 5 };

/* Each token's own key was gathered, except in bad data. */
static int32_t *
context_lens(draw *d, const spmla_combine_index_args *a)
{
	int32_t *n = draw_i32(d, a->tokens, 0, MOST_GATHER);
	uint32_t t;

	for (t = 0; !d->in && t < a->tokens; t++) {
		const int32_t b = a->req_id_per_token[t];

		if (n[t] < 0 || n[t] >= MOST_GATHER || b < 0 ||
		    b >= (int32_t)a->requests || a->gather_lens[b] < 1)
			continue;
		n[t] = a->seq_lens[b] - n[t] % a->gather_lens[b];
	}
	return n;
}

static int32_t *
spans_of(draw *d, const spmla_combine_index_args *a)
{
	int32_t *spans = draw_i32(d, 2 * (uint64_t)a->tokens, 0, 4);
	uint32_t t;

	for (t = 0; !d->in && t < a->tokens; t++) {
		int32_t *s = spans + 2 * t;

		if (s[0] < 0 || s[0] > 3 || s[1] < 0 || s[1] > 3)
			continue;
		s[0] = (a->context_lens[t] & 0xffff) - 1 - s[0];
		s[1] += (a->context_lens[t] & 0xffff) - 1;
	}
	return spans;
}

static void
make(draw *d, void *args)
{
	spmla_combine_index_args *a = args;
	const uint32_t images = draw_variant(d, 2);

	a->tokens = draw_tokens(d);
	a->requests = draw_size(d, 5);
	a->window = draw_size(d, 7);
	a->ratio = draw_size(d, MOST_RATIO);
	a->topk = draw_there(d) ? draw_many(d, 8, 40) : 0;
	a->max_image = images ? draw_size(d, 4) : 0;
	a->width = a->topk + a->window + a->max_image + draw_choice(d, 8);
	a->window_row = 2 + draw_choice(d, 20);
	a->request_rows = a->window_row + MOST_GATHER + draw_choice(d, 9);
	a->req_id_per_token = draw_i32(d, a->tokens, 0, a->requests);
	a->seq_lens = draw_i32(d, a->requests, LEAST_SEQ, LEAST_SEQ + 10);
	a->gather_lens = draw_i32(d, a->requests, 1, MOST_GATHER + 1);
	a->context_lens = context_lens(d, a);
	a->image_spans = images ? spans_of(d, a) : NULL;
	if (a->topk) {
		a->topk_stride_elems = draw_stride(d, a->topk);
		a->topk_indices = draw_i32(
			d,
			draw_strided(a->tokens, a->topk_stride_elems, a->topk),
			-1, (LEAST_SEQ - MOST_GATHER) / MOST_RATIO);
	}
	a->indices_stride_elems = draw_stride(d, a->width);
	a->indices = draw_out(
		d, draw_strided(a->tokens, a->indices_stride_elems, a->width),
		4);
	a->lens = draw_out(d, a->tokens, 4);
}

static const arg_error errors[] = {
	BAD_LEAST(combine_index, requests, 0, 1),
	BAD_LEAST(combine_index, window, 0, 1),
	BAD_LEAST(combine_index, ratio, 0, 1),
	BAD_LEAST(combine_index, width, 14, 15),
	BAD_ARG(combine_index, topk, 4294967295, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: combine_index.width: got 15, want at least "
		"4294967302"),
	BAD_MOST(combine_index, width, 2147483648, 2147483647),
	BAD_LEAST(combine_index, request_rows, 0, 1),
	BAD_MOST(combine_index, request_rows, 429496730, 429496729),
	BAD_MOST(combine_index, window_row, 13, 12),
	BAD_STRIDE(combine_index, topk_stride_elems, 7, 8),
	BAD_STRIDE(combine_index, indices_stride_elems, 14, 15),
	BAD_NULL(combine_index, req_id_per_token),
	BAD_NULL(combine_index, context_lens),
	BAD_NULL(combine_index, seq_lens),
	BAD_NULL(combine_index, gather_lens),
	BAD_NULL(combine_index, topk_indices),
	BAD_NULL(combine_index, indices),
	BAD_NULL(combine_index, lens),
};

static const arg_error image_errors[] = {
	BAD_LEAST(combine_index, max_image, 0, 1),
	BAD_ARG(combine_index, max_image, 5, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: combine_index.width: got 19, want at least 20"),
};

OP_ENTRY(combine_index, .errors = {ERRORS(errors), ERRORS(image_errors)},
	 .none = {ARG(combine_index, tokens, 0)}, .is_spread = 1);
