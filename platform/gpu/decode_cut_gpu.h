/* SPDX-License-Identifier: Apache-2.0
 *
 * How the parts of a decode step share its tokens' key blocks: TILE_SCHEDULER_
 * METADATA and NUM_SPLITS, by one block, as part of the prologue. The hard
 * idea: FlashMLA's planner fills part after part, each beginning where the last
 * one ended, a chain of as many steps as there are parts. Here the line of all
 * costs is cut evenly, so every part finds its own begin, and its end is the
 * next one's begin. The rows read as those of tile_sched with
 * SPMLA_TILE_ROW_NEW.
 */
#ifndef SPMLA_PLATFORM_GPU_DECODE_CUT_H
#define SPMLA_PLATFORM_GPU_DECODE_CUT_H

#include "spmla/platform/gpu/decode_work_gpu.h"
#include "spmla/platform/gpu/scan_gpu.h"

enum {
	DECODE_CUT_TOKENS = 1024, /* at most; and parts */
	DECODE_CUT_OVERHEAD = 2   /* blocks that a token costs beyond its own */
};

#ifdef SPMLA_GPU_KERNELS

/* Local memory of decode_cut_block. */
typedef struct decode_cut {
	uint32_t ends[DECODE_CUT_TOKENS];   /* of costs, by token */
	uint32_t tokens[DECODE_CUT_TOKENS]; /* where parts begin: token, */
	uint32_t blocks[DECODE_CUT_TOKENS]; /* and block */
	uint32_t inner[DECODE_CUT_TOKENS]; /* begins inside tokens up to here */
} decode_cut;

/* Where part p begins. */
FN void
decode_cut_begin(LOCAL decode_cut *cut, uint32_t p, uint32_t tokens,
		 uint32_t parts)
{
	const uint32_t total = tokens ? cut->ends[tokens - 1] : 0;
	const uint32_t rest = total % parts;
	const uint32_t at = p * (total / parts) + (p < rest ? p : rest);
	uint32_t low = 0, high = tokens, into;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (cut->ends[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	into = at - (low ? cut->ends[low - 1] : 0);
	cut->tokens[p] = low;
	cut->blocks[p] = low < tokens && into > DECODE_CUT_OVERHEAD
				 ? into - DECODE_CUT_OVERHEAD
				 : 0;
}

/* The metadata of tokens with the given contexts, of which a token selects topk
 * keys at most; tokens and parts up to DECODE_CUT_TOKENS. `items` is the
 * block's width. Lengths were written before a barrier. */
FN void
decode_cut_block(GLOBAL const int32_t *context_lens, uint32_t topk,
		 uint32_t tokens, uint32_t parts, GLOBAL int32_t *metadata,
		 GLOBAL int32_t *num_splits, uint32_t items,
		 LOCAL decode_cut *cut, LOCAL uint64_t *sums)
{
	uint32_t done = 0, first, i, r;
	uint64_t all;

	for (first = 0; first < tokens; first += items) {
		uint64_t before;
		uint32_t cost = 0;

		i = first + g_item();
		if (i < tokens)
			cost = decode_blocks(
				       decode_len(context_lens, 1, topk, i),
				       1) +
			       DECODE_CUT_OVERHEAD;
		before = g_scan_sum(cost, items, sums, &all);
		if (i < tokens)
			cut->ends[i] = done + (uint32_t)before + cost;
		done += (uint32_t)all;
	}
	BARRIER();
	for (i = g_item(); i < parts; i += items)
		decode_cut_begin(cut, i, tokens, parts);
	BARRIER();
	done = 0;
	for (first = 0; first < parts; first += items) {
		uint32_t is_inner = 0;

		i = first + g_item();
		/* Parts that begin at the same place have no work but the last,
		 * and are one split. */
		if (i < parts)
			is_inner = cut->blocks[i] &&
				   (i == 0 ||
				    cut->tokens[i] != cut->tokens[i - 1] ||
				    cut->blocks[i] != cut->blocks[i - 1]);
		is_inner += (uint32_t)g_scan_sum(is_inner, items, sums, &all);
		if (i < parts)
			cut->inner[i] = done + is_inner;
		done += (uint32_t)all;
	}
	BARRIER();
	for (i = g_item(); i < parts; i += items) {
		GLOBAL int32_t *row = metadata + i * 8;
		const uint32_t last = i + 1 == parts;
		const uint32_t token = cut->tokens[i], block = cut->blocks[i];
		const uint32_t to = last ? tokens : cut->tokens[i + 1];
		const uint32_t to_block = last ? 0 : cut->blocks[i + 1];
		const uint32_t has_work =
			token < to || (token == to && block < to_block);
		const uint32_t end = to_block ? to : to - 1;
		uint32_t blocks = 0, split_first, split_last, low = 0, high = i;

		/* The first part that begins in this token. */
		while (low < high) {
			const uint32_t middle = (low + high) / 2;

			if (cut->tokens[middle] >= token)
				high = middle;
			else
				low = middle + 1;
		}
		if (has_work)
			blocks = decode_blocks(
				decode_len(context_lens, 1, topk, end), 1);
		split_first = block != 0;
		split_last = to_block != 0 && to_block != blocks;
		if (token == end)
			split_first = split_last = split_first | split_last;
		row[0] = (int32_t)(has_work ? token : tokens);
		row[1] = (int32_t)(has_work ? end : tokens - 1);
		row[2] = (int32_t)(has_work ? block : 0);
		row[3] = (int32_t)(to_block ? to_block : blocks);
		row[4] = (int32_t)(cut->inner[i] -
				   (low ? cut->inner[low - 1] : 0));
		row[5] = (int32_t)(has_work ? split_first : 0);
		row[6] = (int32_t)(has_work ? split_last : 0);
		row[7] = 0;
		/* Splits before each token that begins behind the last part's
		 * begin, up to this one's. */
		for (r = i ? cut->tokens[i - 1] + 1 : 0; r <= token; r++)
			num_splits[r] =
				(int32_t)(r + (i ? cut->inner[i - 1] : 0));
		for (r = token + 1; last && r <= tokens; r++)
			num_splits[r] = (int32_t)(r + cut->inner[i]);
	}
}

#endif
#endif
