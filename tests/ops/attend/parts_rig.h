/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sparse_decode in parts takes that adds up its splits itself: metadata,
 * split rows and a workspace.
 */
#ifndef TESTS_OPS_ATTEND_PARTS_RIG_H
#define TESTS_OPS_ATTEND_PARTS_RIG_H

#include "spmla/ops/sparse_decode.h"

enum { PARTS_MOST = 256, PARTS_TOKENS = 8 };

typedef struct parts_rig {
	int32_t rows[PARTS_MOST * 8];
	int32_t num_splits[PARTS_TOKENS + 1];
	float *split_out, *split_lse;
	uint32_t *workspace; /* of exactly the bytes that the call takes */
} parts_rig;

/* Lends them to a call. */
void parts_lend(parts_rig *p, spmla_sparse_decode_args *a);

/* Takes them back. Fails the test if the workspace is not as clean as it was. */
void parts_take_back(parts_rig *p, const spmla_sparse_decode_args *a);

/* Each token of `blocks` blocks that is not whole in so many splits, a part
 * each. */
void parts_cut(parts_rig *p, spmla_sparse_decode_args *a, uint32_t blocks,
	       uint32_t splits);

#endif
