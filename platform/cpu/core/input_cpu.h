/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of inputs, and writers of outputs, that engines have in one of two
 * types.
 */
#ifndef SPMLA_PLATFORM_CPU_CORE_INPUT_CPU_H
#define SPMLA_PLATFORM_CPU_CORE_INPUT_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Position t; -1 for an int64 that does not fit int32. */
static inline int32_t
spmla_i_cpu_position(const void *positions, uint32_t dtype, uint64_t t)
{
	int64_t wide;

	if (dtype != SPMLA_INT64)
		return ((const int32_t *)positions)[t];
	wide = ((const int64_t *)positions)[t];
	return wide >= 0 && wide <= INT32_MAX ? (int32_t)wide : -1;
}

/* Float i of f32 or of bf16. */
static inline float
spmla_i_cpu_real(const void *x, uint32_t dtype, uint64_t i)
{
	if (dtype == SPMLA_REAL_BF16)
		return spmla_i_bf16_to_f32(((const uint16_t *)x)[i]);
	return ((const float *)x)[i];
}

/* Writes it, rounded to nearest even. */
static inline void
spmla_i_cpu_put_real(void *x, uint32_t dtype, uint64_t i, float value)
{
	if (dtype == SPMLA_REAL_BF16)
		((uint16_t *)x)[i] = spmla_i_f32_to_bf16(value);
	else
		((float *)x)[i] = value;
}

/* Its address. */
static inline const void *
spmla_i_cpu_real_at(const void *x, uint32_t dtype, int64_t i)
{
	return (const uint8_t *)x + i * (dtype == SPMLA_REAL_BF16 ? 2 : 4);
}

#endif
