/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of sparse_decode: rows of V3.2, rows of V4 with a second
 * cache, either in parts, and either with ragged lists.
 *
 * Bounds are twice the operation's, with values of at most 2 and scores
 * of at most 100 in terms.
 */
#include "tests/harness/registry.h"

enum { V32, V4, PARTS, RAGGED, VARIANTS };

static void
make_queries(draw *d, spmla_sparse_decode_args *a, uint32_t dim)
{
	const uint32_t tokens = a->next_n ? a->next_n : a->tokens;
	const uint32_t requests = (a->tokens + tokens - 1) / tokens;
	draw_strides s = draw_rows(d, tokens, a->heads, dim);

	a->q = draw_bf16(d, s.elems * requests);
	a->q_request_stride_elems = (int64_t)s.elems;
	a->q_token_stride_elems = s.token;
	a->q_head_stride_elems = s.head;
	s = draw_rows(d, tokens, a->heads, 512);
	a->out = draw_out_bf16(d, s.elems * requests, 0.02, 4.02 / 128);
	a->out_request_stride_elems = (int64_t)s.elems;
	a->out_token_stride_elems = s.token;
	a->out_head_stride_elems = s.head;
	if (!draw_there(d))
		return;
	s = draw_rows(d, tokens, a->heads, 1);
	a->lse = draw_out_f32(d, s.elems * requests, 3e-3, 16.02 / 65536);
	a->lse_request_stride_elems = (int64_t)s.elems;
	a->lse_token_stride_elems = s.token;
	a->lse_head_stride_elems = s.head;
}

/* Lengths, of every token or of some together. */
static int32_t *
lens_of(draw *d, const spmla_sparse_decode_args *a, uint32_t topk)
{
	const uint32_t each = a->lens_tokens ? a->lens_tokens : 1;

	return draw_i32(d, (a->tokens + each - 1) / each, 0, topk + INT64_C(1));
}

static int32_t *
slots_of(draw *d, uint32_t tokens, uint32_t topk, int64_t stride,
	 const spmla_cache *cache)
{
	return draw_i32(d, draw_strided(tokens, stride, topk), -1,
			(int64_t)cache->pages * cache->entries_per_page);
}

/* Ragged lists instead: what they have in all, and where each begins. */
static uint32_t
ragged(draw *d, uint32_t tokens, const int32_t **slots, const int32_t **indptr,
       const spmla_cache *cache)
{
	const uint32_t all = draw_many(d, 300, 700);

	*slots = slots_of(d, 1, all, all, cache);
	*indptr = draw_starts(d, tokens, all);
	return all;
}

static void
make_extra(draw *d, spmla_sparse_decode_args *a)
{
	a->extra_topk = draw_many(d, 70, 100);
	a->extra_cache = draw_cache(d, SPMLA_LAYOUT_V4_FP8);
	draw_encoding(d, &a->extra_cache, DRAW_IN);
	a->extra_slots_stride_elems = draw_stride(d, a->extra_topk);
	a->extra_slots = slots_of(d, a->tokens, a->extra_topk,
				  a->extra_slots_stride_elems, &a->extra_cache);
	if (draw_there(d))
		a->extra_topk_lens = lens_of(d, a, a->extra_topk);
}

/* One list or both. */
static void
make_ragged(draw *d, spmla_sparse_decode_args *a)
{
	const uint32_t which = a->extra_topk ? draw_choice(d, 3) : 1;

	if (which != 2)
		a->topk =
			ragged(d, a->tokens, &a->slots, &a->indptr, &a->cache);
	if (which != 1)
		a->extra_topk = ragged(d, a->tokens, &a->extra_slots,
				       &a->extra_indptr, &a->extra_cache);
}

/* The blocks of a list whose length may be bad. */
static uint32_t
blocks_in(int32_t len, uint32_t most, uint32_t least)
{
	const uint32_t n = len < 0 ? 0 : (uint32_t)len;
	const uint32_t blocks = ((n < most ? n : most) + 63) / 64;

	return blocks > least ? blocks : least;
}

