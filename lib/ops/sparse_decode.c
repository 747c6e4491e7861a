/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: host checks and dispatch. The upper bound of heads is the
 * plan's, because the scratch was planned for it.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/combine.h"
#include "spmla/internal/layer.h"

static spmla_status
check_lse(spmla_diag *diag, const spmla_sparse_decode_args *a)
{
	const spmla_i_check checks[] = {
		{"sparse_decode.lse_token_stride_elems",
		 spmla_i_stride(a->lse_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
		{"sparse_decode.lse_head_stride_elems",
		 spmla_i_stride(a->lse_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 1},
	};

	if (!a->lse)
		return SPMLA_OK;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

/* V3.2's dim unless it is a V4 cache; the layout is checked later. */
static uint32_t
dim_of(const spmla_sparse_decode_args *a)
{
	return a->cache.layout == SPMLA_LAYOUT_V4_FP8 ? SPMLA_V4_DIM
						      : SPMLA_MLA_DIM;
}

static spmla_status
check_requests(spmla_diag *diag, const spmla_sparse_decode_args *a)
{
	const spmla_i_check checks[] = {
		{"sparse_decode.q_request_stride_elems",
		 spmla_i_stride(a->q_request_stride_elems), SPMLA_WANT_AT_LEAST,
		 dim_of(a)},
		{"sparse_decode.out_request_stride_elems",
		 spmla_i_stride(a->out_request_stride_elems),
		 SPMLA_WANT_AT_LEAST, SPMLA_MLA_LATENT},
		{"sparse_decode.lse_request_stride_elems",
		 spmla_i_stride(a->lse_request_stride_elems),
		 SPMLA_WANT_AT_LEAST, a->lse ? 1 : 0},
	};

	if (!a->next_n)
		return SPMLA_OK;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_extra(spmla_diag *diag, const spmla_sparse_decode_args *a)
{
	static const spmla_i_cache_fields fields =
		SPMLA_I_CACHE_FIELDS("sparse_decode.extra_cache");
	const spmla_i_check checks[] = {
		{"sparse_decode.extra_slots", SPMLA_I_PTR(a->extra_slots),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.extra_slots_stride_elems",
		 spmla_i_stride(a->extra_slots_stride_elems),
		 SPMLA_WANT_AT_LEAST, a->extra_indptr ? 0 : a->extra_topk},
	};
	spmla_status s;

	if (a->extra_topk == 0)
		return SPMLA_OK;
	if (a->cache.layout != SPMLA_LAYOUT_V4_FP8)
		return spmla_i_fail(diag, SPMLA_E_RANGE,
				    "sparse_decode.extra_topk", a->extra_topk,
				    SPMLA_WANT_EQUAL, 0);
	s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &fields, &a->extra_cache,
					1u << SPMLA_LAYOUT_V4_FP8 |
						SPMLA_I_FNUZ);
	return s;
}

static spmla_status
check_splits(spmla_diag *diag, const spmla_sparse_decode_args *a)
{
	/* Whole tokens and parts are counted together, in 32 bits. */
	const uint32_t room = UINT32_MAX - a->parts;
	const spmla_i_check checks[] = {
		{"sparse_decode.tile_scheduler_metadata",
		 SPMLA_I_PTR(a->tile_scheduler_metadata), SPMLA_WANT_NOT_NULL,
		 0},
		{"sparse_decode.num_splits", SPMLA_I_PTR(a->num_splits),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.split_out", SPMLA_I_PTR(a->split_out),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.split_lse", SPMLA_I_PTR(a->split_lse),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.split_rows", a->split_rows, SPMLA_WANT_AT_LEAST,
		 1},
		{"sparse_decode.whole_tokens", a->whole_tokens,
		 SPMLA_WANT_AT_MOST, a->tokens < room ? a->tokens : room},
	};

	if (a->parts == 0)
		return SPMLA_OK;
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_i_sparse_decode_check(spmla_ctx *ctx, const spmla_sparse_decode_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("sparse_decode.cache");
	spmla_status s;
	const spmla_i_check checks[] = {
		{"sparse_decode.heads", a->heads, SPMLA_WANT_AT_LEAST, 1},
		{"sparse_decode.heads", a->heads, SPMLA_WANT_AT_MOST,
		 ctx->plan.config.heads},
		{"sparse_decode.topk", a->topk, SPMLA_WANT_AT_LEAST, 1},
		{"sparse_decode.empty_lse", a->empty_lse,
		 SPMLA_I_FROM_TO(SPMLA_EMPTY_LSE_PLUS_INF,
				 SPMLA_EMPTY_LSE_LOWEST)},
		{"sparse_decode.lse_base", a->lse_base,
		 SPMLA_I_FROM_TO(SPMLA_LSE_NATURAL, SPMLA_LSE_BASE2)},
		{"sparse_decode.lse_sink", a->lse_sink, SPMLA_WANT_AT_MOST, 1},
		{"sparse_decode.combine", a->combine, SPMLA_WANT_AT_MOST, 1},
		{"sparse_decode.reserved", a->reserved, SPMLA_WANT_EQUAL, 0},
		{"sparse_decode.q", SPMLA_I_PTR(a->q), SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.q_token_stride_elems",
		 spmla_i_stride(a->q_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 dim_of(a)},
		{"sparse_decode.q_head_stride_elems",
		 spmla_i_stride(a->q_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 dim_of(a)},
		{"sparse_decode.slots", SPMLA_I_PTR(a->slots),
		 SPMLA_WANT_NOT_NULL, 0},
		{"sparse_decode.slots_stride_elems",
		 spmla_i_stride(a->slots_stride_elems), SPMLA_WANT_AT_LEAST,
		 a->indptr ? 0 : a->topk},
		{"sparse_decode.out", SPMLA_I_PTR(a->out), SPMLA_WANT_NOT_NULL,
		 0},
		{"sparse_decode.out_token_stride_elems",
		 spmla_i_stride(a->out_token_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
		{"sparse_decode.out_head_stride_elems",
		 spmla_i_stride(a->out_head_stride_elems), SPMLA_WANT_AT_LEAST,
		 SPMLA_MLA_LATENT},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s == SPMLA_OK)
		s = spmla_i_check_positive(&ctx->diag,
					   "sparse_decode.softmax_scale",
					   a->softmax_scale);
	if (s == SPMLA_OK)
		s = check_lse(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_requests(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = spmla_i_check_cache(&ctx->diag, &cache, &a->cache,
					1u << SPMLA_LAYOUT_FP8_DS_MLA |
						1u << SPMLA_LAYOUT_MLA_BF16 |
						1u << SPMLA_LAYOUT_V4_FP8 |
						SPMLA_I_FNUZ);
	if (s == SPMLA_OK)
		s = check_extra(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_splits(&ctx->diag, a);
	return s;
}

spmla_status
spmla_sparse_decode(spmla_ctx *ctx, const spmla_sparse_decode_args *a,
		    spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "sparse_decode");
	spmla_split_combine_args combine;

	if (s != SPMLA_OK || a->tokens == 0)
		return s;
	s = spmla_i_sparse_decode_check(ctx, a);
	s = spmla_i_op_end(ctx, s, SPMLA_OP_sparse_decode, a, sizeof *a,
			   stream);
	if (s != SPMLA_OK || !a->parts || !a->combine ||
	    spmla_i_combines(&ctx->plan.device, a))
		return s;
	spmla_i_combine_of(a, &combine);
	return spmla_split_combine(ctx, &combine, stream);
}
