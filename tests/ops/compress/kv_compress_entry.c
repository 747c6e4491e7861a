/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of kv_compress: paged states, a cache with one scale,
 * rings, and keys that several blocks make.
 *
 * Where scores of a column are equal, which is every other draw, all platforms
 * have the same bits. Elsewhere codes may be next to each other, which the
 * operation's own suites look at.
 */
#include "tests/harness/registry.h"

enum { PAGED, E4M3, RING, SPLIT, VARIANTS };

static uint32_t
state_layout(draw *d, uint32_t variant)
{
	static const uint32_t layouts[4] = {
		SPMLA_LAYOUT_STATE_1024, SPMLA_LAYOUT_STATE_512,
		SPMLA_LAYOUT_STATE_256, SPMLA_LAYOUT_STATE_128};

	if (variant == SPLIT)
		return SPMLA_LAYOUT_STATE_512;
	return layouts[draw_choice(d, variant == E4M3 ? 2 : 4)];
}

static uint32_t
cache_layout(draw *d, uint32_t variant, uint32_t dim)
{
	if (variant == E4M3)
		return SPMLA_LAYOUT_V4_E4M3;
	if (dim == 128)
		return draw_choice(d, 2) ? SPMLA_LAYOUT_INDEX_MXFP4
					 : SPMLA_LAYOUT_INDEX_FP8;
	return SPMLA_LAYOUT_V4_FP8 + draw_choice(d, 2);
}

static float *
set(float *x, uint64_t n, float to)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = to;
	return x;
}

/* What the tokens of a call with a ring give. */
static void
make_call(draw *d, spmla_kv_compress_args *a, uint32_t width, uint32_t flat)
{
	const uint64_t apes = (uint64_t)a->ratio * width;
	float *score, *ape;
	uint64_t scores;

	a->kv_stride_elems = draw_stride(d, width);
	a->score_stride_elems = draw_stride(d, width);
	scores = draw_strided(a->tokens, a->score_stride_elems, width);
	a->kv = draw_f32(d, draw_strided(a->tokens, a->kv_stride_elems, width));
	a->score = score = draw_f32(d, scores);
	a->ape = ape = draw_f32(d, apes);
	if (flat) {
		set(score, scores, 0.5f);
		set(ape, apes, 0);
	}
}

/* Each row has a few tokens, one behind the other. The first ends a group or
 * comes right before one that does; bad ones are anywhere. */
static void
make_tokens(draw *d, spmla_kv_compress_args *a, int32_t most)
{
	const int32_t ratio = (int32_t)a->ratio;
	int32_t *row = draw_i32(d, a->tokens, 0, a->rows);
	int32_t *pos = draw_i32(d, a->tokens, 0, 3);
	int32_t last = -1;
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const int32_t to = (int32_t)(t * a->rows / a->tokens);

		if (pos[t] < 0 || pos[t] > 2)
			continue;
		if (t > 0 && row[t - 1] == to && last >= 0)
			last = last + 1;
		else
			last = ratio * (1 + pos[t] % 2) - 1 - (pos[t] == 2);
		pos[t] = last = last < most ? last : most - 1;
		row[t] = to;
	}
	a->token_row = row;
	a->positions = pos;
}

static void
make_states(draw *d, spmla_kv_compress_args *a, uint32_t most, uint32_t flat)
{
	const uint32_t entry = spmla_layout_entry_bytes(a->state.layout);
	const uint32_t n = a->state.entries_per_page;
	draw_table t;
	uint32_t p, i;

	t = draw_pages(d, draw_size(d, 3), most / n + 1, a->state.pages);
	a->rows = t.rows;
	a->columns = t.columns;
	a->table_stride_elems = t.stride;
	a->block_table = t.pages;
	a->table_cols = t.cols;
	for (p = 0; flat && p < a->state.pages; p++)
		for (i = 0; i < n; i++)
			set((float *)(void *)((uint8_t *)a->state.base +
					      p * a->state.page_stride_bytes +
					      i * entry + entry / 2),
			    entry / 8, 0.5f);
}

