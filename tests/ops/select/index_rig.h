/* SPDX-License-Identifier: Apache-2.0
 *
 * What the suites of the index operations share: the reports that an oracle
 * expects, and the windows that the source's rules give. The oracles are in the
 * suites.
 */
#ifndef TESTS_OPS_SELECT_INDEX_RIG_H
#define TESTS_OPS_SELECT_INDEX_RIG_H

#include "tests/harness/fixture.h"

/* Reports of one call: how many, and the smallest (row, fault). */
typedef struct index_faults {
	uint32_t count;
	uint64_t row;
	uint32_t fault;
} index_faults;

void index_report(index_faults *f, uint64_t row, uint32_t fault);

/* The sticky status is that; then clears it. */
void index_check_faults(const fixture *f, const index_faults *want);

/* Positions that a window covers, first .. last. */
typedef struct index_window {
	int64_t first;
	int64_t last;
} index_window;

/* The window of position p, without positions before `from`. If p lies in the
 * image from span[0] to span[1], the window is, in the source's numbers,
 *   left = min(p - span[0], max_image - 1),
 *   first = max(p - (window - 1) - max(left - (window - 1), 0), 0),
 *   last = p + min(span[1] - p, max_image),
 * but has at most window + max_image positions. */
index_window index_window_of(int64_t p, int64_t window, const int32_t *span,
			     int64_t max_image, int64_t from);

/* int32 [0, n) random below `bound`. */
void index_random(uint64_t *rng, int32_t *x, uint32_t n, uint32_t bound);

#endif
