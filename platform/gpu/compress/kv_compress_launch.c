/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: from its args to its kernel.
 */
#include "spmla/internal/compress.h"
#include "spmla/platform/gpu/launch.h"

typedef enum kind { KEYS = 1, INDEX_KEYS, WHOLE_C128, SPLIT_C128, OTHER } kind;

static kind
kind_of(const spmla_kv_compress_args *a)
{
	if (a->positions_dtype || a->cos_sin_dtype || a->norm_dtype ||
	    a->kv_dtype || a->state.layout == SPMLA_LAYOUT_STATE_128)
		return OTHER;
	if (a->ratio == SPMLA_COMPRESS_MOST)
		return a->split_keys ? SPLIT_C128 : WHOLE_C128;
	return a->state.layout == SPMLA_LAYOUT_STATE_256 ? INDEX_KEYS : KEYS;
}

/* Sizes: tokens. Rows: the keys that a block makes at a time. Columns: the
 * blocks of a key. Example: an H100 holds 528 blocks; 16 tokens with split keys
 * are 16 * 32, but 17 would be 544, so they are 17 * 16. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_kv_compress_index,
	 .kind = INDEX_KEYS,
	 .rows = SPMLA_V4_DIM / SPMLA_INDEX_DIM,
	 .columns = 1},
	{.kernel = SPMLA_KERNEL_kv_compress_few,
	 .kind = SPLIT_C128,
	 .most = COMPRESS_FEW,
	 .rows = 1,
	 .columns = COMPRESS_FEW_SLABS},
	{.kernel = SPMLA_KERNEL_kv_compress_c128,
	 .kind = SPLIT_C128,
	 .rows = 1,
	 .columns = COMPRESS_SLABS},
	{.kernel = SPMLA_KERNEL_kv_compress_c128,
	 .kind = WHOLE_C128,
	 .rows = 1,
	 .columns = 1},
	{.kernel = SPMLA_KERNEL_kv_compress_any,
	 .kind = OTHER,
	 .rows = 1,
	 .columns = 1},
	{.kernel = SPMLA_KERNEL_kv_compress, .rows = 1, .columns = 1},
};

/* Whether four floats of a row of the call are one load; in a state they always
 * are. */
static uint32_t
is_wide(const spmla_kv_compress_args *a)
{
	return a->form == SPMLA_STATE_PAGED ||
	       (a->kv_dtype == SPMLA_REAL_F32 &&
		(SPMLA_I_PTR(a->kv) | SPMLA_I_PTR(a->score) |
		 SPMLA_I_PTR(a->ape)) %
				16 ==
			0 &&
		(a->kv_stride_elems | a->score_stride_elems) % 4 == 0);
}

/* The units of a block: one, or a multiple of what it makes at a time. Example:
 * 3000 tokens with index keys are 6 for each of an H100's 528 blocks; a block
 * makes 4 at a time, so 375 blocks get 8. */
static uint32_t
share_of(const spmla_i_gpu_variant *by, uint64_t units, uint32_t blocks)
{
	const uint64_t share = (units - 1) / blocks + 1;
	const uint32_t together = share > 1 ? by->rows : 1;

	return (uint32_t)((share + together - 1) / together * together);
}

spmla_status
spmla_i_gpu_kv_compress(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_kv_compress_args *a = args;
	const spmla_i_gpu_variant *by =
		spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				   kind_of(a), a->tokens, 0);
	const uint32_t split = kind_of(a) == SPLIT_C128;
	const uint64_t units = (uint64_t)a->tokens * by->columns;
	spmla_k_kv_compress_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.positions = a->positions;
	p.s.rope_bf16 = a->cos_sin_dtype == SPMLA_REAL_BF16;
	p.s.norm_bf16 = a->norm_dtype == SPMLA_REAL_BF16;
	p.s.kv_bf16 = a->kv_dtype == SPMLA_REAL_BF16;
	p.s.positions_wide = a->positions_dtype == SPMLA_INT64;
	p.slot_mapping = a->slot_mapping;
	p.token_row = a->token_row;
	p.block_table = a->block_table;
	p.table_cols = a->table_cols;
	p.norm_weight = a->norm_weight;
	p.cos_sin = a->cos_sin;
	p.kv = a->kv;
	p.score = a->score;
	p.ape = a->ape;
	p.context_lens = a->context_lens;
	p.state = a->state.base;
	p.cache = a->cache.base;
	p.split_keys = a->split_keys;
	p.split_counts = a->split_counts;
	p.s.kv_stride = a->kv_stride_elems;
	p.s.score_stride = a->score_stride_elems;
	p.s.page_stride_bytes = a->cache.page_stride_bytes;
	p.s.state_page_bytes = a->state.page_stride_bytes;
	p.s.state_entries = spmla_i_gpu_divisor(a->state.entries_per_page);
	p.s.state_pages = a->state.pages;
	p.s.width = spmla_i_state_width(a->state.layout);
	p.s.ratio = a->ratio;
	p.s.ring = a->form == SPMLA_STATE_RING;
	p.s.rows = a->rows;
	p.s.columns = spmla_i_gpu_divisor(a->columns);
	p.s.table_stride = a->table_stride_elems;
	p.s.has_cols = a->table_cols != NULL;
	p.s.has_lens = a->context_lens != NULL;
	p.s.tokens = a->tokens;
	p.s.share = share_of(by, units, queue->resident_blocks[by->kernel]);
	p.s.split = split;
	p.s.wide = is_wide(a);
	p.s.cos_sin_rows = a->cos_sin_rows;
	p.s.layout = a->cache.layout;
	p.s.fnuz = a->cache.encoding == SPMLA_E4M3_FNUZ;
	p.s.page_entries = a->cache.entries_per_page;
	p.s.slots = (uint64_t)a->cache.pages * a->cache.entries_per_page;
	p.s.norm_eps = a->norm_eps;
	p.s.e4m3_scale = a->e4m3_scale;
	p.scale_at = a->e4m3_scale_at;
	p.s.has_scale_at = a->e4m3_scale_at != NULL;
	return spmla_i_gpu_launch(queue, by->kernel,
				  split ? units : (units - 1) / p.s.share + 1,
				  &p);
}
