/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of slot_map stand on: a context, and tokens, lengths, slots
 * and a table of distinct pages beside each other.
 */
#ifndef TESTS_OPS_STEP_SLOT_MAP_RIG_H
#define TESTS_OPS_STEP_SLOT_MAP_RIG_H

#include "spmla/ops/slot_map.h"
#include "tests/harness/step_rig.h"

enum {
	SLOT_TOKENS = 24,
	SLOT_ROWS = 5,
	SLOT_COLUMNS = 6,
	SLOT_STRIDE = 9,
	SLOT_POOL = 1000
};

typedef struct slot_map_io {
	int32_t row[SLOT_TOKENS];
	int32_t position[SLOT_TOKENS];
	int32_t lens[SLOT_TOKENS + 1];
	int64_t slot[SLOT_TOKENS + 1];
	int32_t cols[SLOT_ROWS];
	int32_t table[SLOT_ROWS * SLOT_STRIDE];
} slot_map_io;

typedef struct slot_map_rig {
	fixture f;
	slot_map_io io;
} slot_map_rig;

/* Entry i of the table, gaps counted, is page 10 i + 3; all are written. */
void slot_map_open(slot_map_rig *r);
void slot_map_close(slot_map_rig *r);

/* Pages of 64 tokens, no ratio. */
spmla_slot_map_args slot_map_args(slot_map_rig *r, uint32_t tokens);

void slot_map_run(slot_map_rig *r, const spmla_slot_map_args *a);

#endif
