/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of qnorm_rope_kv_insert: outputs of their own, a cache
 * with one scale, and queries in place.
 */
#include "tests/harness/registry.h"

enum { APART, E4M3, IN_PLACE, VARIANTS };

static void
make_queries(draw *d, spmla_qnorm_rope_kv_insert_args *a, uint32_t in_place)
{
	const uint32_t rows = in_place ? a->padded_heads : a->heads;
	draw_strides s = draw_rows(d, a->tokens, rows, 512);

	a->q = draw_bf16(d, s.elems);
	a->q_token_stride_elems = s.token;
	a->q_head_stride_elems = s.head;
	if (in_place) {
		a->q_out = draw_changed(d, a->q);
	} else {
		s = draw_rows(d, a->tokens, a->padded_heads, 512);
		a->q_out = draw_out(d, s.elems, 2);
	}
	a->q_out_token_stride_elems = s.token;
	a->q_out_head_stride_elems = s.head;
}

static void
make(draw *d, void *args)
{
	spmla_qnorm_rope_kv_insert_args *a = args;
	const uint32_t variant = draw_variant(d, VARIANTS);

	a->tokens = draw_tokens(d);
	a->kv_tokens = a->tokens - draw_choice(d, a->tokens + 1);
	a->heads = draw_size(d, 3);
	a->padded_heads = draw_there(d) ? a->heads : a->heads + 2;
	a->cos_sin_rows = draw_size(d, 20);
	a->norm_eps = draw_scale(d);
	a->kv_scale = draw_scale(d);
	a->kv_scale_at = draw_scale_at(d);
	make_queries(d, a, variant == IN_PLACE);
	a->positions = draw_i32(d, a->tokens, 0, a->cos_sin_rows);
	a->cos_sin = draw_cos_sin(d, a->cos_sin_rows);
	if (a->kv_tokens == 0)
		return;
	a->kv_stride_elems = draw_stride(d, 512);
	a->kv = draw_bf16(d,
			  draw_strided(a->kv_tokens, a->kv_stride_elems, 512));
	a->cache = draw_cache_out(d,
				  variant == E4M3 ? SPMLA_LAYOUT_V4_E4M3
						  : SPMLA_LAYOUT_V4_FP8 +
							    draw_choice(d, 2),
				  a->tokens);
	draw_encoding(d, &a->cache, DRAW_OUT);
	a->slot_mapping = draw_slots(d, a->kv_tokens,
				     (uint64_t)a->cache.pages *
					     a->cache.entries_per_page);
}

static const arg_error errors[] = {
	BAD_MOST(qnorm_rope_kv_insert, kv_tokens, 5, 4),
	BAD_LEAST(qnorm_rope_kv_insert, heads, 0, 1),
	BAD_LEAST(qnorm_rope_kv_insert, padded_heads, 2, 3),
	BAD_LEAST(qnorm_rope_kv_insert, cos_sin_rows, 0, 1),
	BAD_FLOAT(qnorm_rope_kv_insert, norm_eps),
	BAD_NULL(qnorm_rope_kv_insert, q),
	BAD_STRIDE(qnorm_rope_kv_insert, q_token_stride_elems, 511, 512),
	BAD_STRIDE(qnorm_rope_kv_insert, q_head_stride_elems, 511, 512),
	BAD_NULL(qnorm_rope_kv_insert, q_out),
	BAD_STRIDE(qnorm_rope_kv_insert, q_out_token_stride_elems, 511, 512),
	BAD_STRIDE(qnorm_rope_kv_insert, q_out_head_stride_elems, 511, 512),
	BAD_NULL(qnorm_rope_kv_insert, kv),
	BAD_STRIDE(qnorm_rope_kv_insert, kv_stride_elems, 511, 512),
	BAD_NULL(qnorm_rope_kv_insert, slot_mapping),
	BAD_NULL(qnorm_rope_kv_insert, positions),
	BAD_ENUM(qnorm_rope_kv_insert, positions_dtype, 2, "0 or 1"),
	BAD_ENUM(qnorm_rope_kv_insert, cos_sin_dtype, 2, "0 or 1"),
	BAD_NULL(qnorm_rope_kv_insert, cos_sin),
	BAD_RANGE(qnorm_rope_kv_insert, cache.layout, SPMLA_LAYOUT_MLA_BF16,
		  "got 2, want 4, 5 or 6"),
	BAD_RANGE(qnorm_rope_kv_insert, cache.layout, 7,
		  "got 7, want 4, 5 or 6"),
	BAD_CACHE(qnorm_rope_kv_insert, cache, "4, 5 or 6", 2912, 2920, 8),
	BAD_MOST(qnorm_rope_kv_insert, cache.encoding, 2, 1),
};

static const arg_error e4m3_errors[] = {
	BAD_FLOAT(qnorm_rope_kv_insert, kv_scale),
	BAD_BITS(qnorm_rope_kv_insert, kv_scale, 0x80000000),
	BAD_MOST(qnorm_rope_kv_insert, cache.encoding, 2, 1),
};

/* Heads 512 apart and tokens 1536. */
static const arg_error in_place_errors[] = {
	BAD_RANGE(qnorm_rope_kv_insert, q_out_token_stride_elems, 1552,
		  "got 1552, want 1536"),
	BAD_ARG(qnorm_rope_kv_insert, q_token_stride_elems, 1024, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: qnorm_rope_kv_insert.q_out_token_stride_elems: "
		"got 1536, want 1024"),
	BAD_RANGE(qnorm_rope_kv_insert, q_out_head_stride_elems, 528,
		  "got 528, want 512"),
	BAD_ARG(qnorm_rope_kv_insert, q_head_stride_elems, 520, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: qnorm_rope_kv_insert.q_out_head_stride_elems: "
		"got 512, want 520"),
};

OP_ENTRY(qnorm_rope_kv_insert,
	 .inputs = {INPUT_INT(qnorm_rope_kv_insert, positions, positions_dtype),
		    INPUT_REAL(qnorm_rope_kv_insert, cos_sin, cos_sin_dtype)},
	 .errors = {ERRORS(errors), ERRORS(e4m3_errors),
		    ERRORS(in_place_errors)},
	 .none = {ARG(qnorm_rope_kv_insert, tokens, 0)}, .is_spread = 1);
