/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend's structures in planned memory, which the plan sizes.
 */
#ifndef SPMLA_INTERNAL_CPU_SIZES_H
#define SPMLA_INTERNAL_CPU_SIZES_H

#include "spmla/internal/backend.h"
#include "spmla/internal/cpu_scratch.h"

/* An operation with a copy of its arguments; with op = SPMLA_OP_COUNT, the
 * launch of a list. */
typedef struct spmla_i_cpu_node {
	uint32_t op;
	uint32_t list;
	spmla_i_args args;
} spmla_i_cpu_node;

typedef struct spmla_i_cpu_list {
	uint32_t first; /* node */
	uint32_t count;
} spmla_i_cpu_list;

/* BACKEND_STATE. Nodes of all lists lie one after another in GRAPH_NODES; the
 * queue is a ring in QUEUE. */
typedef struct spmla_i_cpu_state {
	uint32_t deferred;
	uint32_t capturing;
	uint32_t capture_first;
	uint32_t node_count;
	uint32_t queue_head;
	uint32_t queue_count;
	const struct spmla_i_cpu_kernels *kernels; /* chosen at init */
	spmla_parallel_for parallel_for; /* the caller's; NULL: one worker */
	void *parallel_user;
	/* The reports of the workers of a running parallel loop: the smallest
	 * key and the count, atomic. */
	uint32_t loop_open;
	uint32_t reserved;
	uint64_t loop_key;
	uint64_t loop_faults;
	spmla_i_cpu_list lists[SPMLA_I_MAX_GRAPHS];
} spmla_i_cpu_state;

#endif
