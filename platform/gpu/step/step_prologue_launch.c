/* SPDX-License-Identifier: Apache-2.0
 *
 * step_prologue: fills the kernel's arguments from the plan and the shape.
 */
#include "spmla/internal/config.h"
#include "spmla/internal/splits.h"
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(SPMLA_COMPRESS_OVERLAP == 1 << 2, "index_shift");

/* Declarations that the kernel repeats. */
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

SPMLA_STATIC_ASSERT((int)PROLOGUE_FUSED_TOKENS == (int)SPMLA_I_FUSED_TOKENS &&
			    (int)UNIT_WORDS == (int)SPMLA_I_UNIT_WORDS &&
			    (int)WINDOWS_CUTS == (int)SPMLA_I_UNIT_CUTS,
		    "the plan has a place for each unit");
SPMLA_STATIC_ASSERT((int)DECODE_CUT_TOKENS == (int)SPMLA_I_SPLIT_TOKENS,
		    "the kernel takes what the plan asks of it");
SPMLA_STATIC_ASSERT((int)DECODE_CUT_OVERHEAD == (int)SPMLA_I_SPLIT_OVERHEAD,
		    "the kernel cuts as tile_sched does");

static void
set_table(spmla_k_step_prologue_params *p, const spmla_ctx *ctx)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, SPMLA_GROUP_MAIN);

	/* The engine's own table is only read. */
	p->block_table = (int32_t *)(uintptr_t)v.table;
	p->table_cols = (int32_t *)(uintptr_t)v.cols;
	p->s.has_cols = v.cols != NULL;
	p->s.stride = v.stride_elems;
	p->s.rows = ctx->plan.config.max_rows;
	p->s.columns = v.columns;
	p->s.pool_pages = v.pool_pages;
	p->s.page_tokens = v.page_tokens;
	p->s.page = spmla_i_gpu_divisor(v.page_tokens);
	p->s.ring_table = spmla_i_gpu_divisor(v.ring ? v.columns : 0);
	p->s.dcp_run = ctx->plan.config.dcp_interleave;
	p->s.dcp_first = ctx->plan.config.dcp_rank * p->s.dcp_run;
	p->s.dcp_cycle =
		spmla_i_gpu_divisor(ctx->plan.config.dcp_ranks * p->s.dcp_run);
}

/* The tables other than the main one that records change. */
static void
set_groups(spmla_k_step_prologue_params *p, const spmla_ctx *ctx)
{
#define OWN(group, number)                                              \
	p->group##_table = ctx->buf[spmla_i_block_table(number)];       \
	p->group##_cols = ctx->buf[spmla_i_table_cols(number)];         \
	p->s.group##_columns =                                          \
		p->group##_table ? ctx->plan.group_columns[number] : 0; \
	p->s.group##_page = spmla_i_gpu_divisor(                        \
		ctx->plan.config.groups[number].page_tokens);

	uint32_t g;

	p->s.groups = spmla_i_group_count(&ctx->plan.config);
	for (g = 0; g < p->s.groups; g++)
		p->s.whole |= spmla_i_group_is_whole(&ctx->plan.config, g) << g;
	if (p->s.groups == 1)
		return;
	p->s.index_shift = 2;
	p->compressed_lens = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	OWN(c4a, SPMLA_GROUP_C4A)
	OWN(c128a, SPMLA_GROUP_C128A)
	OWN(index, SPMLA_GROUP_INDEX)
	OWN(state_c4a, SPMLA_GROUP_STATE_C4A)
	OWN(state_c128a, SPMLA_GROUP_STATE_C128A)
	OWN(state_index, SPMLA_GROUP_STATE_INDEX)
#undef OWN
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

enum { ONE_TABLE, ONE_LAUNCH, TWO_LAUNCHES };

/* Kinds: ONE_TABLE is V3.2; steps of V4 have room for one launch or take two.
 * Sizes: requests, one for each item; a prefill is larger than all. Example: 256
 * requests of V3.2 take step_prologue, 257 and prefills take step_prologue_wide.
 */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_step_prologue_fused,
	 .kind = ONE_LAUNCH,
	 .most = SPMLA_ITEMS_step_prologue_fused},
	{.kernel = SPMLA_KERNEL_step_prologue_v4,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .most = SPMLA_ITEMS_step_prologue_v4},
	{.kernel = SPMLA_KERNEL_step_prologue,
	 .kind = ONE_TABLE,
	 .most = SPMLA_ITEMS_step_prologue},
	{.kernel = SPMLA_KERNEL_step_prologue_wide},
};

/* STEP_UNITS has room for each decode step that one launch takes. Only plans for
 * Hopper have it. */
static uint32_t
kind_of(const spmla_ctx *ctx, uint32_t groups, uint32_t tokens)
{
	if (groups == 1)
		return ONE_TABLE;
	return tokens <= SPMLA_I_FUSED_TOKENS &&
			       4 * spmla_i_unit_words(tokens) <=
				       ctx->buf_bytes[SPMLA_BUF_STEP_UNITS]
		       ? ONE_LAUNCH
		       : TWO_LAUNCHES;
}

static void
set_scalars(spmla_k_step_prologue_params *p, const spmla_ctx *ctx,
	    const spmla_step_prologue_args *a)
{
	const spmla_plan *plan = &ctx->plan;

	p->s.record_bytes = plan->record_bytes;
	p->s.logits_capacity = plan->logits_elems;
	p->s.piece_stride = a->piece_stride_elems;
	p->s.source = a->source;
	p->s.ring_slots = spmla_i_gpu_divisor(plan->config.ring_slots);
	p->s.longest = plan->config.max_context_tokens;
	p->s.tokens = a->shape.tokens;
	p->s.requests = a->shape.requests;
	p->s.next_n = spmla_i_gpu_divisor(a->shape.next_n);
	p->s.live = a->shape.max_live_context;
	p->s.piece_tokens = a->piece_tokens;
	p->s.topk = plan->config.topk;
}

spmla_status
spmla_i_gpu_step_prologue(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_step_prologue_args *a = args;
	const uint32_t tokens = a->shape.tokens;
	const spmla_i_gpu_variant *by;
	spmla_i_cut cut = {0, 0};
	spmla_k_step_prologue_params p;
	spmla_status s;

	if (!a->piece_tokens)
		cut = spmla_i_step_cut(&queue->ctx->plan, tokens);
	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	set_buffers(&p, queue->ctx);
	set_table(&p, queue->ctx);
	set_groups(&p, queue->ctx);
	set_scalars(&p, queue->ctx, a);
	by = spmla_i_gpu_choose(
		queue, variants, SPMLA_I_COUNT(variants),
		kind_of(queue->ctx, p.s.groups, tokens),
		a->piece_tokens ? UINT32_MAX : a->shape.requests, 0);
	if (by->kernel == SPMLA_KERNEL_step_prologue_fused) {
		s = spmla_i_gpu_step_prologue_fused(queue, &p, a, cut);
	} else {
		p.s.parts = p.s.groups == 1 ? cut.parts : 0;
		p.s.whole_tokens = cut.whole;
		s = spmla_i_gpu_launch(queue, by->kernel, 1, &p);
		if (s == SPMLA_OK && p.s.groups > 1)
			s = spmla_i_gpu_step_prologue_windows(queue, tokens,
							      cut);
	}
	if (s == SPMLA_OK && !a->piece_tokens)
		s = spmla_i_gpu_fixed_splits(queue, tokens);
	return s;
}
