/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of inputs that engines have in one of two types.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_INPUT_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_INPUT_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Position t; of int64, one that int32 does not hold is -1. */
static inline int32_t
spmla_i_cpu_position(const void *positions, uint32_t dtype, uint64_t t)
{
	int64_t wide;

	if (dtype != SPMLA_INT64)
		return ((const int32_t *)positions)[t];
	wide = ((const int64_t *)positions)[t];
	return wide >= 0 && wide <= INT32_MAX ? (int32_t)wide : -1;
}

#endif
