/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum {
	V4_LAYOUTS = 1u << SPMLA_LAYOUT_V4_FP8 | 1u << SPMLA_LAYOUT_V4_BF16 |
		     1u << SPMLA_LAYOUT_V4_E4M3,
	LAYOUTS = V4_LAYOUTS | 1u << SPMLA_LAYOUT_FP8_DS_MLA |
		  1u << SPMLA_LAYOUT_MLA_BF16 | SPMLA_I_FNUZ
};

/* Checks of fields that only rows of V3.2 use. */
static spmla_status
check_v32(spmla_diag *diag, const spmla_kv_insert_args *a)
{
	const spmla_i_check checks[] = {
		{"kv_insert.k_pe", SPMLA_I_PTR(a->k_pe), SPMLA_WANT_NOT_NULL,
		 0},
		{"kv_insert.k_pe_stride_elems",
		 spmla_i_stride(a->k_pe_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_ROPE},
	};
	const spmla_i_check scale_mode[] = {
		{"kv_insert.scale_mode", a->scale_mode,
		 SPMLA_I_FROM_TO(SPMLA_SCALE_POW2, SPMLA_SCALE_RAW)},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->cache.layout == SPMLA_LAYOUT_FP8_DS_MLA)
		s = spmla_i_check_all(diag, scale_mode,
				      SPMLA_I_COUNT(scale_mode));
	return s;
}

static spmla_status
check_v4(spmla_diag *diag, const spmla_kv_insert_args *a)
{
	if (a->dtype != SPMLA_DTYPE_BF16)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "kv_insert.dtype",
				    a->dtype, SPMLA_WANT_EQUAL,
				    SPMLA_DTYPE_BF16);
	if (a->cache.layout == SPMLA_LAYOUT_V4_E4M3 && !a->kv_scale_at)
		return spmla_i_check_positive(diag, "kv_insert.kv_scale",
					      a->kv_scale);
	return SPMLA_OK;
}

static spmla_status
check_args(spmla_diag *diag, const spmla_kv_insert_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("kv_insert.cache");
	const spmla_i_check checks[] = {
		{"kv_insert.dtype", a->dtype,
		 SPMLA_I_FROM_TO(SPMLA_DTYPE_BF16, SPMLA_DTYPE_FP16)},
		{"kv_insert.kv_c", SPMLA_I_PTR(a->kv_c), SPMLA_WANT_NOT_NULL,
		 0},
		{"kv_insert.kv_c_stride_elems",
		 spmla_i_stride(a->kv_c_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"kv_insert.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &cache, &a->cache, LAYOUTS);
	if (s != SPMLA_OK)
		return s;
	return V4_LAYOUTS >> a->cache.layout & 1u ? check_v4(diag, a)
						  : check_v32(diag, a);
}

static spmla_status
check_index(spmla_diag *diag, const spmla_kv_insert_args *a)
{
	const spmla_i_check tokens = {"kv_insert.index.tokens", a->index.tokens,
				      SPMLA_WANT_EQUAL, a->tokens};
	spmla_status s =
		spmla_i_check_size(diag, "kv_insert.index.struct_bytes",
				   a->index.struct_bytes, sizeof a->index);

	if (s == SPMLA_OK)
		s = spmla_i_check_all(diag, &tokens, 1);
	return s == SPMLA_OK ? spmla_i_indexer_k_insert_check(diag, &a->index)
			     : s;
}

spmla_status
spmla_kv_insert(spmla_ctx *ctx, const spmla_kv_insert_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "kv_insert");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_args(&ctx->diag, a);
	if (s == SPMLA_OK && a->index.struct_bytes)
		s = check_index(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_kv_insert, a, sizeof *a, stream);
}
