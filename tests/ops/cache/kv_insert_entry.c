/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of kv_insert: a variant a layout, some with index keys.
 */
#include "tests/harness/registry.h"

static void
make_index(draw *d, spmla_kv_insert_args *a)
{
	spmla_indexer_k_insert_args *k = &a->index;

	k->struct_bytes = (uint32_t)sizeof *k;
	k->tokens = a->tokens;
	k->scale_mode = SPMLA_SCALE_POW2 + draw_choice(d, 2);
	k->norm_eps = draw_scale(d);
	k->k_stride_elems = draw_stride(d, 128);
	k->k = draw_bf16(d, draw_strided(k->tokens, k->k_stride_elems, 128));
	k->cache = draw_cache_out(d, draw_index_layout(d), k->tokens);
	draw_encoding(d, &k->cache, DRAW_OUT);
	k->slot_mapping = draw_slots(d, k->tokens,
				     (uint64_t)k->cache.pages *
					     k->cache.entries_per_page);
	if (draw_there(d)) {
		k->norm_weight = draw_f32(d, 128);
		k->norm_bias = draw_f32(d, 128);
	}
	if (!draw_there(d))
		return;
	k->rope_style = SPMLA_ROPE_NEOX + draw_choice(d, 2);
	k->cos_sin_rows = draw_size(d, 20);
	k->positions = draw_i32(d, k->tokens, 0, k->cos_sin_rows);
	k->cos_sin = draw_cos_sin(d, k->cos_sin_rows);
}

static void
make(draw *d, void *args)
{
	static const uint32_t layouts[5] = {
		SPMLA_LAYOUT_FP8_DS_MLA, SPMLA_LAYOUT_MLA_BF16,
		SPMLA_LAYOUT_V4_FP8, SPMLA_LAYOUT_V4_E4M3,
		SPMLA_LAYOUT_V4_BF16};
	spmla_kv_insert_args *a = args;
	const uint32_t variant = draw_variant(d, 5), v4 = variant > 1;

	a->tokens = draw_tokens(d);
	a->dtype = v4 ? SPMLA_DTYPE_BF16 : draw_choice(d, 2);
	a->scale_mode = SPMLA_SCALE_POW2 + draw_choice(d, 2);
	a->kv_scale = draw_scale(d);
	a->kv_scale_at = draw_scale_at(d);
	a->cache = draw_cache_out(d, layouts[variant], a->tokens);
	draw_encoding(d, &a->cache, DRAW_OUT);
	a->slot_mapping = draw_slots(d, a->tokens,
				     (uint64_t)a->cache.pages *
					     a->cache.entries_per_page);
	a->kv_c_stride_elems = draw_stride(d, 512);
	a->kv_c = draw_bf16(d,
			    draw_strided(a->tokens, a->kv_c_stride_elems, 512));
	if (draw_there(d))
		make_index(d, a);
	if (v4)
		return;
	a->k_pe_stride_elems = draw_stride(d, 64);
	a->k_pe =
		draw_bf16(d, draw_strided(a->tokens, a->k_pe_stride_elems, 64));
}

static const arg_error errors[] = {
	BAD_ENUM(kv_insert, dtype, 2, "0 or 1"),
	BAD_ENUM(kv_insert, scale_mode, 0, "1 or 2"),
	BAD_ENUM(kv_insert, scale_mode, 3, "1 or 2"),
	BAD_NULL(kv_insert, kv_c),
	BAD_NULL(kv_insert, k_pe),
	BAD_NULL(kv_insert, slot_mapping),
	BAD_STRIDE(kv_insert, kv_c_stride_elems, 511, 512),
	BAD_STRIDE(kv_insert, k_pe_stride_elems, 63, 64),
	BAD_RANGE(kv_insert, cache.layout, SPMLA_LAYOUT_INDEX_FP8,
		  "got 3, want 1, 2, 4, 5 or 6"),
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 3264, 3280, 16),
	BAD_MOST(kv_insert, cache.encoding, 2, 1),
	BAD_ARG(kv_insert, index.struct_bytes, 8, SPMLA_E_STRUCT_SIZE,
		"SPMLA_E_STRUCT_SIZE: kv_insert.index.struct_bytes: got 8, "
		"want "
		"136"),
	BAD_EQUAL(kv_insert, index.tokens, 3, 4),
	BAD_ARG(kv_insert, index.k, 0, SPMLA_E_NULL,
		"SPMLA_E_NULL: indexer_k_insert.k: got NULL, want a pointer"),
	BAD_ARG(kv_insert, index.dtype, SPMLA_DTYPE_FP16, SPMLA_E_UNSUPPORTED,
		"SPMLA_E_UNSUPPORTED: indexer_k_insert.dtype: got 1, want 0"),
};

static const arg_error bf16_errors[] = {
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 5744, 5760, 16),
	BAD_MOST(kv_insert, cache.encoding, 1, 0),
};

static const arg_error v4_errors[] = {
	BAD_EQUAL(kv_insert, dtype, 1, 0),
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 2912, 2920, 8),
	BAD_MOST(kv_insert, cache.encoding, 2, 1),
};

static const arg_error e4m3_errors[] = {
	BAD_EQUAL(kv_insert, dtype, 1, 0),
	BAD_FLOAT(kv_insert, kv_scale),
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 2544, 2560, 16),
	BAD_MOST(kv_insert, cache.encoding, 2, 1),
};

OP_ENTRY(kv_insert,
	 .errors = {ERRORS(errors), ERRORS(bf16_errors), ERRORS(v4_errors),
		    ERRORS(e4m3_errors)},
	 .none = {ARG(kv_insert, tokens, 0)}, .is_spread = 1);
