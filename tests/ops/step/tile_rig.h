/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of tile_sched stand on: a context, lengths and outputs, and a
 * check of every byte of these, red zones included, against the planner's
 * serial walk (tile_walk.h). */
#ifndef TESTS_OPS_STEP_TILE_RIG_H
#define TESTS_OPS_STEP_TILE_RIG_H

#include "tests/harness/fixture.h"
#include "tests/ops/step/tile_walk.h"

enum { TILE_MAX_PARTS = 3000, TILE_RED_ZONE = 8 };

typedef struct tile_rig {
	fixture f;
	int32_t lens[TILE_MAX_BATCH];
	int32_t extra_lens[TILE_MAX_BATCH];
	int32_t rows[(TILE_MAX_PARTS + TILE_RED_ZONE) * 8];
	int32_t num_splits[TILE_MAX_BATCH + TILE_RED_ZONE];
} tile_rig;

void tile_open(tile_rig *r);
void tile_close(tile_rig *r);

/* Rows in the new form, no lengths, one cache. */
spmla_tile_sched_args tile_args(tile_rig *r, uint32_t batch, uint32_t parts,
				uint32_t overhead, uint32_t topk);

void tile_check(tile_rig *r, const spmla_tile_sched_args *a);

#endif
