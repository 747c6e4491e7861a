/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of sparse_decode's tokens, for kernels that load rows by
 * attend_load_row. The hard idea is distrust: the metadata of a part and a slot
 * may contain anything. So every number is checked before it becomes an
 * address. All items of a block check the same numbers, which keeps their
 * barriers together.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_DEVICE_H

#include "spmla/platform/gpu/attend/attend_device.h"
#include "spmla/platform/gpu/attend/decode_work_device.h"

#define SPMLA_K_sparse_decode(P, S) SPMLA_K_DECODE(P, S)
SPMLA_KERNEL_SCALARS(sparse_decode)

#ifdef SPMLA_GPU_KERNELS

typedef struct sparse_decode_job {
	SPMLA_KERNEL_FIELDS(sparse_decode)
	LOCAL attend_rows *rows;
	LOCAL int32_t *notes;
} sparse_decode_job;

/* One of a token's two lists of keys, and the pages of its cache. */
typedef struct sparse_decode_list {
	GLOBAL const int32_t *slots;
	uint64_t page_stride_bytes;
	spmla_g_divisor page;
	uint32_t pages;
	uint32_t len;
} sparse_decode_list;

/* A token's first list, or its second one if `extra`. */
FN sparse_decode_list
sparse_decode_list_of(const PRIVATE sparse_decode_job *job,
		      const PRIVATE decode_list *found, uint32_t extra)
{
	const PRIVATE spmla_k_sparse_decode_scalars *s = &job->s;
	sparse_decode_list list;

	if (extra) {
		list.slots = job->extra_slots + found->first;
		list.page_stride_bytes = s->extra_page_stride_bytes;
		list.page = s->extra_page;
		list.pages = s->extra_pages;
	} else {
		list.slots = job->slots + found->first;
		list.page_stride_bytes = s->page_stride_bytes;
		list.page = s->page;
		list.pages = s->pages;
	}
	list.len = found->len;
	return list;
}

/* The entries of a block: n, 1 to 64, from `first` on. n is 0 if the list has
 * no entry. */
typedef struct sparse_decode_span {
	sparse_decode_list list;
	uint32_t first;
	uint32_t n;
	uint32_t fnuz;
} sparse_decode_span;

/* The slot of the item's entry; -1 for an item without one. */
FN int32_t
sparse_decode_slot(const PRIVATE sparse_decode_span *span)
{
	return g_item() < span->n ? span->list.slots[span->first + g_item()]
				  : -1;
}

/* Writes to shared memory where the row of the item's slot is. Items beyond 64
 * write nothing. A slot outside the cache is reported for token t. */
FN void
sparse_decode_rows(const PRIVATE sparse_decode_job *job,
		   const PRIVATE sparse_decode_span *span, int32_t slot,
		   LOCAL attend_rows *rows, uint32_t t, uint32_t reports)
{
	const PRIVATE sparse_decode_list *list = &span->list;
	const uint32_t i = g_item(), layout = job->s.layout;
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
	if (span->fnuz)
		rows->scales_at[i] |= ATTEND_FNUZ;
}

/* The lists of a token, in blocks of 64 entries: the first list has
 * first_blocks blocks, and the second list's blocks follow. */
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
		job->num_splits, s->whole_tokens, s->split_rows, t,
		lists->first_blocks +
			(int32_t)decode_blocks(lists->extra.len, 0),
		lists->first.faults + lists->extra.faults);
}

/* The entries of block b. */
FN sparse_decode_span
sparse_decode_span_of(const PRIVATE sparse_decode_job *job,
		      const PRIVATE sparse_decode_lists *lists, int32_t b)
{
	const uint32_t extra = b >= lists->first_blocks;
	sparse_decode_span span;
	uint32_t left;

	span.list = sparse_decode_list_of(
		job, extra ? &lists->extra : &lists->first, extra);
	span.first =
		(uint32_t)(extra ? b - lists->first_blocks : b) * ATTEND_KEYS;
	left = span.list.len - span.first;
	span.n = left < ATTEND_KEYS ? left : ATTEND_KEYS;
	span.fnuz = extra ? job->s.extra_fnuz : job->s.fnuz;
	return span;
}

/* Writes to shared memory where the rows of block b are. Returns how many
 * entries it has, maybe 0. Barriers. */
FN uint32_t
sparse_decode_block(const PRIVATE sparse_decode_job *job,
		    const PRIVATE sparse_decode_lists *lists, int32_t b,
		    uint32_t t, uint32_t reports)
{
	const sparse_decode_span span = sparse_decode_span_of(job, lists, b);

	if (span.n == 0)
		return 0;
	BARRIER(); /* all have read the last block */
	sparse_decode_rows(job, &span, sparse_decode_slot(&span), job->rows, t,
			   reports);
	return span.n;
}

#endif
#endif
