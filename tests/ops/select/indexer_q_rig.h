/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of indexer_q_prep stand on: a context, random inputs, and the
 * outputs that there should be. The model does every f32 operation in double
 * and rounds it, in the order that the contract pins, so it must give the same
 * bits.
 */
#ifndef TESTS_OPS_SELECT_INDEXER_Q_RIG_H
#define TESTS_OPS_SELECT_INDEXER_Q_RIG_H

#include "spmla/ops/indexer_q_prep.h"
#include "tests/harness/fixture.h"

typedef struct q_rig {
	fixture f;
	spmla_indexer_q_prep_args a;
	uint16_t *q;            /* [tokens][heads], NaN behind the rows */
	uint16_t *weights_bf16; /* [tokens], heads + 3 apart */
	float *weights_f32;     /* the same, other values */
	int32_t *positions;
	float *cos_sin;
	uint8_t *q_out; /* dense, and a red zone behind each output */
	uint8_t *q_want;
	uint8_t *weights_out;
	uint8_t *weights_want;
	uint8_t *scales_out; /* of MXFP4 */
	uint8_t *scales_want;
	uint64_t q_bytes; /* red zones included */
	uint64_t weights_bytes;
	uint64_t scales_bytes;
} q_rig;

/* FUSED floor, BF16 weights, no rope, 128^-0.5 and heads^-0.5; heads 136
 * apart. */
void q_rig_open(q_rig *r, uint32_t tokens, uint32_t heads);
void q_rig_close(q_rig *r);
void q_rig_rope(q_rig *r, uint32_t style);
void q_rig_f32(q_rig *r); /* f32 weights */
void q_rig_v4(q_rig *r);  /* the last 64, the floor of V4 */
void q_rig_mxfp4(q_rig *r);
void q_rig_run(q_rig *r);
void q_rig_check(q_rig *r);

/* Weight of (token, head) as it came out. */
float q_rig_weight(const q_rig *r, uint32_t t, uint32_t h);

#endif
