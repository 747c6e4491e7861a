/* SPDX-License-Identifier: Apache-2.0
 *
 * The few atomic accesses of words that host and device share. They act on
 * plain fields, because the same structs are read by kernels.
 */
#ifndef SPMLA_INTERNAL_ATOMIC_H
#define SPMLA_INTERNAL_ATOMIC_H

#include <stdint.h>

static inline uint64_t
spmla_i_load_u64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint32_t
spmla_i_load_u32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void
spmla_i_store_u64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline void
spmla_i_store_u32(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

/* For the workers of one loop. They order nothing else: the begin and the end
 * of the loop make shared data visible. */
/* Returns the old value. */
static inline uint64_t
spmla_i_fetch_add_u64(uint64_t *p, uint64_t n)
{
	return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static inline void
spmla_i_min_u64(uint64_t *p, uint64_t value)
{
	uint64_t seen = __atomic_load_n(p, __ATOMIC_RELAXED);

	/* A failed exchange loads the current value. */
	while (value < seen &&
	       !__atomic_compare_exchange_n(p, &seen, value, 0,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

#endif
