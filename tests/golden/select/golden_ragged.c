/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of V4's combined and packed indices. An index of -1 among the top-k
 * of combine_topk_swa becomes the row before the request's there, and is left
 * out here; global_topk_ragged keeps gaps and loses as many entries at a row's
 * end, where here it has none. What both have is compared.
 */
#include "tests/golden/golden_v4.h"

/* ---- ragged_index -------------------------------------------------------- */

golden_verdict
golden_ragged(golden_case *c, const int32_t *indices, int64_t stride,
	      const int32_t *lens, uint32_t tokens, uint32_t width,
	      uint32_t num_slots, golden_tensor *out, golden_tensor *indptr)
{
	spmla_ragged_index_args a = {0};

	if (!golden_has(c, out, (const int64_t[]){-1}) ||
	    !golden_has(c, indptr, (const int64_t[]){(int64_t)tokens + 1}))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.width = width;
	a.num_slots = num_slots;
	a.capacity_elems = (uint32_t)out->shape[0];
	a.indices = indices;
	a.indices_stride_elems = stride;
	a.lens = lens;
	a.ragged_indptr = golden_first(indptr);
	a.ragged_indices = golden_first(out);
	return golden_called(c, spmla_ragged_index(c->ctx, &a, NULL));
}

/* num_rows -1: entries are not looked at. */
golden_verdict
golden_run_ragged(golden_case *c)
{
	const golden_tensor *in = golden_need(c, "indices", GOLDEN_I32, 2);
	const golden_tensor *lens = golden_need(c, "lengths", GOLDEN_I32, 1);
	double rows;

	if (!golden_has(c, in, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, lens, in->shape))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "num_rows", &rows) || rows == 0)
		return golden_fail(c, "bad param num_rows");
	return golden_ragged(c, golden_first(in), in->strides[0],
			     golden_first(lens), (uint32_t)in->shape[0],
			     (uint32_t)in->shape[1],
			     rows > 0 ? (uint32_t)rows : 0,
			     golden_need(c, "ragged_indices", GOLDEN_I32, 1),
			     golden_need(c, "indptr", GOLDEN_I32, 1));
}

golden_verdict
golden_run_global_ragged(golden_case *c)
{
	golden_tensor *out = golden_need(c, "ragged_indices", GOLDEN_I32, 1);
	golden_tensor *indptr = golden_need(c, "indptr", GOLDEN_I32, 1);
	golden_tensor *lens = golden_need(c, "topk_lens", GOLDEN_I32, 1);
	spmla_index_map_args a = {0};
	int32_t *least, *len;
	uint32_t t, k, missing = 0;
	int64_t *below;
	golden_verdict v;

	if (!golden_take_global(c, &a) ||
	    !golden_has(c, lens, (const int64_t[]){(int64_t)a.tokens}) ||
	    !golden_has(c, out, (const int64_t[]){-1}) ||
	    !golden_has(c, indptr, (const int64_t[]){(int64_t)a.tokens + 1}))
		return golden_fail(c, "not a case of ragged top-k");
	a.slots = golden_scratch(c, (uint64_t)a.tokens * a.k * 4);
	a.slots_stride_elems = a.k;
	a.valid_counts = golden_first(lens);
	least = golden_scratch(c, a.tokens * sizeof *least);
	below = golden_scratch(c, a.tokens * sizeof *below);
	len = golden_scratch(c, a.tokens * sizeof *len);
	if (!a.slots || !least || !below || !len)
		return GOLDEN_FAILED;
	for (t = 0; t < a.tokens; t++) {
		const uint32_t none = golden_pages_missing(&a, t);

		below[t] = INT64_MAX;
		for (k = 0; a.slot_mapping[t] >= 0 && k < a.k; k++)
			len[t] +=
				a.indices[t * a.indices_stride_elems + k] >= 0;
		len[t] -= (int32_t)none;
		golden_want(lens, t, len[t]);
		missing += none;
	}
	golden_compact_ragged(out, indptr, a.tokens, least, below, len);
	v = golden_reported(c, spmla_index_map(c->ctx, &a, NULL),
			    SPMLA_FAULT_PAGE, missing);
	if (v != GOLDEN_RAN)
		return v;
	return golden_ragged(c, a.slots, a.k, a.valid_counts, a.tokens, a.k, 0,
			     out, indptr);
}

/* ---- combine_index ------------------------------------------------------- */

/* The tokens' requests and lengths; start locations count from the first. */
static golden_verdict
map_chunk(golden_case *c, spmla_combine_index_args *a)
{
	const golden_tensor *starts =
		golden_need(c, "query_start_loc", GOLDEN_I32, 1);
	spmla_token_map_args m = {0};
	int32_t *ids, *lens, *from, *rest;
	uint32_t b;

	if (!golden_has(c, starts, (const int64_t[]){(int64_t)a->requests + 1}))
		return GOLDEN_FAILED;
	ids = golden_scratch(c, a->tokens * sizeof *ids);
	lens = golden_scratch(c, a->tokens * sizeof *lens);
	from = golden_scratch(c, (a->requests + 1) * sizeof *from);
	rest = golden_scratch(c, (2 * a->tokens + a->requests) * sizeof *rest);
	if (!ids || !lens || !from || !rest)
		return GOLDEN_FAILED;
	for (b = 0; b <= a->requests; b++)
		from[b] = golden_i32(starts, b, 0) - golden_i32(starts, 0, 0);
	m.struct_bytes = (uint32_t)sizeof m;
	m.requests = a->requests;
	m.tokens = a->tokens;
	m.query_start_loc = from;
	m.seq_lens = a->seq_lens;
	m.req_row = rest;
	m.req_id_per_token = ids;
	m.token_row = rest + a->requests;
	m.positions = rest + a->requests + a->tokens;
	m.context_lens = lens;
	a->req_id_per_token = ids;
	a->context_lens = lens;
	return golden_called(c, spmla_token_map(c->ctx, &m, NULL));
}

