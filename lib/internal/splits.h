/* SPDX-License-Identifier: Apache-2.0
 *
 * Which decode steps a GPU does in parts: those whose tokens alone would not
 * keep it busy. It follows from plan and shape, so a captured graph always does
 * the same.
 */
#ifndef SPMLA_INTERNAL_SPLITS_H
#define SPMLA_INTERNAL_SPLITS_H

#include "spmla/internal/config.h"
#include "spmla/spmla.h"

enum {
	SPMLA_I_SPLIT_TOKENS = 1024, /* the most of such a step, and parts */
	SPMLA_I_SPLIT_HEADS = 64     /* that a block of items has */
};

/* Whether whole tokens, `at_a_time` of them, keep a GPU busy to the end: the
 * last of them are many, or there were others often enough before. Parts pay
 * for their cuts and their combine, as much as two fifths of a round that
 * nothing is done in. With 128 heads an H100 does 66 tokens at a time: 39 and 80
 * (66 and 14) leave it idle, 40, 120 (66 and 54) and 140 do not. */
static inline int
spmla_i_rounds_full(uint32_t tokens, uint32_t at_a_time)
{
	const uint32_t last = tokens ? (tokens - 1) % at_a_time + 1 : 0;

	return tokens / 2 >= at_a_time || last > at_a_time * 3 / 5;
}

/* The same of a plan's model. A token of V4 has few blocks, and its combine as
 * much to do as one of V3.2: on 132 multiprocessors of an H100, C4A with 64
 * heads took 40 us in parts and 53 whole with 16 tokens, 58 and 54 with 48. */
static inline int
spmla_i_whole_pays(const spmla_plan *plan, uint32_t tokens, uint32_t at_a_time)
{
	return spmla_i_is_v4(&plan->config)
		       ? tokens > at_a_time / 4
		       : spmla_i_rounds_full(tokens, at_a_time);
}

/* Parts of a step that is done in parts; 0: none is. A token is then one piece
 * of work, as it always is with the batch-invariant flag and on the CPU. */
static inline uint32_t
spmla_i_split_parts(const spmla_plan *plan)
{
	const uint32_t groups = (plan->config.heads + SPMLA_I_SPLIT_HEADS - 1) /
				SPMLA_I_SPLIT_HEADS;
	const uint32_t parts = plan->device.sm_count / groups;

	if (plan->device.kind == SPMLA_BACKEND_CPU ||
	    plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT || parts < 2)
		return 0;
	return parts < SPMLA_I_SPLIT_TOKENS ? parts : SPMLA_I_SPLIT_TOKENS;
}

/* The most tokens of a step that is done in parts: those of the largest bucket
 * that leaves the GPU idle, and what is planned has room for as many. A shape
 * with more of them, inside a larger bucket, is not done in parts. */
static inline uint32_t
spmla_i_split_tokens(const spmla_plan *plan)
{
	const uint32_t parts = spmla_i_split_parts(plan);
	uint32_t most = 0, i;

	for (i = 0; i < plan->config.bucket_count; i++) {
		const uint32_t tokens = plan->config.buckets[i].tokens;

		if (parts && tokens <= SPMLA_I_SPLIT_TOKENS &&
		    !spmla_i_whole_pays(plan, tokens, parts) && tokens > most)
			most = tokens;
	}
	return most;
}

/* Parts that a step of so many tokens is done in; 0: it is not. */
static inline uint32_t
spmla_i_decode_parts(const spmla_plan *plan, uint32_t tokens)
{
	const uint32_t parts = spmla_i_split_parts(plan);

	return tokens <= spmla_i_split_tokens(plan) &&
			       !spmla_i_whole_pays(plan, tokens, parts)
		       ? parts
		       : 0;
}

#endif
