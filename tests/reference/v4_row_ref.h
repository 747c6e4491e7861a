/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of V4's front end are compared with: rows of its caches
 * written and read in double, RMS norms in the order that the contracts pin.
 * It has its own numbers of every layout.
 */
#ifndef TESTS_REFERENCE_V4_ROW_REF_H
#define TESTS_REFERENCE_V4_ROW_REF_H

#include "spmla/spmla_layout.h"

/* The bytes of a page of V4 entries, a multiple of 16. */
uint64_t v4_ref_page_bytes(uint32_t layout, uint32_t entries);

/* Writes bf16 row[512] as entry `slot` of a pool that is laid out as c says;
 * scale is the scale of V4_E4M3. A slot past the cache writes nothing. */
void v4_ref_write(const spmla_cache *c, uint8_t *pool, int64_t slot,
		  const uint16_t *row, float scale);

/* The bf16 row[512] of an entry of a page. */
void v4_ref_read(const spmla_cache *c, const uint8_t *page, uint64_t entry,
		 float scale, uint16_t *row);

/* Rotates the last 64 of bf16 row[512] (32 cos, 32 sin) to bf16. */
void v4_ref_rotate(uint16_t *row, const float *cos_sin);

/* 1 / sqrt(mean of squares + eps) of n bf16 values in f32. Lane l of 16 (or of
 * 128, if `wide`) adds the octets l, l + lanes, ..; 16 lanes by a tree; then,
 * if there are more, their sums by a tree. */
double v4_ref_rstd(const uint16_t *x, uint32_t n, float eps, uint32_t wide);

/* Bits of x as bf16; every NaN is 0x7fc0. */
uint16_t v4_ref_bits(double x);

/* A head of a query: normed, rotated, rounded once. */
void v4_ref_query(const uint16_t *q, float eps, const float *cos_sin,
		  uint16_t *out);

#endif
