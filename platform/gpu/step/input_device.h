/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of inputs that engines have in one of two types. The pointer is that
 * of the type with which a kernel declares the parameter.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_INPUT_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_INPUT_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

#ifdef SPMLA_GPU_KERNELS

/* Position t; `wide`: of int64, whose low word comes first. One that int32 does
 * not hold is below 0. */
FN int32_t
g_position(GLOBAL const int32_t *positions, uint32_t wide, uint64_t t)
{
	if (!wide)
		return positions[t];
	return positions[2 * t + 1] == 0 ? positions[2 * t] : -1;
}

#endif
#endif
