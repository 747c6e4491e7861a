/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotation of the index queries and keys. The hard idea is that its bits
 * are fixed: four f32 products, each rounded, then one difference and one sum,
 * each rounded, never fused, then bf16; every platform computes just that.
 */
#ifndef SPMLA_PLATFORM_CPU_ROPE_H
#define SPMLA_PLATFORM_CPU_ROPE_H

#include "spmla/platform/cpu/cpu.h"

/* Rotates the 64 values of x in place and rounds them to bf16. `style` is not
 * NONE; cos_sin is the position's row: 32 cos, 32 sin. */
static inline void
spmla_i_cpu_rope(float *x, const float *cos_sin, uint32_t style)
{
	enum { PAIRS = SPMLA_INDEX_ROPE / 2 };
	const uint32_t near = style == SPMLA_ROPE_NEOX ? 1 : 2;
	const uint32_t apart = style == SPMLA_ROPE_NEOX ? PAIRS : 1;
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		float *first = &x[i * near];
		float *second = first + apart;
		const float c = cos_sin[i];
		const float s = cos_sin[PAIRS + i];
		const float fc = *first * c;
		const float ss = *second * s;
		const float sc = *second * c;
		const float fs = *first * s;

		*first = spmla_i_round_bf16(fc - ss);
		*second = spmla_i_round_bf16(sc + fs);
	}
}

/* Rotates them back: the same products, their sum and difference exchanged, and
 * no rounding to bf16. */
static inline void
spmla_i_cpu_unrope(float *x, const float *cos_sin, uint32_t style)
{
	enum { PAIRS = SPMLA_INDEX_ROPE / 2 };
	const uint32_t near = style == SPMLA_ROPE_NEOX ? 1 : 2;
	const uint32_t apart = style == SPMLA_ROPE_NEOX ? PAIRS : 1;
	uint32_t i;

	for (i = 0; i < PAIRS; i++) {
		float *first = &x[i * near];
		float *second = first + apart;
		const float c = cos_sin[i];
		const float s = cos_sin[PAIRS + i];
		const float fc = *first * c;
		const float ss = *second * s;
		const float sc = *second * c;
		const float fs = *first * s;

		*first = fc + ss;
		*second = sc - fs;
	}
}

/* The position's row of a table of `rows`, or NULL outside it. */
static inline const float *
spmla_i_cpu_rope_row(const float *cos_sin, uint32_t rows, int32_t position)
{
	if (position < 0 || (uint32_t)position >= rows)
		return NULL;
	return cos_sin + (uint64_t)(uint32_t)position * SPMLA_INDEX_ROPE;
}

#endif
