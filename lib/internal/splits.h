/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the decode steps that a GPU does in parts (split-KV): those whose
 * tokens alone would not keep it busy. The choice follows from plan and shape,
 * so a captured graph always does the same. With the batch-invariant flag it
 * follows from the plan alone: every step of V3.2 has the same fixed splits,
 * and V4's are whole. It stands in lib because the plan reserves the split
 * rows, and layers choose by it.
 */
#ifndef SPMLA_INTERNAL_SPLITS_H
#define SPMLA_INTERNAL_SPLITS_H

#include "spmla/internal/config.h"
#include "spmla/ops/tile_sched.h"
#include "spmla/spmla.h"

enum {
	/* the most tokens of a step in parts, and its most parts */
	SPMLA_I_SPLIT_TOKENS = 1024,
	SPMLA_I_SPLIT_HEADS = 64, /* of a block of threads */
	/* Fixed splits: the most of a token, the fewest blocks of one. */
	SPMLA_I_FIXED_SPLITS = 4,
	SPMLA_I_FIXED_BLOCKS = 4
};

/* The key blocks of so many keys. */
static inline uint32_t
spmla_i_key_blocks(uint32_t keys)
{
	const uint32_t block = SPMLA_TILE_BLOCK_KEYS;

	return keys / block + (keys % block != 0);
}

/* The key blocks of a fixed split of a token that may have so many keys. With
 * the batch-invariant flag every split has this many, whatever the step. 0: the
 * token has one split, or splits are not fixed.
 * Example: top-k 2048 has 32 blocks, so a split has 8; 256 keys have 4 and one
 * split. */
static inline uint32_t
spmla_i_split_blocks(const spmla_plan *plan, uint32_t keys)
{
	const uint32_t blocks = spmla_i_key_blocks(keys);
	const uint32_t most = SPMLA_I_FIXED_SPLITS;
	const uint32_t even = blocks / most + (blocks % most != 0);
	const uint32_t each =
		even > SPMLA_I_FIXED_BLOCKS ? even : SPMLA_I_FIXED_BLOCKS;

	if (plan->device.kind != SPMLA_BACKEND_CUDA ||
	    !(plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT))
		return 0;
	return blocks > each ? each : 0;
}

/* The most fixed splits of such a token; 0 where they are not fixed. */
static inline uint32_t
spmla_i_fixed_splits(const spmla_plan *plan, uint32_t keys)
{
	const uint32_t blocks = spmla_i_key_blocks(keys);
	const uint32_t each = spmla_i_split_blocks(plan, keys);

	return each ? blocks / each + (blocks % each != 0) : 0;
}

/* The keys of a token that fixed splits cut, in the plan's layers: V3.2's. V4's
 * tokens are whole: on an H100 three splits took a seventh off a decode of one
 * token and made a decode of 128 take 2.4 times as long (bench/NOTES.md). */
static inline uint32_t
spmla_i_cut_keys(const spmla_plan *plan)
{
	return spmla_i_is_v4(&plan->config) ? 0 : plan->config.topk;
}

/* Whether the kernel of a decode can combine its splits, on such a device. */
static inline int
spmla_i_can_combine(const spmla_device *device)
{
	return device->kind == SPMLA_BACKEND_CUDA && device->arch == 90;
}

/* Whether whole tokens, `at_a_time` of them, keep a GPU busy to the end: either
 * the last round has more than `full` tokens, or there were `enough` full rounds
 * before it. Cutting and combining parts costs as much as an idle third of a
 * round (V3.2) or four ninths (V4). V3.2 with 128 heads on an H100, where a round is 66 tokens, in parts
 * and whole: 40 tokens 74 and 82 us, 48 tokens 83 and 83, 96 tokens (66 and 30)
 * 140 and 163, 110 tokens (66 and 44) 160 and 163, 140 tokens 196 and 239. */
static inline int
spmla_i_rounds_full(uint32_t tokens, uint32_t at_a_time, uint32_t full,
		    uint32_t enough)
{
	const uint32_t last = tokens ? (tokens - 1) % at_a_time + 1 : 0;

	return tokens / enough >= at_a_time || last > full;
}

