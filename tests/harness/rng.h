/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of tests: splitmix64, from a seed that can be printed.
 */
#ifndef TESTS_HARNESS_RNG_H
#define TESTS_HARNESS_RNG_H

#include <stdint.h>

static inline uint64_t
rng_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* [0, bound) */
static inline uint32_t
rng_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)((rng_next(state) >> 32) * bound >> 32);
}

/* [-1, 1) */
static inline float
rng_float(uint64_t *state)
{
	return (float)(rng_next(state) >> 40) * 0x1p-23f - 1.0f;
}

#endif
