/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the layers of all models make before their operations do, and
 * their attention: one operation, or several (split-KV) where few tokens would
 * leave a GPU idle.
 */
#include "spmla/internal/layer.h"
#include "spmla/internal/config.h"
#include "spmla/internal/few.h"
#include "spmla/internal/splits.h"

#include <string.h>

/* Calls in a capture belong to the step that was recorded last. This holds for
 * the engine's own captures too; only the driver knows of those. */
static void
find_step(spmla_ctx *ctx, spmla_stream stream)
{
	const uint32_t recorded = ctx->recorded.shape.tokens > 0 &&
				  ctx->backend->capturing(ctx, stream);

	ctx->step = recorded ? &ctx->recorded : &ctx->prologue;
}

/* Notes what a call in front of a graph's first prologue needs of the step in
 * which the graph is replayed. */
static void
note_needs(spmla_ctx *ctx, uint32_t tokens, uint32_t exact)
{
	spmla_i_graph *g = &ctx->graphs[ctx->graph_count];

	if (!ctx->capture_open || g->prologue.shape.tokens > 0)
		return;
	g->under = *ctx->step;
	g->tokens = g->tokens > tokens ? g->tokens : tokens;
	g->exact |= exact || ctx->step->piece_tokens > 0;
}

spmla_status
spmla_i_layer_model(spmla_ctx *ctx, uint32_t v4)
{
	if (spmla_i_is_v4(&ctx->plan.config) == v4)
		return SPMLA_OK;
	return spmla_i_fail(
		&ctx->diag, SPMLA_E_UNSUPPORTED, "plan.config.model",
		ctx->plan.config.model,
		SPMLA_I_FROM_TO(v4 ? SPMLA_MODEL_V4_FLASH : SPMLA_MODEL_V32,
				v4 ? SPMLA_MODEL_V4_PRO : SPMLA_MODEL_V32));
}

spmla_status
spmla_i_preset_begin(spmla_ctx *ctx, const void *layer, const char *name,
		     uint32_t v4)
{
	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!layer)
		return spmla_i_fail(&ctx->diag, SPMLA_E_NULL, name, 0,
				    SPMLA_WANT_NOT_NULL, 0);
	return spmla_i_layer_model(ctx, v4);
}

spmla_status
spmla_i_preset_cache(spmla_ctx *ctx, spmla_buf buf, uint32_t planned,
		     uint32_t index, spmla_cache *cache)
{
	return planned ? spmla_cache_view(ctx, buf, index, cache) : SPMLA_OK;
}

spmla_status
spmla_i_layer_begin(spmla_ctx *ctx, const void *layer, uint32_t bytes,
		    const char *name, const spmla_shape *shape, uint32_t v4,
		    spmla_stream stream)
{
	uint32_t live, prefill;
	spmla_status s = spmla_i_op_begin(ctx, layer, bytes, name);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_layer_model(ctx, v4);
	if (s == SPMLA_OK)
		s = spmla_i_check_shape(ctx, shape, &live, &prefill);
	find_step(ctx, stream);
	if (s == SPMLA_OK && shape->tokens > ctx->step->shape.tokens)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				 "shape.tokens (of the last prologue)",
				 shape->tokens, SPMLA_WANT_AT_MOST,
				 ctx->step->shape.tokens);
	if (s != SPMLA_OK)
		return spmla_i_op_failed(ctx, s);
	note_needs(ctx, shape->tokens, 0);
	return v4 && !prefill ? spmla_i_layer_decode(ctx) : s;
}

spmla_status
spmla_i_layer_decode(spmla_ctx *ctx)
{
	if (!ctx->step->piece_tokens)
		return SPMLA_OK;
	return spmla_i_op_failed(
		ctx, spmla_i_fail(&ctx->diag, SPMLA_E_STATE,
				  "shape (the last prologue began a prefill)",
				  1, SPMLA_WANT_EQUAL, 0));
}

spmla_status
spmla_i_layer_end(spmla_ctx *ctx, spmla_status s, const spmla_i_name *names,
		  uint32_t count)
{
	uint32_t i;

	if (s == SPMLA_OK || !spmla_i_lives(ctx))
		return s;
	for (i = 0; i < count; i++)
		if (!strcmp(ctx->diag.field, names[i].op)) {
			ctx->diag.field = names[i].layer;
			break;
		}
	return s;
}

