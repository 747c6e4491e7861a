/* SPDX-License-Identifier: Apache-2.0
 *
 * How the parts of a decode step share the key blocks of its tokens:
 * TILE_SCHEDULER_METADATA and NUM_SPLITS, by one block, in the prologue. V4
 * has one such cut for each kind of layer with compressed keys.
 *
 * The hard idea: FlashMLA's planner fills part after part, and each begins
 * where the last one ended: a chain of as many steps as there are parts. Here
 * the line of all costs is cut evenly. Every part finds its own begin, and
 * ends where the next one begins. A row has the format SPMLA_TILE_ROW_NEW of
 * tile_sched. The code runs once, so few instructions count for more
 * than few steps.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_DECODE_CUT_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_DECODE_CUT_DEVICE_H

#include "spmla/platform/gpu/dialect/scan.h"
#include "spmla/platform/gpu/step/decode_blocks_device.h"

enum {
	DECODE_CUT_TOKENS = 1024, /* at most; and parts */
	DECODE_CUT_OVERHEAD = 3   /* SPMLA_I_SPLIT_OVERHEAD */
};

#ifdef SPMLA_GPU_KERNELS

/* Shared memory of a cut. */
typedef struct decode_cut {
	uint32_t ends[DECODE_CUT_TOKENS];   /* of costs, by token */
	uint32_t tokens[DECODE_CUT_TOKENS]; /* where parts begin: token, */
	uint32_t blocks[DECODE_CUT_TOKENS]; /* and block */
	uint32_t first[DECODE_CUT_TOKENS]; /* part that begins inside a token */
	uint64_t inner[DECODE_CUT_TOKENS / 16]; /* a bit a part: it begins
						 * inside a token; a word a
						 * subgroup */
} decode_cut;

/* How many blocks a token costs beyond its own. It is 0 if the number of parts
 * is a multiple of the tokens: tokens with equally many blocks then share no
 * part. Example: 8 tokens of 32 blocks on 64 parts are 8 parts of 4 blocks
 * each. */
FN uint32_t
decode_cut_overhead(uint32_t tokens, uint32_t parts)
{
	/* Without g_here, clang for gfx1100 gives V4's prologue a stack. */
	return g_here(parts % tokens ? DECODE_CUT_OVERHEAD : 0);
}

/* The key blocks of a token with a context of n. It has up to `near` keys in
 * the first cache and up to `far` in the second, which holds one key for
 * `ratio` positions. */
FN uint32_t
decode_cut_blocks(uint32_t n, uint32_t near, uint32_t far, uint32_t ratio)
{
	const uint32_t keys = n / ratio;

	return decode_blocks(n < near ? n : near, 1) +
	       decode_blocks(keys < far ? keys : far, 0);
}

/* Puts a token on the line of costs. */
FN void
decode_cut_token(LOCAL decode_cut *cut, uint32_t t, uint32_t end)
{
	cut->ends[t] = end;
	cut->first[t] = 0xffffffffu;
}

/* Token t, which has a context of n, by each item; `done` is the line's length
 * before the block's first one. Returns what it is behind the last one. */
FN uint32_t
decode_cut_line(uint32_t n, uint32_t near, uint32_t far, uint32_t ratio,
		uint32_t t, uint32_t done, uint32_t tokens, uint32_t parts,
		uint32_t items, LOCAL decode_cut *cut, LOCAL uint64_t *sums)
{
	const uint32_t cost =
		t < tokens ? decode_cut_blocks(n, near, far, ratio) +
				     decode_cut_overhead(tokens, parts)
			   : 0;
	uint64_t all;
	const uint64_t before = g_scan_sum(cost, items, sums, &all);

	if (t < tokens)
		decode_cut_token(cut, t, done + (uint32_t)before + cost);
	return done + (uint32_t)all;
}

/* The line of tokens with the given contexts, which were written before a
 * barrier. `items` is the block's width. */
FN void
decode_cut_ends(GLOBAL const int32_t *context_lens, uint32_t near, uint32_t far,
		uint32_t ratio, uint32_t tokens, uint32_t parts, uint32_t items,
		LOCAL decode_cut *cut, LOCAL uint64_t *sums)
{
	uint32_t done = 0, first;

	for (first = 0; first < tokens; first += items) {
		const uint32_t t = first + g_item();
		const uint32_t n =
			t < tokens ? decode_len(context_lens, 1, 0x7fffffffu, t)
				   : 0;

		done = decode_cut_line(n, near, far, ratio, t, done, tokens,
				       parts, items, cut, sums);
	}
}

