/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 layer: what its plan says of it, its calls in order, on the planned
 * metadata of the step, and the two branches that may run beside the insert. No
 * host branch here depends on a length, so the calls always record the same
 * nodes.
 */
#include "spmla/internal/v4.h"

#include <string.h>

/* What all kinds of layers have. */
static spmla_status
preset_window(spmla_ctx *ctx, spmla_v4_layer *l, uint32_t index)
{
	const spmla_config *c = &ctx->plan.config;

	l->struct_bytes = (uint32_t)sizeof *l;
	l->cos_sin_rows = c->max_context_tokens;
	l->norm_eps = 1e-6f;
	l->q_head_stride_elems = SPMLA_V4_DIM;
	l->q_token_stride_elems = c->heads * SPMLA_V4_DIM;
	l->kv_stride_elems = SPMLA_V4_DIM;
	l->out_head_stride_elems = SPMLA_V4_DIM;
	l->out_token_stride_elems = c->heads * SPMLA_V4_DIM;
	l->lse_head_stride_elems = 1;
	l->lse_token_stride_elems = c->heads;
	return spmla_i_preset_cache(ctx, SPMLA_BUF_KV_CACHE, c->cache_layers,
				    index, &l->swa);
}

/* Compressed keys: a state's row holds as many values as the tensors. */
static spmla_status
preset_compressed(spmla_ctx *ctx, spmla_v4_layer *l, uint32_t width,
		  spmla_buf keys, spmla_buf state, uint32_t planned,
		  uint32_t index)
{
	spmla_status s;

	l->compress_kv_stride_elems = width;
	l->compress_score_stride_elems = width;
	s = spmla_i_preset_cache(ctx, keys, planned, index, &l->compressed);
	return s == SPMLA_OK ? spmla_i_preset_cache(ctx, state, planned, index,
						    &l->state)
			     : s;
}

/* The indexer of ratio 4. */
static spmla_status
preset_index(spmla_ctx *ctx, spmla_v4_layer *l, uint32_t index)
{
	const spmla_config *c = &ctx->plan.config;
	spmla_status s;

	l->index_kv_stride_elems = 2 * SPMLA_INDEX_DIM;
	l->index_score_stride_elems = 2 * SPMLA_INDEX_DIM;
	l->index_q_head_stride_elems = SPMLA_INDEX_DIM;
	l->index_q_token_stride_elems = c->index_heads * SPMLA_INDEX_DIM;
	l->index_weights_stride_elems = c->index_heads;
	s = spmla_i_preset_cache(ctx, SPMLA_BUF_INDEX_CACHE, c->c4a_layers,
				 index, &l->index);
	return s == SPMLA_OK
		       ? spmla_i_preset_cache(ctx, SPMLA_BUF_STATE_INDEX_CACHE,
					      c->c4a_layers, index,
					      &l->index_state)
		       : s;
}

spmla_status
spmla_v4_layer_preset(spmla_ctx *ctx, uint32_t ratio, uint32_t index,
		      uint32_t ratio_index, spmla_v4_layer *layer)
{
	const spmla_config *c;
	spmla_v4_layer l;
	spmla_status s = spmla_i_preset_begin(ctx, layer, "v4_layer", 1);

	if (s == SPMLA_OK)
		s = spmla_i_v4_check_ratio(ctx, ratio);
	if (s != SPMLA_OK)
		return s;
	c = &ctx->plan.config;
	memset(&l, 0, sizeof l);
	l.ratio = ratio;
	s = preset_window(ctx, &l, index);
	if (s == SPMLA_OK && ratio == SPMLA_COMPRESS_MOST)
		s = preset_compressed(ctx, &l, SPMLA_V4_DIM,
				      SPMLA_BUF_C128A_CACHE,
				      SPMLA_BUF_STATE_C128A_CACHE,
				      c->c128a_layers, ratio_index);
	if (s == SPMLA_OK && ratio == SPMLA_COMPRESS_OVERLAP)
		s = preset_compressed(
			ctx, &l, 2 * SPMLA_V4_DIM, SPMLA_BUF_C4A_CACHE,
			SPMLA_BUF_STATE_C4A_CACHE, c->c4a_layers, ratio_index);
	if (s == SPMLA_OK && ratio == SPMLA_COMPRESS_OVERLAP)
		s = preset_index(ctx, &l, ratio_index);
	if (s == SPMLA_OK)
		*layer = l;
	return s;
}

