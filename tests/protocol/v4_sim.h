/* SPDX-License-Identifier: Apache-2.0
 *
 * A small scheduler of V4 that makes steps as an engine would: requests join in
 * the middle of their life, grow, lose tokens that were rejected, pause and
 * leave, and their pages go to others. Tables that wrap around get no page
 * after their last column.
 */
#ifndef TESTS_PROTOCOL_V4_SIM_H
#define TESTS_PROTOCOL_V4_SIM_H

#include "tests/protocol/v4_step_rig.h"

enum { V4_SIM_TABLES = 5, V4_SIM_COLUMNS = 32, V4_SIM_POOL = 256 };

/* The groups that have a table of their own. */
extern const uint32_t v4_sim_groups[V4_SIM_TABLES];

typedef struct v4_sim_row {
	uint32_t id;  /* of the request; 0: none */
	uint32_t len; /* after its last step */
	uint32_t last_query;
	uint32_t cols[V4_SIM_TABLES];
	int32_t pages[V4_SIM_TABLES][V4_SIM_COLUMNS];
} v4_sim_row;

typedef struct v4_sim {
	uint64_t rng;
	const spmla_plan *plan;
	uint32_t near_ends; /* set: all join where a group of 128 soon ends */
	uint32_t ids;       /* given out */
	v4_sim_row rows[V4_ROWS];
	uint8_t used[V4_SIM_TABLES][V4_SIM_POOL];
	/* What the batches were like. `rounds`: tokens in the place of one that
	 * the window's table held before; ends: of groups of 4 and of 128. */
	uint32_t joined, left, paused, grown, rejected, rounds, ends[2];
} v4_sim;

/* The plan's pools are as large as all its rows may need. */
void v4_sim_open(v4_sim *s, const spmla_plan *plan, uint64_t seed);

/* The next step, of at most `limit`. */
void v4_sim_draft(v4_sim *s, const spmla_shape *limit, v4_draft *d);

#endif
