/* SPDX-License-Identifier: Apache-2.0
 *
 * Two contexts of V4 with the same caches. One is batch-invariant: it has fixed
 * splits, or on some devices none. Steps of both must give the same.
 */
#ifndef TESTS_PROTOCOL_V4_PARTS_RIG_H
#define TESTS_PROTOCOL_V4_PARTS_RIG_H

#include "tests/harness/v4_layer_rig.h"

enum { PARTS, FIXED, BOTH, PARTS_ROWS = 8, PARTS_LONGEST = 20480 };

typedef struct parts_side {
	fixture f;
	v4_layer_rig rig;
	int32_t *topk[2]; /* a selection of its own, and its lengths */
} parts_side;

typedef struct parts_rig {
	parts_side sides[BOTH];
	uint64_t rng;
} parts_rig;

/* Windows of 128, buckets {4,4,1} {8,4,2} {16,8,4}, prefill of 6 tokens; in the
 * emulator so many multiprocessors. */
void parts_rig_open(parts_rig *r, uint32_t heads, uint32_t topk,
		    uint32_t multiprocessors, uint32_t longest);
void parts_rig_close(parts_rig *r);

/* One step of both, a layer of each ratio: rows 0, 1, .. join with lens[row]
 * tokens and pages of their own; `gone`: row 0 has none of C4A. The metadata
 * are as they have to be. Results differ only by the order of sums, also in a
 * layer of ratio 4 that is done whole; on the CPU they are equal, to the bit.
 */
void parts_rig_step(parts_rig *r, const spmla_shape *shape,
		    const uint32_t *lens, uint32_t gone, const uint32_t *ratios,
		    uint32_t count);

#endif
