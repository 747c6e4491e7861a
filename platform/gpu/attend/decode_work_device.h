/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of sparse_decode: a token's keys, in blocks of 64. Each of the first
 * whole_tokens tokens is a piece of work. The parts follow: pieces of the other
 * tokens, as tile_sched's metadata share them. A part may have only some blocks
 * of a token; the result then goes to a split row. Without metadata all tokens
 * are whole.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_WORK_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_WORK_DEVICE_H

#include "spmla/platform/gpu/dialect/divide.h"
#include "spmla/platform/gpu/step/decode_blocks_device.h"
#include "spmla/platform/gpu/step/fault_device.h"

/* The parameters of every kernel of sparse_decode. What a block reads first
 * lies together, since each 64 bytes of parameters are a miss when a kernel
 * begins. max_logits, base2 and quiet are for sparse_prefill, which has the
 * same matrix kernels. entries and extra_entries are for sparse_decode_few: the
 * most entries of a token's lists. The forms of the lists say what topk_lens
 * and extra_topk_lens mean. Without requests next_n is 1, and the request
 * strides are the tokens'. With a workspace, all 0, sparse_decode_wgmma adds up
 * the splits, which are then bf16. */
#define SPMLA_K_DECODE(P, S)                      \
	SPMLA_K_FAULT(P)                          \
	P(uint16_t, out)                          \
	P(float, lse)                             \
	P(float, split_out)                       \
	P(float, split_lse)                       \
	P(const int32_t, tile_scheduler_metadata) \
	P(const int32_t, num_splits)              \
	P(float, max_logits)                      \
	P(const float, attn_sink)                 \
	P(const int32_t, topk_lens)               \
	P(const int32_t, extra_topk_lens)         \
	P(uint32_t, workspace)                    \
	P(const uint8_t, extra_cache)             \
	P(const uint16_t, q)                      \
	P(const int32_t, slots)                   \
	P(const int32_t, extra_slots)             \
	P(const uint8_t, cache)                   \
	S(int64_t, q_token_stride)                \
	S(int64_t, q_head_stride)                 \
	S(int64_t, slots_stride)                  \
	S(int64_t, extra_slots_stride)            \
	S(int64_t, q_request_stride)              \
	S(uint64_t, page_stride_bytes)            \
	S(uint64_t, extra_page_stride_bytes)      \
	S(uint32_t, heads)                        \
	S(uint32_t, topk)                         \
	S(uint32_t, extra_topk)                   \
	S(uint32_t, entries)                      \
	S(uint32_t, extra_entries)                \
	S(uint32_t, list_form)                    \
	S(uint32_t, extra_list_form)              \
	S(uint32_t, pages)                        \
	S(uint32_t, extra_pages)                  \
	S(spmla_g_divisor, next_n)                \
	S(spmla_g_divisor, page)                  \
	S(spmla_g_divisor, extra_page)            \
	S(spmla_g_divisor, lens_tokens)           \
	S(uint32_t, parts)                        \
	S(uint32_t, whole_tokens)                 \
	S(uint32_t, tokens)                       \
	S(uint32_t, dim)                          \
	S(uint32_t, layout)                       \
	S(uint32_t, fnuz)                         \
	S(uint32_t, extra_fnuz)                   \
	S(uint32_t, split_rows)                   \
	S(float, scale)                           \
	S(int64_t, out_request_stride)            \
	S(int64_t, out_token_stride)              \
	S(int64_t, out_head_stride)               \
	S(int64_t, lse_request_stride)            \
	S(int64_t, lse_token_stride)              \
	S(int64_t, lse_head_stride)               \
	S(uint32_t, has_sink)                     \
	S(uint32_t, has_lse)                      \
	S(float, empty_lse)                       \
	S(uint32_t, lse_sink)                     \
	S(uint32_t, has_max_logits)               \
	S(uint32_t, base2)                        \
	S(uint32_t, quiet)

typedef struct decode_scalars {
	SPMLA_K_DECODE(SPMLA_I_K_NONE, SPMLA_I_K_FIELD)
} decode_scalars;

enum { DECODE_HEADS = 64 }; /* of a block with matrix instructions */

/* A piece of work in shared memory, so that it takes no registers while keys
 * are processed. It has tokens DECODE_FIRST .. DECODE_LAST, and none if the
 * last is before the first. With parts, the rest of the metadata's row follows.
 */
