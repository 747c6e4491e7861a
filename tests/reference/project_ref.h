/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the projections (q_absorb, v_up) share: random matrices and
 * the product of a row and a matrix in double.
 */
#ifndef TESTS_REFERENCE_PROJECT_REF_H
#define TESTS_REFERENCE_PROJECT_REF_H

#include <stdint.h>

/* n bf16 values in [-1, 1). */
void project_fill(uint64_t *rng, uint16_t *values, uint64_t n);

/* got[columns] against x[n] times w[n][columns], rows w_stride_elems apart:
 * half a bf16 step of the exact sum and `slack` times the sum of |terms|. Fails
 * the test at the first that is off. */
void project_check(const uint16_t *got, const uint16_t *x, const uint16_t *w,
		   int64_t w_stride_elems, uint32_t n, uint32_t columns,
		   double slack);

/* What the contract's order of sums gives, to the bit: bf16 of x[n] times the
 * column w. Products are within the range of f32. */
uint16_t project_bits(const uint16_t *x, const uint16_t *w,
		      int64_t w_stride_elems, uint32_t n);

/* Makes rows x[rows][n] and a matrix w[n][columns] of random values whose
 * products cancel. A sum is then what rounding leaves, which shows the order of
 * the additions. */
void project_cancel(uint64_t *rng, uint16_t *x, int64_t x_stride_elems,
		    uint32_t rows, uint16_t *w, int64_t w_stride_elems,
		    uint32_t n, uint32_t columns);

#endif