/* Parts before part p that begin inside a token. */
FN uint32_t
decode_cut_inner(LOCAL const decode_cut *cut, uint32_t p)
{
	const uint32_t width = g_width(), last = p / width;
	uint32_t n, i;

	n = g_popcount64(cut->inner[last] & (((uint64_t)1 << p % width) - 1));
	NO_UNROLL
	for (i = 0; i < last; i++)
		n += g_popcount64(cut->inner[i]);
	return n;
}

/* Finds where part p begins; returns 1 if that is inside a token. Parts share a
 * begin behind all tokens, or in the overhead of one token. Then all but the last
 * of these have no work. */
FN uint32_t
decode_cut_begin(LOCAL decode_cut *cut, uint32_t p, uint32_t tokens,
		 uint32_t parts)
{
	const uint32_t total = cut->ends[tokens - 1];
	const uint32_t used = total < parts ? total : parts;
	const uint32_t share = total / used, rest = total - share * used;
	const uint32_t at = p < used ? p * share + p * rest / used : total;
	const uint32_t low = g_first_above(cut->ends, 0, tokens, at);
	const uint32_t overhead = decode_cut_overhead(tokens, parts);
	uint32_t into;

	into = at - (low ? cut->ends[low - 1] : 0);
	into = low < tokens && into > overhead ? into - overhead : 0;
	if (into)
		(void)g_local_min(&cut->first[low], p);
	cut->tokens[p] = low;
	cut->blocks[p] = into;
	return into != 0;
}

/* The row of part p. */
FN void
decode_cut_row(LOCAL const decode_cut *cut, uint32_t p, uint32_t tokens,
	       uint32_t parts, GLOBAL int32_t *row)
{
	const uint32_t last = p + 1 == parts;
	const uint32_t token = cut->tokens[p], block = cut->blocks[p];
	const uint32_t to = last ? tokens : cut->tokens[p + 1];
	const uint32_t to_block = last ? 0 : cut->blocks[p + 1];
	const uint32_t has_work =
		token < to || (token == to && block < to_block);
	const uint32_t end = to_block ? to : to - 1;
	uint32_t blocks = 0, split_first, split_last;

	if (has_work)
		blocks = cut->ends[end] - (end ? cut->ends[end - 1] : 0) -
			 decode_cut_overhead(tokens, parts);
	split_first = block != 0;
	split_last = to_block != 0 && to_block != blocks;
	if (token == end)
		split_first = split_last = split_first | split_last;
	row[0] = (int32_t)(has_work ? token : tokens);
	row[1] = (int32_t)(has_work ? end : tokens - 1);
	row[2] = (int32_t)(has_work ? block : 0);
	row[3] = (int32_t)(to_block ? to_block : blocks);
	row[4] = (int32_t)(block ? p + 1 - cut->first[token] : 0);
	row[5] = (int32_t)(has_work ? split_first : 0);
	row[6] = (int32_t)(has_work ? split_last : 0);
	row[7] = 0;
}

/* The metadata of `tokens` tokens, 1 or more, whose line was written before a
 * barrier; tokens and parts up to DECODE_CUT_TOKENS. */
FN void
decode_cut_block(uint32_t tokens, uint32_t parts, GLOBAL int32_t *metadata,
		 GLOBAL int32_t *num_splits, uint32_t items,
		 LOCAL decode_cut *cut)
{
	uint32_t first, p, r;

	NO_UNROLL
	for (first = 0; first < parts; first += items) {
		uint64_t inner;

		p = first + g_item();
		inner = g_ballot(p < parts &&
				 decode_cut_begin(cut, p, tokens, parts));
		if (g_lane() == 0 && p < parts)
			cut->inner[p / g_width()] = inner;
	}
	BARRIER();
	NO_UNROLL
	for (p = g_item(); p < parts; p += items) {
		const uint32_t before = decode_cut_inner(cut, p);
		const uint32_t token = cut->tokens[p];
		const uint32_t all = before + (cut->blocks[p] != 0);

		decode_cut_row(cut, p, tokens, parts, metadata + p * 8);
		/* Each token is a split, and so is each begin inside one. The
		 * thread writes the tokens behind the last part's begin, up to
		 * this one's. */
		NO_UNROLL
		for (r = p ? cut->tokens[p - 1] + 1 : 0; r <= token; r++)
			num_splits[r] = (int32_t)(r + before);
		NO_UNROLL
		for (r = token + 1; p + 1 == parts && r <= tokens; r++)
			num_splits[r] = (int32_t)(r + all);
	}
}

#endif
#endif
