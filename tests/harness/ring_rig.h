/* SPDX-License-Identifier: Apache-2.0
 *
 * A context for tests of the ring: three buckets, each as a graph and as an
 * engine's own list with one prologue, and the model of its steps.
 */
#ifndef TESTS_HARNESS_RING_RIG_H
#define TESTS_HARNESS_RING_RIG_H

#include "tests/harness/engine.h"
#include "tests/harness/step_rig.h"

typedef struct ring_rig {
	fixture f;
	step_model m;
	spmla_graph graphs[3];
	engine_list lists[3];
} ring_rig;

void ring_open(ring_rig *r, uint32_t slots, uint32_t native_flags);
/* fixture_config with changes; max_graphs becomes 6. */
void ring_open_config(ring_rig *r, const spmla_config *config,
		      uint32_t native_flags);
void ring_close(ring_rig *r); /* drains first */

/* Launches the engine's own list of a bucket, without spmla_step_launched. */
void ring_launch(ring_rig *r, uint32_t bucket);
/* The same for a ticket, and tells. */
void ring_launch_ticket(ring_rig *r, uint32_t bucket, uint64_t ticket);
/* Runs one entry of the queue; there must be one. */
void ring_run_one(ring_rig *r);

uint64_t ring_consumed(const ring_rig *r);
/* The ticket that the slot of `ticket` holds. */
uint64_t ring_slot_ticket(const ring_rig *r, uint64_t ticket);
/* All bytes of a slot. */
uint8_t *ring_slot(const ring_rig *r, uint64_t ticket);

/* Checks that the current step, run with `bucket`, is the step `d`, and that
 * there are only the reports that the model expects. */
void ring_check(ring_rig *r, const draft *d, uint32_t bucket);

#endif
