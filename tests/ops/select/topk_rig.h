/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of topk against a full sort with the tie rule written out.
 */
#ifndef TESTS_OPS_SELECT_TOPK_RIG_H
#define TESTS_OPS_SELECT_TOPK_RIG_H

#include "spmla/ops/topk.h"
#include "tests/harness/fixture.h"

enum { TOPK_MAX_K = 4096 };

/* A call without its outputs: every row, the lens and the bytes between rows.
 */
void topk_check_rows(const fixture *f, const spmla_topk_args *given);

/* A row of its own. */
void topk_check(const fixture *f, const float *scores, uint32_t len,
		uint32_t k);

/* The same, and its selection is want[k], k <= 16. */
void topk_expect(const fixture *f, const float *scores, uint32_t len,
		 const int32_t *want, uint32_t k);

#endif
