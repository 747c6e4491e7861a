/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the decode steps that a GPU does in parts (split-KV): those whose
 * tokens alone would not keep it busy. The choice follows from plan and shape,
 * so a captured graph always does the same. With the batch-invariant flag it
 * follows from the plan alone: every step of V3.2 has the same fixed splits, or
 * none, and V4's are whole. It stands in lib because the plan reserves the split
 * rows, and layers choose by it.
 */
#ifndef SPMLA_INTERNAL_SPLITS_H
#define SPMLA_INTERNAL_SPLITS_H

#include "spmla/internal/config.h"
#include "spmla/internal/few.h"
#include "spmla/ops/tile_sched.h"
#include "spmla/spmla.h"

enum {
	/* the most tokens that parts share, and the most parts */
	SPMLA_I_SPLIT_TOKENS = 1024,
	SPMLA_I_SPLIT_HEADS = 64, /* of a block of threads */
	/* The key blocks that take as long as a change of tokens: what a token
	 * costs besides its own blocks, if tokens share parts. */
	SPMLA_I_SPLIT_OVERHEAD = 3,
	/* Behind whole tokens, the most parts of a token if the decode combines
	 * its splits: blocks of more splits would not wait for each other, and
	 * the last one would add them all. */
	SPMLA_I_TAIL_PARTS = 16,
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

/* The keys of a token that fixed splits cut, in the plan's layers: V3.2's,
 * unless one launch shares them (few.h). V4's tokens are whole: on an H100 three
 * splits took a seventh off a decode of one token and made a decode of 128 take
 * 2.4 times as long (bench/NOTES.md). */
static inline uint32_t
spmla_i_cut_keys(const spmla_plan *plan)
{
	const spmla_config *c = &plan->config;

	if (spmla_i_is_v4(c) ||
	    spmla_i_few_always(&plan->device, c->kv_layout, c->heads, c->topk) <
		    SPMLA_I_FEW_COUNT)
		return 0;
	return c->topk;
}

/* Whether the kernel of a decode can combine its splits, on such a device. */
static inline int
spmla_i_can_combine(const spmla_device *device)
{
	return spmla_i_is_hopper(device);
}

/* The most tokens that parts share, where a GPU does `at_a_time` whole ones. A
 * fuller last round is done whole: cutting and combining parts costs as much as
 * an idle quarter of a round (V3.2; a third where another launch combines) or
 * half of one (V4, whose tokens have few blocks). */
static inline uint32_t
spmla_i_most_shared(const spmla_device *device, uint32_t v4, uint32_t at_a_time)
{
	if (v4)
		return at_a_time / 2;
	/* With all of three quarters each token would be a part of its own. */
	return spmla_i_can_combine(device) ? (at_a_time * 3 - 1) / 4
					   : at_a_time * 2 / 3;
}

/* The parts of `tokens` tokens, at most `most`. Each token gets the same
 * number, unless that leaves more than a quarter of `most` idle. A part that no
 * two tokens share writes one result, and there are fewer results to combine.
 * On the 66 clusters of an H100 8 tokens take 64 parts and 12 take 60, but 24
 * take all 66, not 48. */
static inline uint32_t
spmla_i_even_parts(uint32_t tokens, uint32_t most)
{
	const uint32_t parts = tokens ? most / tokens * tokens : 0;

	return (uint64_t)parts * 4 >= (uint64_t)most * 3 ? parts : most;
}

/* How the tokens of a decode are shared out. */
typedef struct spmla_i_cut {
	uint32_t whole; /* tokens that are done whole, the first ones */
	uint32_t parts; /* they share the other tokens; 0: all are whole */
} spmla_i_cut;

/* The cut of `tokens` tokens, where a GPU does `at_a_time` whole ones, or
 * parts, at the same time. Rounds that are full are whole. Up to `at_a_time`
 * parts share the last round, unless it is nearly full. A device whose decode
 * cannot combine splits has no parts behind a whole round of V4. `together`
 * tokens are not divided.
 * Example: on the 132 multiprocessors of an H100, of 140 tokens of V4 with 64
 * heads 132 are whole, and 128 parts share the last 8, 16 a token. 200 tokens
 * are all whole: the last round has 68. */
static inline spmla_i_cut
spmla_i_cut_tokens(const spmla_device *device, uint32_t v4, uint32_t tokens,
		   uint32_t at_a_time, uint32_t together)
{
	spmla_i_cut cut = {0, 0};
	uint32_t whole, most;

	if (at_a_time < 2)
		return cut;
	whole = tokens / at_a_time * at_a_time;
	if (tokens == whole)
		return cut;
	whole -= whole % together;
	if (tokens - whole > spmla_i_most_shared(device, v4, at_a_time) ||
	    (whole && v4 && !spmla_i_can_combine(device)))
		return cut;
	cut.whole = whole;
	most = at_a_time;
	if (whole && spmla_i_can_combine(device) &&
	    most / SPMLA_I_TAIL_PARTS >= tokens - whole)
		most = (tokens - whole) * SPMLA_I_TAIL_PARTS;
	cut.parts = spmla_i_even_parts(tokens - whole, most);
	return cut;
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

/* The most tokens that parts share in a step. The buffers are planned for that
 * many, if a bucket is done in parts: then a smaller shape inside it may be,
 * too. A shape whose parts would share more tokens runs whole.
 * Example: with 128 heads on an H100 a bucket of 8 tokens is done in parts.
 * Buckets of 64 and 256 run whole, as their last rounds have 64 and 58 tokens
 * of 66. So parts share up to 8 tokens, and a shape of 20 runs whole. */
static inline uint32_t
spmla_i_split_tokens(const spmla_plan *plan)
{
	const uint32_t parts = spmla_i_split_parts(plan);
	const uint32_t v4 = spmla_i_is_v4(&plan->config);
	const uint32_t limit = spmla_i_most_shared(&plan->device, v4, parts);
	uint32_t most = 0, i;

	for (i = 0; i < plan->config.bucket_count; i++) {
		const uint32_t tokens = plan->config.buckets[i].tokens;
		const uint32_t shared = tokens < limit ? tokens : limit;

		if (shared > most &&
		    spmla_i_cut_tokens(&plan->device, v4, tokens, parts, 1)
			    .parts)
			most = shared;
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

/* The cut of a step of `tokens` tokens. Without parts it runs whole, or its
 * splits are fixed. */
static inline spmla_i_cut
spmla_i_step_cut(const spmla_plan *plan, uint32_t tokens)
{
	const spmla_i_cut none = {0, 0};
	const spmla_i_cut cut =
		spmla_i_cut_tokens(&plan->device, spmla_i_is_v4(&plan->config),
				   tokens, spmla_i_split_parts(plan), 1);

	return tokens - cut.whole <= spmla_i_split_tokens(plan) ? cut : none;
}

#endif
