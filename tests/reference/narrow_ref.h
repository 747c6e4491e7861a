/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the cache writers share: 16-bit rows to feed them, the
 * codes they should write, and a comparison that says where two pools part.
 */
#ifndef TESTS_REFERENCE_NARROW_REF_H
#define TESTS_REFERENCE_NARROW_REF_H

#include "spmla/spmla_layout.h"
#include "tests/reference/reference.h"

/* The value of BF16 or FP16 bits. */
double value16(uint16_t bits, uint32_t dtype);

/* e4m3 of the f32 quotient x / s; NaN is 0x7f whatever its sign. */
uint8_t quotient_code(double x, double s);

/* The same in either encoding, and what a code is there. */
uint8_t encoded_quotient(double x, double s, uint32_t encoding);
double code_value(uint8_t code, uint32_t encoding);

/* n 16-bit numbers. Rows: around one magnitude, which differs by row; one row
 * in 8 has any bits. Bits: any, NaN and infinity too. */
void fill_row16(uint64_t *rng, uint16_t *row, uint32_t n);
void fill_bits16(uint64_t *rng, uint16_t *row, uint32_t n);

/* Distinct slots below `slots`; one in 8, and what is too many, is -1. */
void fill_slots(uint64_t *rng, int64_t *slot, uint32_t n, uint32_t slots);

enum { ROPE_POSITIONS = 50 }; /* rows of the rope table */

/* f32 [ROPE_POSITIONS][64]: dim 64, base 10000; row 0 is 32 ones and 32 zeros.
 * The caller frees it. */
float *rope_table(void);
void fill_positions(uint64_t *rng, int32_t *positions, uint32_t n);

/* Fails the test at the first byte that differs. */
void check_bytes(const void *got, const void *want, uint64_t bytes);

#endif