enum {
	DECODE_FIRST,
	DECODE_LAST,
	DECODE_FIRST_BLOCK,
	DECODE_END_BLOCK,
	DECODE_SPLIT,
	/* Of the current token, optional: lengths of its lists, and its row. */
	DECODE_LEN,
	DECODE_EXTRA_LEN,
	DECODE_ROW,
	DECODE_NOTES
};

#ifdef SPMLA_GPU_KERNELS

/* By how many powers of two an O in f32 may exceed its reference. */
#define DECODE_O_REACH 60.0f

/* The parameters as one struct. */
#define DECODE_POINTER(type, name) GLOBAL type *name;
typedef struct decode_args {
	SPMLA_K_DECODE(DECODE_POINTER, SPMLA_I_K_NONE)
	decode_scalars s;
} decode_args;
#undef DECODE_POINTER

/* What a sink adds to L, which is relative to `reach`, in log2 units. A large
 * `reach` may be infinite, and infinity minus infinity is NaN: so nothing is
 * subtracted from an infinite sink. */
FN float
g_sink_weight(float sink, float reach)
{
	const float x = sink * G_LOG2_E;

	return g_exp2(g_abs(x) == G_INF ? x : x - reach);
}

/* Adds the sink to a sum, given by its log2; returns the log2 of the new sum.
 */
FN float
g_lse2_with_sink(float lse2, float sink)
{
	const float x = sink * G_LOG2_E;
	const float most = lse2 > x ? lse2 : x;

	if (g_abs(most) == G_INF)
		return most;
	return g_log2(g_exp2(lse2 - most) + g_exp2(x - most)) + most;
}

/* Log2 of what the sum of all splits is divided by: g, log2 of their weights,
 * and the sink. g is +inf if no split has a key, and stays it. */
FN float
decode_g_with_sink(float g, float sink)
{
	return g + g_log2(1.0f + g_exp2(sink * G_LOG2_E - g));
}

/* The lse of a head, from the log2 of its sum. Scores near the end of f32 are
 * beyond it in log2 units. The lse is then `natural`, the score that weights
 * are relative to, in natural units: what the sum adds to it is nothing beside
 * it. If the sink is beyond f32, too, the lse is +inf. */
FN float
decode_result_lse(uint32_t is_empty, float lse2, float natural, float empty_lse,
		  uint32_t base2, uint32_t lse_sink, float sink)
{
	const float all = lse_sink ? g_lse2_with_sink(lse2, sink) : lse2;

	if (is_empty)
		return empty_lse;
	if (base2)
		return all;
	if (g_abs(all) != G_INF)
		return all * G_LN_2;
	return lse_sink && sink * G_LOG2_E == G_INF ? G_INF : natural;
}

/* Where token t begins, in elements. */
FN int64_t
decode_token_at(uint32_t t, spmla_g_divisor next_n, int64_t request_stride,
		int64_t token_stride)
{
	const uint32_t request = g_divide(t, next_n);

	return (int64_t)request * request_stride +
	       (int64_t)(t - request * next_n.by) * token_stride;
}

/* A whole token, or the work of a part of the metadata: tokens first .. last,
 * and none if the last is before the first. The first
 * token begins at block first_block, as split `split`; the last ends at block
 * end_block. */
typedef struct decode_piece {
	int32_t first, last;
	int32_t first_block, end_block;
	int32_t split;
	uint32_t fault; /* it names tokens that do not exist */
} decode_piece;

/* Blocks [begin, end) of one token; end is -1 where nothing is written. */
typedef struct decode_range {
	int32_t begin, end;
	uint32_t row;    /* split row, or DECODE_WHOLE */
	int32_t split;   /* which of the token's it is */
	uint32_t faults; /* how many faults the metadata have */
	uint32_t lost;   /* no rows are there for its splits, or not for all */
} decode_range;

/* Stands for a split row where results are the token's own. */
#define DECODE_WHOLE 0xffffffffu

FN decode_piece
decode_piece_of(GLOBAL const int32_t *metadata, uint32_t whole, uint32_t piece,
		uint32_t tokens)
{
	const int32_t shared = (int32_t)(tokens - whole);
	GLOBAL const int32_t *part;
	decode_piece p;

	p.first = p.last = (int32_t)piece;
	p.first_block = 0;
	p.end_block = 0x7fffffff;
	p.split = 0;
	p.fault = 0;
	if (piece < whole)
		return p;
	part = metadata + (uint64_t)(piece - whole) * 8;
	p.first = part[0];
	p.last = part[1];
	p.first_block = part[2];
	p.end_block = part[3];
	p.split = part[4];
	/* A part that begins behind the last token has no work. */
	if (p.first >= shared) {
		p.last = -1;
	} else if (p.first < 0 || p.last < p.first || p.last >= shared) {
		p.last = -1;
		p.fault = 1;
	}
	/* Without work only p.last counts; p.first + whole may overflow. */
	p.first = (p.last < 0 ? 0 : p.first) + (int32_t)whole;
	p.last += p.last < 0 ? 0 : (int32_t)whole;
	return p;
}

