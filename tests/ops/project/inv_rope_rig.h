/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of inv_rope_quant stand on: a context, random results of
 * attention, and the outputs that there should be, gaps included. The model
 * does every f32 operation in double and rounds it, so it must give the same
 * bits.
 */
#ifndef TESTS_OPS_PROJECT_INV_ROPE_RIG_H
#define TESTS_OPS_PROJECT_INV_ROPE_RIG_H

#include "spmla/ops/inv_rope_quant.h"
#include "tests/harness/fixture.h"

typedef struct inv_rope_rig {
	fixture f;
	spmla_inv_rope_quant_args a;
	uint16_t *o; /* NaN behind the rows */
	int32_t *positions;
	float *cos_sin;
	uint8_t *out; /* and a red zone behind each output */
	uint8_t *out_want;
	uint32_t *scales;
	uint32_t *scales_want;
	uint64_t o_elems;
	uint64_t out_bytes;
	uint64_t scale_words;
	uint64_t rng;
} inv_rope_rig;

/* O_FP8, INTERLEAVED, every stride wider than it has to be; random. */
void inv_rope_open(inv_rope_rig *r, uint32_t tokens, uint32_t groups,
		   uint32_t heads_per_group);
void inv_rope_close(inv_rope_rig *r);
/* All of o is 0, rotated as position 0 is: not at all. */
void inv_rope_zero(inv_rope_rig *r);

/* Poisons the outputs, runs the op once. */
void inv_rope_run(inv_rope_rig *r);
/* Runs; outputs equal the model in every byte. */
void inv_rope_check(inv_rope_rig *r);

/* As they came out, of any form: codes of a head, its scale i. */
const uint8_t *inv_rope_codes(const inv_rope_rig *r, uint32_t t, uint32_t h);
float inv_rope_scale_of(const inv_rope_rig *r, uint32_t t, uint32_t h,
			uint32_t i);

#endif
