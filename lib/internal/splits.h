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

/* Parts that a step of so many tokens is done in; 0: it is not. A token is then
 * one piece of work, as it always is with the batch-invariant flag and on the
 * CPU. */
static inline uint32_t
spmla_i_decode_parts(const spmla_plan *plan, uint32_t tokens)
{
	const uint32_t groups = (plan->config.heads + SPMLA_I_SPLIT_HEADS - 1) /
				SPMLA_I_SPLIT_HEADS;
	const uint32_t parts = plan->device.sm_count / groups;

	if (plan->device.kind == SPMLA_BACKEND_CPU ||
	    plan->config.flags & SPMLA_CONFIG_BATCH_INVARIANT || parts < 2)
		return 0;
	if (tokens > SPMLA_I_SPLIT_TOKENS || tokens / 2 >= parts)
		return 0;
	return parts < SPMLA_I_SPLIT_TOKENS ? parts : SPMLA_I_SPLIT_TOKENS;
}

#endif
