/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode without matrix instructions, for every layout, two caches and
 * splits: a block of items has 16 heads of a token, or of all that a part does.
 * What it does with 64 entries is in attend_device.h. The hard idea is trust: a
 * part's row and a slot may say anything, so every number is looked at before
 * it is an address, and all items of a block look at the same ones, which keeps
 * their barriers together.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_DECODE_KERNEL_H

#include "spmla/platform/gpu/attend/attend_device.h"
#include "spmla/platform/gpu/attend/decode_work_device.h"

#define SPMLA_K_sparse_decode(P, S) SPMLA_K_DECODE(P, S)
SPMLA_KERNEL_SCALARS(sparse_decode)

#ifdef SPMLA_GPU_KERNELS

/* Where the rows of up to 64 entries are, n of them; a slot outside the cache
 * is reported. */
FN void
sparse_decode_rows(LOCAL attend_local *shared,
		   GLOBAL spmla_g_state *fault_state,
		   GLOBAL spmla_g_status *fault_status,
		   GLOBAL const int32_t *slots, uint32_t n, uint32_t layout,
		   spmla_g_divisor page, uint32_t pages,
		   uint64_t page_stride_bytes, uint32_t token, uint32_t reports)
{
	const uint32_t i = g_item();
	const int32_t slot = i < n ? slots[i] : -1;
	const uint32_t number = g_divide((uint32_t)slot, page);
	const uint32_t entry = (uint32_t)slot - number * page.by;
	const uint64_t base = (uint64_t)number * page_stride_bytes;
	const uint32_t row_bytes =
		layout == SPMLA_LAYOUT_FP8_DS_MLA ? SPMLA_FP8_DS_MLA_BYTES
		: layout == SPMLA_LAYOUT_V4_FP8   ? SPMLA_V4_VALUE_BYTES
						  : SPMLA_MLA_BF16_BYTES;

	if (i >= ATTEND_KEYS)
		return;
	if (slot < 0 || number >= pages) {
		shared->at[i] = ATTEND_NO_ROW;
		if (slot != -1 && reports)
			g_fault(fault_state, fault_status, token,
				G_FAULT_INDEX);
		return;
	}
	shared->at[i] = base + (uint64_t)entry * row_bytes;
	shared->scales_at[i] = base + (uint64_t)page.by * SPMLA_V4_VALUE_BYTES +
			       (uint64_t)entry * SPMLA_V4_SCALE_BYTES;
}

SPMLA_KERNEL(sparse_decode)
void
spmla_k_sparse_decode(SPMLA_KERNEL_ARGS(sparse_decode))
{
	LOCAL_ARRAY(attend_local, shared, 1);
	LOCAL_ARRAY(int32_t, notes, DECODE_NOTES);
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t pieces = s.parts ? s.parts : s.tokens;
	uint64_t work;

	(void)max_logits; /* sparse_prefill has a kernel of its own */
	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t piece = (uint32_t)(work / groups);
		const uint32_t group = (uint32_t)(work % groups);
		const uint32_t head =
			group * ATTEND_HEADS + g_item() / ATTEND_LANES;
		const uint32_t reports = group == 0;
		uint32_t t;

		decode_take(fault_state, fault_status, reports,
			    tile_scheduler_metadata, s.parts, piece, s.tokens,
			    notes);
		for (t = (uint32_t)notes[DECODE_FIRST];
		     (int32_t)t <= notes[DECODE_LAST]; t++) {
			const int64_t token = t;
			const uint32_t len =
				decode_len(topk_lens, s.has_lens, s.topk, t);
			const uint32_t extra_len =
				s.extra_topk ? decode_len(extra_topk_lens,
							  s.has_extra_lens,
							  s.extra_topk, t)
					     : 0;
			const int32_t first_blocks =
				(int32_t)decode_blocks(len, 1);
			const uint32_t active = head < s.heads;
			const decode_range range = decode_blocks_of(
				fault_state, fault_status, reports, notes,
				num_splits, s.parts, s.split_rows, t,
				first_blocks +
					(int32_t)decode_blocks(extra_len, 0));
			attend_state st;
			int32_t block;

			if (range.end < 0)
				continue;
			attend_start(&st,
				     q + token * s.q_token_stride +
					     (int64_t)head * s.q_head_stride,
				     s.dim, active, s.scale);
			for (block = range.begin; block < range.end; block++) {
				const uint32_t extra = block >= first_blocks;
				const uint32_t first =
					(uint32_t)(extra ? block - first_blocks
							 : block) *
					ATTEND_KEYS;
				const uint32_t left =
					(extra ? extra_len : len) - first;
				const uint32_t n =
					left < ATTEND_KEYS ? left : ATTEND_KEYS;

				if (n == 0) /* the first list has no entry */
					continue;
				BARRIER(); /* nobody reads the last block */
				sparse_decode_rows(
					shared, fault_state, fault_status,
					extra ? extra_slots +
							token * s.extra_slots_stride +
							first
					      : slots + token * s.slots_stride +
							first,
					n, s.layout,
					extra ? s.extra_page : s.page,
					extra ? s.extra_pages : s.pages,
					extra ? s.extra_page_stride_bytes
					      : s.page_stride_bytes,
					t, reports);
				attend_block(&st, shared,
					     extra ? extra_cache : cache,
					     s.layout, n);
			}
			if (!active)
				continue;
			if (range.row != DECODE_WHOLE) {
				const uint64_t at =
					(uint64_t)range.row * s.heads + head;

				attend_partial(
					&st, split_out + at * SPMLA_MLA_LATENT);
				if (attend_lane() == 0)
					split_lse[at] =
						attend_empty(&st)
							? G_MINUS_INF
							: attend_lse2(&st);
				continue;
			}
			attend_out(&st, s.has_sink,
				   s.has_sink ? attn_sink[head] : 0.0f,
				   out + token * s.out_token_stride +
					   (int64_t)head * s.out_head_stride);
			if (s.has_lse && attend_lane() == 0)
				lse[token * s.lse_token_stride +
				    (int64_t)head * s.lse_head_stride] =
					attend_result_lse(&st, 0,
							  s.empty_minus_inf,
							  s.scale);
		}
	}
}

#endif
#endif
