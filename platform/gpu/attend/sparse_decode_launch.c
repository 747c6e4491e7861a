/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode: chooses a kernel and fills its arguments.
 */
#include "spmla/internal/combine.h"
#include "spmla/internal/few.h"
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_sparse_decode_mma_params) ==
				    sizeof(spmla_k_sparse_decode_params) &&
			    sizeof(spmla_k_sparse_decode_tile_params) ==
				    sizeof(spmla_k_sparse_decode_params) &&
			    sizeof(spmla_k_sparse_decode_wgmma_params) ==
				    sizeof(spmla_k_sparse_decode_params),
		    "one struct binds all kernels");
SPMLA_STATIC_ASSERT(sizeof(decode_memory) <= DECODE_WGMMA_BYTES,
		    "a block has that much shared memory");
SPMLA_STATIC_ASSERT(DECODE_FEW_HEADS * 1024 +
				    DECODE_WARPS * DECODE_FEW_RING_BYTES <=
			    DECODE_Q_BYTES,
		    "few queries leave room for the rings");

static void
fill_extra(spmla_k_sparse_decode_params *p, const spmla_sparse_decode_args *a)
{
	/* Kernels divide by extra_page before they test for a second cache. */
	p->s.extra_page = spmla_i_gpu_divisor(1);
	if (a->extra_topk) {
		p->extra_slots = a->extra_slots;
		p->extra_topk_lens =
			a->extra_indptr ? a->extra_indptr : a->extra_topk_lens;
		p->extra_cache = a->extra_cache.base;
		p->s.extra_slots_stride =
			a->extra_indptr ? 0 : a->extra_slots_stride_elems;
		p->s.extra_page_stride_bytes = a->extra_cache.page_stride_bytes;
		p->s.extra_topk = a->extra_topk;
		p->s.extra_page =
			spmla_i_gpu_divisor(a->extra_cache.entries_per_page);
		p->s.extra_pages = a->extra_cache.pages;
		p->s.extra_fnuz = a->extra_cache.encoding == SPMLA_E4M3_FNUZ;
		p->s.extra_list_form = spmla_i_gpu_list_form(a->extra_topk_lens,
							     a->extra_indptr);
	}
	if (a->parts) {
		p->tile_scheduler_metadata = a->tile_scheduler_metadata;
		p->num_splits = a->num_splits;
		p->split_out = a->split_out;
		p->split_lse = a->split_lse;
		p->s.parts = a->parts;
		p->s.split_rows = a->split_rows;
	}
}

static void
fill(spmla_k_sparse_decode_params *p, const spmla_i_gpu_queue *queue,
     const spmla_sparse_decode_args *a)
{
	memset(p, 0, sizeof *p);
	SPMLA_I_GPU_FAULT(p, queue);
	p->q = a->q;
	p->slots = a->slots;
	p->topk_lens = a->indptr ? a->indptr : a->topk_lens;
	p->attn_sink = a->attn_sink;
	p->cache = a->cache.base;
	p->out = a->out;
	p->lse = a->lse;
	p->s.q_request_stride =
		a->next_n ? a->q_request_stride_elems : a->q_token_stride_elems;
	p->s.q_token_stride = a->q_token_stride_elems;
	p->s.q_head_stride = a->q_head_stride_elems;
	p->s.slots_stride = a->indptr ? 0 : a->slots_stride_elems;
	p->s.out_request_stride = a->next_n ? a->out_request_stride_elems
					    : a->out_token_stride_elems;
	p->s.out_token_stride = a->out_token_stride_elems;
	p->s.out_head_stride = a->out_head_stride_elems;
	p->s.lse_request_stride = a->next_n ? a->lse_request_stride_elems
					    : a->lse_token_stride_elems;
	p->s.lse_token_stride = a->lse_token_stride_elems;
	p->s.lse_head_stride = a->lse_head_stride_elems;
	p->s.page_stride_bytes = a->cache.page_stride_bytes;
	p->s.tokens = a->tokens;
	p->s.whole_tokens = a->parts ? a->whole_tokens : a->tokens;
	p->s.heads = a->heads;
	p->s.dim = a->cache.layout == SPMLA_LAYOUT_V4_FP8 ? SPMLA_V4_DIM
							  : SPMLA_MLA_DIM;
	p->s.layout = a->cache.layout;
	p->s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p->s.topk = a->topk;
	p->s.page = spmla_i_gpu_divisor(a->cache.entries_per_page);
	p->s.pages = a->cache.pages;
	p->s.list_form = spmla_i_gpu_list_form(a->topk_lens, a->indptr);
	p->s.has_sink = a->attn_sink != NULL;
	p->s.has_lse = a->lse != NULL;
	p->s.empty_lse = spmla_i_gpu_empty_lse(a->empty_lse);
	p->s.lse_sink = a->lse_sink && a->attn_sink;
	p->s.base2 = a->lse_base == SPMLA_LSE_BASE2;
	p->s.next_n = spmla_i_gpu_divisor(a->next_n ? a->next_n : 1);
	p->s.lens_tokens =
		spmla_i_gpu_divisor(a->lens_tokens ? a->lens_tokens : 1);
	p->s.scale = a->softmax_scale;
	if (spmla_i_combines(&queue->ctx->plan.device, a))
		p->workspace = a->workspace;
	fill_extra(p, a);
}

