/* SPDX-License-Identifier: Apache-2.0
 *
 * See decode_parts.h. The choice is that of the layers, in splits.h.
 */
#include "spmla/decode_parts.h"
#include "spmla/internal/layer.h"
#include "spmla/internal/splits.h"
#include "spmla/ops/tile_sched.h"

#include <string.h>

enum {
	ALIGN = 256,
	OVERHEAD_BLOCKS = 2 /* as the prologue cuts */
};

static uint64_t
aligned(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* *out by the context's device; heads >= 1. */
static void
choose(const spmla_ctx *ctx, uint32_t layout, uint32_t tokens, uint32_t heads,
       spmla_decode_parts *out)
{
	const uint32_t parts = spmla_i_parts_for(&ctx->plan, heads);
	const uint64_t rows = (uint64_t)tokens + parts;

	memset(out, 0, sizeof *out);
	out->struct_bytes = (uint32_t)sizeof *out;
	if (!parts || tokens == 0 || tokens > SPMLA_I_SPLIT_TOKENS ||
	    spmla_i_whole_pays(layout == SPMLA_LAYOUT_V4_FP8, tokens, parts))
		return;
	out->parts = parts;
	out->split_rows = (uint32_t)rows;
	out->overhead_blocks = OVERHEAD_BLOCKS;
	out->tile_scheduler_metadata_bytes =
		(uint64_t)parts * SPMLA_TILE_ROW_ELEMS * sizeof(int32_t);
	out->num_splits_bytes = ((uint64_t)tokens + 1) * sizeof(int32_t);
	out->split_out_bytes = rows * heads * SPMLA_MLA_LATENT * sizeof(float);
	out->split_lse_bytes = rows * heads * sizeof(float);
	out->workspace_bytes = aligned(out->tile_scheduler_metadata_bytes) +
			       aligned(out->num_splits_bytes) +
			       aligned(out->split_out_bytes) +
			       aligned(out->split_lse_bytes);
}

static spmla_status
check_heads(spmla_ctx *ctx, const char *field, uint32_t heads)
{
	const spmla_i_check checks[] = {
		{field, heads, SPMLA_WANT_AT_LEAST, 1},
		{field, heads, SPMLA_WANT_AT_MOST, ctx->plan.config.heads},
	};

	return spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_decode_parts_choose(spmla_ctx *ctx, uint32_t layout, uint32_t tokens,
			  uint32_t heads, spmla_decode_parts *parts)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!parts)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "decode_parts", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	s = spmla_i_check_size(&ctx->diag, "decode_parts.struct_bytes",
			       parts->struct_bytes, sizeof *parts);
	if (s == SPMLA_OK)
		s = check_heads(ctx, "decode_parts.heads", heads);
	if (s == SPMLA_OK)
		choose(ctx, layout, tokens, heads, parts);
	return s;
}

static spmla_status
cut(spmla_ctx *ctx, const spmla_sparse_decode_args *d, spmla_stream stream)
{
	spmla_tile_sched_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.batch = d->tokens;
	a.parts = d->parts;
	a.overhead_blocks = OVERHEAD_BLOCKS;
	a.topk = d->topk;
	a.extra_topk = d->extra_topk;
	a.lens_tokens = d->lens_tokens;
	a.topk_lens = d->topk_lens;
	a.extra_topk_lens = d->extra_topk_lens;
	a.indptr = d->indptr;
	a.extra_indptr = d->extra_indptr;
	/* The layers write both buffers as data of the device. */
	a.tile_scheduler_metadata =
		(int32_t *)(uintptr_t)d->tile_scheduler_metadata;
	a.num_splits = (int32_t *)(uintptr_t)d->num_splits;
	return spmla_tile_sched(ctx, &a, stream);
}

spmla_status
spmla_sparse_decode_in_parts(spmla_ctx *ctx,
			     const spmla_sparse_decode_args *args,
			     void *workspace, uint64_t workspace_bytes,
			     spmla_stream stream)
{
	spmla_status s =
		spmla_i_op_begin(ctx, args, sizeof *args, "sparse_decode");
	spmla_sparse_decode_args a;
	spmla_decode_parts by;
	uint8_t *at = workspace;

	if (s != SPMLA_OK)
		return s;
	a = *args;
	choose(ctx, a.cache.layout, a.tokens, a.heads ? a.heads : 1, &by);
	const spmla_i_check checks[] = {
		{"sparse_decode.parts", a.parts, SPMLA_WANT_EQUAL, 0},
		{"decode_parts.workspace", SPMLA_I_PTR(workspace),
		 by.parts ? SPMLA_WANT_NOT_NULL : SPMLA_WANT_NOTHING, 0},
		{"decode_parts.workspace", SPMLA_I_PTR(workspace),
		 SPMLA_WANT_MULTIPLE_OF, by.parts ? ALIGN : 1},
		{"decode_parts.workspace_bytes", workspace_bytes,
		 SPMLA_WANT_AT_LEAST, by.workspace_bytes},
	};

	s = spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));
	if (s != SPMLA_OK)
		return spmla_i_op_failed(ctx, s);
	if (!by.parts)
		return spmla_sparse_decode(ctx, &a, stream);
	a.parts = by.parts;
	a.split_rows = by.split_rows;
	a.tile_scheduler_metadata = (const int32_t *)(void *)at;
	at += aligned(by.tile_scheduler_metadata_bytes);
	a.num_splits = (const int32_t *)(void *)at;
	at += aligned(by.num_splits_bytes);
	a.split_out = (float *)(void *)at;
	at += aligned(by.split_out_bytes);
	a.split_lse = (float *)(void *)at;
	/* The decode's own checks come first: nothing is enqueued before. */
	s = spmla_i_sparse_decode_check(ctx, &a);
	if (s == SPMLA_OK)
		s = cut(ctx, &a, stream);
	else
		return spmla_i_op_failed(ctx, s);
	if (s == SPMLA_OK)
		s = spmla_sparse_decode(ctx, &a, stream);
	return s == SPMLA_OK ? spmla_i_layer_combine(ctx, &a, stream) : s;
}
