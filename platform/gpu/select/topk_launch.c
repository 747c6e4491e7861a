/* SPDX-License-Identifier: Apache-2.0
 *
 * topk: chooses a kernel and fills its arguments. The choice depends on the
 * number of rows and on the room that they have, which a captured step does not
 * change. The selection is the same.
 */
#include "spmla/platform/gpu/launch.h"

SPMLA_STATIC_ASSERT(sizeof(spmla_k_topk_params) ==
				    sizeof(spmla_k_topk_by_8_params) &&
			    sizeof(spmla_k_topk_params) ==
				    sizeof(spmla_k_topk_by_half_params),
		    "one struct binds all kernels");

/* SHORT_ROOM: what a row has room for fits the registers of one block (which
 * has as many threads in the emulator). With MAP the kernel also does what
 * index_map would do next. */
enum { ANY_ROOM, SHORT_ROOM, OTHER /* scores of bf16 */, MAP = 4 };

/* Sizes: rows. Example: on the 132 multiprocessors of an H100 16 rows are 16
 * clusters of 8 blocks and 66 rows 66 clusters of 2, one wave each; 67 rows take
 * a block each, and from 133 on two rows share a multiprocessor. */
static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_topk_map_short,
	 .kind = SHORT_ROOM | MAP,
	 .most = 132},
	{.kernel = SPMLA_KERNEL_topk_map_by_half, .kind = SHORT_ROOM | MAP},
	{.kernel = SPMLA_KERNEL_topk_map_by_8,
	 .kind = ANY_ROOM | MAP,
	 .most = 16},
	{.kernel = SPMLA_KERNEL_topk_map_by_2,
	 .kind = ANY_ROOM | MAP,
	 .most = 66},
	{.kernel = SPMLA_KERNEL_topk_map_by_1,
	 .kind = ANY_ROOM | MAP,
	 .most = 132},
	{.kernel = SPMLA_KERNEL_topk_map_by_half, .kind = ANY_ROOM | MAP},
	{.kernel = SPMLA_KERNEL_topk_short, .kind = SHORT_ROOM, .most = 132},
	{.kernel = SPMLA_KERNEL_topk_by_half, .kind = SHORT_ROOM},
	{.kernel = SPMLA_KERNEL_topk_by_8, .kind = ANY_ROOM, .most = 16},
	{.kernel = SPMLA_KERNEL_topk_by_2, .kind = ANY_ROOM, .most = 66},
	{.kernel = SPMLA_KERNEL_topk_by_1, .kind = ANY_ROOM, .most = 132},
	{.kernel = SPMLA_KERNEL_topk_by_half, .kind = ANY_ROOM},
	{.kernel = SPMLA_KERNEL_topk_bf16, .kind = OTHER},
	{.kernel = SPMLA_KERNEL_topk, .kind = ANY_ROOM},
};

/* Whether a kernel of topk may do the map. Ragged rows wait for each other's
 * lengths; the rest is what no layer of decode asks for. */
static uint32_t
is_plain(const spmla_index_map_args *map)
{
	return !map->indptr && !map->workspace_ids && !map->first_cols &&
	       !map->slot_mapping && !map->entries_before;
}

/* Whether a row takes no more places than it has room for: places begin at 16
 * aligned bytes. */
static uint32_t
is_aligned(const spmla_topk_args *a)
{
	return (uintptr_t)a->logits % 16 == 0 &&
	       (a->row_starts || a->row_stride_elems % 4 == 0);
}

static const spmla_i_gpu_variant *
choose(const spmla_i_gpu_queue *queue, const spmla_topk_args *a, uint32_t kind)
{
	return spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				  kind, a->rows, 0);
}

/* topk with these parameters and the map, in one launch. */
static spmla_status
launch_both(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
	    const spmla_k_topk_params *topk, const spmla_index_map_args *map)
{
	spmla_k_topk_map_by_8_params p;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.logits = topk->logits;
	p.row_starts = topk->row_starts;
	p.context_lens = topk->context_lens;
	p.indices = topk->indices;
	p.lens = topk->lens;
	p.token_row = map->token_row;
	p.block_table = map->block_table;
	p.table_cols = map->table_cols;
	p.map_lens = map->lens;
	p.slots = map->slots;
	p.valid_counts = map->valid_counts;
	p.map_context = map->context_lens;
	p.other_lens = map->other_lens;
	p.kept_lens = map->kept_lens;
	p.s.topk = topk->s;
	p.s.compact = map->compact;
	p.s.map = spmla_i_gpu_index_map_scalars(map);
	return spmla_i_gpu_launch(queue, kernel, topk->s.rows, &p);
}

spmla_status
spmla_i_gpu_topk(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_topk_args *a = args;
	const uint64_t room =
		a->row_starts ? a->logits_elems : (uint64_t)a->row_stride_elems;
	const uint32_t kind =
		a->logits_dtype != SPMLA_REAL_F32 ? OTHER
		: room <= TOPK_BY_SHORT * SPMLA_ITEMS_topk_short &&
				is_aligned(a)
			? SHORT_ROOM
			: ANY_ROOM;
	const uint32_t map = a->map.struct_bytes && is_plain(&a->map) ? MAP : 0;
	const spmla_i_gpu_variant *by = choose(queue, a, kind | map);
	spmla_k_topk_params p;
	spmla_status s;

	memset(&p, 0, sizeof p);
	SPMLA_I_GPU_FAULT(&p, queue);
	p.logits = a->logits;
	p.row_starts = a->row_starts;
	p.context_lens = a->context_lens;
	p.indices = a->indices;
	p.lens = a->lens;
	p.s.logits_elems = a->logits_elems;
	p.s.indices_stride = a->indices_stride_elems;
	p.s.rows = a->rows;
	p.s.k = a->k;
	p.s.has_lens = a->lens != NULL;
	p.s.has_starts = a->row_starts != NULL;
	p.s.row_stride = a->row_stride_elems;
	p.s.last_ties = a->ties == SPMLA_TIES_HIGHER;
	if (by->kind & MAP)
		return launch_both(queue, by->kernel, &p, &a->map);
	if (map)
		by = choose(queue, a, kind);
	s = spmla_i_gpu_launch(queue, by->kernel, a->rows, &p);
	if (s == SPMLA_OK && a->map.struct_bytes)
		s = spmla_i_gpu_index_map(queue, &a->map);
	return s;
}
