/* SPDX-License-Identifier: Apache-2.0
 *
 * step_prologue: from the plan and the shape to its kernel.
 */
#include "spmla/internal/splits.h"
#include "spmla/platform/gpu/launch_gpu.h"

/* What the kernel declares anew. */
SPMLA_STATIC_ASSERT((int)G_FROM_RING == (int)SPMLA_FROM_RING &&
			    (int)G_FROM_DEVICE == (int)SPMLA_FROM_DEVICE &&
			    (int)G_ADVANCE == (int)SPMLA_ADVANCE &&
			    (int)G_REQUEST_JOIN == (int)SPMLA_REQUEST_JOIN &&
			    (int)G_STEP_LENS_ON_DEVICE ==
				    (int)SPMLA_STEP_LENS_ON_DEVICE,
		    "kernels name them as the library does");
SPMLA_STATIC_ASSERT(
	sizeof(spmla_i_record) == 4 * G_RECORD_WORDS &&
		offsetof(spmla_i_record, ticket) == 0 &&
		offsetof(spmla_i_record, flags) == 4 * G_RECORD_FLAGS &&
		offsetof(spmla_i_record, requests) == 4 * G_RECORD_REQUESTS &&
		offsetof(spmla_i_record, stores) == 4 * G_RECORD_STORES &&
		offsetof(spmla_i_record, pages) == 4 * G_RECORD_PAGES,
	"kernels read a record as it is");
SPMLA_STATIC_ASSERT(sizeof(spmla_request) == 4 * G_REQUEST_WORDS &&
			    offsetof(spmla_request, row) == 0 &&
			    offsetof(spmla_request, query_tokens) == 4 &&
			    offsetof(spmla_request, seq_len_tokens) == 8 &&
			    offsetof(spmla_request, flags) == 12 &&
			    sizeof(spmla_i_store) == 4 * G_STORE_WORDS &&
			    sizeof(spmla_step_device) ==
				    4 * G_STEP_DEVICE_WORDS,
		    "kernels read its lists as they are");

SPMLA_STATIC_ASSERT((int)DECODE_CUT_TOKENS == (int)SPMLA_I_SPLIT_TOKENS,
		    "the kernel takes what the plan asks of it");

static void
set_table(spmla_k_step_prologue_params *p, const spmla_ctx *ctx)
{
	const spmla_config *c = &ctx->plan.config;
	const spmla_i_table *bound = &ctx->tables[SPMLA_GROUP_MAIN];

	p->block_table = ctx->buf[SPMLA_BUF_BLOCK_TABLE_MAIN];
	p->table_cols = ctx->buf[SPMLA_BUF_TABLE_COLS_MAIN];
	p->s.has_cols = 1;
	p->s.stride = ctx->plan.columns;
	if (bound->device) { /* the engine's: only read */
		p->block_table = (int32_t *)(uintptr_t)bound->device;
		p->s.has_cols = 0;
		p->s.stride = bound->stride_elems;
	}
	p->s.rows = c->max_rows;
	p->s.columns = ctx->plan.columns;
	p->s.pool_pages = c->groups[SPMLA_GROUP_MAIN].pool_pages;
	p->s.page_tokens = c->groups[SPMLA_GROUP_MAIN].page_tokens;
}

static void
set_buffers(spmla_k_step_prologue_params *p, const spmla_ctx *ctx)
{
	p->ring = ctx->buf[SPMLA_BUF_STEP_RING];
	p->consumed = ctx->buf[SPMLA_BUF_RING_CONSUMED];
	p->step_device = ctx->buf[SPMLA_BUF_STEP_DEVICE];
	p->row_len = ctx->buf[SPMLA_BUF_ROW_LEN];
	p->advance_by = ctx->buf[SPMLA_BUF_ADVANCE_BY];
	p->kept = ctx->buf[SPMLA_BUF_STEP_REQUESTS];
	p->query_start_loc = ctx->buf[SPMLA_BUF_QUERY_START_LOC];
	p->seq_lens = ctx->buf[SPMLA_BUF_SEQ_LENS];
	p->req_row = ctx->buf[SPMLA_BUF_REQ_ROW];
	p->req_id_per_token = ctx->buf[SPMLA_BUF_REQ_ID_PER_TOKEN];
	p->token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	p->positions = ctx->buf[SPMLA_BUF_POSITIONS];
	p->context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	p->slot_mapping = ctx->buf[SPMLA_BUF_SLOT_MAPPING];
	p->logits_row_starts = ctx->buf[SPMLA_BUF_LOGITS_ROW_STARTS];
	p->workspace_starts = ctx->buf[SPMLA_BUF_WORKSPACE_STARTS];
	p->key_starts = ctx->buf[SPMLA_BUF_KEY_STARTS];
	p->key_ends = ctx->buf[SPMLA_BUF_KEY_ENDS];
	p->piece_row_starts = ctx->buf[SPMLA_BUF_PIECE_ROW_STARTS];
	p->metadata = ctx->buf[SPMLA_BUF_TILE_SCHEDULER_METADATA];
	p->num_splits = ctx->buf[SPMLA_BUF_NUM_SPLITS];
}

spmla_status
spmla_i_gpu_step_prologue(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_step_prologue_args *a = args;
	const spmla_plan *plan = &queue->ctx->plan;
	spmla_k_step_prologue_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	set_buffers(&p, queue->ctx);
	set_table(&p, queue->ctx);
	p.s.record_bytes = plan->record_bytes;
	p.s.logits_capacity = plan->logits_elems;
	p.s.piece_stride = a->piece_stride_elems;
	p.s.source = a->source;
	p.s.ring_slots = plan->config.ring_slots;
	p.s.longest = plan->config.max_context_tokens;
	p.s.tokens = a->shape.tokens;
	p.s.requests = a->shape.requests;
	p.s.next_n = a->shape.next_n;
	p.s.live = a->shape.max_live_context;
	p.s.piece_tokens = a->piece_tokens;
	p.s.topk = plan->config.topk;
	if (!a->piece_tokens)
		p.s.parts = spmla_i_decode_parts(plan, a->shape.tokens);
	return spmla_i_gpu_launch(
		queue,
		a->shape.requests <= SPMLA_ITEMS_step_prologue &&
				!a->piece_tokens
			? SPMLA_KERNEL_step_prologue
			: SPMLA_KERNEL_step_prologue_wide,
		1, &p);
}
