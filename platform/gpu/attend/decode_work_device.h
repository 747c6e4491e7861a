/* SPDX-License-Identifier: Apache-2.0
 *
 * What sparse_decode has to do for a token: its keys in blocks of 64, all of
 * them, or those of a part of tile_sched's metadata, which may be a piece of a
 * token whose result goes to split rows.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_WORK_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_WORK_DEVICE_H

#include "spmla/platform/gpu/step/decode_blocks_device.h"
#include "spmla/platform/gpu/step/fault_device.h"

/* The parameters of every kernel of sparse_decode; max_logits, base2 and quiet
 * are sparse_prefill's, whose matrix kernels are the same. */
#define SPMLA_K_DECODE(P, S)                      \
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
	P(float, max_logits)                      \
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
	S(uint32_t, has_max_logits)               \
	S(uint32_t, base2)                        \
	S(uint32_t, quiet)                        \
	S(float, scale)

enum { DECODE_HEADS = 64 }; /* that kernels by matrix instructions take */

/* A piece of work as local memory has it, so that it needs no registers while
 * keys go by: tokens DECODE_FIRST .. DECODE_LAST, none if the last is before
 * the first; and, of parts, the rest of the metadata's row. */
enum {
	DECODE_FIRST,
	DECODE_LAST,
	DECODE_FIRST_BLOCK,
	DECODE_END_BLOCK,
	DECODE_SPLIT,
	DECODE_LEN, /* of the token at hand, for who wants them there */
	DECODE_EXTRA_LEN,
	DECODE_NOTES
};

#ifdef SPMLA_GPU_KERNELS

/* What a sink adds to L, which is relative to `reach`, in log2 units. Those of
 * large scores overflow, and of two infinities there is no difference: an
 * infinite sink stands alone. */
FN float
g_sink_weight(float sink, float reach)
{
	const float x = sink * 1.44269504088896341f;

	return g_exp2(g_abs(x) == g_float(0x7f800000u) ? x : x - reach);
}

/* 2^(byte - 127), exact in bf16; 255 is NaN. */
FN float
g_ue8m0(uint32_t byte)
{
	if (byte == 255)
		return g_float(0x7fc00000u);
	return g_float(byte ? byte << 23 : 0x400000u);
}

/* Blocks [begin, end) of one token; end is -1 where nothing is written. */
typedef struct decode_range {
	int32_t begin, end;
} decode_range;

/* Piece `piece` into the notes: a token, or what a row of the metadata says.
 * The first item writes them and, if `reports`, says what is wrong.
 * Barriers. */
FN void
decode_take(GLOBAL spmla_g_state *fault_state,
	    GLOBAL spmla_g_status *fault_status, uint32_t reports,
	    GLOBAL const int32_t *metadata, uint32_t parts, uint32_t piece,
	    uint32_t tokens, LOCAL int32_t *notes)
{
	BARRIER(); /* nobody reads the last notes */
	if (g_item() == 0 && !parts) {
		notes[DECODE_FIRST] = notes[DECODE_LAST] = (int32_t)piece;
	} else if (g_item() == 0) {
		GLOBAL const int32_t *part = metadata + (uint64_t)piece * 8;
		const int32_t first = part[0];
		int32_t last = part[1];

		/* At or behind the last token a part has no work. */
		if (first < (int32_t)tokens &&
		    (first < 0 || last < first || last >= (int32_t)tokens)) {
			if (reports)
				g_fault(fault_state, fault_status, piece,
					G_FAULT_INDEX);
			last = -1;
		}
		notes[DECODE_FIRST] = first < 0 ? 0 : first;
		notes[DECODE_LAST] = first < (int32_t)tokens ? last : -1;
		notes[DECODE_FIRST_BLOCK] = part[2];
		notes[DECODE_END_BLOCK] = part[3];
		notes[DECODE_SPLIT] = part[4];
	}
	BARRIER();
}

/* The split row of token t, or ~0 where its result is the token's own; *bad
 * where the metadata name no row that could be written. */
FN uint64_t
decode_row(LOCAL const int32_t *notes, GLOBAL const int32_t *num_splits,
	   uint32_t parts, uint64_t split_rows, uint32_t t,
	   PRIVATE uint32_t *bad)
{
	int64_t from, next, row;
	int32_t split;

	*bad = 0;
	if (!parts)
		return ~(uint64_t)0;
	from = num_splits[t];
	next = num_splits[t + 1];
	split = (int32_t)t == notes[DECODE_FIRST] ? notes[DECODE_SPLIT] : 0;
	row = from + split;
	if (split < 0 || row < 0 || row >= next ||
	    (next - from > 1 && (uint64_t)row >= split_rows))
		*bad = 1;
	return next - from == 1 ? ~(uint64_t)0 : (uint64_t)row;
}

/* Which of a token's `blocks` blocks the piece has. */
FN decode_range
decode_blocks_of(GLOBAL spmla_g_state *fault_state,
		 GLOBAL spmla_g_status *fault_status, uint32_t reports,
		 LOCAL const int32_t *notes, GLOBAL const int32_t *num_splits,
		 uint32_t parts, uint64_t split_rows, uint32_t t,
		 int32_t blocks)
{
	uint32_t bad, no_row;
	decode_range r;

	r.begin = 0;
	r.end = blocks;
	if (!parts)
		return r;
	r.end = 0x7fffffff; /* whatever the metadata took for its end */
	if ((int32_t)t == notes[DECODE_FIRST])
		r.begin = notes[DECODE_FIRST_BLOCK];
	if ((int32_t)t == notes[DECODE_LAST])
		r.end = notes[DECODE_END_BLOCK];
	bad = r.begin < 0 || r.end < r.begin;
	r.begin = r.begin < 0 ? 0 : r.begin < blocks ? r.begin : blocks;
	r.end = r.end < r.begin ? r.begin : r.end < blocks ? r.end : blocks;
	(void)decode_row(notes, num_splits, parts, split_rows, t, &no_row);
	r.end = no_row ? -1 : r.end;
	for (bad += no_row; bad && reports && g_item() == 0; bad--)
		g_fault(fault_state, fault_status, t, G_FAULT_INDEX);
	return r;
}

#endif
#endif
