/* SPDX-License-Identifier: Apache-2.0
 *
 * The second launch of V4's prologue: fills the kernel's arguments from the
 * plan.
 */
#include "spmla/internal/checked_math.h"
#include "spmla/internal/config.h"
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT((int)WINDOWS_NEAR + (int)WINDOWS_FAR + 64 <=
			    (int)SPMLA_ITEMS_step_prologue_windows,
		    "the last item is of a subgroup of its own");

static void
set_buffers(spmla_k_step_prologue_windows_params *p, const spmla_ctx *ctx)
{
	p->token_row = ctx->buf[SPMLA_BUF_TOKEN_ROW];
	p->positions = ctx->buf[SPMLA_BUF_POSITIONS];
	p->context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	p->compressed_lens = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	p->c4a_slots = ctx->buf[SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A];
	p->index_slots = ctx->buf[SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX];
	p->c128a_slots = ctx->buf[SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A];
	p->swa_indices = ctx->buf[SPMLA_BUF_SWA_INDICES];
	p->swa_lens = ctx->buf[SPMLA_BUF_SWA_LENS];
	p->c128a_indices = ctx->buf[SPMLA_BUF_C128A_INDICES];
	p->c128a_lens = ctx->buf[SPMLA_BUF_C128A_LENS];
	p->c4a_metadata = ctx->buf[SPMLA_BUF_TILE_SCHEDULER_METADATA];
	p->c4a_splits = ctx->buf[SPMLA_BUF_NUM_SPLITS];
	p->c128a_metadata = ctx->buf[SPMLA_BUF_TILE_SCHEDULER_METADATA_C128A];
	p->c128a_splits = ctx->buf[SPMLA_BUF_NUM_SPLITS_C128A];
}

static void
set_groups(spmla_k_step_prologue_windows_params *p, const spmla_ctx *ctx)
{
#define GROUP(group, number)                                                \
	{                                                                   \
		const spmla_i_table_view v = spmla_i_table_of(ctx, number); \
		const uint32_t entries =                                    \
			v.page_tokens /                                     \
			spmla_i_group_ratio(&ctx->plan.config, number);     \
                                                                            \
		p->group##_table = v.table;                                 \
		p->group##_cols = v.cols;                                   \
		p->s.group##_columns = v.columns;                           \
		p->s.group##_stride = v.stride_elems;                       \
		p->s.group##_pool_pages =                                   \
			spmla_i_slot_pages(v.pool_pages, entries, entries); \
		p->s.group##_page = spmla_i_gpu_divisor(entries);           \
		p->s.group##_has_cols = v.cols != NULL;                     \
	}
	GROUP(swa, SPMLA_GROUP_SWA)
	GROUP(c4a, SPMLA_GROUP_C4A)
	GROUP(c128a, SPMLA_GROUP_C128A)
	GROUP(index, SPMLA_GROUP_INDEX)
#undef GROUP
	p->s.swa_ring = spmla_i_gpu_divisor(
		ctx->plan.config.groups[SPMLA_GROUP_SWA].ring_columns
			? p->s.swa_columns
			: 0);
}

static void
set_params(const spmla_i_gpu_queue *queue, uint32_t tokens, spmla_i_cut cut,
	   spmla_k_step_prologue_windows_params *p)
{
	const spmla_config *c = &queue->ctx->plan.config;

	memset(p, 0, sizeof *p);
	SPMLA_I_GPU_FAULT(p, queue);
	set_buffers(p, queue->ctx);
	set_groups(p, queue->ctx);
	p->s.has_index = p->index_slots != NULL; /* else it has C4A's table */
	p->s.tokens = tokens;
	p->s.window = c->window_tokens;
	p->s.c128a_width = spmla_i_c128a_width(c);
	p->s.c128a_listed = tokens <= spmla_i_piece_tokens(c);
	p->s.topk = c->topk;
	p->s.parts = cut.parts;
	p->s.whole_tokens = cut.whole;
	p->s.blocks = tokens + (cut.parts ? WINDOWS_CUTS : 0);
}

spmla_status
spmla_i_gpu_step_prologue_windows(const spmla_i_gpu_queue *queue,
				  uint32_t tokens, spmla_i_cut cut)
{
	spmla_k_step_prologue_windows_params p;

	set_params(queue, tokens, cut, &p);
	return spmla_i_gpu_launch(queue, SPMLA_KERNEL_step_prologue_windows,
				  p.s.blocks, &p);
}

void
spmla_i_gpu_fused_windows(const spmla_i_gpu_queue *queue, uint32_t tokens,
			  spmla_i_cut cut,
			  spmla_k_step_prologue_fused_params *p)
{
	spmla_k_step_prologue_windows_params other;

	set_params(queue, tokens, cut, &other);
#define COPY(type, name) p->name = other.name;
	SPMLA_P_WINDOWS_OUT(COPY)
#undef COPY
	p->all_c4a_table = other.c4a_table;
	p->all_c4a_cols = other.c4a_cols;
	p->all_c128a_table = other.c128a_table;
	p->all_c128a_cols = other.c128a_cols;
	p->all_index_table = other.index_table;
	p->all_index_cols = other.index_cols;
	p->s.windows = other.s;
}
