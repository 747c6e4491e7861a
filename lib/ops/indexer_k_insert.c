/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_k_insert: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

/* Checks of fields that every call uses. */
static spmla_status
check_args(spmla_diag *diag, const spmla_indexer_k_insert_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("indexer_k_insert.cache");
	const spmla_i_check checks[] = {
		{"indexer_k_insert.dtype", a->dtype,
		 SPMLA_I_FROM_TO(SPMLA_DTYPE_BF16, SPMLA_DTYPE_FP16)},
		{"indexer_k_insert.scale_mode", a->scale_mode,
		 SPMLA_I_FROM_TO(SPMLA_SCALE_POW2, SPMLA_SCALE_RAW)},
		{"indexer_k_insert.rope_style", a->rope_style,
		 SPMLA_I_FROM_TO(SPMLA_ROPE_NONE, SPMLA_ROPE_INTERLEAVED)},
		{"indexer_k_insert.k", SPMLA_I_PTR(a->k), SPMLA_WANT_NOT_NULL,
		 0},
		{"indexer_k_insert.k_stride_elems",
		 spmla_i_stride(a->k_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_INDEX_DIM},
		{"indexer_k_insert.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &cache, &a->cache,
					SPMLA_I_INDEX_PAGES);
	return s;
}

static spmla_status
check_norm(spmla_diag *diag, const spmla_indexer_k_insert_args *a)
{
	const spmla_i_check checks[] = {
		{"indexer_k_insert.norm_bias", SPMLA_I_PTR(a->norm_bias),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_insert.norm_dtype", a->norm_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
	};
	const spmla_status s =
		spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK
		       ? spmla_i_check_positive(
				 diag, "indexer_k_insert.norm_eps", a->norm_eps)
		       : s;
}

static spmla_status
check_rope(spmla_diag *diag, const spmla_indexer_k_insert_args *a)
{
	const spmla_i_check checks[] = {
		{"indexer_k_insert.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"indexer_k_insert.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_insert.cos_sin_dtype", a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"indexer_k_insert.cos_sin", SPMLA_I_PTR(a->cos_sin),
		 SPMLA_WANT_NOT_NULL, 0},
		{"indexer_k_insert.cos_sin_rows", a->cos_sin_rows,
		 SPMLA_WANT_AT_LEAST, 1},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_i_indexer_k_insert_check(spmla_diag *diag,
			       const spmla_indexer_k_insert_args *a)
{
	spmla_status s = check_args(diag, a);

	if (s == SPMLA_OK && a->norm_weight)
		s = check_norm(diag, a);
	if (s == SPMLA_OK && a->rope_style != SPMLA_ROPE_NONE)
		s = check_rope(diag, a);
	/* Both steps round to bf16, which has fewer bits than FP16. */
	if (s == SPMLA_OK && a->dtype != SPMLA_DTYPE_BF16 &&
	    (a->norm_weight || a->rope_style != SPMLA_ROPE_NONE))
		s = spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				 "indexer_k_insert.dtype", a->dtype,
				 SPMLA_WANT_EQUAL, SPMLA_DTYPE_BF16);
	return s;
}

spmla_status
spmla_indexer_k_insert(spmla_ctx *ctx, const spmla_indexer_k_insert_args *a,
		       spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "indexer_k_insert");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = spmla_i_indexer_k_insert_check(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_indexer_k_insert, a, sizeof *a,
			      stream);
}