/* Orders later work of `to` behind earlier work of `from`. */
static spmla_status
order(spmla_ctx *ctx, spmla_stream from, spmla_stream to, spmla_event event)
{
	const spmla_status s =
		ctx->backend->order ? ctx->backend->order(ctx, from, to, event)
				    : SPMLA_OK;

	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

static spmla_status
check_branches(spmla_ctx *ctx, const spmla_v4_branches *b)
{
	const spmla_i_check checks[] = {
		{"branches.streams[0]", SPMLA_I_PTR(b->streams[0]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.streams[1]", SPMLA_I_PTR(b->streams[1]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[0]", SPMLA_I_PTR(b->events[0]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[1]", SPMLA_I_PTR(b->events[1]),
		 SPMLA_WANT_NOT_NULL, 0},
		{"branches.events[2]", SPMLA_I_PTR(b->events[2]),
		 SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s = spmla_i_check_size(&ctx->diag, "branches.struct_bytes",
					    b->struct_bytes, sizeof *b);

	if (s == SPMLA_OK)
		s = spmla_i_check_all(&ctx->diag, checks,
				      SPMLA_I_COUNT(checks));
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}

/* Joins a branch, also one whose work failed: the part that was enqueued must
 * not run beside later work of the caller. Keeps the first failure. */
static spmla_status
join(spmla_ctx *ctx, spmla_status s, spmla_stream from, spmla_stream to,
     spmla_event event)
{
	const spmla_diag first = ctx->diag;
	const spmla_status joined = order(ctx, from, to, event);

	if (s == SPMLA_OK)
		return joined;
	ctx->diag = first;
	return s;
}

/* The work before the first reader of the step's keys: insert, compress and the
 * index queries, which share nothing. */
static spmla_status
write_keys(spmla_ctx *ctx, const spmla_v4_layer *l, const spmla_shape *shape,
	   const spmla_v4_branches *b, uint32_t maps, spmla_stream stream)
{
	const uint32_t index = l->ratio == SPMLA_COMPRESS_OVERLAP && l->index_q;
	const uint32_t compress = b && l->ratio != 1;
	const spmla_stream second = compress ? b->streams[0] : stream;
	const spmla_stream third = b && index ? b->streams[1] : stream;
	uint32_t forked[2] = {0, 0};
	spmla_status s = SPMLA_OK;

	if (compress) {
		s = order(ctx, stream, second, b->events[0]);
		forked[0] = s == SPMLA_OK;
	}
	if (s == SPMLA_OK && third != stream) {
		s = order(ctx, stream, third, b->events[0]);
		forked[1] = s == SPMLA_OK;
	}
	if (s == SPMLA_OK)
		s = spmla_v4_compress(ctx, l, shape, second);
	if (s == SPMLA_OK && index)
		s = spmla_i_v4_prep_q(ctx, l, shape, third);
	if (s == SPMLA_OK)
		s = spmla_v4_insert(ctx, l, shape, stream);
	if (forked[0])
		s = join(ctx, s, second, stream, b->events[1]);
	if (forked[1])
		s = join(ctx, s, third, stream, b->events[2]);
	if (s == SPMLA_OK && index)
		s = spmla_i_v4_select(ctx, l, shape, maps, stream);
	return s;
}

spmla_status
spmla_v4_attn(spmla_ctx *ctx, const spmla_v4_layer *layer,
	      const spmla_shape *shape, const spmla_v4_branches *branches,
	      spmla_stream stream)
{
	spmla_status s = spmla_i_v4_begin(ctx, layer, shape, stream);
	uint32_t maps = 0;

	if (s == SPMLA_OK && branches && ctx->backend->order)
		s = check_branches(ctx, branches);
	if (s == SPMLA_OK) {
		/* In a prefill, TOPK_SLOTS holds one piece at a time. */
		maps = layer->ratio == SPMLA_COMPRESS_OVERLAP &&
		       layer->index_q && !ctx->step->piece_tokens;
		s = write_keys(ctx, layer, shape,
			       ctx->backend->order ? branches : NULL, maps,
			       stream);
	}
	if (s == SPMLA_OK)
		s = spmla_i_v4_attend(ctx, layer, shape, maps, stream);
	if (s == SPMLA_OK && layer->wo)
		s = spmla_v4_output(ctx, layer, shape, stream);
	return s;
}
