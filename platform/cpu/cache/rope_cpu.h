/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotation of queries and keys. The hard idea: its bits are fixed. Four f32
 * products, each rounded, then one difference and one sum, each rounded, never
 * fused, then bf16. Every platform computes exactly that.
 */
#ifndef SPMLA_PLATFORM_CPU_CACHE_ROPE_CPU_H
#define SPMLA_PLATFORM_CPU_CACHE_ROPE_CPU_H

#include "spmla/platform/cpu/core/input_cpu.h"

/* Rotates the 64 values of x in place. `style` is not NONE. cos_sin is the
 * position's row: 32 cos, 32 sin. sign 1 rotates by the position, -1 back; this
 * changes only the sign of a product. */
static inline void
spmla_i_cpu_turn(float *x, const float *cos_sin, uint32_t style, float sign)
{
	enum { PAIRS = SPMLA_INDEX_ROPE / 2 };
	const uint32_t near = style == SPMLA_ROPE_NEOX ? 1 : 2;
	const uint32_t apart = style == SPMLA_ROPE_NEOX ? PAIRS : 1;
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		float *first = &x[i * near];
		float *second = first + apart;
		const float c = cos_sin[i];
		const float s = sign * cos_sin[PAIRS + i];
		const float fc = *first * c;
		const float ss = *second * s;
		const float sc = *second * c;
		const float fs = *first * s;

		*first = fc - ss;
		*second = sc + fs;
	}
}

/* Rotates by the position and rounds to bf16. */
static inline void
spmla_i_cpu_rope(float *x, const float *cos_sin, uint32_t style)
{
	uint32_t i;

	spmla_i_cpu_turn(x, cos_sin, style, 1.0f);
	for (i = 0; i < SPMLA_INDEX_ROPE; i++)
		x[i] = spmla_i_round_bf16(x[i]);
}

/* The position's row of a table of `rows`, or NULL outside it. A row of bf16 is
 * widened into `own`, 64 floats. */
static inline const float *
spmla_i_cpu_rope_row(const void *cos_sin, uint32_t dtype, uint32_t rows,
		     int32_t position, float *own)
{
	const uint64_t at = (uint64_t)(uint32_t)position * SPMLA_INDEX_ROPE;
	uint32_t i;

	if (position < 0 || (uint32_t)position >= rows)
		return NULL;
	if (dtype == SPMLA_REAL_F32)
		return (const float *)cos_sin + at;
	for (i = 0; i < SPMLA_INDEX_ROPE; i++)
		own[i] = spmla_i_cpu_real(cos_sin, dtype, at + i);
	return own;
}

#endif
