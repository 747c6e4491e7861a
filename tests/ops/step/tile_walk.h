/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner of tile_sched as its specification tells it: one serial walk over
 * parts and requests, with a request, a block and a split as its state.
 */
#ifndef TESTS_OPS_STEP_TILE_WALK_H
#define TESTS_OPS_STEP_TILE_WALK_H

#include "spmla/ops/tile_sched.h"

enum { TILE_MAX_BATCH = 3000 };

/* Fills rows [parts][8] and splits [batch + 1] for args whose outputs are not
 * looked at; returns the faults that there should be. */
uint32_t tile_walk(const spmla_tile_sched_args *a, int32_t *rows,
		   int32_t *splits);

#endif
