/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode without matrix instructions, for every layout, two caches and
 * splits. A block of items has 16 heads of a token, or of all tokens of a
 * part; attend_device.h does 64 entries. The hard idea is distrust: a part's
 * row and a slot may say anything. So every number is checked before it
 * becomes an address, and all items of a block check the same numbers, which
 * keeps their barriers together.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_device.h"
#include "spmla/platform/gpu/attend/decode_work_device.h"

#define SPMLA_K_sparse_decode(P, S) SPMLA_K_DECODE(P, S)
SPMLA_KERNEL_SCALARS(sparse_decode)

#ifdef SPMLA_GPU_KERNELS

/* Shared memory. */
typedef struct sparse_decode_shared {
	attend_local block;
	int32_t notes[DECODE_NOTES]; /* the piece of work */
} sparse_decode_shared;

typedef struct sparse_decode_job {
	SPMLA_KERNEL_FIELDS(sparse_decode)
	LOCAL attend_rows *rows;
	LOCAL int32_t *notes;
} sparse_decode_job;

/* One of a token's two lists of keys, and the cache that it points into. */
typedef struct sparse_decode_list {
	GLOBAL const int32_t *slots;
	GLOBAL const uint8_t *cache;
	uint64_t page_stride_bytes;
	spmla_g_divisor page;
	uint32_t pages;
	uint32_t len;
} sparse_decode_list;

/* A token's first list, or the second one if it is `extra`. */
FN sparse_decode_list
sparse_decode_list_of(const PRIVATE sparse_decode_job *job,
		      const PRIVATE decode_list *found, uint32_t extra)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	sparse_decode_list list;

	if (extra) {
		list.slots = job->extra_slots + found->first;
		list.cache = job->extra_cache;
		list.page_stride_bytes = s->extra_page_stride_bytes;
		list.page = s->extra_page;
		list.pages = s->extra_pages;
	} else {
		list.slots = job->slots + found->first;
		list.cache = job->cache;
		list.page_stride_bytes = s->page_stride_bytes;
		list.page = s->page;
		list.pages = s->pages;
	}
	list.len = found->len;
	return list;
}

/* Where the rows of n entries of the list from `first` on are, up to 64, into
 * shared memory; a slot outside the cache is reported for token t. */
FN void
sparse_decode_rows(const PRIVATE sparse_decode_job *job,
		   const PRIVATE sparse_decode_list *list, uint32_t first,
		   uint32_t n, uint32_t fnuz, uint32_t t, uint32_t reports)
{
	LOCAL attend_rows *rows = job->rows;
	const uint32_t i = g_item(), layout = job->s.layout;
	const int32_t slot = i < n ? list->slots[first + i] : -1;
	const uint32_t page = g_divide((uint32_t)slot, list->page);
	const uint32_t entry = (uint32_t)slot - page * list->page.by;
	const uint64_t base = (uint64_t)page * list->page_stride_bytes;
	const uint32_t row_bytes =
		layout == SPMLA_LAYOUT_FP8_DS_MLA ? SPMLA_FP8_DS_MLA_BYTES
		: layout == SPMLA_LAYOUT_V4_FP8   ? SPMLA_V4_VALUE_BYTES
						  : SPMLA_MLA_BF16_BYTES;

	if (i >= ATTEND_KEYS)
		return;
	if (slot < 0 || page >= list->pages) {
		rows->at[i] = ATTEND_NO_ROW;
		if (slot != -1 && reports)
			g_fault(job->fault_state, job->fault_status, t,
				G_FAULT_INDEX);
		return;
	}
	rows->at[i] = base + (uint64_t)entry * row_bytes;
	rows->scales_at[i] = base +
			     (uint64_t)list->page.by * SPMLA_V4_VALUE_BYTES +
			     (uint64_t)entry * SPMLA_V4_SCALE_BYTES;
	if (fnuz)
		rows->scales_at[i] |= ATTEND_FNUZ;
}

/* The lists of a token, in blocks of 64 entries: first_blocks of the first one,
 * then those of the second. */
typedef struct sparse_decode_lists {
	decode_list first, extra;
	int32_t first_blocks;
} sparse_decode_lists;

FN sparse_decode_lists
sparse_decode_lists_of(const PRIVATE sparse_decode_job *job, uint32_t t)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	sparse_decode_lists lists;

	lists.first =
		decode_list_of(job->topk_lens, s->list_form, s->lens_tokens,
			       s->slots_stride, s->topk, t);
	lists.extra = decode_list_of(job->extra_topk_lens, s->extra_list_form,
				     s->lens_tokens, s->extra_slots_stride,
				     s->extra_topk, t);
	lists.first_blocks = (int32_t)decode_blocks(lists.first.len, 1);
	return lists;
}

