/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of inputs, and writers of outputs, that engines have in one of two
 * types. The pointer has the type that a kernel declares for the parameter.
 */
#ifndef SPMLA_PLATFORM_GPU_STEP_INPUT_DEVICE_H
#define SPMLA_PLATFORM_GPU_STEP_INPUT_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

/* How g_reals4 reads: floats one by one, four at once from a multiple of 16
 * bytes, or bf16. */
enum { G_REALS_F32, G_REALS_WIDE, G_REALS_BF16 };

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

/* Float i of f32 or of bf16. */
FN float
g_real(GLOBAL const float *p, uint32_t bf16, uint64_t i)
{
	return bf16 ? g_bf16_to_f32(((GLOBAL const uint16_t *)p)[i]) : p[i];
}

/* Writes it, rounded to nearest even. */
FN void
g_put_real(GLOBAL float *p, uint32_t bf16, int64_t i, float x)
{
	if (bf16)
		((GLOBAL uint16_t *)p)[i] = (uint16_t)g_f32_to_bf16(x);
	else
		p[i] = x;
}

/* Floats i .. i + 3, as their bits. */
FN void
g_reals4(GLOBAL const float *p, uint32_t form, uint64_t i, PRIVATE uint32_t *w)
{
	uint32_t k;

	if (form == G_REALS_WIDE) {
		g_load4(p + i, w);
		return;
	}
	UNROLL
	for (k = 0; k < 4; k++)
		w[k] = g_bits(g_real(p, form == G_REALS_BF16, i + k));
}

#endif
#endif