/* The same for a model. V4 runs in parts up to half a round: a token has few
 * blocks, but combining its splits costs as much as with V3.2. If the kernel
 * combines the splits, some steps beyond a round run in parts, too. With more
 * than 64 heads the rule above decides, with five rounds. With fewer a token
 * takes half as long, and only an eighth of a round beyond the first pays. On an
 * H100, in parts and whole: C4A with 128 heads 96 tokens 92 and 97
 * us, 104 tokens 98 and 97, 140 tokens 124 and 142, 296 tokens 229 and 234; C4A
 * with 64 heads 140 tokens 60 and 67, 148 tokens 63 and 68, 160 tokens 67 and 68;
 * C128A with 64 heads 140 tokens 87 and 109. */
static inline int
spmla_i_whole_pays(const spmla_device *device, uint32_t v4, uint32_t heads,
		   uint32_t tokens, uint32_t at_a_time)
{
	if (!v4)
		return spmla_i_rounds_full(tokens, at_a_time, at_a_time * 2 / 3,
					   3);
	if (tokens <= at_a_time || !spmla_i_can_combine(device))
		return tokens > at_a_time / 2;
	if (heads > SPMLA_I_SPLIT_HEADS)
		return spmla_i_rounds_full(tokens, at_a_time, at_a_time * 5 / 9,
					   5);
	return tokens > at_a_time + at_a_time / 8;
}

/* The parts of a step, at most `most`. Each token gets the same number, unless
 * that leaves more than a quarter of `most` idle. A part that no two tokens
 * share writes one result, and there are fewer results to combine. On the 66
 * clusters of an H100 8 tokens take 64 parts and 12 take 60, but 24 take all
 * 66, not 48. */
static inline uint32_t
spmla_i_even_parts(uint32_t tokens, uint32_t most)
{
	const uint32_t parts = tokens ? most / tokens * tokens : 0;

	return (uint64_t)parts * 4 >= (uint64_t)most * 3 ? parts : most;
}

/* The most parts that share the tokens of a step evenly, for this many heads.
 * 0: no parts, as always with the batch-invariant flag and on the CPU. */
static inline uint32_t
spmla_i_parts_for(const spmla_plan *plan, uint32_t heads)
{
	const uint32_t groups =
		(heads + SPMLA_I_SPLIT_HEADS - 1) / SPMLA_I_SPLIT_HEADS;
	const uint32_t parts = plan->device.sm_count / groups;

	if (plan->device.kind == SPMLA_BACKEND_CPU ||
	    plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT || parts < 2)
		return 0;
	return parts < SPMLA_I_SPLIT_TOKENS ? parts : SPMLA_I_SPLIT_TOKENS;
}

/* The same for the heads of the plan. */
static inline uint32_t
spmla_i_split_parts(const spmla_plan *plan)
{
	return spmla_i_parts_for(plan, plan->config.heads);
}

/* The most tokens of a step that is done in parts: as many as the largest
 * bucket has that leaves the GPU idle. The buffers are planned for that many. A
 * shape with more tokens, inside a larger bucket, runs whole.
 * Example: of buckets of 8, 64 and 256 tokens with 128 heads, an H100 does only
 * the one of 8 in parts. */
static inline uint32_t
spmla_i_split_tokens(const spmla_plan *plan)
{
	const uint32_t parts = spmla_i_split_parts(plan);
	const uint32_t v4 = spmla_i_is_v4(&plan->config);
	uint32_t most = 0, i;

	for (i = 0; i < plan->config.bucket_count; i++) {
		const uint32_t tokens = plan->config.buckets[i].tokens;

		if (parts && tokens <= SPMLA_I_SPLIT_TOKENS &&
		    !spmla_i_whole_pays(&plan->device, v4, plan->config.heads,
					tokens, parts) &&
		    tokens > most)
			most = tokens;
	}
	return most;
}

/* The most tokens of a step whose splits are fixed: the largest bucket's. */
static inline uint32_t
spmla_i_fixed_tokens(const spmla_plan *plan)
{
	uint32_t most = 0, i;

	for (i = 0; i < plan->config.bucket_count; i++)
		if (plan->config.buckets[i].tokens > most)
			most = plan->config.buckets[i].tokens;
	return most;
}

/* The parts that a step of `tokens` tokens shares evenly. 0: it runs whole, or
 * its splits are fixed. */
static inline uint32_t
spmla_i_decode_parts(const spmla_plan *plan, uint32_t tokens)
{
	const uint32_t parts = spmla_i_split_parts(plan);

	return tokens <= spmla_i_split_tokens(plan) &&
			       !spmla_i_whole_pays(&plan->device,
						   spmla_i_is_v4(&plan->config),
						   plan->config.heads, tokens,
						   parts)
		       ? spmla_i_even_parts(tokens, parts)
		       : 0;
}

#endif
