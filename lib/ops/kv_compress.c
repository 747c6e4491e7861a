/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: host checks and dispatch.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/compress.h"

#define KEYS                                                      \
	(1u << SPMLA_LAYOUT_V4_FP8 | 1u << SPMLA_LAYOUT_V4_BF16 | \
	 1u << SPMLA_LAYOUT_V4_E4M3 | SPMLA_I_FNUZ)
#define INDEX_KEYS                                                       \
	(1u << SPMLA_LAYOUT_INDEX_FP8 | 1u << SPMLA_LAYOUT_INDEX_MXFP4 | \
	 SPMLA_I_FNUZ)

static spmla_status
check_args(spmla_diag *diag, const spmla_kv_compress_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("kv_compress.cache");
	const spmla_i_check checks[] = {
		{"kv_compress.positions_dtype", a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{"kv_compress.positions", SPMLA_I_PTR(a->positions),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.slot_mapping", SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.norm_weight", SPMLA_I_PTR(a->norm_weight),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.cos_sin_dtype", a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"kv_compress.norm_dtype", a->norm_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"kv_compress.kv_dtype", a->kv_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{"kv_compress.cos_sin", SPMLA_I_PTR(a->cos_sin),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.cos_sin_rows", a->cos_sin_rows,
		 SPMLA_WANT_AT_LEAST, 1},
	};
	const spmla_i_check split[] = {
		{"kv_compress.split_keys", SPMLA_I_PTR(a->split_keys),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.split_counts", SPMLA_I_PTR(a->split_counts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.split_keys", SPMLA_I_PTR(a->split_keys),
		 SPMLA_WANT_MULTIPLE_OF, 16},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && (a->split_keys || a->split_counts))
		s = spmla_i_check_all(diag, split, SPMLA_I_COUNT(split));
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(diag, "kv_compress.norm_eps",
					   a->norm_eps);
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &cache, &a->cache,
					spmla_i_key_dim(a->state.layout) ==
							SPMLA_INDEX_DIM
						? INDEX_KEYS
						: KEYS);
	if (s == SPMLA_OK && a->cache.layout == SPMLA_LAYOUT_V4_E4M3 &&
	    !a->e4m3_scale_at)
		s = spmla_i_check_positive(diag, "kv_compress.e4m3_scale",
					   a->e4m3_scale);
	return s;
}

static spmla_status
check_call(spmla_diag *diag, const spmla_kv_compress_args *a)
{
	const uint32_t width = spmla_i_state_width(a->state.layout);
	const spmla_i_check checks[] = {
		{"kv_compress.kv", SPMLA_I_PTR(a->kv), SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.score", SPMLA_I_PTR(a->score),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_compress.kv_stride_elems",
		 spmla_i_stride(a->kv_stride_elems), SPMLA_WANT_AT_LEAST,
		 width},
		{"kv_compress.score_stride_elems",
		 spmla_i_stride(a->score_stride_elems), SPMLA_WANT_AT_LEAST,
		 width},
		{"kv_compress.ape", SPMLA_I_PTR(a->ape), SPMLA_WANT_NOT_NULL,
		 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_kv_compress(spmla_ctx *ctx, const spmla_kv_compress_args *a,
		  spmla_stream stream)
{
	static const spmla_i_state_fields fields =
		SPMLA_I_STATE_FIELDS("kv_compress");
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "kv_compress");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	const spmla_i_state_check state = {a->ratio,
					   a->form,
					   a->rows,
					   a->columns,
					   a->table_stride_elems,
					   1,
					   a->token_row,
					   a->block_table,
					   &a->state};

	s = spmla_i_check_state(&ctx->diag, &fields, &state);
	if (s == SPMLA_OK)
		s = check_args(&ctx->diag, a);
	if (s == SPMLA_OK && a->form == SPMLA_STATE_RING)
		s = check_call(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_kv_compress, a, sizeof *a,
			      stream);
}
