/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns dimensions into extents.
 */
#ifndef SPMLA_ARENA_PLAN_H
#define SPMLA_ARENA_PLAN_H

#include "spmla/arena/arena_table.h"

/* Walks the table once and fills row_count, extents, region_bytes,
 * region_align and life_bytes of `plan`. E_OVERFLOW names the buffer. */
spmla_status spmla_i_arena_plan(spmla_plan *plan,
				const uint64_t dim[SPMLA_I_DIM_COUNT],
				uint32_t apart, spmla_diag *diag);

/* Checks that an indptr can count the entries of the longest lists. */
spmla_status spmla_i_lists_check(const spmla_config *c, spmla_diag *diag);

/* Computes the dimensions of a plan whose limits are filled in, and walks the
 * table. With `overflow` a limit did not fit, and the call fails. */
spmla_status spmla_i_plan_arena(spmla_plan *plan, uint32_t overflow,
				spmla_diag *diag);

#endif
