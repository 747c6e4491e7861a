/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products as matrix instructions add them, of rows of A and of B:
 * plain arithmetic, several columns at a time. It is compiled without
 * sanitizers, so callers pass copies.
 */
#ifndef TESTS_EMULATOR_MACHINE_SUMS_H
#define TESTS_EMULATOR_MACHINE_SUMS_H

#include <stdint.h>

/* Eight values of 16 bits, f16 or bf16, as floats. */
void machine_values(float *to, const void *from, uint32_t is_bf16);

/* Rows of A (a multiple of 4, `a_stride` floats apart) times B, summed from the
 * first step on. B has a row of `columns` floats (a multiple of 8) a step. Rows
 * of B are `stride` floats apart, and so are rows of the sums. */
void machine_add(float *sums, const float *a, uint32_t a_stride, uint32_t rows,
		 const float *b, uint32_t stride, uint32_t columns,
		 uint32_t steps);

/* sums += a row of A times B, of 32 steps of e4m3, as Hopper adds them. */
void machine_add_cut(float *sums, const float *a, const float *b,
		     uint32_t stride, uint32_t columns);

#endif
