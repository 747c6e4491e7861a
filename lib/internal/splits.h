/* SPDX-License-Identifier: Apache-2.0
 *
 * Which decode steps a GPU does in parts: those whose tokens alone would not
 * keep it busy. It follows from plan and shape, so a captured graph always does
 * the same.
 */
#ifndef SPMLA_INTERNAL_SPLITS_H
#define SPMLA_INTERNAL_SPLITS_H

#include "spmla/spmla.h"

enum {
	SPMLA_I_SPLIT_TOKENS = 1024, /* the most of such a step, and parts */
	SPMLA_I_SPLIT_HEADS = 64     /* that a block of items has */
};

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

		if (tokens <= SPMLA_I_SPLIT_TOKENS && tokens / 2 < parts &&
		    tokens > most)
			most = tokens;
	}
	return most;
}

/* Parts that a step of so many tokens is done in; 0: it is not. */
static inline uint32_t
spmla_i_decode_parts(const spmla_plan *plan, uint32_t tokens)
{
	return tokens <= spmla_i_split_tokens(plan) ? spmla_i_split_parts(plan)
						    : 0;
}

#endif
