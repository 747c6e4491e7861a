/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of combine_index stand on: a context, a small call with all
 * that it points to, and its check against the rule written out once more in
 * 64 bits.
 */
#ifndef TESTS_OPS_SELECT_COMBINE_INDEX_RIG_H
#define TESTS_OPS_SELECT_COMBINE_INDEX_RIG_H

#include "spmla/ops/combine_index.h"
#include "tests/ops/select/index_rig.h"

enum {
	SIGHT_TOKENS = 24,
	SIGHT_REQUESTS = 70, /* more than a subgroup has lanes */
	SIGHT_TOPK = 300,    /* at most */
	SIGHT_ROOM = 16384
};

/* What the op writes, all of it. */
typedef struct sight_out {
	int32_t indices[SIGHT_ROOM];
	int32_t lens[SIGHT_TOKENS + 1];
} sight_out;

typedef struct sight_rig {
	fixture f;
	spmla_combine_index_args a;
	sight_out io;
	sight_out want;
	int32_t topk[SIGHT_TOKENS * (SIGHT_TOPK + 3)];
	int32_t req[SIGHT_TOKENS];
	int32_t context[SIGHT_TOKENS];
	int32_t spans[2 * SIGHT_TOKENS];
	int32_t seq[SIGHT_REQUESTS];
	int32_t gather[SIGHT_REQUESTS];
} sight_rig;

/* Room for one token of request 0. The last 4 of its 11 keys are gathered, and
 * the last 12 of request 1's 19; 20 rows a request, the window's from 5 on;
 * a window of 3, a ratio of 4, top-k 4, rows of 9 that are 10 apart. */
void sight_open(sight_rig *r);
void sight_close(sight_rig *r);

/* Runs it over poison: every byte and the reports as the rule has them. */
void sight_check(sight_rig *r);

/* Token 0's row of 9, its length and the reports; then sight_check. */
void sight_expect(sight_rig *r, const int32_t *indices, int32_t len,
		  uint32_t fault, uint32_t count);

#endif
