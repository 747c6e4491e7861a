/* SPDX-License-Identifier: Apache-2.0
 *
 * lse2_to_lse: a block takes LSE2_CHUNK values at a time. A thread has several
 * and loads all of them before it uses the first.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_LSE2_TO_LSE_KERNEL_H
#define SPMLA_PLATFORM_GPU_ATTEND_LSE2_TO_LSE_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"

#define SPMLA_K_lse2_to_lse(P, S) \
	P(const float, lse2)      \
	P(float, lse)             \
	S(uint64_t, count)
SPMLA_KERNEL_SCALARS(lse2_to_lse)

enum {
	LSE2_EACH = 4, /* values of a thread */
	LSE2_CHUNK = LSE2_EACH * SPMLA_ITEMS_lse2_to_lse
};

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(lse2_to_lse)
void
spmla_k_lse2_to_lse(SPMLA_KERNEL_ARGS(lse2_to_lse))
{
	const uint32_t items = SPMLA_ITEMS_lse2_to_lse;
	uint64_t first;
	uint32_t i;

	for (first = (uint64_t)g_block() * LSE2_CHUNK; first < s.count;
	     first += (uint64_t)g_blocks() * LSE2_CHUNK) {
		float x[LSE2_EACH];

		UNROLL
		for (i = 0; i < LSE2_EACH; i++) {
			const uint64_t at = first + i * items + g_item();

			x[i] = at < s.count ? lse2[at] : 0.0f;
		}
		/* A thread writes only the values that it read: lse may be
		 * lse2. */
		UNROLL
		for (i = 0; i < LSE2_EACH; i++) {
			const uint64_t at = first + i * items + g_item();

			if (at < s.count)
				lse[at] = x[i] * G_LN_2;
		}
	}
}

#endif
#endif