/* The blocks of token t that the piece in the notes has. */
FN decode_range
sparse_decode_range(const PRIVATE sparse_decode_job *job,
		    const PRIVATE sparse_decode_lists *lists, uint32_t t,
		    uint32_t reports)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;

	return decode_blocks_of(
		job->fault_state, job->fault_status, reports, job->notes,
		job->num_splits, s->parts, s->split_rows, t,
		lists->first_blocks +
			(int32_t)decode_blocks(lists->extra.len, 0),
		lists->first.faults + lists->extra.faults);
}

/* Where the rows of block b are, into shared memory; its entries, which may be
 * none. Barriers. */
FN uint32_t
sparse_decode_block(const PRIVATE sparse_decode_job *job,
		    const PRIVATE sparse_decode_lists *lists, int32_t b,
		    uint32_t t, uint32_t reports)
{
	const uint32_t extra = b >= lists->first_blocks;
	const sparse_decode_list list = sparse_decode_list_of(
		job, extra ? &lists->extra : &lists->first, extra);
	const uint32_t first =
		(uint32_t)(extra ? b - lists->first_blocks : b) * ATTEND_KEYS;
	const uint32_t left = list.len - first;
	const uint32_t n = left < ATTEND_KEYS ? left : ATTEND_KEYS;

	if (n == 0) /* the first list has no entry */
		return 0;
	BARRIER(); /* nobody reads the last block */
	sparse_decode_rows(job, &list, first, n,
			   extra ? job->s.extra_fnuz : job->s.fnuz, t, reports);
	return n;
}

/* The head's results: of the whole token, or of the split `row`. */
FN void
sparse_decode_store(const PRIVATE sparse_decode_job *job,
		    const PRIVATE attend_state *st, uint32_t row, uint32_t t,
		    uint32_t head)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;

	if (row != DECODE_WHOLE) {
		const uint64_t at = (uint64_t)row * s->heads + head;

		attend_partial(st, job->split_out + at * SPMLA_MLA_LATENT);
		if (attend_lane() == 0)
			job->split_lse[at] = attend_empty(st) ? G_MINUS_INF
							      : attend_lse2(st);
		return;
	}
	attend_out(st, s->has_sink, s->has_sink ? job->attn_sink[head] : 0.0f,
		   job->out +
			   decode_token_at(t, s->next_n, s->out_request_stride,
					   s->out_token_stride) +
			   (int64_t)head * s->out_head_stride);
	if (s->has_lse && attend_lane() == 0)
		job->lse[decode_token_at(t, s->next_n, s->lse_request_stride,
					 s->lse_token_stride) +
			 (int64_t)head * s->lse_head_stride] =
			attend_result_lse(st, s->base2, s->empty_lse, s->scale,
					  s->lse_sink,
					  s->lse_sink ? job->attn_sink[head]
						      : 0.0f);
}

/* The blocks of token t that the piece in the notes has, for the item's head.
 * Barriers. */
FN void
sparse_decode_token(const PRIVATE sparse_decode_job *job,
		    LOCAL attend_local *shared, uint32_t t, uint32_t head,
		    uint32_t reports)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	const uint32_t active = head < s->heads;
	const sparse_decode_lists lists = sparse_decode_lists_of(job, t);
	const decode_range range = sparse_decode_range(job, &lists, t, reports);
	attend_state st;
	int32_t b;

	if (range.end < 0)
		return;
	attend_start(&st,
		     job->q +
			     decode_token_at(t, s->next_n, s->q_request_stride,
					     s->q_token_stride) +
			     (int64_t)head * s->q_head_stride,
		     s->dim, active, s->scale);
	for (b = range.begin; b < range.end; b++) {
		const uint32_t n =
			sparse_decode_block(job, &lists, b, t, reports);

		if (n)
			attend_block(&st, shared,
				     b < lists.first_blocks ? job->cache
							    : job->extra_cache,
				     s->layout, n);
	}
	if (active)
		sparse_decode_store(job, &st, range.row, t, head);
}

/* With two blocks a multiprocessor it would need a stack on sm_100 and sm_120.
 */
SPMLA_KERNEL_BLOCKS(sparse_decode, 1)
void
spmla_k_sparse_decode(SPMLA_KERNEL_ARGS(sparse_decode))
{
	LOCAL_ARRAY(sparse_decode_shared, shared, 1);
	const sparse_decode_job job = {SPMLA_KERNEL_VALUES(sparse_decode),
				       &shared->block.rows, shared->notes};
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t pieces = s.parts ? s.parts : s.tokens;
	LOCAL int32_t *notes = shared->notes;
	uint64_t work;
	uint32_t t;

	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t piece = (uint32_t)(work / groups);
		const uint32_t group = (uint32_t)(work % groups);
		const uint32_t head =
			group * ATTEND_HEADS + g_item() / ATTEND_LANES;

		decode_take(fault_state, fault_status, group == 0,
			    tile_scheduler_metadata, s.parts, piece, s.tokens,
			    notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++)
			sparse_decode_token(&job, &shared->block, t, head,
					    group == 0);
	}
}

#endif
#endif