static golden_verdict
take_combine(golden_case *c, spmla_combine_index_args *a)
{
	const golden_tensor *topk =
		golden_need(c, "topk_indices", GOLDEN_I32, 2);
	const golden_tensor *seq = golden_need(c, "seq_lens", GOLDEN_I32, 1);
	const golden_tensor *gather =
		golden_need(c, "gather_lens", GOLDEN_I32, 1);
	double window, ratio, k, m, n;

	if (!golden_has(c, topk, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, seq, (const int64_t[]){-1}) ||
	    !golden_has(c, gather, seq->shape))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "window", &window) ||
	    !golden_need_param(c, "compress_ratio", &ratio) ||
	    !golden_need_param(c, "topk", &k) ||
	    !golden_need_param(c, "M", &m) || !golden_need_param(c, "N", &n) ||
	    k > (double)topk->shape[1])
		return golden_fail(c, "bad params");
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = (uint32_t)topk->shape[0];
	a->requests = (uint32_t)seq->shape[0];
	a->window = (uint32_t)window;
	a->ratio = (uint32_t)ratio;
	a->topk = (uint32_t)k;
	a->request_rows = (uint32_t)m;
	a->window_row = (uint32_t)n;
	a->seq_lens = golden_first(seq);
	a->gather_lens = golden_first(gather);
	a->topk_indices = golden_first(topk);
	a->topk_stride_elems = topk->strides[0];
	return map_chunk(c, a);
}

/* The rows of a token's request: [*least, *below). */
static void
rows_of(const spmla_combine_index_args *a, uint32_t t, int32_t *least,
	int64_t *below)
{
	*least = a->req_id_per_token[t] * (int32_t)a->request_rows;
	*below = (int64_t)*least + a->request_rows;
}

golden_verdict
golden_run_combine(golden_case *c)
{
	golden_tensor *out = golden_need(c, "combined_indices", GOLDEN_I32, 2);
	golden_tensor *lens = golden_need(c, "combined_lens", GOLDEN_I32, 1);
	spmla_combine_index_args a = {0};
	const golden_verdict v = take_combine(c, &a);
	int64_t below;
	int32_t least;
	uint32_t t;

	if (v != GOLDEN_RAN)
		return v;
	if (!golden_has(c, out, (const int64_t[]){(int64_t)a.tokens, -1}) ||
	    !golden_has(c, lens, out->shape))
		return GOLDEN_FAILED;
	a.width = (uint32_t)out->shape[1];
	a.indices = golden_first(out);
	a.indices_stride_elems = out->strides[0];
	a.lens = golden_first(lens);
	for (t = 0; t < a.tokens; t++) {
		rows_of(&a, t, &least, &below);
		golden_want(lens, t,
			    (int32_t)golden_compact_row(out, t, a.width, least,
							below));
	}
	return golden_called(c, spmla_combine_index(c->ctx, &a, NULL));
}

golden_verdict
golden_run_combine_ragged(golden_case *c)
{
	golden_tensor *out = golden_need(c, "ragged_indices", GOLDEN_I32, 1);
	golden_tensor *indptr = golden_need(c, "indptr", GOLDEN_I32, 1);
	golden_tensor *lens = golden_need(c, "combined_lens", GOLDEN_I32, 1);
	spmla_combine_index_args a = {0};
	golden_verdict v = take_combine(c, &a);
	int64_t *below;
	int32_t *least;
	uint32_t t;

	if (v != GOLDEN_RAN)
		return v;
	if (!golden_has(c, lens, (const int64_t[]){(int64_t)a.tokens}) ||
	    !golden_has(c, out, (const int64_t[]){-1}) ||
	    !golden_has(c, indptr, (const int64_t[]){(int64_t)a.tokens + 1}))
		return GOLDEN_FAILED;
	a.width = a.topk + a.window;
	a.indices_stride_elems = a.width;
	a.indices = golden_scratch(c, (uint64_t)a.tokens * a.width * 4);
	a.lens = golden_first(lens);
	least = golden_scratch(c, a.tokens * sizeof *least);
	below = golden_scratch(c, a.tokens * sizeof *below);
	if (!a.indices || !least || !below)
		return GOLDEN_FAILED;
	for (t = 0; t < a.tokens; t++)
		rows_of(&a, t, &least[t], &below[t]);
	golden_compact_ragged(out, indptr, a.tokens, least, below, NULL);
	for (t = 0; t < a.tokens; t++)
		golden_want(lens, t,
			    ((int32_t *)(void *)indptr->want)[t + 1] -
				    ((int32_t *)(void *)indptr->want)[t]);
	v = golden_called(c, spmla_combine_index(c->ctx, &a, NULL));
	return v != GOLDEN_RAN
		       ? v
		       : golden_ragged(c, a.indices, a.width, a.lens, a.tokens,
				       a.width, 0, out, indptr);
}
