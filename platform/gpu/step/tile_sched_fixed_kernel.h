/* SPDX-License-Identifier: Apache-2.0
 *
 * tile_sched with fixed splits, called by itself or behind the prologue: one
 * block. A request's key blocks are cut at multiples of one number, and each
 * split is a part. So a thread writes the parts of a request by itself; only
 * their place depends on the requests before it.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_TILE_SCHED_FIXED_KERNEL_H
#define SPMLA_PLATFORM_GPU_STEP_TILE_SCHED_FIXED_KERNEL_H

#include "spmla/platform/gpu/step/tile_sched_kernel.h"

/* `contexts`: topk_lens are the tokens' contexts, which may be longer than
 * topk; nothing is reported. */
#define SPMLA_K_tile_sched_fixed(P, S)      \
	SPMLA_K_FAULT(P)                    \
	P(const int32_t, topk_lens)         \
	P(const int32_t, extra_topk_lens)   \
	P(int32_t, tile_scheduler_metadata) \
	P(int32_t, num_splits)              \
	S(uint32_t, batch)                  \
	S(uint32_t, first_request)          \
	S(uint32_t, parts)                  \
	S(uint32_t, split_blocks)           \
	S(uint32_t, most_splits)            \
	S(uint32_t, topk)                   \
	S(uint32_t, extra_topk)             \
	S(uint32_t, contexts)               \
	S(spmla_g_divisor, lens_tokens)     \
	S(uint32_t, list_form)              \
	S(uint32_t, extra_list_form)        \
	S(uint32_t, old_rows)
SPMLA_KERNEL_SCALARS(tile_sched_fixed)

#ifdef SPMLA_GPU_KERNELS

enum { TILE_SCHED_FIXED_ITEMS = SPMLA_ITEMS_tile_sched_fixed };

typedef struct tile_sched_fixed_job {
	SPMLA_KERNEL_FIELDS(tile_sched_fixed)
} tile_sched_fixed_job;

/* Blocks of request i; *bad: what its lengths say is out of bounds. */
FN uint32_t
tile_sched_fixed_blocks(const PRIVATE tile_sched_fixed_job *job, uint32_t i,
			PRIVATE uint32_t *bad)
{
	const PRIVATE spmla_k_tile_sched_fixed_scalars *s = &job->s;
	const uint32_t at = g_divide(i, s->lens_tokens);
	decode_list list, extra;

	list = decode_list_of(job->topk_lens, s->list_form, s->lens_tokens, 0,
			      s->topk, i);
	extra = decode_list_of(job->extra_topk_lens, s->extra_list_form,
			       s->lens_tokens, 0, s->extra_topk, i);
	*bad = !s->contexts &&
	       (list.faults || extra.faults ||
		tile_sched_outside(job->topk_lens, s->list_form, s->topk, at) ||
		tile_sched_outside(job->extra_topk_lens, s->extra_list_form,
				   s->extra_topk, at));
	return decode_blocks(list.len, 1) + decode_blocks(extra.len, 0);
}

SPMLA_KERNEL(tile_sched_fixed)
void
spmla_k_tile_sched_fixed(SPMLA_KERNEL_ARGS(tile_sched_fixed))
{
	LOCAL_ARRAY(uint64_t, sums, G_SCAN_SUBGROUPS);
	const tile_sched_fixed_job job = {
		SPMLA_KERNEL_VALUES(tile_sched_fixed)};
	uint32_t done = 0, blocks = 0, bad, first, p;

	for (first = 0; first < s.batch; first += TILE_SCHED_FIXED_ITEMS) {
		const uint32_t r = first + g_item();
		uint32_t n = 0, at, i;
		uint64_t all;

		if (r < s.batch) {
			blocks = tile_sched_fixed_blocks(&job, r, &bad);
			n = (blocks + s.split_blocks - 1) / s.split_blocks;
			n = n < s.most_splits ? n : s.most_splits;
			if (bad)
				g_fault(fault_state, fault_status,
					s.first_request + r, G_FAULT_LENGTH);
		}
		at = done + (uint32_t)g_scan_sum(n, TILE_SCHED_FIXED_ITEMS,
						 sums, &all);
		if (r < s.batch)
			num_splits[r] = (int32_t)at;
		for (i = 0; i < n; i++)
			tile_sched_row(
				tile_scheduler_metadata +
					(uint64_t)(at + i) * TILE_SCHED_ROW,
				s.old_rows, r, i * s.split_blocks,
				r + (i + 1 == n),
				i + 1 == n ? 0 : (i + 1) * s.split_blocks,
				blocks, i);
		done += (uint32_t)all;
	}
	if (g_item() == 0)
		num_splits[s.batch] = (int32_t)done;
	if (s.batch)
		blocks = tile_sched_fixed_blocks(&job, s.batch - 1, &bad);
	for (p = done + g_item(); p < s.parts; p += TILE_SCHED_FIXED_ITEMS)
		tile_sched_row(tile_scheduler_metadata +
				       (uint64_t)p * TILE_SCHED_ROW,
			       s.old_rows, s.batch, 0, s.batch, 0, blocks, 0);
}

#endif
#endif
