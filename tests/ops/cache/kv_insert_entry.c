/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of kv_insert: a variant a layout.
 */
#include "tests/harness/registry.h"

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
};

static const arg_error bf16_errors[] = {
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 5744, 5760, 16),
};

static const arg_error v4_errors[] = {
	BAD_EQUAL(kv_insert, dtype, 1, 0),
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 2912, 2920, 8),
};

static const arg_error e4m3_errors[] = {
	BAD_FLOAT(kv_insert, kv_scale),
	BAD_CACHE(kv_insert, cache, "1, 2, 4, 5 or 6", 2544, 2560, 16),
};

OP_ENTRY(kv_insert,
	 .errors = {ERRORS(errors), ERRORS(bf16_errors), ERRORS(v4_errors),
		    ERRORS(e4m3_errors)},
	 .none = {ARG(kv_insert, tokens, 0)}, .is_spread = 1);