/* Which of a token's `blocks` blocks the piece has, and the row of its results.
 * The range ends at `blocks` whatever the metadata say. */
FN decode_range
decode_range_of(const PRIVATE decode_piece *piece,
		GLOBAL const int32_t *num_splits, uint32_t whole,
		uint32_t split_rows, uint32_t t, int32_t blocks)
{
	decode_range r;
	int64_t from, next, row;
	int32_t split;

	r.begin = 0;
	r.end = blocks;
	r.row = DECODE_WHOLE;
	r.split = 0;
	r.faults = 0;
	r.lost = 0;
	if (t < whole)
		return r;
	r.end = 0x7fffffff;
	split = (int32_t)t == piece->first ? piece->split : 0;
	if ((int32_t)t == piece->first)
		r.begin = piece->first_block;
	if ((int32_t)t == piece->last)
		r.end = piece->end_block;
	r.faults = r.begin < 0 || r.end < r.begin;
	r.begin = r.begin < 0 ? 0 : r.begin < blocks ? r.begin : blocks;
	r.end = r.end < r.begin ? r.begin : r.end < blocks ? r.end : blocks;
	r.split = split;
	from = num_splits[t - whole];
	next = num_splits[t - whole + 1];
	row = from + split;
	r.lost = next - from != 1 &&
		 (from < 0 || next <= from || next > (int64_t)split_rows);
	if (next - from != 1)
		r.row = (uint32_t)row;
	if (split < 0 || row < 0 || row >= next ||
	    (next - from > 1 && row >= (int64_t)split_rows)) {
		r.end = -1;
		r.faults++;
	}
	return r;
}

/* Brings piece `piece` into the notes. The first item writes them and, if
 * `reports`, reports faults. Barriers. */
FN void
decode_take(GLOBAL spmla_g_state *fault_state,
	    GLOBAL spmla_g_status *fault_status, uint32_t reports,
	    GLOBAL const int32_t *metadata, uint32_t whole, uint32_t piece,
	    uint32_t tokens, LOCAL int32_t *notes)
{
	BARRIER(); /* all have read the last notes */
	if (g_item() == 0) {
		const decode_piece p =
			decode_piece_of(metadata, whole, piece, tokens);

		if (p.fault && reports)
			g_fault(fault_state, fault_status, piece - whole,
				G_FAULT_INDEX);
		notes[DECODE_FIRST] = p.first;
		notes[DECODE_LAST] = p.last;
		notes[DECODE_FIRST_BLOCK] = p.first_block;
		notes[DECODE_END_BLOCK] = p.end_block;
		notes[DECODE_SPLIT] = p.split;
	}
	BARRIER();
}

/* The blocks of token t that the piece in the notes has. */
FN decode_range
decode_noted_range(LOCAL const int32_t *notes, GLOBAL const int32_t *num_splits,
		   uint32_t whole, uint32_t split_rows, uint32_t t,
		   int32_t blocks)
{
	decode_piece p;

	p.first = notes[DECODE_FIRST];
	p.last = notes[DECODE_LAST];
	p.first_block = notes[DECODE_FIRST_BLOCK];
	p.end_block = notes[DECODE_END_BLOCK];
	p.split = notes[DECODE_SPLIT];
	p.fault = 0;
	return decode_range_of(&p, num_splits, whole, split_rows, t, blocks);
}

/* The same. If `reports`, the first item also reports faults; `faults` are
 * the faults of the token's lists. */
FN decode_range
decode_blocks_of(GLOBAL spmla_g_state *fault_state,
		 GLOBAL spmla_g_status *fault_status, uint32_t reports,
		 LOCAL const int32_t *notes, GLOBAL const int32_t *num_splits,
		 uint32_t whole, uint32_t split_rows, uint32_t t,
		 int32_t blocks, uint32_t faults)
{
	decode_range r = decode_noted_range(notes, num_splits, whole,
					    split_rows, t, blocks);

	r.faults += faults;

	for (; r.faults && reports && g_item() == 0; r.faults--)
		g_fault(fault_state, fault_status, t, G_FAULT_INDEX);
	return r;
}

#endif
#endif