/* Whether the wgmma kernels take a call. They move queries, rows and results 16
 * bytes at a time, count a cache's bytes in units of 16 in 32 bits, and have
 * few bits for groups of heads and for splits. */
static uint32_t
is_aligned(const spmla_cache *cache)
{
	return SPMLA_I_PTR(cache->base) % 16 == 0 &&
	       cache->pages * (cache->page_stride_bytes / 16) < 0xffffff00u;
}

static uint32_t
takes_wgmma(const spmla_sparse_decode_args *a)
{
	return is_aligned(&a->cache) &&
	       (!a->extra_topk || is_aligned(&a->extra_cache)) &&
	       spmla_i_gpu_aligned(a->q, a->q_token_stride_elems,
				   a->q_head_stride_elems, 2, 16) &&
	       spmla_i_gpu_aligned(a->out, a->out_token_stride_elems,
				   a->out_head_stride_elems, 2, 16) &&
	       (!a->next_n ||
		((a->q_request_stride_elems | a->out_request_stride_elems) &
		 7) == 0) &&
	       (!a->parts || SPMLA_I_PTR(a->split_out) % 16 == 0) &&
	       a->parts < DECODE_SPLITS &&
	       a->heads <= DECODE_GROUPS * DECODE_HEADS;
}

/* A small call runs in blocks of 16 heads, a group, which finish few groups
 * sooner than blocks of 64. That pays if there are SMs for all of them, and if
 * blocks of 64 would not add up the splits themselves. The choice changes bits.
 * So only the heads decide it without parts, and with fixed splits, where bits
 * may not depend on other tokens: one group of a token is a small call. But if
 * wgmma takes the call, it is not small: wgmma is faster even with three
 * quarters of its rows idle.
 * Example: with parts and 128 heads, 2 tokens are 16 groups, a small call; 3
 * tokens are not. */
enum { SMALL_GROUPS = 16 };

static uint32_t
is_small(const spmla_i_gpu_queue *queue, const spmla_sparse_decode_args *a,
	 uint32_t wgmma)
{
	const uint32_t groups =
		(a->heads + DECODE_MMA_FEW - 1) / DECODE_MMA_FEW;
	const uint64_t all = (uint64_t)a->tokens * groups;
	const uint32_t adds_up =
		spmla_i_combines(&queue->ctx->plan.device, a) != 0;
	const uint32_t fixed =
		queue->ctx->plan.config.flags & SPMLA_CONFIG_BATCH_INVARIANT;

	if (a->parts && !fixed && all <= SMALL_GROUPS && !(wgmma && adds_up))
		return 1;
	return groups == 1 && !wgmma;
}

/* Kinds are the layouts of spmla_i_decode_layout, with SMALL for small calls of
 * fp8 rows, and one for FNUZ codes. No matrix kernel takes pages that begin at
 * any address. Sizes are heads; rows are the heads of a block or a cluster.
 * Example: on Hopper 32 heads take wgmma_32, 33 to 64 wgmma, and more a pair of
 * blocks for each 128, if the call is not small. */
enum { FNUZ_KIND = 0x100, SMALL = 0x200 };

