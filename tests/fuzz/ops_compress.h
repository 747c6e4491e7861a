/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the compressor's operations. Part of fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_COMPRESS_H
#define TESTS_FUZZ_OPS_COMPRESS_H

#include "tests/fuzz/ops_input.h"

/* A state layout that goes with the ratio, mostly. */
static uint32_t
state_layout(input *in, uint32_t ratio)
{
	if (ratio == 4)
		return in_below(in, 2) ? SPMLA_LAYOUT_STATE_256
				       : SPMLA_LAYOUT_STATE_1024;
	return SPMLA_LAYOUT_STATE_512;
}

static uint32_t
ratio_of(input *in)
{
	static const uint32_t ratios[4] = {4, 4, 128, 5};

	return ratios[in_below(in, 4)];
}

/* Positions of which many end a group. */
static int32_t *
group_positions_of(input *in, uint32_t tokens, uint32_t ratio)
{
	int32_t *p = i32_of(in, tokens);
	uint32_t t;

	for (t = 0; t < tokens; t++)
		if (maybe(in))
			p[t] = (int32_t)(ratio * (1 + in_below(in, 4))) - 1;
	return p;
}

CALL(compress_state_save)
static void
make_compress_state_save(input *in, void *args)
{
	spmla_compress_state_save_args *a = args;
	uint32_t width;
	table table;

	a->tokens = in_below(in, 5);
	a->ratio = ratio_of(in);
	a->form = in_below(in, 8) == 7 ? 2 : in_below(in, 2);
	a->state = cache_of(in, state_layout(in, a->ratio));
	width = spmla_layout_entry_bytes(a->state.layout) / 8;
	a->kv_stride_elems = stride_of(in, width);
	a->score_stride_elems = stride_of(in, width);
	a->kv = f32_of(in, strided(a->tokens, a->kv_stride_elems, width));
	a->score = f32_of(in, strided(a->tokens, a->score_stride_elems, width));
	a->ape = f32_of(in, (int64_t)a->ratio * width);
	a->positions = group_positions_of(in, a->tokens, a->ratio);
	a->slot_mapping = maybe(in) ? i64_of(in, a->tokens) : NULL;
	a->context_lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
	a->token_row = i32_of(in, a->tokens);
	table = table_of(in);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
}

static uint32_t
key_layout(input *in, uint32_t state)
{
	static const uint32_t keys[4] = {
		SPMLA_LAYOUT_V4_FP8, SPMLA_LAYOUT_V4_BF16, SPMLA_LAYOUT_V4_E4M3,
		SPMLA_LAYOUT_V4_FP8};
	static const uint32_t index_keys[4] = {
		SPMLA_LAYOUT_INDEX_FP8, SPMLA_LAYOUT_INDEX_MXFP4,
		SPMLA_LAYOUT_INDEX_FP8, SPMLA_LAYOUT_INDEX_MXFP4};

	return (state == SPMLA_LAYOUT_STATE_256 ? index_keys
						: keys)[in_below(in, 4)];
}

CALL(kv_compress)
static void
make_kv_compress(input *in, void *args)
{
	spmla_kv_compress_args *a = args;
	uint32_t width, dim;
	table table;

	a->tokens = in_below(in, 5);
	a->ratio = ratio_of(in);
	a->form = in_below(in, 8) == 7 ? 2 : in_below(in, 2);
	a->norm_eps = scale_of(in);
	a->e4m3_scale = scale_of(in);
	a->cos_sin_rows = in_below(in, 20);
	a->state = cache_of(in, state_layout(in, a->ratio));
	a->cache = cache_of(in, key_layout(in, a->state.layout));
	width = spmla_layout_entry_bytes(a->state.layout) / 8;
	dim = a->state.layout == SPMLA_LAYOUT_STATE_256 ? 128 : 512;
	a->kv_stride_elems = stride_of(in, width);
	a->score_stride_elems = stride_of(in, width);
	a->kv = f32_of(in, strided(a->tokens, a->kv_stride_elems, width));
	a->score = f32_of(in, strided(a->tokens, a->score_stride_elems, width));
	a->ape = f32_of(in, (int64_t)a->ratio * width);
	a->positions = group_positions_of(in, a->tokens, a->ratio);
	a->slot_mapping = i64_of(in, a->tokens);
	a->token_row = i32_of(in, a->tokens);
	a->norm_weight = f32_of(in, dim);
	a->cos_sin = f32_of(in, (int64_t)a->cos_sin_rows * 64);
	table = table_of(in);
	a->rows = table.rows;
	a->columns = table.columns;
	a->table_stride_elems = table.stride;
	a->block_table = table.pages;
	a->table_cols = table.cols;
	a->context_lens = maybe(in) ? i32_of(in, a->tokens) : NULL;
}

#endif
