/* SPDX-License-Identifier: Apache-2.0
 *
 * See decode_parts.h. The choice is the layers', in splits.h.
 */
#include "spmla/decode_parts.h"
#include "spmla/internal/few.h"
#include "spmla/internal/layer.h"
#include "spmla/internal/splits.h"
#include "spmla/ops/tile_sched.h"

#include <string.h>

enum {
	ALIGN = 256,
	MOST_PARTS = 1 << 30 /* of tile_sched */
};

static uint64_t
aligned(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* The most key blocks of a list; 0 if unknown. */
static uint32_t
blocks_of(uint32_t topk, const int32_t *indptr, uint32_t longest)
{
	const uint32_t keys = indptr ? longest : topk;

	return keys / SPMLA_TILE_BLOCK_KEYS +
	       (keys % SPMLA_TILE_BLOCK_KEYS != 0);
}

/* The overhead with which tile_sched gives every token of `blocks` blocks the
 * same number of parts. It rounds the cost of a token up to a multiple of its
 * parts. Example: with 5 parts, 32 blocks cost 35, so a part has 7 blocks. */
static uint32_t
overhead_of(uint32_t tokens, uint32_t parts, uint32_t blocks)
{
	const uint32_t each = parts / tokens;

	return parts % tokens ? SPMLA_I_SPLIT_OVERHEAD
			      : (each - blocks % each) % each;
}

/* Parts that the tokens share evenly, and the rows of their splits. */
static void
choose_even(const spmla_plan *plan, const spmla_sparse_decode_args *a,
	    uint32_t heads, spmla_decode_parts *out)
{
	const uint32_t each = a->lens_tokens ? a->lens_tokens : 1;
	const spmla_i_cut cut = spmla_i_cut_tokens(
		&plan->device, a->cache.layout == SPMLA_LAYOUT_V4_FP8,
		a->tokens, spmla_i_parts_for(plan, heads), each);
	const uint32_t tokens = a->tokens - cut.whole;

	if (!cut.parts || spmla_i_few_takes(plan, a) < SPMLA_I_FEW_COUNT)
		return;
	out->parts = cut.parts;
	out->whole_tokens = cut.whole;
	out->split_rows = tokens + out->parts;
	out->overhead_blocks =
		overhead_of(tokens, out->parts,
			    blocks_of(a->topk, a->indptr, a->longest) +
				    (a->extra_topk ? blocks_of(a->extra_topk,
							       a->extra_indptr,
							       a->extra_longest)
						   : 0));
}

/* Fixed splits: each split is a part. Tokens with a second list are whole, as
 * V4's layers have them. */
static void
choose_fixed(const spmla_plan *plan, const spmla_sparse_decode_args *a,
	     spmla_decode_parts *out)
{
	const uint32_t keys = a->extra_topk ? 0
			      : a->indptr   ? a->longest
					    : a->topk;
	const uint64_t parts =
		(uint64_t)a->tokens * spmla_i_fixed_splits(plan, keys);

	if (spmla_i_few_entries(a) == UINT64_MAX || parts > MOST_PARTS ||
	    spmla_i_few_takes(plan, a) < SPMLA_I_FEW_COUNT)
		return;
	out->parts = out->split_rows = (uint32_t)parts;
	out->split_blocks = spmla_i_split_blocks(plan, keys);
}

/* Fills *out for the context's device. 0 heads count as 1. */
static void
choose(const spmla_ctx *ctx, const spmla_sparse_decode_args *a,
       spmla_decode_parts *out)
{
	const uint32_t heads = a->heads ? a->heads : 1;
	uint64_t rows;

	memset(out, 0, sizeof *out);
	out->struct_bytes = (uint32_t)sizeof *out;
	if (a->tokens && ctx->plan.config.flags & SPMLA_CONFIG_BATCH_INVARIANT)
		choose_fixed(&ctx->plan, a, out);
	else if (a->tokens)
		choose_even(&ctx->plan, a, heads, out);
	if (!out->parts)
		return;
	rows = out->split_rows;
	out->tile_scheduler_metadata_bytes =
		(uint64_t)out->parts * SPMLA_TILE_ROW_ELEMS * sizeof(int32_t);
	out->num_splits_bytes =
		((uint64_t)(a->tokens - out->whole_tokens) + 1) *
		sizeof(int32_t);
	out->split_out_bytes = rows * heads * SPMLA_MLA_LATENT * sizeof(float);
	out->split_lse_bytes = rows * heads * sizeof(float);
	out->workspace_bytes = aligned(out->tile_scheduler_metadata_bytes) +
			       aligned(out->num_splits_bytes) +
			       aligned(out->split_out_bytes) +
			       aligned(out->split_lse_bytes);
}

spmla_status
spmla_decode_parts_choose(spmla_ctx *ctx, const spmla_sparse_decode_args *args,
			  spmla_decode_parts *parts)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!args)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "sparse_decode",
				    0, SPMLA_WANT_NOT_NULL, 0);
	if (!parts)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, "decode_parts", 0,
				    SPMLA_WANT_NOT_NULL, 0);
	const spmla_i_check heads[] = {
		{"sparse_decode.heads", args->heads, SPMLA_WANT_AT_LEAST, 1},
		{"sparse_decode.heads", args->heads, SPMLA_WANT_AT_MOST,
		 ctx->plan.config.heads},
	};

	s = spmla_i_check_size(&ctx->diag, "sparse_decode.struct_bytes",
			       args->struct_bytes, sizeof *args);
	if (s == SPMLA_OK)
		s = spmla_i_check_size(&ctx->diag, "decode_parts.struct_bytes",
				       parts->struct_bytes, sizeof *parts);
	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, heads, SPMLA_I_COUNT(heads));
	if (s == SPMLA_OK)
		choose(ctx, args, parts);
	return s;
}

/* Numbers of the tokens that parts share. */
static const int32_t *
from(const int32_t *all, uint32_t first)
{
	return all ? all + first : NULL;
}

static spmla_status
cut(spmla_ctx *ctx, const spmla_sparse_decode_args *d,
    const spmla_decode_parts *by, spmla_stream stream)
{
	const uint32_t whole = d->whole_tokens;
	const uint32_t lens = d->lens_tokens ? whole / d->lens_tokens : whole;
	spmla_tile_sched_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.batch = d->tokens - whole;
	a.first_request = whole;
	a.parts = d->parts;
	a.overhead_blocks = by->overhead_blocks;
	a.split_blocks = by->split_blocks;
	a.topk = d->topk;
	a.extra_topk = d->extra_topk;
	a.lens_tokens = d->lens_tokens;
	a.topk_lens = from(d->topk_lens, lens);
	a.extra_topk_lens = from(d->extra_topk_lens, lens);
	a.indptr = from(d->indptr, whole);
	a.extra_indptr = from(d->extra_indptr, whole);
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
	choose(ctx, &a, &by);
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
	a.combine = 1;
	a.parts = by.parts;
	a.split_rows = by.split_rows;
	a.whole_tokens = by.whole_tokens;
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
		s = cut(ctx, &a, &by, stream);
	else
		return spmla_i_op_failed(ctx, s);
	if (s == SPMLA_OK)
		s = spmla_sparse_decode(ctx, &a, stream);
	return s;
}
