/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of indexer_k_insert: with norm and rope, and without.
 */
#include "tests/harness/registry.h"

static void
make_rope(draw *d, spmla_indexer_k_insert_args *a)
{
	a->rope_style = SPMLA_ROPE_NEOX + draw_choice(d, 2);
	a->cos_sin_rows = draw_size(d, 20);
	a->positions = draw_i32(d, a->tokens, 0, a->cos_sin_rows);
	a->cos_sin = draw_cos_sin(d, a->cos_sin_rows);
}

static void
make(draw *d, void *args)
{
	spmla_indexer_k_insert_args *a = args;
	const uint32_t plain = draw_variant(d, 2);

	a->tokens = draw_tokens(d);
	a->dtype = plain ? draw_choice(d, 2) : SPMLA_DTYPE_BF16;
	a->scale_mode = SPMLA_SCALE_POW2 + draw_choice(d, 2);
	a->norm_eps = draw_scale(d);
	a->k_stride_elems = draw_stride(d, 128);
	a->k = draw_bf16(d, draw_strided(a->tokens, a->k_stride_elems, 128));
	a->cache =
		draw_cache_out(d,
			       draw_choice(d, 3) == 2 ? SPMLA_LAYOUT_INDEX_MXFP4
						      : draw_index_layout(d),
			       a->tokens);
	draw_encoding(d, &a->cache, DRAW_OUT);
	a->slot_mapping = draw_slots(d, a->tokens,
				     (uint64_t)a->cache.pages *
					     a->cache.entries_per_page);
	if (!plain && draw_there(d)) {
		a->norm_weight = draw_f32(d, 128);
		a->norm_bias = draw_f32(d, 128);
	}
	if (!plain && draw_there(d))
		make_rope(d, a);
}

static const arg_error errors[] = {
	BAD_ENUM(indexer_k_insert, dtype, 2, "0 or 1"),
	BAD_ARG(indexer_k_insert, dtype, SPMLA_DTYPE_FP16, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: indexer_k_insert.dtype: got 1, want 0"),
	BAD_ENUM(indexer_k_insert, scale_mode, 0, "1 or 2"),
	BAD_ENUM(indexer_k_insert, scale_mode, 3, "1 or 2"),
	BAD_ENUM(indexer_k_insert, rope_style, 3, "0, 1 or 2"),
	BAD_LEAST(indexer_k_insert, cos_sin_rows, 0, 1),
	BAD_FLOAT(indexer_k_insert, norm_eps),
	BAD_NULL(indexer_k_insert, k),
	BAD_STRIDE(indexer_k_insert, k_stride_elems, 127, 128),
	BAD_NULL(indexer_k_insert, slot_mapping),
	BAD_NULL(indexer_k_insert, norm_bias),
	BAD_NULL(indexer_k_insert, positions),
	BAD_ENUM(indexer_k_insert, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(indexer_k_insert, cos_sin_dtype, 2, "0 or 1"),
	BAD_ENUM(indexer_k_insert, norm_dtype, 2, "0 or 1"),
	BAD_NULL(indexer_k_insert, cos_sin),
	BAD_RANGE(indexer_k_insert, cache.layout, SPMLA_LAYOUT_FP8_DS_MLA,
		  "got 1, want 3, 7 or 11"),
	BAD_CACHE(indexer_k_insert, cache, "3, 7 or 11", 656, 660, 4),
	BAD_ARGS(indexer_k_insert, cache.layout, SPMLA_LAYOUT_INDEX_FP8_TILED,
		 cache.entries_per_page, 40, SPMLA_E_RANGE,
		 "SPMLA_E_RANGE: indexer_k_insert.cache.entries_per_page: got "
		 "40, want a multiple of 16"),
	BAD_MOST(indexer_k_insert, cache.encoding, 2, 1),
};

OP_ENTRY(indexer_k_insert,
	 .inputs = {INPUT_INT(indexer_k_insert, positions, positions_dtype),
		    INPUT_REAL(indexer_k_insert, cos_sin, cos_sin_dtype),
		    INPUT_REAL(indexer_k_insert, norm_weight, norm_dtype),
		    INPUT_REAL(indexer_k_insert, norm_bias, norm_dtype)},
	 .errors = {ERRORS(errors)}, .none = {ARG(indexer_k_insert, tokens, 0)},
	 .is_spread = 1);
