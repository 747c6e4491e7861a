/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather: host checks and dispatch.
 */
#include "spmla/internal/backend.h"

enum {
	V4_LAYOUTS = 1u << SPMLA_LAYOUT_V4_FP8 | 1u << SPMLA_LAYOUT_V4_BF16 |
		     1u << SPMLA_LAYOUT_V4_E4M3,
	LAYOUTS = V4_LAYOUTS | 1u << SPMLA_LAYOUT_FP8_DS_MLA |
		  1u << SPMLA_LAYOUT_MLA_BF16 | SPMLA_I_FNUZ
};

/* Checks of the fields that give a request its keys. */
static spmla_status
check_requests(spmla_diag *diag, const spmla_kv_gather_args *a)
{
	const spmla_i_check checks[] = {
		{"kv_gather.rows", a->rows, SPMLA_WANT_AT_LEAST,
		 a->req_row ? 1 : a->requests},
		{"kv_gather.columns", a->columns, SPMLA_WANT_AT_LEAST, 1},
		{"kv_gather.table_stride_elems", a->table_stride_elems,
		 SPMLA_WANT_AT_LEAST, a->columns},
		{"kv_gather.ring", a->ring, SPMLA_WANT_AT_MOST, 1},
		{"kv_gather.workspace_starts", SPMLA_I_PTR(a->workspace_starts),
		 SPMLA_WANT_NOT_NULL, 0},
		{"kv_gather.block_table", SPMLA_I_PTR(a->block_table),
		 SPMLA_WANT_NOT_NULL, 0},
	};

	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

static spmla_status
check_rows(spmla_diag *diag, const spmla_kv_gather_args *a)
{
	static const spmla_i_cache_fields cache =
		SPMLA_I_CACHE_FIELDS("kv_gather.cache");
	/* An unknown layout is refused below. */
	const uint32_t v4 =
		a->cache.layout < 32 && (V4_LAYOUTS >> a->cache.layout & 1u);
	const spmla_i_check checks[] = {
		{"kv_gather.dst", SPMLA_I_PTR(a->dst), SPMLA_WANT_NOT_NULL, 0},
		{"kv_gather.dst_stride_elems",
		 spmla_i_stride(a->dst_stride_elems), SPMLA_WANT_AT_LEAST,
		 v4 ? SPMLA_V4_DIM : SPMLA_MLA_DIM},
	};
	spmla_status s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));

	if (s == SPMLA_OK)
		s = spmla_i_check_cache(diag, &cache, &a->cache, LAYOUTS);
	if (s == SPMLA_OK && a->cache.layout == SPMLA_LAYOUT_V4_E4M3 &&
	    !a->kv_scale_at)
		s = spmla_i_check_positive(diag, "kv_gather.kv_scale",
					   a->kv_scale);
	return s;
}

spmla_status
spmla_kv_gather(spmla_ctx *ctx, const spmla_kv_gather_args *a,
		spmla_stream stream)
{
	spmla_status s = spmla_i_op_begin(ctx, a, sizeof *a, "kv_gather");

	if (s != SPMLA_OK || a->keys == 0 || (a->requests == 0 && !a->slots))
		return s;
	const spmla_i_check keys = {"kv_gather.keys", a->keys,
				    SPMLA_WANT_AT_MOST, INT32_MAX};

	s = spmla_i_check_all(&ctx->diag, &keys, 1);
	if (s == SPMLA_OK && !a->slots)
		s = check_requests(&ctx->diag, a);
	if (s == SPMLA_OK)
		s = check_rows(&ctx->diag, a);
	return spmla_i_op_end(ctx, s, SPMLA_OP_kv_gather, a, sizeof *a, stream);
}
