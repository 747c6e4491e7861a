/* SPDX-License-Identifier: Apache-2.0
 *
 * qnorm_rope_kv_insert: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

#define F(field) "qnorm_rope_kv_insert." field

enum {
	LAYOUTS = 1u << SPMLA_LAYOUT_V4_FP8 | 1u << SPMLA_LAYOUT_V4_BF16 |
		  1u << SPMLA_LAYOUT_V4_E4M3 | SPMLA_I_FNUZ
};

static spmla_status
check_queries(spmla_diag *diag, const spmla_qnorm_rope_kv_insert_args *a)
{
	const spmla_i_check checks[] = {
		{F("kv_tokens"), a->kv_tokens, SPMLA_WANT_AT_MOST, a->tokens},
		{F("heads"), a->heads, SPMLA_WANT_AT_LEAST, 1},
		{F("padded_heads"), a->padded_heads, SPMLA_WANT_AT_LEAST,
		 a->heads},
		{F("cos_sin_rows"), a->cos_sin_rows, SPMLA_WANT_AT_LEAST, 1},
		{F("q"), SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{F("q_token_stride_elems"),
		 spmla_i_stride(a->q_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_V4_DIM},
		{F("q_head_stride_elems"),
		 spmla_i_stride(a->q_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_V4_DIM},
		{F("q_out"), SPMLA_I_PTR(a->q_out), SPMLA_WANT_NOT_NULL, 0},
		{F("q_out_token_stride_elems"),
		 spmla_i_stride(a->q_out_token_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_V4_DIM},
		{F("q_out_head_stride_elems"),
		 spmla_i_stride(a->q_out_head_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_V4_DIM},
		{F("positions_dtype"), a->positions_dtype,
		 SPMLA_I_FROM_TO(SPMLA_INT32, SPMLA_INT64)},
		{F("positions"), SPMLA_I_PTR(a->positions), SPMLA_WANT_NOT_NULL,
		 0},
		{F("cos_sin_dtype"), a->cos_sin_dtype,
		 SPMLA_I_FROM_TO(SPMLA_REAL_F32, SPMLA_REAL_BF16)},
		{F("cos_sin"), SPMLA_I_PTR(a->cos_sin), SPMLA_WANT_NOT_NULL, 0},
	};
	const spmla_i_check in_place[] = {
		{F("q_out_token_stride_elems"),
		 spmla_i_stride(a->q_out_token_stride_elems), SPMLA_WANT_EQUAL,
		 spmla_i_stride(a->q_token_stride_elems)},
		{F("q_out_head_stride_elems"),
		 spmla_i_stride(a->q_out_head_stride_elems), SPMLA_WANT_EQUAL,
		 spmla_i_stride(a->q_head_stride_elems)},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK && a->q_out == a->q)
		s = spmla_i_check_all(diag, in_place, SPMLA_I_COUNT(in_place));
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(diag, F("norm_eps"), a->norm_eps);
	return s;
}

static spmla_status
check_keys(spmla_diag *diag, const spmla_qnorm_rope_kv_insert_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("qnorm_rope_kv_insert.cache");
	const spmla_i_check checks[] = {
		{F("kv"), SPMLA_I_PTR(a->kv), SPMLA_WANT_NOT_NULL, 0},
		{F("kv_stride_elems"), spmla_i_stride(a->kv_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_V4_DIM},
		{F("slot_mapping"), SPMLA_I_PTR(a->slot_mapping),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &cache, &a->cache, LAYOUTS);
	if (s == SPMLA_OK && a->cache.layout == SPMLA_LAYOUT_V4_E4M3 &&
	    !a->kv_scale_at)
		s = spmla_i_check_positive(diag, F("kv_scale"), a->kv_scale);
	return s;
}

spmla_status
spmla_qnorm_rope_kv_insert(spmla_ctx *ctx,
			   const spmla_qnorm_rope_kv_insert_args *a,
			   spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, a, sizeof *a, "qnorm_rope_kv_insert");

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = check_queries(&ctx->diag, a);
	if (s == SPMLA_OK && a->kv_tokens > 0)
		s = check_keys(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_qnorm_rope_kv_insert, a,
			      sizeof *a, stream);
}