static void
make(draw *d, void *args)
{
	spmla_kv_compress_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);
	const uint32_t flat = draw_choice(d, 2) == 0;
	const uint32_t state = state_layout(d, variant);
	const uint32_t width = spmla_layout_entry_bytes(state) / 8;
	const uint32_t dim = width < 512 ? 128 : 512;
	const uint32_t cache = cache_layout(d, variant, dim);
	uint32_t most;

	a->form = variant == RING ? SPMLA_STATE_RING : SPMLA_STATE_PAGED;
	a->tokens = draw_tokens(d);
	a->ratio = width == dim ? 128 : 4;
	most = 2 * a->ratio + a->tokens; /* positions */
	a->norm_eps = draw_scale(d);
	a->e4m3_scale = draw_scale(d);
	a->e4m3_scale_at = draw_scale_at(d);
	a->state = draw_cache(d, state);
	make_states(d, a, most, flat && !d->in);
	make_tokens(d, a, (int32_t)most);
	a->cache = draw_cache_out(d, cache, a->tokens);
	draw_encoding(d, &a->cache, DRAW_OUT);
	a->slot_mapping = draw_slots(d, a->tokens,
				     (uint64_t)a->cache.pages *
					     a->cache.entries_per_page);
	if (!flat && cache == SPMLA_LAYOUT_V4_BF16)
		draw_compared(d, a->cache.base, DRAW_BF16, 2e-3, 0x1p-7);
	else if (!flat)
		draw_compared(d, a->cache.base, DRAW_ANY, 0, 0);
	a->norm_weight = draw_f32(d, dim);
	a->cos_sin_rows = most;
	a->cos_sin = draw_cos_sin(d, most);
	a->context_lens = draw_there(d) ? draw_i32(d, a->tokens, 0, 5) : NULL;
	if (variant == RING)
		make_call(d, a, width, flat && !d->in);
	if (variant != SPLIT)
		return;
	a->split_keys = draw_zeros(d, a->tokens * UINT64_C(512), 4);
	a->split_counts = draw_zeros(d, a->tokens, 4);
}

static const arg_error errors[] = {
	BAD_ARG(kv_compress, ratio, 2, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: kv_compress.ratio: got 2, want 4 or 128"),
	BAD_ENUM(kv_compress, form, 2, "0 or 1"),
	BAD_LEAST(kv_compress, rows, 0, 1),
	BAD_LEAST(kv_compress, columns, 0, 1),
	BAD_LEAST(kv_compress, table_stride_elems, 2, 3),
	BAD_LEAST(kv_compress, cos_sin_rows, 0, 1),
	BAD_FLOAT(kv_compress, norm_eps),
	BAD_NULL(kv_compress, positions),
	BAD_ENUM(kv_compress, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(kv_compress, cos_sin_dtype, 2, "0 or 1"),
	BAD_ENUM(kv_compress, norm_dtype, 2, "0 or 1"),
	BAD_ENUM(kv_compress, kv_dtype, 2, "0 or 1"),
	BAD_NULL(kv_compress, slot_mapping),
	BAD_NULL(kv_compress, token_row),
	BAD_NULL(kv_compress, block_table),
	BAD_NULL(kv_compress, norm_weight),
	BAD_NULL(kv_compress, cos_sin),
	BAD_ARG(kv_compress, split_keys, 16, SPMLA_E_NULL,
		"SPMLA_E_NULL: kv_compress.split_counts: got NULL, want a "
		"pointer"),
	BAD_ARG(kv_compress, split_counts, 16, SPMLA_E_NULL,
		"SPMLA_E_NULL: kv_compress.split_keys: got NULL, want a "
		"pointer"),
	BAD_RANGE(kv_compress, state.layout, SPMLA_LAYOUT_V4_FP8,
		  "got 4, want 8 or 10"),
	BAD_CACHE(kv_compress, state, "8 or 10", 40944, 40960, 16),
	BAD_MOST(kv_compress, state.encoding, 1, 0),
	BAD_RANGE(kv_compress, cache.layout, SPMLA_LAYOUT_INDEX_FP8,
		  "got 3, want 4, 5 or 6"),
	BAD_CACHE(kv_compress, cache, "4, 5 or 6", 2912, 2920, 8),
	BAD_MOST(kv_compress, cache.encoding, 2, 1),
};

static const arg_error e4m3_errors[] = {
	BAD_FLOAT(kv_compress, e4m3_scale),
	BAD_MOST(kv_compress, cache.encoding, 2, 1),
	BAD_ARG(kv_compress, state.layout, SPMLA_LAYOUT_STATE_256,
		SPMLA_E_RANGE,
		"SPMLA_E_RANGE: kv_compress.cache.layout: got 6, want 3 or 7"),
};

static const arg_error ring_errors[] = {
	BAD_LEAST(kv_compress, columns, 1, 2),
	BAD_NULL(kv_compress, kv),
	BAD_NULL(kv_compress, score),
	BAD_STRIDE(kv_compress, kv_stride_elems, 1023, 1024),
	BAD_STRIDE(kv_compress, score_stride_elems, 1023, 1024),
	BAD_NULL(kv_compress, ape),
};

static const arg_error split_errors[] = {
	BAD_NULL(kv_compress, split_keys),
	BAD_NULL(kv_compress, split_counts),
	BAD_MULTIPLE(kv_compress, split_keys, 24, 16),
};

OP_ENTRY(kv_compress,
	 .inputs = {INPUT_INT(kv_compress, positions, positions_dtype),
		    INPUT_REAL(kv_compress, cos_sin, cos_sin_dtype),
		    INPUT_REAL(kv_compress, norm_weight, norm_dtype),
		    INPUT_REAL(kv_compress, kv, kv_dtype),
		    INPUT_REAL(kv_compress, score, kv_dtype)},
	 .errors = {ERRORS(errors), ERRORS(e4m3_errors), ERRORS(ring_errors),
		    ERRORS(split_errors)},
	 .none = {ARG(kv_compress, tokens, 0)}, .is_spread = 1);
