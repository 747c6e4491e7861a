/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a step, by the operations that can also be called alone. See
 * step_tokens_cpu.h.
 */
#include "spmla/platform/cpu/step/step_tokens_cpu.h"

#include "spmla/internal/config.h"
#include "spmla/platform/cpu/step/step_prologue_windows_cpu.h"
#include "spmla/platform/cpu/step/table_cpu.h"

/* V4's index keys: the number that each token sees and, in a prefill, the place
 * of its logits. */
static void
derive_compressed(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	const int32_t *context = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	const int32_t *row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	int32_t *compressed = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	int64_t *starts = ctx->buf[SPMLA_BUF_PIECE_ROW_STARTS];
	uint32_t t;

	for (t = 0; t < a->shape.tokens; t++) {
		compressed[t] = context[t] / SPMLA_COMPRESS_OVERLAP;
		if (!a->piece_tokens)
			continue;
		starts[t] =
			(int64_t)(t % a->piece_tokens * a->piece_stride_elems);
		/* An ADVANCE may go past the workspace. */
		if ((uint64_t)compressed[t] > a->piece_stride_elems) {
			spmla_i_cpu_fault(ctx, (uint32_t)row[t],
					  SPMLA_FAULT_LOGITS);
			compressed[t] = 0;
		}
	}
}

/* The places of a decode step's logits; V4's are for compressed keys. */
static void
derive_logits_rows(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	int32_t *compressed = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	spmla_logits_rows_args rows;

	memset(&rows, 0, sizeof rows);
	rows.tokens = a->shape.tokens;
	rows.capacity_elems = ctx->plan.logits_elems;
	rows.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	rows.context_lens =
		compressed ? compressed : ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	rows.row_starts = ctx->buf[SPMLA_BUF_LOGITS_ROW_STARTS];
	spmla_i_cpu_logits_rows(ctx, &rows);
}

/* The places of a prefill's gathered context and of its logits. */
static void
derive_prefill_rows(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	spmla_prefill_rows_args rows;

	memset(&rows, 0, sizeof rows);
	rows.requests = a->shape.requests;
	rows.tokens = a->shape.tokens;
	rows.keys = a->shape.max_live_context;
	rows.piece_tokens = a->piece_tokens;
	rows.piece_stride_elems = a->piece_stride_elems;
	rows.query_start_loc = ctx->buf[SPMLA_BUF_QUERY_START_LOC];
	rows.seq_lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	rows.req_row = ctx->buf[SPMLA_BUF_REQ_ROW];
	rows.req_id_per_token = ctx->buf[SPMLA_BUF_REQ_ID_PER_TOKEN];
	rows.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	rows.workspace_starts = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	rows.key_starts = ctx->buf[SPMLA_BUF_KEY_STARTS];
	rows.key_ends = ctx->buf[SPMLA_BUF_KEY_ENDS];
	rows.row_starts = ctx->buf[SPMLA_BUF_PIECE_ROW_STARTS];
	spmla_i_cpu_prefill_rows(ctx, &rows);
}

void
spmla_i_cpu_step_tokens(spmla_ctx *ctx, const spmla_step_prologue_args *a)
{
	const spmla_i_table_view main = spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);
	spmla_token_map_args map;
	spmla_slot_map_args slot;

	memset(&map, 0, sizeof map);
	map.requests = a->shape.requests;
	map.tokens = a->shape.tokens;
	map.query_start_loc = ctx->buf[SPMLA_BUF_QUERY_START_LOC];
	map.seq_lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	map.req_row = ctx->buf[SPMLA_BUF_REQ_ROW];
	map.req_id_per_token = ctx->buf[SPMLA_BUF_REQ_ID_PER_TOKEN];
	map.token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	map.positions = ctx->buf[SPMLA_BUF_POSITIONS];
	map.context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	spmla_i_cpu_token_map(ctx, &map);

	memset(&slot, 0, sizeof slot);
	slot.tokens = a->shape.tokens;
	slot.rows = ctx->plan.config.max_rows;
	slot.columns = main.columns;
	slot.page_tokens = main.page_tokens;
	slot.pool_pages = main.pool_pages;
	slot.table_stride_elems = main.stride_elems;
	slot.ring = main.ring;
	slot.dcp_ranks = ctx->plan.config.dcp_ranks;
	slot.dcp_rank = ctx->plan.config.dcp_rank;
	slot.dcp_interleave = ctx->plan.config.dcp_interleave;
	slot.token_row = map.token_row;
	slot.positions = map.positions;
	slot.block_table = main.table;
	slot.table_cols = main.cols;
	slot.context_lens = map.context_lens;
	slot.slot_mapping = ctx->buf[SPMLA_BUF_SLOT_MAPPING];
	spmla_i_cpu_slot_map(ctx, &slot);
	if (spmla_i_is_v4(&ctx->plan.config))
		derive_compressed(ctx, a);
	else if (a->piece_tokens)
		derive_prefill_rows(ctx, a);
	if (!a->piece_tokens)
		derive_logits_rows(ctx, a);
	if (spmla_i_is_v4(&ctx->plan.config))
		spmla_i_cpu_step_prologue_windows(ctx, a->shape.tokens);
}
