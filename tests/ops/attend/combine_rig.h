/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of split_combine with all that it points to, and its check against
 * sums in double.
 */
#ifndef TESTS_OPS_ATTEND_COMBINE_RIG_H
#define TESTS_OPS_ATTEND_COMBINE_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/ops/split_combine.h"

enum {
	COMBINE_TOKENS = 4,
	COMBINE_HEADS = 3,
	COMBINE_ROWS = 40,
	COMBINE_HEAD = 512 + 8,
	COMBINE_OUT_ELEMS = COMBINE_TOKENS * (COMBINE_HEADS * COMBINE_HEAD + 8),
	COMBINE_LSE_ELEMS = COMBINE_HEADS * (COMBINE_TOKENS + 1)
};

typedef struct combine_rig {
	fixture f;
	spmla_split_combine_args a;
	int32_t num_splits[COMBINE_TOKENS + 1];
	float *split_out; /* [COMBINE_ROWS][COMBINE_HEADS][512] */
	float *split_lse; /* [COMBINE_ROWS][COMBINE_HEADS] */
	float sink[COMBINE_HEADS];
	uint16_t *out;
	float *lse;
	uint64_t rng;
} combine_rig;

/* Four tokens of 2, 0, 3 and 33 splits, all random; out is wider than it has to
 * be, lse is [heads][tokens]. No sink. */
void combine_open(combine_rig *r);
void combine_close(combine_rig *r);

/* Runs the op, once. */
void combine_run(combine_rig *r);

/* Runs it over poison. Tokens of one split are left alone, every other value is
 * as it has to be, and nothing else is written. */
void combine_check(combine_rig *r);

/* One head's results of the last run. */
const uint16_t *combine_out(const combine_rig *r, uint32_t token,
			    uint32_t head);
float combine_lse(const combine_rig *r, uint32_t token, uint32_t head);

#endif
