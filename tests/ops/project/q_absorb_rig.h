/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of q_absorb with all that it points to, and its check against sums in
 * double and the reference's rotation.
 */
#ifndef TESTS_OPS_PROJECT_Q_ABSORB_RIG_H
#define TESTS_OPS_PROJECT_Q_ABSORB_RIG_H

#include "tests/harness/fixture.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/q_absorb.h"

enum { Q_ABSORB_TOKENS = 3, Q_ABSORB_HEADS = 4 };

typedef struct q_absorb_rig {
	fixture f;
	spmla_q_absorb_args a;
	uint16_t *q_nope;
	uint16_t *w;
	uint16_t *q_pe;
	int32_t positions[Q_ABSORB_TOKENS];
	float *cos_sin;
	uint16_t *q;
	uint32_t q_nope_elems;
	uint32_t w_elems;
	uint32_t q_elems;
	uint64_t rng;
} q_absorb_rig;

/* Three tokens of four heads, all random, every stride wider than it has to be,
 * with a rope part and positions but ROPE_NONE. */
void q_absorb_open(q_absorb_rig *r);
void q_absorb_close(q_absorb_rig *r);

/* The bound of a sum in its sum of |terms|: by matrix instructions, or in the
 * order that the header states. */
double q_absorb_slack(const q_absorb_rig *r);

/* Runs the op, once. */
void q_absorb_run(q_absorb_rig *r);

/* Runs the op over poison. Every value is as it has to be, and nothing else is
 * written. */
void q_absorb_check(q_absorb_rig *r);

/* The rope part of a head, as it has to be for a position inside the table. */
void q_absorb_check_rope(const q_absorb_rig *r, uint32_t token, uint32_t head,
			 const uint16_t *got);

/* The sticky status names this fault and row (NONE: is empty); clears it. */
void q_absorb_expect_status(q_absorb_rig *r, spmla_fault fault, uint32_t row);

#endif
