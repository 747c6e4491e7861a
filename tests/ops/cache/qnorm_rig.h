/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of qnorm_rope_kv_insert stand on: a context, random queries
 * and keys with NaN between and behind the rows, outputs with red zones, and
 * what they should hold, from a model in double. A test changes args and data,
 * then calls qnorm_check.
 */
#ifndef TESTS_OPS_CACHE_QNORM_RIG_H
#define TESTS_OPS_CACHE_QNORM_RIG_H

#include "spmla/ops/qnorm_rope_kv_insert.h"
#include "tests/harness/fixture.h"

typedef struct qnorm_rig {
	fixture f;
	spmla_qnorm_rope_kv_insert_args a;
	uint16_t *q;    /* [tokens][heads], heads 520 apart */
	uint16_t *kv;   /* [tokens] 520 apart */
	int64_t *slots; /* distinct, one in 8 of them -1 */
	int32_t *positions;
	float *cos_sin;
	uint16_t *q_out; /* [tokens][padded_heads], heads 528 apart */
	uint16_t *q_want;
	uint8_t *pool; /* pages * stride, and a red zone behind */
	uint8_t *want;
	uint64_t q_bytes; /* of q_out and q_want, red zones included */
	uint64_t pool_bytes;
} qnorm_rig;

/* eps 1e-6, kv_scale 1, four pages of `entries`. */
void qnorm_open(qnorm_rig *r, uint32_t layout, uint32_t tokens, uint32_t heads,
		uint32_t padded_heads, uint32_t entries);
void qnorm_close(qnorm_rig *r);

/* Fills the outputs with 0xAB and runs the op, which must give OK. */
void qnorm_run(qnorm_rig *r);

/* What there should be, into q_want and want. Returns how many faults. */
uint32_t qnorm_model(qnorm_rig *r);

/* Runs; outputs equal the model in every byte, faults in number. */
void qnorm_check(qnorm_rig *r);

/* Where a head's row of q_out is. */
uint16_t *qnorm_head(const qnorm_rig *r, uint32_t t, uint32_t h);

#endif
