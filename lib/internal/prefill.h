/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the prefill plan.
 */
#ifndef SPMLA_INTERNAL_PREFILL_H
#define SPMLA_INTERNAL_PREFILL_H

#include "spmla/internal/check.h"
#include "spmla/prefill_plan.h"

static inline uint64_t
spmla_i_sum_lens(const uint32_t *lens, uint32_t count)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		sum += lens[i];
	return sum;
}

#endif
