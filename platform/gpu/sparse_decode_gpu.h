/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode without matrix instructions, for every layout, two caches and
 * splits: a block of items has 16 heads of a token, or of all that a part does.
 * What it does with 64 entries is in attend_gpu.h. The hard idea is trust: a
 * part's row and a slot may say anything, so every number is looked at before
 * it is an address, and all items of a block look at the same ones, which keeps
 * their barriers together.
 */
#ifndef SPMLA_PLATFORM_GPU_SPARSE_DECODE_H
#define SPMLA_PLATFORM_GPU_SPARSE_DECODE_H

#include "spmla/platform/gpu/attend_gpu.h"
#include "spmla/platform/gpu/fault_gpu.h"

#define SPMLA_K_sparse_decode(P, S)               \
	SPMLA_K_FAULT(P)                          \
	P(const uint16_t, q)                      \
	P(const int32_t, slots)                   \
	P(const int32_t, topk_lens)               \
	P(const int32_t, extra_slots)             \
	P(const int32_t, extra_topk_lens)         \
	P(const float, attn_sink)                 \
	P(const uint8_t, cache)                   \
	P(const uint8_t, extra_cache)             \
	P(const int32_t, tile_scheduler_metadata) \
	P(const int32_t, num_splits)              \
	P(uint16_t, out)                          \
	P(float, lse)                             \
	P(float, split_out)                       \
	P(float, split_lse)                       \
	S(int64_t, q_token_stride)                \
	S(int64_t, q_head_stride)                 \
	S(int64_t, slots_stride)                  \
	S(int64_t, extra_slots_stride)            \
	S(int64_t, out_token_stride)              \
	S(int64_t, out_head_stride)               \
	S(int64_t, lse_token_stride)              \
	S(int64_t, lse_head_stride)               \
	S(uint64_t, page_stride_bytes)            \
	S(uint64_t, extra_page_stride_bytes)      \
	S(uint32_t, tokens)                       \
	S(uint32_t, heads)                        \
	S(uint32_t, dim)                          \
	S(uint32_t, layout)                       \
	S(uint32_t, topk)                         \
	S(uint32_t, extra_topk)                   \
	S(uint32_t, page_entries)                 \
	S(uint32_t, pages)                        \
	S(uint32_t, extra_page_entries)           \
	S(uint32_t, extra_pages)                  \
	S(uint32_t, parts)                        \
	S(uint32_t, split_rows)                   \
	S(uint32_t, has_lens)                     \
	S(uint32_t, has_extra_lens)               \
	S(uint32_t, has_sink)                     \
	S(uint32_t, has_lse)                      \
	S(uint32_t, empty_minus_inf)              \
	S(float, scale)
SPMLA_KERNEL_SCALARS(sparse_decode)

#ifdef SPMLA_GPU_KERNELS

/* What a block of items does with a token: blocks [begin, end) of its keys,
 * into its results, or into a row of the partial ones. */
typedef struct sparse_decode_work {
	int32_t begin;
	int32_t end; /* below 0: nothing is written either */
	uint32_t whole;
	uint32_t faults;
	uint64_t row;
} sparse_decode_work;

/* Token t, of the tokens [first, last] of a part, which has `blocks` blocks. */
FN sparse_decode_work
sparse_decode_split(GLOBAL const int32_t *part,
		    GLOBAL const int32_t *num_splits, uint32_t t,
		    int32_t blocks, uint32_t split_rows)
{
	const int64_t from = num_splits[t], to = num_splits[t + 1];
	const int64_t split = (int64_t)t == part[0] ? part[4] : 0;
	sparse_decode_work w;

	w.begin = (int64_t)t == part[0] ? part[2] : 0;
	w.end = (int64_t)t == part[1] ? part[3] : blocks;
	w.whole = to - from == 1;
	w.row = (uint64_t)(from + split);
	w.faults = 0;
	if (w.begin < 0 || w.end < w.begin || w.end > blocks) {
		w.begin = w.begin < 0 ? 0 : w.begin;
		w.end = w.end < w.begin ? w.begin : w.end;
		w.end = w.end < blocks ? w.end : blocks;
		w.faults++;
	}
	if (split < 0 || from + split < 0 || from + split >= to ||
	    (to - from > 1 && w.row >= split_rows)) {
		w.end = -1;
		w.faults++;
	}
	return w;
}

/* Where the rows of up to 64 entries are, n of them; a slot outside the cache
 * is reported. */
