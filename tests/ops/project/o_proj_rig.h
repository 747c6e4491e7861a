/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of o_group_proj with all that it points to, and its check: the bits of
 * the contract's order of sums, and sums in double.
 */
#ifndef TESTS_OPS_PROJECT_O_PROJ_RIG_H
#define TESTS_OPS_PROJECT_O_PROJ_RIG_H

#include "spmla/ops/o_group_proj.h"
#include "tests/harness/fixture.h"

typedef struct o_proj_rig {
	fixture f;
	spmla_o_group_proj_args a;
	uint8_t *o;
	uint32_t *o_scales;
	uint8_t *w;
	float *w_scales;
	uint16_t *z;
	uint64_t o_bytes;
	uint64_t o_words;
	uint64_t w_bytes;
	uint64_t w_floats;
	uint64_t z_elems;
	uint64_t rng;
} o_proj_rig;

/* Random, every stride wider than it has to be; groups of o, and its scales,
 * outermost. On the emulator there may be fewer tokens than `most`. */
void o_proj_open(o_proj_rig *r, uint32_t quant, uint32_t most, uint32_t groups,
		 uint32_t inner, uint32_t columns);
void o_proj_close(o_proj_rig *r);
void o_proj_fill(o_proj_rig *r);

/* All values 0, all scales 1. */
void o_proj_zero(o_proj_rig *r);

/* An element, as the args have it, set to a value that its type has. */
void o_proj_put_o(o_proj_rig *r, uint32_t t, uint32_t g, uint32_t i, float x);
void o_proj_put_w(o_proj_rig *r, uint32_t g, uint32_t d, uint32_t i, float x);
void o_proj_put_o_scale(o_proj_rig *r, uint32_t t, uint32_t g, uint32_t part,
			float s);
void o_proj_put_w_scale(o_proj_rig *r, uint32_t g, uint32_t block,
			uint32_t part, float s);
uint16_t o_proj_z(const o_proj_rig *r, uint32_t t, uint32_t g, uint32_t d);

/* As if the plan had BATCH_INVARIANT. */
void o_proj_set_invariant(o_proj_rig *r);

/* Whether the call is done by matrix instructions, which have an order of sums
 * of their own. */
uint32_t o_proj_by_matrix(const o_proj_rig *r);

void o_proj_run(o_proj_rig *r);

/* Runs the op over poison. Every value is as it has to be, and nothing else is
 * written. */
void o_proj_check(o_proj_rig *r);

#endif