static uint32_t
blocks_of(const spmla_sparse_decode_args *a, uint32_t t)
{
	const uint32_t at = a->lens_tokens ? t / a->lens_tokens : t;
	const int32_t n = a->topk_lens ? a->topk_lens[at] : (int32_t)a->topk;
	const int32_t extra = a->extra_topk_lens ? a->extra_topk_lens[at]
						 : (int32_t)a->extra_topk;

	return blocks_in(n, a->topk, 1) + blocks_in(extra, a->extra_topk, 0);
}

/* Every token that is not whole is one part, or its first block and the others
 * are two; parts that are left over are idle. */
static void
cut(draw *d, const spmla_sparse_decode_args *a, int32_t *parts, int32_t *splits)
{
	const uint32_t requests = a->tokens - a->whole_tokens;
	const int32_t *two = draw_i32(d, a->tokens, 0, 2);
	uint32_t t, n = 0;

	splits[0] = 0;
	for (t = 0; t < requests; t++) {
		const int32_t blocks =
			(int32_t)blocks_of(a, a->whole_tokens + t);
		const int32_t pieces = two[t] && blocks > 1 ? 2 : 1;
		const int32_t first = pieces == 2 ? 1 : blocks;
		const int32_t rows[2][8] = {
			{(int32_t)t, (int32_t)t, 0, first, 0},
			{(int32_t)t, (int32_t)t, first, blocks, 1}};

		memcpy(parts + 8 * n, rows, (uint32_t)pieces * sizeof rows[0]);
		n += (uint32_t)pieces;
		splits[t + 1] = splits[t] + pieces;
	}
	memset(parts + 8 * n, 0, (a->parts - n) * 8 * sizeof *parts);
	for (; n < a->parts; n++)
		parts[8 * n] = (int32_t)requests;
}

static void
make_parts(draw *d, spmla_sparse_decode_args *a)
{
	int32_t *parts, *splits;

	a->parts = 2 * a->tokens;
	a->whole_tokens = draw_choice(d, a->tokens + 1);
	a->split_rows = 2 * a->tokens;
	a->tile_scheduler_metadata = parts =
		draw_i32(d, 8 * (uint64_t)a->parts, 0, 4);
	a->num_splits = splits =
		draw_starts(d, a->tokens - a->whole_tokens, a->split_rows);
	if (d->in)
		; /* any */
	else
		cut(d, a, parts, splits);
	if (d->kind == DRAW_BAD && !d->in)
		parts[8 * draw_choice(d, a->parts)] = -3;
	a->split_out = draw_out_f32(d, (uint64_t)a->split_rows * a->heads * 512,
				    0.02, 4.02 / 128);
	a->split_lse = draw_out_f32(d, (uint64_t)a->split_rows * a->heads, 3e-3,
				    16.02 / 65536);
}

static void
make(draw *d, void *args)
{
	spmla_sparse_decode_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t v4 =
		variant == V4 || (variant >= PARTS && draw_choice(d, 2) == 0);

	a->tokens = draw_tokens(d);
	a->heads = draw_heads(d);
	a->topk = draw_many(d, 70, 150);
	a->empty_lse = draw_choice(d, 3);
	a->lse_base = draw_choice(d, 2);
	a->lse_sink = draw_choice(d, 2);
	a->next_n = draw_choice(d, 4);
	a->lens_tokens = draw_choice(d, 3);
	a->softmax_scale = draw_scale(d);
	a->cache =
		draw_cache(d, v4 ? SPMLA_LAYOUT_V4_FP8
				 : SPMLA_LAYOUT_FP8_DS_MLA + draw_choice(d, 2));
	draw_encoding(d, &a->cache, DRAW_IN);
	make_queries(d, a, v4 ? 512 : 576);
	a->slots_stride_elems = draw_stride(d, a->topk);
	a->slots = slots_of(d, a->tokens, a->topk, a->slots_stride_elems,
			    &a->cache);
	if (draw_there(d))
		a->topk_lens = lens_of(d, a, a->topk);
	if (draw_there(d))
		a->attn_sink = draw_f32(d, a->heads);
	if (v4 && draw_there(d))
		make_extra(d, a);
	if (variant == RAGGED)
		make_ragged(d, a);
	if (variant == PARTS)
		make_parts(d, a);
}

