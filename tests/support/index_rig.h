/* SPDX-License-Identifier: Apache-2.0
 *
 * What the suites of the index operations share: the reports that an oracle
 * expects, rows of int32 with poison between them, and the checks of what a
 * call refuses. The oracles are in the suites.
 */
#ifndef TESTS_SUPPORT_INDEX_RIG_H
#define TESTS_SUPPORT_INDEX_RIG_H

#include "tests/support/fixture.h"
#include "tests/support/narrow_ref.h"

/* Reports of one call: how many, and the smallest (row, fault). */
typedef struct index_faults {
	uint32_t count;
	uint64_t row;
	uint32_t fault;
} index_faults;

void index_report(index_faults *f, uint64_t row, uint32_t fault);

/* The sticky status is that; then clears it. */
void index_check_faults(const fixture *f, const index_faults *want);

/* `call` with each of the errors in a copy of `args` (struct_bytes long) is
 * refused with its text. */
void index_check_errors(const fixture *f,
			spmla_status (*call)(const void *args),
			const void *args, uint32_t args_bytes,
			const arg_error *errors, uint32_t count);

/* int32 [0, n) random below `bound`. */
void index_random(uint64_t *rng, int32_t *x, uint32_t n, uint32_t bound);

#endif