static uint32_t
kind_of(const spmla_i_gpu_queue *queue, const spmla_sparse_decode_args *a,
	uint32_t wgmma)
{
	const uint64_t strides =
		a->cache.page_stride_bytes |
		(a->extra_topk ? a->extra_cache.page_stride_bytes : 0);
	const uint32_t layout = spmla_i_decode_layout(a);

	if (!layout)
		return strides % SPMLA_PAGE_STRIDE_ALIGN ? 0 : FNUZ_KIND;
	if (layout != SPMLA_LAYOUT_MLA_BF16 && is_small(queue, a, wgmma))
		return layout | SMALL;
	return layout;
}

static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_sparse_decode_mma_few,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA | SMALL,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma_32,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .most = DECODE_FEW_HEADS,
	 .aligned = 1,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .most = DECODE_HEADS,
	 .aligned = 1,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma_pair,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .aligned = 1,
	 .rows = 2 * DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_mma,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_mma_few,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_decode_mma_v4_few,
	 .kind = SPMLA_LAYOUT_V4_FP8 | SMALL,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma_v4_32,
	 .kind = SPMLA_LAYOUT_V4_FP8,
	 .most = DECODE_FEW_HEADS,
	 .aligned = 1,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma_v4,
	 .kind = SPMLA_LAYOUT_V4_FP8,
	 .most = DECODE_HEADS,
	 .aligned = 1,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_wgmma_v4_pair,
	 .kind = SPMLA_LAYOUT_V4_FP8,
	 .aligned = 1,
	 .rows = 2 * DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_mma_v4,
	 .kind = SPMLA_LAYOUT_V4_FP8,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_decode_mma_v4_few,
	 .kind = SPMLA_LAYOUT_V4_FP8,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_bf16_wgmma,
	 .kind = SPMLA_LAYOUT_MLA_BF16,
	 .aligned = 1,
	 .rows = DECODE_HEADS},
	{.kernel = SPMLA_KERNEL_sparse_bf16_mma,
	 .kind = SPMLA_LAYOUT_MLA_BF16,
	 .rows = DECODE_MMA_FEW},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile,
	 .kind = SPMLA_LAYOUT_FP8_DS_MLA | SMALL,
	 .rows = G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile,
	 .kind = SPMLA_LAYOUT_V4_FP8 | SMALL,
	 .rows = G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .most = G_TILE,
	 .rows = G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile_32,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .most = 2 * G_TILE,
	 .rows = 2 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile_64,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .rows = 4 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode_tile_32,
	 .kind = SPMLA_GPU_ANY_KIND,
	 .rows = 2 * G_TILE},
	{.kernel = SPMLA_KERNEL_sparse_decode, .rows = ATTEND_HEADS},
};

/* Runs split_combine if the call was to have its splits added up by its own
 * kernel, but another kernel runs. The wgmma kernels of fp8 rows add them up.
 */
static spmla_status
combine(const spmla_i_gpu_queue *queue, const spmla_sparse_decode_args *a,
	const spmla_i_gpu_variant *by)
{
	const uint32_t adds_up =
		by->aligned && by->kind != SPMLA_LAYOUT_MLA_BF16;
	spmla_split_combine_args c;

	if (adds_up || !spmla_i_combines(&queue->ctx->plan.device, a))
		return SPMLA_OK;
	spmla_i_combine_of(a, &c);
	return spmla_i_gpu_split_combine(queue, &c);
}

spmla_status
spmla_i_gpu_sparse_decode(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_sparse_decode_args *a = args;
	const uint32_t wgmma =
		queue->resident_blocks[SPMLA_KERNEL_sparse_decode_wgmma] &&
		takes_wgmma(a);
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   kind_of(queue, a, wgmma), a->heads, wgmma);
	const uint32_t groups = (a->heads + by->rows - 1) / by->rows;
	spmla_k_sparse_decode_params p;
	spmla_status status;
	uint32_t does;

	fill(&p, queue, a);
	status = spmla_i_gpu_decode_few(queue, a, &p, &does);
	if (does)
		return status;
	status = spmla_i_gpu_launch(
		queue, by->kernel,
		((uint64_t)p.s.whole_tokens + a->parts) * groups, &p);
	return status == SPMLA_OK ? combine(queue, a, by) : status;
}