spmla_status
spmla_i_check_pool(spmla_ctx *ctx, const spmla_i_pool_fields *fields,
		   const spmla_cache *cache, uint32_t group, uint32_t layout)
{
	const spmla_config *c = &ctx->plan.config;
	const spmla_table_config *g = &c->groups[group];
	const uint32_t of = ctx->plan.group_table[group];
	const spmla_i_check checks[] = {
		{fields->layout, cache->layout, SPMLA_WANT_EQUAL, layout},
		{fields->table_group, cache->table_group,
		 cache->table_group == of ? SPMLA_WANT_NOTHING
					  : SPMLA_WANT_EQUAL,
		 group},
		{fields->entries_per_page, cache->entries_per_page,
		 SPMLA_WANT_EQUAL,
		 g->page_tokens / spmla_i_group_ratio(c, group)},
		{fields->pages, cache->pages, SPMLA_WANT_AT_LEAST,
		 g->pool_pages},
		{fields->encoding, cache->encoding, SPMLA_WANT_AT_MOST,
		 spmla_i_encodings(layout)},
	};
	const spmla_status s =
		spmla_i_check_all(&ctx->diag, checks, SPMLA_I_COUNT(checks));

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_i_check_rope(spmla_ctx *ctx, const char *field, uint32_t rows)
{
	const spmla_i_check check = {field, rows, SPMLA_WANT_AT_LEAST,
				     ctx->plan.config.max_context_tokens};
	const spmla_status s = spmla_i_check_all(&ctx->diag, &check, 1);

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

spmla_cache
spmla_i_pool(const spmla_ctx *ctx, const spmla_cache *cache, uint32_t group)
{
	spmla_cache pool = *cache;

	pool.pages = ctx->plan.config.groups[group].pool_pages;
	return pool;
}

spmla_status
spmla_i_check_topk(spmla_ctx *ctx, const char *const fields[3],
		   int32_t *indices, int32_t *lens, int64_t stride_elems,
		   spmla_i_topk *out)
{
	int32_t *const own[2] = {ctx->buf[SPMLA_BUF_TOPK_INDICES],
				 ctx->buf[SPMLA_BUF_TOPK_LENS]};
	const int64_t topk = ctx->plan.config.topk;
	spmla_status s = SPMLA_OK;

	out->indices = indices ? indices : own[0];
	out->lens = lens ? lens : own[1];
	out->stride_elems = stride_elems ? stride_elems : topk;
	out->planned = out->lens == own[1];
	if (!indices != !lens)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_NULL,
				 indices ? fields[1] : fields[0], 0,
				 SPMLA_WANT_NOT_NULL, 0);
	else if (out->indices == own[0] && out->stride_elems != topk)
		s = spmla_i_fail(&ctx->diag, SPMLA_E_RANGE, fields[2],
				 spmla_i_stride(stride_elems), SPMLA_WANT_EQUAL,
				 (uint64_t)topk);
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

void
spmla_i_layer_slots(const spmla_ctx *ctx, spmla_index_map_args *a)
{
	if (spmla_i_is_ragged(ctx)) {
		a->slots = ctx->buf[SPMLA_BUF_RAGGED_INDICES];
		a->indptr = ctx->buf[SPMLA_BUF_RAGGED_INDPTR];
		a->capacity_elems = spmla_i_piece_tokens(&ctx->plan.config) *
				    ctx->plan.config.topk;
		return;
	}
	a->slots = ctx->buf[SPMLA_BUF_TOPK_SLOTS];
	a->slots_stride_elems = ctx->plan.config.topk;
}

static void
lend_workspace(const spmla_ctx *ctx, spmla_sparse_decode_args *a)
{
	a->workspace = ctx->buf[SPMLA_BUF_DECODE_WORKSPACE];
	a->workspace_bytes = ctx->buf_bytes[SPMLA_BUF_DECODE_WORKSPACE];
}

void
spmla_i_layer_cut(spmla_ctx *ctx, spmla_sparse_decode_args *a)
{
	const spmla_config *c = &ctx->plan.config;
	spmla_i_cut cut;

	lend_workspace(ctx, a);
	if (ctx->step->piece_tokens)
		return;
	if (c->flags & SPMLA_CONFIG_BATCH_INVARIANT) {
		/* The prologue's first tokens have the same splits in a call of
		 * fewer. */
		a->parts = a->tokens *
			   spmla_i_fixed_splits(&ctx->plan,
						spmla_i_cut_keys(&ctx->plan));
		return;
	}
	if (a->tokens != ctx->step->shape.tokens ||
	    spmla_i_few_takes(&ctx->plan, a) < SPMLA_I_FEW_COUNT)
		return;
	cut = spmla_i_step_cut(&ctx->plan, a->tokens);
	a->parts = cut.parts;
	a->whole_tokens = cut.whole;
	note_needs(ctx, a->tokens, cut.parts > 0);
}

spmla_status
spmla_i_layer_attend(spmla_ctx *ctx, spmla_sparse_decode_args *a,
		     spmla_buf metadata, spmla_buf num_splits,
		     spmla_stream stream)
{
	lend_workspace(ctx, a);
	if (a->parts) {
		a->combine = 1;
		a->tile_scheduler_metadata = ctx->buf[metadata];
		a->num_splits = ctx->buf[num_splits];
		a->split_out = ctx->buf[SPMLA_BUF_SPLIT_OUT];
		a->split_lse = ctx->buf[SPMLA_BUF_SPLIT_LSE];
		a->split_rows = (uint32_t)(ctx->buf_bytes[SPMLA_BUF_SPLIT_LSE] /
					   sizeof(float) / a->heads);
	}
	return spmla_sparse_decode(ctx, a, stream);
}
