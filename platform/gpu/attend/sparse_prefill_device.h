/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of sparse_prefill share: their arguments, and the rows that
 * entries name. An index outside of the rows is no fault.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_SPARSE_PREFILL_DEVICE_H

#include "spmla/platform/gpu/attend/attend_device.h"

#define SPMLA_K_sparse_prefill(P, S)    \
	SPMLA_K_FAULT(P)                \
	P(const uint16_t, q)            \
	P(const uint16_t, kv)           \
	P(const int32_t, indices)       \
	P(const int32_t, topk_lens)     \
	P(const float, attn_sink)       \
	P(uint16_t, out)                \
	P(float, max_logits)            \
	P(float, lse)                   \
	S(int64_t, q_token_stride)      \
	S(int64_t, q_head_stride)       \
	S(int64_t, kv_stride)           \
	S(int64_t, indices_stride)      \
	S(int64_t, out_token_stride)    \
	S(int64_t, out_head_stride)     \
	S(int64_t, lse_token_stride)    \
	S(int64_t, lse_head_stride)     \
	S(uint32_t, tokens)             \
	S(uint32_t, heads)              \
	S(uint32_t, dim)                \
	S(uint32_t, topk)               \
	S(uint32_t, kv_rows)            \
	S(uint32_t, layout)             \
	S(spmla_g_divisor, lens_tokens) \
	S(uint32_t, list_form)          \
	S(uint32_t, has_sink)           \
	S(uint32_t, has_max_logits)     \
	S(uint32_t, has_lse)            \
	S(uint32_t, base2)              \
	S(float, empty_lse)             \
	S(uint32_t, lse_sink)           \
	S(float, scale)
SPMLA_KERNEL_SCALARS(sparse_prefill)

#ifdef SPMLA_GPU_KERNELS

/* The index of the item's entry in a list of n, of which the first 64 are
 * looked at; -1 for an item without one. */
FN int32_t
sparse_prefill_index(GLOBAL const int32_t *list, uint32_t n)
{
	return g_item() < n && g_item() < ATTEND_KEYS ? list[g_item()] : -1;
}

/* Writes to shared memory where the row of the item's index is. Items beyond 64
 * write nothing. */
FN void
sparse_prefill_rows(const PRIVATE spmla_k_sparse_prefill_scalars *s,
		    int32_t index, LOCAL attend_rows *rows)
{
	if (g_item() < ATTEND_KEYS)
		rows->at[g_item()] =
			index >= 0 && (uint32_t)index < s->kv_rows
				? (uint64_t)index * (uint64_t)s->kv_stride * 2
				: ATTEND_NO_ROW;
}

#endif
#endif
