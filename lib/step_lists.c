/* SPDX-License-Identifier: Apache-2.0
 *
 * What a prologue adds with SPMLA_CONFIG_RAGGED: the ragged lists that all
 * layers share, and the indexer's schedule. The start of a row needs the
 * lengths of all tokens before it, so separate launches after the prologue make
 * the lists.
 */
#include "spmla/internal/step_lists.h"
#include "spmla/internal/config.h"
#include "spmla/internal/layer.h"
#include "spmla/ops/indexer_schedule.h"
#include "spmla/ops/ragged_index.h"

#include <string.h>

enum { ARCH_SM100 = 100 };

/* Rows of slots that become a ragged pair with room for `most` rows. */
typedef struct list {
	const int32_t *rows;
	const int32_t *lens;
	uint32_t width;
	uint32_t most;
	int32_t *indices;
	int32_t *indptr;
} list;

static spmla_status
pack(spmla_ctx *ctx, const list *l, uint32_t tokens, spmla_stream stream)
{
	spmla_ragged_index_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.width = l->width;
	a.capacity_elems = l->most * l->width;
	a.indices = l->rows;
	a.indices_stride_elems = l->width;
	a.lens = l->lens;
	a.ragged_indices = l->indices;
	a.ragged_indptr = l->indptr;
	return spmla_ragged_index(ctx, &a, stream);
}

static spmla_status
pack_window(spmla_ctx *ctx, uint32_t tokens, spmla_stream stream)
{
	const list l = {ctx->buf[SPMLA_BUF_SWA_INDICES],
			ctx->buf[SPMLA_BUF_SWA_LENS],
			ctx->plan.config.window_tokens,
			ctx->plan.max_tokens,
			ctx->buf[SPMLA_BUF_RAGGED_INDICES_SWA],
			ctx->buf[SPMLA_BUF_RAGGED_INDPTR_SWA]};

	return pack(ctx, &l, tokens, stream);
}

spmla_status
spmla_i_pack_c4a_window(spmla_ctx *ctx, uint32_t first, uint32_t tokens,
			spmla_stream stream)
{
	const uint32_t width = ctx->plan.config.window_tokens;
	const int32_t *rows = ctx->buf[SPMLA_BUF_SWA_INDICES];
	const list l = {rows + (uint64_t)first * width,
			ctx->buf[SPMLA_BUF_C4A_SWA_LENS],
			width,
			spmla_i_piece_tokens(&ctx->plan.config),
			ctx->buf[SPMLA_BUF_RAGGED_INDICES_C4A_SWA],
			ctx->buf[SPMLA_BUF_RAGGED_INDPTR_C4A_SWA]};

	return pack(ctx, &l, tokens, stream);
}

spmla_status
spmla_i_pack_c128a(spmla_ctx *ctx, uint32_t first, uint32_t tokens,
		   spmla_stream stream)
{
	const list l = {ctx->buf[SPMLA_BUF_C128A_INDICES],
			spmla_i_words(ctx, SPMLA_BUF_C128A_LENS, first),
			spmla_i_c128a_width(&ctx->plan.config),
			spmla_i_piece_tokens(&ctx->plan.config),
			ctx->buf[SPMLA_BUF_RAGGED_INDICES_C128A],
			ctx->buf[SPMLA_BUF_RAGGED_INDPTR_C128A]};

	return pack(ctx, &l, tokens, stream);
}

static spmla_status
pack_v4(spmla_ctx *ctx, uint32_t tokens, spmla_stream stream)
{
	const spmla_status s = pack_window(ctx, tokens, stream);

	if (s != SPMLA_OK || tokens > spmla_i_piece_tokens(&ctx->plan.config))
		return s;
	return spmla_i_pack_c128a(ctx, 0, tokens, stream);
}

spmla_status
spmla_i_step_lists(spmla_ctx *ctx, uint32_t tokens, spmla_stream stream)
{
	const uint32_t v4 = spmla_i_is_v4(&ctx->plan.config);
	spmla_indexer_schedule_args a;
	spmla_status s;

	if (!spmla_i_is_ragged(ctx))
		return SPMLA_OK;
	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.rule = ctx->plan.device.arch >= ARCH_SM100
			 ? SPMLA_INDEXER_SCHEDULE_SM100
			 : SPMLA_INDEXER_SCHEDULE_SM90;
	a.batch = tokens;
	a.next_n = 1;
	a.num_sms = ctx->plan.device.sm_count;
	a.context_lens = ctx->buf[v4 ? SPMLA_BUF_COMPRESSED_LENS
				     : SPMLA_BUF_CONTEXT_LENS];
	a.context_lens_stride_elems = 1;
	a.schedule = ctx->buf[SPMLA_BUF_INDEXER_SCHEDULE];
	s = spmla_indexer_schedule(ctx, &a, stream);
	return s == SPMLA_OK && v4 ? pack_v4(ctx, tokens, stream) : s;
}