FN void
sparse_decode_rows(LOCAL attend_local *shared,
		   GLOBAL spmla_g_state *fault_state,
		   GLOBAL spmla_g_status *fault_status,
		   GLOBAL const int32_t *slots, uint32_t n, uint32_t layout,
		   uint32_t page_entries, uint32_t pages,
		   uint64_t page_stride_bytes, uint32_t token, uint32_t reports)
{
	const uint32_t i = g_item();
	const int32_t slot = i < n ? slots[i] : -1;
	const uint32_t page = (uint32_t)slot / page_entries;
	const uint32_t entry = (uint32_t)slot % page_entries;
	const uint64_t base = (uint64_t)page * page_stride_bytes;
	const uint32_t row_bytes =
		layout == SPMLA_LAYOUT_FP8_DS_MLA ? SPMLA_FP8_DS_MLA_BYTES
		: layout == SPMLA_LAYOUT_V4_FP8   ? SPMLA_V4_VALUE_BYTES
						  : SPMLA_MLA_BF16_BYTES;

	if (i >= ATTEND_KEYS)
		return;
	if (slot < 0 || page >= pages) {
		shared->at[i] = ATTEND_NO_ROW;
		if (slot != -1 && reports)
			g_fault(fault_state, fault_status, token,
				G_FAULT_INDEX);
		return;
	}
	shared->at[i] = base + (uint64_t)entry * row_bytes;
	shared->scales_at[i] = base +
			       (uint64_t)page_entries * SPMLA_V4_VALUE_BYTES +
			       (uint64_t)entry * SPMLA_V4_SCALE_BYTES;
}

SPMLA_KERNEL(sparse_decode)
{
	LOCAL_ARRAY(attend_local, shared, 1);
	const uint32_t groups = (s.heads + ATTEND_HEADS - 1) / ATTEND_HEADS;
	const uint32_t pieces = s.parts ? s.parts : s.tokens;
	uint64_t work;

	for (work = g_block(); work < (uint64_t)pieces * groups;
	     work += g_blocks()) {
		const uint32_t piece = (uint32_t)(work / groups);
		const uint32_t group = (uint32_t)(work % groups);
		const uint32_t head =
			group * ATTEND_HEADS + g_item() / ATTEND_LANES;
		const uint32_t reports = group == 0;
		GLOBAL const int32_t *part =
			tile_scheduler_metadata + (uint64_t)piece * 8;
		int64_t token = piece, last = piece;

		if (s.parts) {
			token = part[0];
			last = part[1];
			if (token >= (int64_t)s.tokens)
				continue;
			if (token < 0 || last < token ||
			    last >= (int64_t)s.tokens) {
				if (reports && g_item() == 0)
					g_fault(fault_state, fault_status,
						piece, G_FAULT_INDEX);
				continue;
			}
		}
		for (; token <= last; token++) {
			const uint32_t t = (uint32_t)token;
			const uint32_t len =
				attend_len(s.has_lens, topk_lens, t, s.topk);
			const uint32_t extra_len =
				s.extra_topk ? attend_len(s.has_extra_lens,
							  extra_topk_lens, t,
							  s.extra_topk)
					     : 0;
			const int32_t first_blocks =
				len ? (int32_t)attend_blocks(len) : 1;
			const int32_t blocks =
				first_blocks +
				(int32_t)attend_blocks(extra_len);
			const uint32_t active = head < s.heads;
			sparse_decode_work w;
			attend_state st;
			int32_t block;

			w.begin = 0;
			w.end = blocks;
			w.whole = 1;
			w.faults = 0;
			w.row = 0;
			if (s.parts)
				w = sparse_decode_split(part, num_splits, t,
							blocks, s.split_rows);
			for (; w.faults && reports && g_item() == 0; w.faults--)
				g_fault(fault_state, fault_status, t,
					G_FAULT_INDEX);
			if (w.end < 0)
				continue;
			attend_start(&st,
				     q + token * s.q_token_stride +
					     (int64_t)head * s.q_head_stride,
				     s.dim, active, s.scale);
			for (block = w.begin; block < w.end; block++) {
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
					extra ? s.extra_page_entries
					      : s.page_entries,
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
			if (!w.whole) {
				const uint64_t at = w.row * s.heads + head;

				attend_partial(
					&st, split_out + at * SPMLA_MLA_LATENT);
				if (attend_lane() == 0)
					split_lse[at] =
						attend_empty(&st)
							? g_float(0xff800000u)
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
					!attend_empty(&st)
						? attend_lse(&st, s.scale)
					: s.empty_minus_inf
						? g_float(0xff800000u)
						: g_float(0x7f800000u);
		}
	}
}

#endif
#endif
