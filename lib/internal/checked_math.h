/* SPDX-License-Identifier: Apache-2.0
 *
 * Size arithmetic that cannot wrap: a failed step sets `overflow`, which is
 * checked once, at the end.
 */
#ifndef SPMLA_INTERNAL_CHECKED_MATH_H
#define SPMLA_INTERNAL_CHECKED_MATH_H

#include <stdint.h>

static inline uint64_t
spmla_i_mul(uint64_t a, uint64_t b, uint32_t *overflow)
{
	if (a != 0 && b > UINT64_MAX / a) {
		*overflow = 1;
		return UINT64_MAX;
	}
	return a * b;
}

static inline uint64_t
spmla_i_add(uint64_t a, uint64_t b, uint32_t *overflow)
{
	if (b > UINT64_MAX - a) {
		*overflow = 1;
		return UINT64_MAX;
	}
	return a + b;
}

/* `align` is a power of two. */
static inline uint64_t
spmla_i_align(uint64_t a, uint64_t align, uint32_t *overflow)
{
	return spmla_i_add(a, align - 1, overflow) & ~(align - 1);
}

static inline uint64_t
spmla_i_cdiv(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* The number of pages whose slots all fit int32, at most `pool` (0: no limit).
 * page_tokens is below 2^31 and not above the stride. */
static inline uint32_t
spmla_i_slot_pages(uint32_t pool, uint32_t page_tokens, uint32_t page_stride)
{
	const uint32_t fit =
		((UINT32_C(1) << 31) - page_tokens) / page_stride + 1;

	return pool && pool < fit ? pool : fit;
}

#endif