#define BAD_OF_REQUESTS(what, got, want)                                     \
	BAD_ARGS(sparse_decode, next_n, 1, what##_request_stride_elems, got, \
		 SPMLA_E_RANGE,                                              \
		 "SPMLA_E_RANGE: sparse_decode." #what                       \
		 "_request_stride_elems: got " #got ", want at least " #want)

static const arg_error errors[] = {
	BAD_LEAST(sparse_decode, heads, 0, 1),
	BAD_MOST(sparse_decode, heads, 5, 4),
	BAD_LEAST(sparse_decode, topk, 0, 1),
	BAD_ENUM(sparse_decode, empty_lse, 3, "0, 1 or 2"),
	BAD_ENUM(sparse_decode, lse_base, 2, "0 or 1"),
	BAD_MOST(sparse_decode, lse_sink, 2, 1),
	BAD_MOST(sparse_decode, combine, 2, 1),
	BAD_RANGE(sparse_decode, reserved, 1, "got 1, want 0"),
	BAD_FLOAT(sparse_decode, softmax_scale),
	BAD_BITS(sparse_decode, softmax_scale, 0x80000000),
	BAD_BITS(sparse_decode, softmax_scale, 0xff800000),
	BAD_NULL(sparse_decode, q),
	BAD_STRIDE(sparse_decode, q_token_stride_elems, 575, 576),
	BAD_STRIDE(sparse_decode, q_head_stride_elems, 575, 576),
	BAD_NULL(sparse_decode, slots),
	BAD_STRIDE(sparse_decode, slots_stride_elems, 69, 70),
	BAD_NULL(sparse_decode, out),
	BAD_STRIDE(sparse_decode, out_token_stride_elems, 511, 512),
	BAD_STRIDE(sparse_decode, out_head_stride_elems, 511, 512),
	BAD_STRIDE(sparse_decode, lse_token_stride_elems, 0, 1),
	BAD_STRIDE(sparse_decode, lse_head_stride_elems, 0, 1),
	BAD_OF_REQUESTS(q, 575, 576),
	BAD_OF_REQUESTS(out, 511, 512),
	BAD_OF_REQUESTS(lse, 0, 1),
	BAD_RANGE(sparse_decode, cache.layout, SPMLA_LAYOUT_INDEX_FP8,
		  "got 3, want 1, 2 or 4"),
	BAD_CACHE(sparse_decode, cache, "1, 2 or 4", 3264, 3280, 16),
	BAD_MOST(sparse_decode, cache.encoding, 2, 1),
	BAD_RANGE(sparse_decode, extra_topk, 5, "got 5, want 0"),
};

static const arg_error v4_errors[] = {
	BAD_STRIDE(sparse_decode, q_token_stride_elems, 511, 512),
	BAD_STRIDE(sparse_decode, q_head_stride_elems, 511, 512),
	BAD_PAGES(sparse_decode, cache, 2912, 2920, 8),
	BAD_NULL(sparse_decode, extra_slots),
	BAD_STRIDE(sparse_decode, extra_slots_stride_elems, 69, 70),
	BAD_RANGE(sparse_decode, extra_cache.layout, 1, "got 1, want 4"),
	BAD_CACHE(sparse_decode, extra_cache, "4", 2912, 2920, 8),
	BAD_MOST(sparse_decode, extra_cache.encoding, 2, 1),
};

static const arg_error parts_errors[] = {
	BAD_LEAST(sparse_decode, split_rows, 0, 1),
	BAD_NULL(sparse_decode, tile_scheduler_metadata),
	BAD_NULL(sparse_decode, num_splits),
	BAD_NULL(sparse_decode, split_out),
	BAD_NULL(sparse_decode, split_lse),
	BAD_MOST(sparse_decode, whole_tokens, 5, 4),
};

OP_ENTRY(sparse_decode,
	 .errors = {ERRORS(errors), ERRORS(v4_errors), ERRORS(parts_errors)},
	 .none = {ARG(sparse_decode, tokens, 0)}, .is_spread = 1);
