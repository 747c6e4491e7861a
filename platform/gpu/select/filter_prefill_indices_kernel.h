/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_prefill_indices: a block takes FILTER_CHUNK columns of a token. An
 * output may be the input, so a thread writes only where it has read.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_FILTER_PREFILL_INDICES_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_FILTER_PREFILL_INDICES_KERNEL_H

#include "spmla/platform/gpu/dialect/dialect.h"
#include "spmla/platform/gpu/step/fault_device.h"

#define SPMLA_K_filter_prefill_indices(P, S) \
	SPMLA_K_FAULT(P)                     \
	P(const int32_t, indices)            \
	P(const int32_t, context_lens)       \
	P(int32_t, context_indices)          \
	P(int32_t, new_indices)              \
	S(int64_t, indices_stride)           \
	S(int64_t, context_stride)           \
	S(int64_t, new_stride)               \
	S(uint32_t, tokens)                  \
	S(uint32_t, k)                       \
	S(uint32_t, has_context)             \
	S(uint32_t, has_new)
SPMLA_KERNEL_SCALARS(filter_prefill_indices)

enum {
	FILTER_EACH = 4, /* columns of a thread */
	FILTER_CHUNK = FILTER_EACH * SPMLA_ITEMS_filter_prefill_indices
};

#ifdef SPMLA_GPU_KERNELS

SPMLA_KERNEL(filter_prefill_indices)
void
spmla_k_filter_prefill_indices(SPMLA_KERNEL_ARGS(filter_prefill_indices))
{
	const uint32_t items = SPMLA_ITEMS_filter_prefill_indices;
	const uint32_t chunks = (s.k - 1) / FILTER_CHUNK + 1;
	const uint64_t pieces = (uint64_t)s.tokens * chunks;
	uint64_t piece;
	uint32_t i;

	for (piece = g_block(); piece < pieces; piece += g_blocks()) {
		const uint32_t t = (uint32_t)(piece / chunks);
		const uint32_t first =
			(uint32_t)(piece % chunks) * FILTER_CHUNK + g_item();
		GLOBAL const int32_t *in =
			indices + (int64_t)t * s.indices_stride;
		const int32_t len = context_lens[t];
		int32_t index[FILTER_EACH];

		if (len < 0 && first == 0)
			g_fault(fault_state, fault_status, t, G_FAULT_LENGTH);
		UNROLL
		for (i = 0; i < FILTER_EACH; i++) {
			const uint32_t j = first + i * items;

			index[i] = j < s.k ? in[j] : -1;
		}
		UNROLL
		for (i = 0; i < FILTER_EACH; i++) {
			const uint32_t j = first + i * items;
			const uint32_t is_some = len >= 0 && index[i] >= 0;
			const uint32_t is_new = is_some && index[i] >= len;

			if (j < s.k && s.has_context)
				context_indices[(int64_t)t * s.context_stride +
						j] =
					is_some && !is_new ? index[i] : -1;
			if (j < s.k && s.has_new)
				new_indices[(int64_t)t * s.new_stride + j] =
					is_new ? index[i] - len : -1;
		}
	}
}

#endif
#endif
