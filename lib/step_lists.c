/* SPDX-License-Identifier: Apache-2.0
 *
 * What a prologue adds with SPMLA_CONFIG_RAGGED: the ragged lists that all
 * layers share, and the indexer's schedule. A row begins where the lengths of
 * all tokens before it end, so these are launches behind the prologue's own.
 */
#include "spmla/internal/step_lists.h"
#include "spmla/internal/config.h"
#include "spmla/internal/layer.h"
#include "spmla/ops/indexer_schedule.h"
#include "spmla/ops/ragged_index.h"

#include <string.h>

enum { ARCH_SM100 = 100 };

/* Packs the window's rows of slots. */
static spmla_status
pack_window(spmla_ctx *ctx, uint32_t tokens, spmla_stream stream)
{
	const uint32_t width = ctx->plan.config.window_tokens;
	spmla_ragged_index_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.width = width;
	a.capacity_elems = ctx->plan.max_tokens * width;
	a.indices = ctx->buf[SPMLA_BUF_SWA_INDICES];
	a.indices_stride_elems = width;
	a.lens = ctx->buf[SPMLA_BUF_SWA_LENS];
	a.ragged_indices = ctx->buf[SPMLA_BUF_RAGGED_INDICES_SWA];
	a.ragged_indptr = ctx->buf[SPMLA_BUF_RAGGED_INDPTR_SWA];
	return spmla_ragged_index(ctx, &a, stream);
}

spmla_status
spmla_i_pack_c128a(spmla_ctx *ctx, uint32_t first, uint32_t tokens,
		   spmla_stream stream)
{
	const uint32_t width = spmla_i_c128a_width(&ctx->plan.config);
	spmla_ragged_index_args a;

	memset(&a, 0, sizeof a);
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = tokens;
	a.width = width;
	a.capacity_elems = spmla_i_piece_tokens(&ctx->plan.config) * width;
	a.indices = ctx->buf[SPMLA_BUF_C128A_INDICES];
	a.indices_stride_elems = width;
	a.lens = (const int32_t *)ctx->buf[SPMLA_BUF_C128A_LENS] + first;
	a.ragged_indices = ctx->buf[SPMLA_BUF_RAGGED_INDICES_C128A];
	a.ragged_indptr = ctx->buf[SPMLA_BUF_RAGGED_INDPTR_C128A];
	return spmla_ragged_index(ctx, &a, stream);
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
