/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of mqa_logits: keys of e4m3, of INDEX_MXFP4, and rows of one
 * stride of either.
 */
#include "tests/harness/registry.h"

/* Rows of `room` scores each, which may begin a little later. Bad ones lie
 * outside of all. */
static int64_t *
row_starts(draw *d, uint32_t tokens, uint32_t room)
{
	int64_t *starts = draw_i64(d, tokens, 0, 8);
	uint32_t t;

	for (t = 0; !d->in && t < tokens; t++)
		if (starts[t] >= 0 && starts[t] < 10)
			starts[t] = starts[t] % 8 + (int64_t)t * (room + 8);
	return starts;
}

enum { FP8, MXFP4, DENSE, VARIANTS };

static void
make(draw *d, void *args)
{
	spmla_mqa_logits_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t mxfp4 =
		variant == MXFP4 || (variant == DENSE && draw_choice(d, 2));
	/* 2^-15 of ten times what the terms of a head sum to. */
	const double bound = (mxfp4 ? 256 : 64) * 0x1p-15;
	uint32_t room;
	draw_table t;

	a->tokens = draw_tokens(d);
	a->heads = draw_index_heads(d);
	a->cache = draw_cache(d, mxfp4 ? SPMLA_LAYOUT_INDEX_MXFP4
				       : draw_index_layout(d));
	draw_encoding(d, &a->cache, DRAW_IN);
	t = draw_pages(d, draw_many(d, 4, 6), draw_many(d, 6, 20),
		       a->cache.pages);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	room = a->columns * a->cache.entries_per_page;
	a->token_row = draw_i32(d, a->tokens, 0, a->rows);
	a->context_lens = draw_i32(d, a->tokens, 0, room + INT64_C(1));
	a->row_stride_elems = room + INT64_C(8);
	if (variant != DENSE)
		a->row_starts = row_starts(d, a->tokens, room);
	else if (d->kind == DRAW_BAD)
		a->row_stride_elems = draw_size(d, room + 8);
	a->logits_elems = a->tokens * (room + UINT64_C(8));
	if (d->kind == DRAW_BAD)
		a->logits_elems -= draw_choice(d, room);
	if (draw_choice(d, 3) == 2) {
		a->logits_dtype = SPMLA_REAL_BF16;
		a->logits = draw_out_bf16(d, a->logits_elems, bound * a->heads,
					  0x1p-7);
	} else {
		a->logits =
			draw_out_f32(d, a->logits_elems, bound * a->heads, 0);
	}
	a->weights = draw_f32(d, (uint64_t)a->tokens * a->heads);
	if (mxfp4) {
		a->q = draw_bytes(d, (uint64_t)a->tokens * a->heads * 64);
		a->q_scales = draw_ue8m0(d, (uint64_t)a->tokens * a->heads);
	} else {
		a->q = draw_codes(d, (uint64_t)a->tokens * a->heads * 128);
		a->q_encoding = draw_choice(d, 2);
	}
}

static const arg_error errors[] = {
	BAD_LEAST(mqa_logits, heads, 0, 1),
	BAD_MOST(mqa_logits, heads, 5, 4),
	BAD_LEAST(mqa_logits, rows, 0, 1),
	BAD_LEAST(mqa_logits, columns, 0, 1),
	BAD_LEAST(mqa_logits, table_stride_elems, 5, 6),
	BAD_NULL(mqa_logits, q),
	BAD_NULL(mqa_logits, weights),
	BAD_NULL(mqa_logits, token_row),
	BAD_NULL(mqa_logits, context_lens),
	BAD_NULL(mqa_logits, block_table),
	BAD_NULL(mqa_logits, logits),
	BAD_ENUM(mqa_logits, logits_dtype, 2, "0 or 1"),
	BAD_RANGE(mqa_logits, cache.layout, SPMLA_LAYOUT_FP8_DS_MLA,
		  "got 1, want 3, 7 or 11"),
	BAD_CACHE(mqa_logits, cache, "3, 7 or 11", 656, 660, 4),
	BAD_MOST(mqa_logits, cache.encoding, 2, 1),
	BAD_MOST(mqa_logits, q_encoding, 2, 1),
};

static const arg_error mxfp4_errors[] = {
	BAD_NULL(mqa_logits, q_scales),
	BAD_CACHE(mqa_logits, cache, "3, 7 or 11", 336, 340, 4),
	BAD_MOST(mqa_logits, cache.encoding, 1, 0),
	BAD_MOST(mqa_logits, q_encoding, 1, 0),
};

static const arg_error dense_errors[] = {
	BAD_STRIDE(mqa_logits, row_stride_elems, 0, 1),
	BAD_RANGE(mqa_logits, row_stride_elems, INT64_MAX / 4 + 1,
		  "got 2305843009213693952, want at most "
		  "2305843009213693951"),
};

OP_ENTRY(mqa_logits,
	 .errors = {ERRORS(errors), ERRORS(mxfp4_errors), ERRORS(dense_errors)},
	 .none = {ARG(mqa_logits, tokens, 0)}, .is_spread = 1);
