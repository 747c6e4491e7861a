/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of index_map stand on: a context, a small table, and a check
 * against the rule written out once more in 64 bits. It runs the op with an
 * output of its own, and then in place.
 */
#ifndef TESTS_OPS_SELECT_INDEX_MAP_RIG_H
#define TESTS_OPS_SELECT_INDEX_MAP_RIG_H

#include "spmla/ops/index_map.h"
#include "tests/harness/fixture.h"

enum { INDEX_MAP_MAX = 4096, INDEX_MAP_TOKENS = 64 };

typedef struct index_map_rig {
	fixture f;
	int32_t table[8];
	int32_t row_of[INDEX_MAP_TOKENS];
} index_map_rig;

void index_map_open(index_map_rig *r);
void index_map_close(index_map_rig *r);

/* One token of row 0: pages {5, 3} of 4 in a pool of 8; row 1 has {2, 7}. */
spmla_index_map_args index_map_small(index_map_rig *r, const int32_t *indices,
				     uint32_t k);

/* A call without slots, its stride and valid_counts; tokens * (k + 3) are no
 * more than INDEX_MAP_MAX. */
void index_map_check(const index_map_rig *r, const spmla_index_map_args *given,
		     uint32_t want_faults);

/* All slots of a call, no more than 16, and the report (0: none). */
void index_map_expect(const index_map_rig *r, const spmla_index_map_args *given,
		      const int32_t *want, uint32_t fault, uint32_t row);

#endif
