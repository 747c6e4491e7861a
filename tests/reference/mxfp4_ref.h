/* SPDX-License-Identifier: Apache-2.0
 *
 * MXFP4 for tests, in doubles: the nearest of the values, scales by logarithm.
 */
#ifndef TESTS_REFERENCE_MXFP4_REF_H
#define TESTS_REFERENCE_MXFP4_REF_H

#include <stdint.h>

/* The code of x: the nearest of all, of two equally near the even one; NaN is
 * 7. */
uint8_t ref_e2m1(double x);
double ref_e2m1_value(uint8_t code);

/* The byte of the scale of a group with that amax; 2^(byte - 127). */
uint8_t ref_mxfp4_scale(double amax);
double ref_mxfp4_scale_value(uint8_t byte);

/* n values, a multiple of 32, as n / 2 bytes and n / 32 scales. */
void ref_mxfp4_encode(const double *x, uint32_t n, uint8_t *codes,
		      uint8_t *scales);

/* Value i of what the above gives. */
double ref_mxfp4_value(const uint8_t *codes, const uint8_t *scales, uint32_t i);

#endif
